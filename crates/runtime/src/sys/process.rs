//! What the runtime asks of the C library for the process as a whole.

use std::io;

/// Ends the process at once, without running what the program registered for its exit: the job is ending by an error, and
/// the program's own code may be in any state.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: takes no pointer and does not return.
    unsafe { libc::_exit(code) }
}

/// Ends the process without what the program registered for its exit, but with its output written.
pub fn leave() -> ! {
    // SAFETY: null stands for all streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    exit_now(0)
}

/// Runs `before` ahead of every fork, and `in_child` in every child made by fork, before anything else there.
pub fn on_fork(before: Option<extern "C" fn()>, in_child: extern "C" fn()) -> io::Result<()> {
    // SAFETY: a function of this library, which is never unloaded while the process lives (it holds fault handlers).
    match unsafe { libc::pthread_atfork(before.map(as_unsafe), None, Some(as_unsafe(in_child))) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn as_unsafe(function: extern "C" fn()) -> unsafe extern "C" fn() {
    function
}
