//! What is mapped where in this process, `/proc/self/maps`, and how many mappings it may have.

use std::io;
use std::ops::Range;

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
    Ok(std::fs::read_to_string("/proc/self/maps")?.lines().filter_map(region).collect())
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
    fn a_variable_on_the_stack_lies_in_a_mapping() {
        let variable = 0_u8;
        let at = (&raw const variable).addr();
        assert!(of_this_process().unwrap().iter().any(|region| region.addresses.contains(&at) && region.is_writable));
    }
}
