//! What a call returns that cannot be done.

use std::fmt::Display;

use finespun_errors::Code;

/// What went wrong in a call: the caller decides whether it ends the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which error.
    pub code: Code,
    /// What happened, in this run's own words.
    pub what: String,
}

impl Failure {
    /// An error with its sentence.
    pub fn new(code: Code, what: impl Display) -> Self {
        Self { code, what: what.to_string() }
    }
}
