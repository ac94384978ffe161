//! Symbol tables: named runs of addresses.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use addr2line::demangle_auto;
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags};

/// One symbol with an address.
#[derive(Debug)]
pub struct Entry {
    pub address: u64,
    pub size: u64,
    pub is_of_library: bool,
    symbol: String,
}

impl Entry {
    /// A name of C++, with everything that it is part of.
    pub fn is_mangled(&self) -> bool {
        self.symbol.starts_with("_Z")
    }

    /// As the programmer wrote it: C++ names are taken apart, a version (`stdout@GLIBC_2.2.5`) is left out, and so is what
    /// the compiler adds to tell one function's static variable from another's (`count.0`).
    pub fn name(&self) -> String {
        let end = self.symbol.find(['@', '.']).filter(|&end| end > 0).unwrap_or(self.symbol.len());
        demangle_auto(Cow::from(&self.symbol[..end]), None).into_owned()
    }
}

/// Symbols by address.
#[derive(Debug)]
pub struct Table(Vec<Entry>);

impl FromIterator<Entry> for Table {
    fn from_iter<T: IntoIterator<Item = Entry>>(entries: T) -> Self {
        let mut entries = entries.into_iter().collect::<Vec<_>>();
        // Of several names of one address the first is kept, which is that of the larger table.
        entries.sort_by_key(|entry| entry.address);
        entries.dedup_by_key(|entry| entry.address);
        Self(entries)
    }
}

impl Table {
    /// The one that this address is part of.
    pub fn at(&self, address: u64) -> Option<&Entry> {
        let after = self.0.partition_point(|entry| entry.address <= address);
        let entry = &self.0[after.checked_sub(1)?];
        (address - entry.address < entry.size.max(1)).then_some(entry)
    }
}

/// What is kept of a symbol.
pub fn entry<'data>(symbol: &impl ObjectSymbol<'data>, copied: &HashSet<u64>) -> Option<Entry> {
    let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_owned();
    let (address, size) = (symbol.address(), symbol.size());
    Some(Entry { address, size, is_of_library: copied.contains(&address), symbol: name })
}

/// The addresses of a section that the linker has made for itself and the loader.
pub fn of_linker<'data>(section: &impl ObjectSection<'data>) -> Option<Range<u64>> {
    const NAMES: &[&str] = &[".got", ".got.plt", ".dynamic", ".init_array", ".fini_array", ".preinit_array"];
    let is_one = section.name().is_ok_and(|name| NAMES.contains(&name));
    is_one.then(|| section.address()..section.address() + section.size())
}

/// Where the loader puts copies of libraries' variables.
pub fn copied(file: &object::File<'_>) -> HashSet<u64> {
    let is_arm = file.architecture() == object::Architecture::Aarch64;
    let of_architecture = if is_arm { object::elf::R_AARCH64_COPY } else { object::elf::R_X86_64_COPY };
    let is_copy = |flags| flags == RelocationFlags::Elf { r_type: of_architecture };
    let relocations = file.dynamic_relocations().into_iter().flatten();
    relocations.filter(|(_, relocation)| is_copy(relocation.flags())).map(|(address, _)| address).collect()
}
