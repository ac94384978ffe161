//! What a process looks for when `finespun run --check` asks for it. A program that is right runs as it does without.
//!
//! ```text
//!    globals    private variables that processes set to different values, or read where another has set them
//!    pointers   words in shared memory that are addresses of private memory
//!    locks      locks of the C library in private variables
//! ```
//!
//! The runtime knows nothing of these. It calls what [`begin`] returns ([`Hooks`]), and tells by a [`Subject`] what the process is.
#![forbid(unsafe_code)]

mod globals;
pub mod locks;
mod marks;
mod pointers;
mod private;

use std::ops::Range;

use finespun_runtime::{Failure, Hooks, Subject};

/// Begins what the job asks for. `shared` are the addresses of the program's variables that are shared.
///
/// # Errors
/// [`finespun_errors::Code::Machine`] if it cannot be done.
pub fn begin(subject: Subject, shared: &Range<usize>) -> Result<Hooks, Failure> {
    locks::begin(subject.job().checks.locks);
    Ok(Hooks { end: globals::begin(subject, shared)?, stores: pointers::begin(subject) })
}
