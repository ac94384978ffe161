//! How a signal ended a process, in words: what was wanted, by which line, and what lies at that address.
//!
//! What lies there is found in the processes that still run: an address that means nothing in the process that died, and something
//! in another, is most often a pointer that one has stored and the other has followed.

use std::path::Path;

use finespun_errors::{Code, Place};
use finespun_job::Job;
use finespun_runtime::last::{Told, Wanted};
use finespun_symbols::{Instruction, Symbols};
use finespun_sys::maps::{self, Region};

use crate::diagnosis::who;

/// What is said of the end of a process by a signal, beside the signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The kind of mistake.
    pub code: Code,
    /// The thread.
    pub place: Place,
    /// What stands behind the name of the signal.
    pub what: String,
}

/// Another process of the job, by its first processor, and what is mapped there.
pub struct Other {
    processor: u32,
    regions: Vec<Region>,
}

impl Other {
    /// A process of the job; none if it has ended.
    #[must_use]
    pub fn of(processor: u32, pid: u32) -> Option<Self> {
        maps::of_process(pid).ok().map(|regions| Self { processor, regions })
    }

    fn region(&self, address: u64) -> Option<&Region> {
        let address = usize::try_from(address).ok()?;
        self.regions.iter().find(|region| region.addresses.contains(&address) && region.is_readable)
    }
}

/// Words the end of a process of this program.
#[must_use]
pub fn death(told: &Told, program: &Path, job: &Job, others: &[Other]) -> Death {
    let names = Symbols::read(program).ok();
    let instruction = |address: Option<u64>| Some(names.as_ref()?.instruction(address?)).filter(is_known);
    let line = match (instruction(told.instruction), instruction(told.caller)) {
        (Some(own), _) => format!(", in {own}"),
        (None, Some(caller)) => format!(", in a library that was called in {caller}"),
        (None, None) => String::new(),
    };
    let place = told.place.clone();
    let wanted = match told.wanted {
        Wanted::Nothing => return Death { code: Code::Died, place, what: line },
        Wanted::Load => "a load from",
        Wanted::Store => "a store to",
        Wanted::Access => "an access to",
    };
    let (code, lies) = lies(told, job, others);
    Death { code, place, what: format!(": {wanted} {}{line}; {lies}", at(told.address)) }
}

const fn is_known(instruction: &Instruction) -> bool {
    instruction.function.is_some() || instruction.line.is_some()
}

/// The end of the addresses that a program of x86-64 can have.
const END: u64 = 1 << 47;
/// An address below is an offset from a null pointer: the kernel maps nothing there.
const LOWEST: u64 = 1 << 16;

fn at(address: u64) -> String {
    if address >= END { "no address".to_owned() } else { format!("{address:#x}") }
}

/// What lies at the address, as a sentence, and the kind of mistake that this shows.
fn lies(told: &Told, job: &Job, others: &[Other]) -> (Code, String) {
    let found = || others.iter().find_map(|other| Some((other, other.region(told.address)?)));
    let died = |lies: &str| (Code::Died, lies.to_owned());
    if told.address >= END {
        died("the pointer is none: a value that was never set, or was written over")
    } else if told.address < LOWEST {
        died("the pointer is null, or is computed from null")
    } else if told.is_readable {
        died("what is there may be read only: a constant, or code")
    } else if let Some((other, region)) = found() {
        let lies = format!("only the process of {} has something there: {}", who(other.processor, job), called(region));
        (Code::OtherMemory, lies)
    } else {
        died("no process of the job has anything there: memory that was given back, or a pointer that was never set")
    }
}

fn called(region: &Region) -> &str {
    region.called().trim_end_matches(',')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: Told = Told {
        place: Place::Processor { node: 1, processor: 1 },
        signal: 11,
        wanted: Wanted::Store,
        address: 0x7000_0008,
        is_readable: false,
        instruction: None,
        caller: None,
    };

    fn worded(told: Told, others: &[Other]) -> (Code, String) {
        let job = Job { nodes: 2, ..Job::alone() };
        let death = death(&told, Path::new("/no/such/program"), &job, others);
        (death.code, death.what)
    }

    fn other() -> Other {
        let region = Region {
            addresses: 0x7000_0000..0x7001_0000,
            is_readable: true,
            is_writable: true,
            name: "[stack]".into(),
        };
        Other { processor: 0, regions: vec![region] }
    }

    #[test]
    fn an_address_that_another_process_has_is_named_by_it() {
        let what = ": a store to 0x70000008; only the process of processor 0 (node 0) has something there: the stack of the first thread";
        assert_eq!(worded(TOLD, &[other()]), (Code::OtherMemory, what.to_owned()));
    }

    #[test]
    fn what_no_process_has_was_given_back_or_never_set() {
        let (code, what) = worded(Told { address: 0x6000_0000, wanted: Wanted::Load, ..TOLD }, &[other()]);
        assert_eq!(code, Code::Died);
        assert!(what.starts_with(": a load from 0x60000000; no process of the job has anything there"), "{what}");
    }

    #[test]
    fn null_constants_and_nonsense_are_called_so_whatever_other_processes_have() {
        let what = |told: Told| worded(told, &[other()]);
        assert!(what(Told { address: 8, ..TOLD }).1.contains("null"));
        assert!(what(Told { is_readable: true, ..TOLD }).1.contains("read only"));
        let (code, words) = what(Told { address: u64::MAX, wanted: Wanted::Access, ..TOLD });
        assert_eq!(code, Code::Died);
        assert!(words.starts_with(": an access to no address; the pointer is none"), "{words}");
    }

    #[test]
    fn of_a_signal_that_no_access_raised_only_the_line_is_told() {
        assert_eq!(
            worded(Told { signal: 6, wanted: Wanted::Nothing, ..TOLD }, &[other()]),
            (Code::Died, String::new())
        );
    }

    #[test]
    fn the_mappings_of_a_process_that_runs_are_found() {
        let variable = 0_u8;
        let own = Other::of(0, std::process::id()).expect("this process");
        assert!(own.region((&raw const variable).addr() as u64).is_some());
        assert!(Other::of(0, 0).is_none());
    }
}
