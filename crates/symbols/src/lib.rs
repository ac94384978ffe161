//! What an address of an executable is called, for messages to people.
//!
//! A process of a job tells addresses only; whoever words the message reads the executable's file, once and after the fact:
//!
//! ```text
//! variable(0x4052a8)      -> `total`+8 (pi.c:12)        name from DWARF (-g), else from the symbol table
//! instruction(0x401b3c)   -> work (pi.c:31)             inner function, where functions were inlined
//! ```
//!
//! Addresses are those of the *link*: what runs elsewhere (a position-independent executable) has its load address taken away
//! first. What the file does not say is left out: without `-g` the lines, without a symbol table the names.

#![forbid(unsafe_code)]

mod debug;
mod place;
mod table;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use debug::Debug;
pub use place::{Instruction, Line, Variable};
use table::Table;

/// The names of one executable or shared library.
pub struct Symbols {
    variables: Table,
    functions: Table,
    debug: Option<Debug>,
    is_position_independent: bool,
    /// Where the linker keeps its own.
    of_linker: Vec<Range<u64>>,
}

impl Symbols {
    /// Reads a file of the ELF format. What it does not have (debugging information, symbols) is no error.
    ///
    /// # Errors
    /// The file cannot be read, or is no such file.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::of(&fs::read(path)?).map_err(io::Error::other)
    }

    fn of(bytes: &[u8]) -> Result<Self, object::Error> {
        let file = object::File::parse(bytes)?;
        let defined = || file.symbols().chain(file.dynamic_symbols()).filter(|symbol| !symbol.is_undefined());
        let of_kind = |kind| defined().filter(move |symbol| symbol.kind() == kind);
        let copied = table::copied(&file);
        let variables = of_kind(SymbolKind::Data).filter_map(|symbol| table::entry(&symbol, &copied));
        let functions = of_kind(SymbolKind::Text).filter_map(|symbol| table::entry(&symbol, &copied));
        Ok(Self {
            variables: variables.collect(),
            functions: functions.collect(),
            debug: Debug::of(&file),
            of_linker: file.sections().filter_map(|section| table::of_linker(&section)).collect(),
            is_position_independent: file.kind() == object::ObjectKind::Dynamic,
        })
    }

    /// Is it loaded wherever there is room (PIE, a shared library), so that its addresses differ from process to process?
    #[must_use]
    pub const fn is_position_independent(&self) -> bool {
        self.is_position_independent
    }

    /// Is this the linker's own: a table of addresses (`.got`), not a variable of the program?
    #[must_use]
    pub fn is_of_linker(&self, address: u64) -> bool {
        self.of_linker.iter().any(|range| range.contains(&address))
    }

    /// The variable with static storage that has a byte at this address.
    #[must_use]
    pub fn variable(&self, address: u64) -> Option<Variable> {
        let found = self.variables.at(address)?;
        let declaration = self.debug.as_ref().and_then(|debug| debug.declaration(found.address));
        // The symbols of C++ have the namespaces and classes, those of C what the compiler has added.
        let of_source = declaration.filter(|_| !found.is_mangled()).map(|declaration| declaration.name.clone());
        Some(Variable {
            name: of_source.unwrap_or_else(|| found.name()),
            address: found.address,
            size: found.size,
            offset: address - found.address,
            declared: declaration.and_then(|declaration| declaration.line.clone()),
            is_of_library: found.is_of_library,
        })
    }

    /// Where the instruction that has a byte at this address comes from.
    #[must_use]
    pub fn instruction(&self, address: u64) -> Instruction {
        let told = self.debug.as_ref().map(|debug| debug.instruction(address)).unwrap_or_default();
        let function = told.function.or_else(|| self.functions.at(address).map(table::Entry::name));
        Instruction { function, line: told.line }
    }
}

#[cfg(test)]
mod tests;
