//! What is asked of a job, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use finespun_job::{Faults, Job};
use finespun_runtime::segment::Told;

use crate::diagnosis::Diagnosis;

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The job; its `memory` is made here.
    pub job: Job,
    /// The file to execute ([`crate::program::find`]).
    pub file: PathBuf,
    /// Its name as the user gave it, and its arguments.
    pub command: Vec<OsString>,
    /// Put `[n1.v0] ` before each line of output.
    pub prefix: bool,
    /// For what the nodes' memory is read at the end.
    pub told: Wanted,
}

/// When it is wanted what the nodes' memory tells. To read it takes time: all tables are looked through for pages in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Not at all.
    Never,
    /// Of a job that has come to its own end: for a summary.
    Complete,
    /// However the job has ended: for a file.
    Always,
}

impl Wanted {
    pub(crate) const fn is_for(self, is_complete: bool) -> bool {
        match self {
            Self::Never => false,
            Self::Complete => is_complete,
            Self::Always => true,
        }
    }
}

/// What became of a job.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The exit code for the launcher.
    pub exit_code: i32,
    /// Did the program come to its own end? Then a summary is of interest.
    pub is_complete: bool,
    /// From the last fsp_init to the last fsp_finalize.
    pub elapsed: Duration,
    /// The fault mechanism that was used, if the program got as far.
    pub faults: Option<Faults>,
    /// What each node's memory tells of its processors; nothing if it was not wanted.
    pub nodes: Vec<Told>,
    /// What the job's checks have found.
    pub diagnosis: Diagnosis,
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn the_memory_of_a_job_that_is_ended_is_read_only_for_a_file() {
        let of_an_ended_job = [Wanted::Never, Wanted::Complete, Wanted::Always].map(|wanted| wanted.is_for(false));
        assert_eq!(of_an_ended_job, [false, false, true]);
        assert!(Wanted::Complete.is_for(true) && !Wanted::Never.is_for(true));
    }
}
