//! What is mapped where in this process, `/proc/self/maps`, and how many mappings it may have.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it is.
    pub addresses: Range<usize>,
    /// Can it be read at all?
    pub is_readable: bool,
    /// Can it be changed?
    pub is_writable: bool,
    /// The file, or the kernel's word for it (`[heap]`); empty: none.
    pub name: String,
}

/// All mappings, by address.
///
/// # Errors
/// The kernel's.
pub fn of_this_process() -> io::Result<Vec<Region>> {
    of("/proc/self/maps")
}

/// All mappings of a process, by address.
///
/// # Errors
/// The kernel's: it has ended, or is another user's.
pub fn of_process(pid: u32) -> io::Result<Vec<Region>> {
    of(&format!("/proc/{pid}/maps"))
}

fn of(path: &str) -> io::Result<Vec<Region>> {
    Ok(std::fs::read_to_string(path)?.lines().filter_map(region).collect())
}

impl Region {
    /// What it is called in a message.
    #[must_use]
    pub fn called(&self) -> &str {
        match self.name.as_str() {
            "[stack]" => "the stack of the first thread",
            "[heap]" => "malloc memory",
            "" => "malloc memory, or a thread's stack,",
            name => Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name),
        }
    }
}

/// What a mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Loads.
    pub reads: bool,
    /// Stores.
    pub writes: bool,
}

impl Rights {
    /// Loads and stores.
    pub const ALL: Self = Self { reads: true, writes: true };
    /// Neither, or no mapping.
    pub const NONE: Self = Self { reads: false, writes: false };
}

/// The rights of the mapping that an address is in; `None` if that cannot be found out. Allocates nothing: for the fault handler.
#[must_use]
pub fn rights_at(address: usize) -> Option<Rights> {
    // SAFETY: a C string; the flags take no third argument.
    let fd = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    // SAFETY: the kernel returned it just now: open, and nobody else's.
    let file = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })?;
    let (mut bytes, mut search) = ([0; 512], Search::new(address));
    loop {
        // SAFETY: `bytes` is writable for its length.
        let count = unsafe { libc::read(file.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        let read = bytes.get(..usize::try_from(count).ok()?)?;
        if read.is_empty() {
            return Some(Rights::NONE);
        }
        if let Some(found) = read.iter().find_map(|&byte| search.take(byte)) {
            return Some(found);
        }
    }
}

/// Reads the list of mappings byte by byte, up to the one that an address is in.
struct Search {
    address: usize,
    start: usize,
    end: usize,
    reads: bool,
    /// Which part of the line comes now.
    part: Part,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    End,
    Reads,
    Writes,
    Rest,
}

impl Search {
    const fn new(address: usize) -> Self {
        Self { address, start: 0, end: 0, reads: false, part: Part::Start }
    }

    fn take(&mut self, byte: u8) -> Option<Rights> {
        let digit = || char::from(byte).to_digit(16).unwrap_or(0) as usize;
        match (self.part, byte) {
            (_, b'\n') => *self = Self::new(self.address),
            (Part::Start, b'-') => self.part = Part::End,
            (Part::Start, _) => self.start = self.start << 4 | digit(),
            (Part::End, b' ') => self.part = Part::Reads,
            (Part::End, _) => self.end = self.end << 4 | digit(),
            (Part::Reads, _) => (self.reads, self.part) = (byte == b'r', Part::Writes),
            (Part::Writes, _) => {
                self.part = Part::Rest;
                let is_it = (self.start..self.end).contains(&self.address);
                return is_it.then_some(Rights { reads: self.reads, writes: byte == b'w' });
            }
            (Part::Rest, _) => {}
        }
        None
    }
}

/// How many mappings a process may have, if it can be read.
pub(crate) fn max_map_count() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
}

fn region(line: &str) -> Option<Region> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).ok());
    let rights = words.next()?;
    Some(Region {
        addresses: start?..end?,
        is_readable: rights.starts_with('r'),
        is_writable: rights.contains('w'),
        name: words.skip(3).collect::<Vec<_>>().join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_rights_and_name() {
        let line = "7f00-8f00 rw-p 00000000 fd:01 17  /tmp/a file";
        let expected =
            Region { addresses: 0x7f00..0x8f00, is_readable: true, is_writable: true, name: "/tmp/a file".to_owned() };
        assert_eq!(region(line), Some(expected));
        assert_eq!(
            region("1000-2000 ---p 0 0:0 0").map(|region| (region.is_readable, region.name)),
            Some((false, String::new()))
        );
        assert_eq!(region("nonsense"), None);
    }

    #[test]
    fn memory_has_the_name_that_a_programmer_knows() {
        let called = |line| region(line).unwrap().called().to_owned();
        assert_eq!(called("1000-2000 r--p 0 fd:01 17 /usr/lib/libm.so.6"), "libm.so.6");
        assert_eq!(called("1000-2000 rw-p 0 0:0 0 [heap]"), "malloc memory");
    }

    #[test]
    fn the_mappings_of_a_process_are_those_it_sees_itself() {
        let of_code = |regions: Vec<Region>| regions.into_iter().find(|region| !region.is_writable);
        assert_eq!(of_code(of_process(std::process::id()).unwrap()), of_code(of_this_process().unwrap()));
        assert!(of_process(0).is_err());
    }

    #[test]
    fn the_rights_at_an_address_are_found_without_the_list() {
        let (variable, constant) = (0_u8, "text");
        assert_eq!(rights_at((&raw const variable).addr()), Some(Rights::ALL));
        assert_eq!(rights_at(constant.as_ptr().addr()), Some(Rights { reads: true, writes: false }));
        assert_eq!(rights_at(8), Some(Rights::NONE));
    }

    #[test]
    fn a_variable_on_the_stack_lies_in_a_mapping() {
        let variable = 0_u8;
        let at = (&raw const variable).addr();
        assert!(of_this_process().unwrap().iter().any(|region| region.addresses.contains(&at) && region.is_writable));
    }
}
