//! What this process is: before its runtime, in it, after it, or a child made by fork. All modules ask; `start` and `end` say.
//!
//! ```text
//!    before --begin--> running --end--> ended --close--> the shared memory is gone
//!       |                 |               |
//!       +---- fork -------+---- fork -----+--> a child, which is no part of the job
//! ```

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use finespun_errors::Code;
use finespun_sys::process::Program;

use crate::node::cluster::Cluster;
use crate::node::failure::Failure;

/// What runs where `start` is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The program goes on in processor 0 only; the other processes serve.
    Main,
    /// The program goes on in every process.
    Spmd,
    /// As `Main`, and the program makes as many threads as it likes, each of them in a thread of its own: see
    /// `places`.
    Threads,
}

/// The running runtime of this process.
pub struct Runtime {
    /// The job as this process sees it.
    pub cluster: &'static Cluster,
    /// Who goes on.
    pub model: Model,
    /// The program, to turn functions into offsets.
    pub program: Program,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();
static ENDED: AtomicBool = AtomicBool::new(false);
static CLOSED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);
static OWN_THREADS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The handle of the calling thread, if it stands in a place.
    static THREAD: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The process has joined: calls of the library find this runtime.
pub fn begin(runtime: Runtime) -> &'static Runtime {
    RUNTIME.get_or_init(|| runtime)
}

/// The runtime, between start and end, in a process of the job.
///
/// # Errors
/// [`Code::NotStarted`] outside of that, [`Code::Forked`] in a child made by fork.
pub fn runtime() -> Result<&'static Runtime, Failure> {
    if is_forked() {
        return Err(Failure::new(Code::Forked, "a call of the library in a child made by fork"));
    }
    match RUNTIME.get() {
        Some(runtime) if !ENDED.load(Ordering::Relaxed) => Ok(runtime),
        // Main has ended, and so has the program: this thread's process is about to end.
        Some(_) if own_thread().is_some() => loop {
            std::thread::park();
        },
        Some(_) => Err(Failure::new(Code::NotStarted, "a call of the library after fsp_finalize")),
        None => Err(Failure::new(Code::NotStarted, "a call of the library before fsp_init")),
    }
}

/// The runtime, if there is one to call: cheap, and allocates nothing.
#[inline]
pub fn running() -> Option<&'static Runtime> {
    RUNTIME.get().filter(|_| !is_forked() && !ENDED.load(Ordering::Relaxed))
}

/// The runtime from the start on, also after the end and in a child made by fork.
pub fn started() -> Option<&'static Runtime> {
    RUNTIME.get()
}

/// The runtime has ended.
pub fn end() {
    ENDED.store(true, Ordering::SeqCst);
}

/// The runtime, if it has ended, in a process of the job.
pub fn ended() -> Option<&'static Runtime> {
    RUNTIME.get().filter(|_| ENDED.load(Ordering::SeqCst) && !is_forked())
}

/// The shared memory is about to be taken away.
pub fn close() {
    CLOSED.store(true, Ordering::SeqCst);
}

/// Was the shared memory taken away?
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::SeqCst)
}

/// This is a child made by fork.
pub fn fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Is this a child made by fork? The view knows also where no fork handlers ran (`_Fork`, `clone`).
#[inline]
pub fn is_forked() -> bool {
    let view = RUNTIME.get().and_then(|runtime| runtime.cluster.view.as_ref());
    FORKED.load(Ordering::Relaxed) || view.is_some_and(|(_, mapping)| !mapping.is_ours())
}

/// The program makes threads of its own.
pub fn note_own_threads() {
    OWN_THREADS.store(true, Ordering::Relaxed);
}

/// Has the program made threads of its own, as far as it has said so?
pub fn has_own_threads() -> bool {
    OWN_THREADS.load(Ordering::Relaxed)
}

/// The calling thread is the one of this handle, in a place of the program's threads.
pub fn become_thread(handle: u64) {
    THREAD.set(Some(handle));
}

/// The handle of the calling thread, if it stands in a place.
pub fn own_thread() -> Option<u64> {
    THREAD.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_start_a_call_is_an_error_and_nothing_runs() {
        assert_eq!(runtime().err().map(|failure| failure.code), Some(Code::NotStarted));
        assert!(running().is_none() && started().is_none() && ended().is_none());
        assert!(!is_forked() && !is_closed());
    }

    #[test]
    fn a_handle_is_that_of_the_calling_thread_only() {
        assert_eq!(own_thread(), None);
        become_thread(7);
        assert_eq!(own_thread(), Some(7));
        let other = std::thread::spawn(own_thread).join();
        assert_eq!(other.ok(), Some(None));
    }
}
