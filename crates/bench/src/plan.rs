//! What is measured, and how often.

use std::path::PathBuf;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The command `finespun` itself.
    pub finespun: PathBuf,
    /// The folder of the programs that are measured.
    pub programs: PathBuf,
    /// Protocol, transport and fault mechanism, each measured with every micro benchmark.
    pub settings: Vec<Setting>,
    /// Floors, peers and every micro benchmark.
    pub operations: bool,
    /// Applications too: with the first setting of each transport.
    pub applications: bool,
    /// How costs grow, with the first setting; and then nothing else.
    pub scale: bool,
    /// As little as possible: does everything run?
    pub tiny: bool,
    /// Runs of each application.
    pub repeat: usize,
    /// How often floors, peers and operations are measured, by turns.
    pub rounds: usize,
}

/// How a job is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Of `finespun run --protocol list`.
    pub protocol: String,
    /// `shm` or `tcp`.
    pub transport: String,
    /// `uffd`, `mprotect` or `auto`.
    pub faults: String,
}
