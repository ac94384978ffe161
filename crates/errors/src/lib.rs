//! Every error a user can meet, in one catalogue: `finespun explain E020` prints from it.
//!
//! A message has one form everywhere (`what` is made where the error is found, the rest stands here):
//!
//! ```text
//! finespun: error E020 (node 1, processor 3): unlock of a mutex that processor 0 holds
//!   why: only the processor that locked a mutex may unlock it
//!   fix: ...
//!   more: finespun explain E020
//! ```

#![forbid(unsafe_code)]

mod catalogue;

pub use catalogue::{Code, UnknownCode};

use std::fmt;

/// Who met the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The launcher, before or beside the job.
    Launcher,
    /// A node's service process.
    Node(u32),
    /// A processor of a node.
    Processor {
        /// Its node.
        node: u32,
        /// Its number in the job.
        processor: u32,
    },
    /// Another thread of a process of the program.
    Thread {
        /// Its node.
        node: u32,
        /// What it is called.
        name: String,
    },
}

/// One error, ready to be shown: the number, where, and what happened in this run's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The number in the catalogue.
    pub code: Code,
    /// Who met it.
    pub place: Place,
    /// What happened: one sentence, with the run's own names and numbers.
    pub what: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launcher => Ok(()),
            Self::Node(node) => write!(f, " (node {node})"),
            Self::Processor { node, processor } => write!(f, " (node {node}, processor {processor})"),
            Self::Thread { node, name } => write!(f, " (node {node}, {name})"),
        }
    }
}

impl Report {
    /// In the same form, for what does not end the job.
    #[must_use]
    pub const fn as_warning(&self) -> impl fmt::Display {
        Worded { report: self, word: "warning" }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Worded { report: self, word: "error" }.fmt(f)
    }
}

/// A report as one of two kinds.
struct Worded<'a> {
    report: &'a Report,
    word: &'static str,
}

impl fmt::Display for Worded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Report { code, place, what }, word) = (self.report, self.word);
        writeln!(f, "finespun: {word} {code}{place}: {what}")?;
        writeln!(f, "  why: {}", code.why())?;
        writeln!(f, "  fix: {}", code.fix())?;
        write!(f, "  more: finespun explain {code}")
    }
}

impl std::error::Error for Report {}

/// A size for people.
#[must_use]
pub fn bytes(size: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let power = (size.max(1).ilog2() / 10).min(4);
    if power == 0 {
        return format!("{size} bytes");
    }
    format!("{:.1} {}", size as f64 / f64::from(1_u32 << 10).powi(power as i32), UNITS[power as usize])
}

#[cfg(test)]
mod tests {
    use super::{Code, Place, Report, bytes};

    #[test]
    fn sizes_read_well() {
        assert_eq!(bytes(12), "12 bytes");
        assert_eq!(bytes(3 << 20), "3.0 MiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }

    #[test]
    fn a_message_says_what_where_why_and_the_fix() {
        let place = Place::Processor { node: 1, processor: 3 };
        let report = Report { code: Code::NotOwner, place, what: "unlock of a mutex that processor 0 holds".into() };
        assert_eq!(
            report.to_string(),
            "finespun: error E020 (node 1, processor 3): unlock of a mutex that processor 0 holds\n  \
             why: only the processor that locked a mutex may unlock it\n  \
             fix: unlock in the processor that locked; to signal another processor use a flag or a condition variable\n  \
             more: finespun explain E020"
        );
    }

    #[test]
    fn the_launcher_needs_no_place() {
        let report = Report { code: Code::Program, place: Place::Launcher, what: "./sor: not found".into() };
        assert!(report.to_string().starts_with("finespun: error E002: ./sor: not found\n"));
    }
}
