//! A spin in words: what the loop reads, where it stands, and what other nodes have there.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use finespun_errors::{Code, Place, Report};
use finespun_job::Job;
use finespun_symbols::Symbols;

use super::{Spin, Word};
use crate::memory::Memory;

/// Words spins, each place in the program once.
#[derive(Debug)]
pub struct Wording {
    program: PathBuf,
    places: HashSet<(u64, u64)>,
}

impl Wording {
    /// Of a job of this program.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, places: HashSet::new() }
    }

    /// The report of a spin on a node; `None` if one of that place was made before.
    pub fn report(&mut self, job: &Job, memory: &[Memory], node: u32, spin: &Spin) -> Option<Report> {
        let first = spin.words.first().map_or(0, |word| word.offset);
        let at = if spin.in_image { spin.at - spin.image } else { spin.at };
        if !self.places.insert((at, first)) {
            return None;
        }
        // Without names the addresses must do.
        let names = Symbols::read(&self.program).ok();
        let names = Names { symbols: names.as_ref(), spin };
        let what = match spin.words.as_slice() {
            [] => format!(
                "nothing is read in the endless loop in {}, for {} s so far: what it waited for was read once, before it",
                names.place(),
                spin.seconds
            ),
            words => {
                let each: Vec<_> = words.iter().map(|word| names.word(word)).collect();
                let verb = if words.len() == 1 { "is" } else { "are" };
                let (all, place, seconds) = (each.join(" and "), names.place(), spin.seconds);
                let found = values(memory, node, &words[0]);
                format!("{all} {verb} read again and again in {place}, for {seconds} s so far; {found}")
            }
        };
        let first = (node * job.views + spin.view) * job.threads;
        let place = Place::Processor { node, processor: spin.processor.unwrap_or(first) };
        Some(Report { code: Code::Spin, place, what })
    }
}

/// The program's names for what a spin is about.
struct Names<'a> {
    symbols: Option<&'a Symbols>,
    spin: &'a Spin,
}

impl Names<'_> {
    /// What has to be taken away from an address for that of the link.
    fn moved(&self) -> u64 {
        let moves = self.symbols.is_some_and(Symbols::is_position_independent);
        if moves { self.spin.image } else { 0 }
    }

    fn place(&self) -> String {
        let at = self.spin.at;
        match self.symbols {
            Some(symbols) if self.spin.in_image => symbols.instruction(at - self.moved()).to_string(),
            Some(_) | None => format!("the code at {at:#x}"),
        }
    }

    fn word(&self, word: &Word) -> String {
        let address = word.address;
        match self.symbols.and_then(|symbols| symbols.variable(address.checked_sub(self.moved())?)) {
            Some(variable) => format!("{variable} at {address:#x}"),
            None => format!("the word at {address:#x} in the shared heap"),
        }
    }
}

/// What the word is on its node, and on one where it is something else.
fn values(memory: &[Memory], node: u32, word: &Word) -> String {
    let all: Vec<_> = memory.iter().map(|memory| value(memory, word)).collect();
    let own = &all.get(node as usize).copied().flatten().unwrap_or_default();
    let differs = |(_, value): &(usize, &Option<u64>)| value.is_some_and(|value| value != *own);
    match all.iter().enumerate().find(differs) {
        Some((other, Some(value))) => format!("it is {} here, and {} on node {other}", shown(*own), shown(*value)),
        Some((_, None)) | None => {
            format!("it is {} here, and no node is seen to have anything else", shown(*own))
        }
    }
}

/// None where the whole page is zeros: most likely the node never had it.
fn value(memory: &Memory, word: &Word) -> Option<u64> {
    const PAGE: u64 = 4096;
    let file = File::from(memory.frames.as_fd().try_clone_to_owned().ok()?);
    let mut page = [0; PAGE as usize];
    file.read_exact_at(&mut page, word.offset / PAGE * PAGE).ok()?;
    if page.iter().all(|&byte| byte == 0) {
        return None;
    }
    let (mut bytes, from) = ([0; 8], (word.offset % PAGE) as usize);
    let size = (word.size as usize).min(bytes.len());
    bytes[..size].copy_from_slice(page.get(from..from + size)?);
    Some(u64::from_le_bytes(bytes))
}

/// Counts in the way of people, pointers and masks in that of machines.
fn shown(value: u64) -> String {
    if value < 1 << 20 { value.to_string() } else { format!("{value:#x}") }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn small_numbers_are_decimal() {
        assert_eq!(shown(0), "0");
        assert_eq!(shown(70_000), "70000");
        assert_eq!(shown(0x2000_0000_0040), "0x200000000040");
    }
}
