//! What kind of private memory an address lies in, for messages.

use std::fs;

use finespun_errors::Code;

use crate::node::failure::Failure;

/// One line of `/proc/self/maps`.
struct Mapped {
    is_writable: bool,
    name: String,
}

fn mapping_of(address: usize) -> Option<Mapped> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).ok());
        if !(start?..end?).contains(&address) {
            return None;
        }
        let rights = words.next()?;
        let name = words.nth(3).unwrap_or_default().to_owned();
        Some(Mapped {
            // Without any rights, for a private variable that --check globals watches.
            is_writable: rights.contains('w') || rights.starts_with("---"),
            name,
        })
    })
}

/// A synchronization object that lies in memory of one process, in a job of several.
pub fn object(address: usize, kind: &str, process: usize) -> Failure {
    let place = name_of(address);
    let what = format!("the {kind} at {address:#x} is private memory of process {process} ({place})");
    Failure { code: Code::PrivateObject, what }
}

/// Is there memory at this address?
pub fn is_mapped(address: usize) -> bool {
    mapping_of(address).is_some()
}

/// Which memory it is: "the stack", "a global variable" ...
pub fn name_of(address: usize) -> String {
    named(address, mapping_of(address))
}

/// The same, if the address is that of memory whose contents differ between processes.
pub fn writable_name_of(address: usize) -> Option<String> {
    let mapped = mapping_of(address).filter(|mapped| mapped.is_writable)?;
    Some(named(address, Some(mapped)))
}

fn named(address: usize, mapped: Option<Mapped>) -> String {
    let here = (&raw const address).addr();
    let program = fs::read_link("/proc/self/exe").unwrap_or_default();
    match mapped {
        None => "not mapped".to_owned(),
        Some(Mapped { name, .. }) if name == "[stack]" => "the stack".to_owned(),
        // A stack grows down, and is one mapping: the caller's own, if it is within reach.
        Some(Mapped { name, .. }) if name.is_empty() && address > here && address - here < 8 << 20 => {
            "the thread's stack".to_owned()
        }
        Some(Mapped { name, .. }) if name == "[heap]" => "malloc memory".to_owned(),
        Some(Mapped { name, .. }) if !name.is_empty() && program.as_os_str() == name.as_str() => {
            "a global or static variable".to_owned()
        }
        // What a program's uninitialised globals lie in has no name.
        Some(Mapped { name, .. }) if name.is_empty() => "malloc memory, a global variable or a stack".to_owned(),
        Some(Mapped { name, .. }) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static mut GLOBAL: u64 = 7;
    static TEXT: &str = "text";

    #[test]
    fn stacks_globals_and_constants_are_told_apart() {
        let local = 7_u64;
        assert!(name_of((&raw const local).addr()).contains("stack"));
        assert_eq!(writable_name_of((&raw const GLOBAL).addr()).as_deref(), Some("a global or static variable"));
        assert_eq!(writable_name_of(TEXT.as_ptr().addr()), None);
        assert_eq!(name_of(8), "not mapped");
    }
}
