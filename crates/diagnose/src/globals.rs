//! `--check globals`: the program's private variables, watched from the moment at which processes may differ.
//!
//! That is the start of the runtime: before it every process does the same (in the main model, all run main as far as `fsp_init`),
//! and what is set there is the same everywhere. Whatever a process changes later, the others do not see.

use std::ops::Range;
use std::sync::OnceLock;

use finespun_errors::Code;
use finespun_runtime::{Failure, Subject};
use finespun_sys::watch::{self, table};

/// The process, for the handler that asks for the processor of a store.
static SUBJECT: OnceLock<Subject> = OnceLock::new();

/// Watches from now on, if the job asks for it; what ends that. `shared` are the addresses of variables that are shared.
///
/// # Errors
/// [`Code::Machine`] if it cannot be done.
pub fn begin(subject: Subject, shared: &Range<usize>) -> Result<Option<fn()>, Failure> {
    let Some(fd) = subject.watch_table() else { return Ok(None) };
    let refuse = |error| {
        let what = format!(
            "--check globals: {error}; it works on x86-64, in programs that are linked with libfinespun.so, not libfinespun.a"
        );
        Failure::new(Code::Machine, what)
    };
    if !shared.is_empty() {
        table::nothing_to_watch(fd).map_err(refuse)?;
        return Ok(None);
    }
    let own = table::Own {
        process: subject.process(),
        processors_each: subject.job().threads,
        processes: subject.processes(),
    };
    SUBJECT.get_or_init(|| subject);
    let variables = watch::begin(fd, own, processor).map_err(refuse)?;
    // The kernel has no rights there either: its transfers go by loads and stores, which are seen.
    subject.variables_are_watched(variables);
    Ok(Some(watch::end))
}

fn processor() -> u32 {
    SUBJECT.get().map_or(0, |subject| subject.processor())
}
