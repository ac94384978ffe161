//! Where something stands: a line, a variable, an instruction.

use std::fmt;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The file, as the compiler was given it if that was below the directory it ran in.
    pub file: String,
    /// Its line, from 1 on; 0: the compiler does not say.
    pub line: u32,
}

/// A variable with static storage, and a byte in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name, for C++ with its namespaces and classes.
    pub name: String,
    /// Where it begins.
    pub address: u64,
    /// How many bytes it has.
    pub size: u64,
    /// The byte asked for, counted from the variable's beginning.
    pub offset: u64,
    /// Where it is declared.
    pub declared: Option<Line>,
    /// A library's own variable, of which the linker has put a copy into the executable: `stdout`, `environ`.
    pub is_of_library: bool,
}

/// Where an instruction stands in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// The function.
    pub function: Option<String>,
    /// The line.
    pub line: Option<Line>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// `` `table`+16 (tasks.c:12) ``.
impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name)?;
        if self.offset != 0 {
            write!(f, "+{}", self.offset)?;
        }
        self.declared.as_ref().map_or(Ok(()), |line| write!(f, " ({line})"))
    }
}

/// `work (tasks.c:31)`, or what is known of it.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, &self.line) {
            (Some(function), Some(line)) => write!(f, "{function} ({line})"),
            (Some(function), None) => write!(f, "{function}"),
            (None, Some(line)) => write!(f, "{line}"),
            (None, None) => write!(f, "a function without a name"),
        }
    }
}
