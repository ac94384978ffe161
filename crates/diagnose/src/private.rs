//! The memory that only this process has, by the mappings that the kernel tells of.

use std::io;
use std::ops::Range;

use finespun_job::PrivatePointer;
use finespun_runtime::Subject;
use finespun_sys::maps::{self, Region};
use finespun_sys::watch::Image;

/// No pointer is smaller: the kernel maps nothing there.
const LOWEST: u64 = 1 << 16;

/// What only this process has.
pub struct Private {
    image: Image,
    program: String,
    shares_globals: bool,
    regions: Vec<Region>,
}

impl Private {
    /// As the mappings are now.
    pub fn of(subject: Subject) -> io::Result<Self> {
        let program = std::fs::read_link("/proc/self/exe")?.display().to_string();
        let (window, shared) = (subject.globals(), subject.shared());
        let image = Image::of_this_process();
        let mut private = Self { image, program, shares_globals: !window.is_empty(), regions: Vec::new() };
        let regions = maps::of_this_process()?.into_iter();
        let regions =
            regions.filter(|region| are_apart(&region.addresses, &window) && are_apart(&region.addresses, &shared));
        private.regions = regions.filter(|region| private.is_private(region)).collect();
        Ok(private)
    }

    fn is_private(&self, region: &Region) -> bool {
        let is_variable = self.image.variables.contains(&region.addresses.start);
        if is_variable || region.name == self.program {
            // At a fixed address the program is the same everywhere, but for its variables.
            return self.image.base != 0 || is_variable && !self.shares_globals;
        }
        region.is_readable
            && !region.name.starts_with("/memfd:")
            && !["[vdso]", "[vvar]", "[vsyscall]"].contains(&&*region.name)
    }

    /// Where a word points to, if that is private.
    pub fn region(&self, value: u64) -> Option<&Region> {
        if value < LOWEST || value >> 47 != 0 {
            return None;
        }
        let value = value as usize;
        let after = self.regions.partition_point(|region| region.addresses.start <= value);
        self.regions.get(after.checked_sub(1)?).filter(|region| region.addresses.contains(&value))
    }

    /// What is told of a word at `address`, which points there.
    pub fn told(&self, subject: Subject, address: usize, value: u64, region: &Region) -> PrivatePointer {
        let here = (&raw const address).addr();
        let is_of_program = region.name == self.program || self.image.variables.contains(&region.addresses.start);
        let memory = if region.addresses.contains(&here) { "the stack" } else { region.called() };
        PrivatePointer {
            address: address as u64,
            value,
            memory: memory.to_owned(),
            in_program: is_of_program.then(|| value - self.image.base as u64),
            in_variable: subject.globals().contains(&address),
            processor: subject.processor(),
            program: self.program.clone(),
        }
    }
}

const fn are_apart(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.end <= other.start || one.start >= other.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(addresses: Range<usize>, name: &str) -> Region {
        Region { addresses, name: name.to_owned(), is_readable: true, is_writable: true }
    }

    fn at_base(base: usize, shares_globals: bool) -> Private {
        let image = Image { base, variables: 0x50_0000..0x51_0000, code: 0x40_0000..0x41_0000 };
        let regions = vec![region(0x10_0000..0x20_0000, "[heap]"), region(0x7000_0000..0x7001_0000, "")];
        Private { image, program: "/bin/program".into(), shares_globals, regions }
    }

    #[test]
    fn a_word_is_a_pointer_if_it_lies_in_private_memory() {
        let private = at_base(0, false);
        let name = |value| private.region(value).map(|region| region.name.as_str());
        assert_eq!(name(0x10_0000), Some("[heap]"));
        assert_eq!(name(0x1f_ffff), Some("[heap]"));
        assert_eq!(name(0x7000_0008), Some(""));
        assert!([0, 1, 0xffff, 0xf_ffff, 0x20_0000, 0x7001_0000, 1 << 47, u64::MAX].iter().all(|v| name(*v).is_none()));
    }

    #[test]
    fn at_a_fixed_address_only_the_variables_of_a_program_are_private() {
        let text = region(0x40_0000..0x41_0000, "/bin/program");
        let variables = region(0x50_0000..0x51_0000, "/bin/program");
        assert!(!at_base(0, false).is_private(&text) && at_base(0, false).is_private(&variables));
        assert!(!at_base(0, true).is_private(&variables));
        assert!(at_base(0x5555_0000, true).is_private(&text));
    }

    #[test]
    fn what_the_kernel_or_the_job_maps_everywhere_is_not_private() {
        let private = at_base(0, false);
        assert!(
            ["[vdso]", "[vvar]", "/memfd:finespun-frames (deleted)"]
                .iter()
                .all(|name| !private.is_private(&region(0..1, name)))
        );
        assert!(["", "[heap]", "/lib/libc.so.6"].iter().all(|name| private.is_private(&region(0..1, name))));
    }
}
