//! `finespun/pthread.h`, `finespun/threads.h`, `finespun/atomic.h`: threads of ordinary pthread programs on every node.
//!
//! Each function has the name of the C library's with `__wrap_` before it. A program gets here by the linker's `--wrap`
//! (`fspcc --pthread`), which turns the program's own calls, and no library's, to these names; or by the header, which does it at
//! compile time. Calls, layouts and static initialisers are the C library's, so the two may be mixed.
//!
//! **Objects** are known by their addresses in shared memory. What the engine keeps of them does not stand there; only what
//! an initialisation says does: the kind of a mutex (where the C library has it), the clock of a condition variable, the
//! count of a barrier. An object in private memory is the C library's while the job has one process, and else a
//! mistake (E011).
//!
//! | what | where |
//! |---|---|
//! | start, exit | [`start`] |
//! | create, join, detach, exit, self | [`threads`] |
//! | stacks in shared memory | [`stacks`] |
//! | mutex, spin lock | [`mutex`] |
//! | condition variable | [`condition`] |
//! | rwlock | [`rwlock`] |
//! | barrier, once, semaphore | [`others`] |
//! | keys | [`keys`] |
//! | `thrd_*`, `mtx_*`, `cnd_*`, `tss_*`, `call_once` | [`c11`] |
//! | atomic access | [`atomic`] |
//! | futex | [`futex`] |
//!
//! What a program does wrong by POSIX's own words (unlock by another thread, a normal mutex locked twice) ends the job with a
//! message, as everywhere in Finespun; what POSIX has a result for, is returned.

mod atomic;
mod c11;
mod condition;
mod futex;
mod held;
mod keys;
mod mutex;
mod others;
mod output;
mod rwlock;
pub mod stacks;
mod start;
mod threads;
mod time;

use std::ffi::c_int;

use finespun_errors::Code;
use finespun_runtime::{Failure, private, program};
pub use threads::{keep, make};

use crate::error::refuse;

/// Whose an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// It is shared: ours.
    Ours,
    /// It is private, and all threads are in this process: the C library's.
    Theirs,
}

/// Whose is the object at this address? The error is that it is private while threads run in several processes.
fn whose<T: ?Sized>(object: *const T, kind: &str) -> Result<Whose, Failure> {
    let address = object.cast::<()>().addr();
    if program::is_shared(address) {
        return Ok(Whose::Ours);
    }
    match program::identity() {
        Ok(me) if me.processes > 1 => Err(private::object(address, kind, me.process)),
        Ok(_) | Err(_) => Ok(Whose::Theirs),
    }
}

/// Calls our function or the C library's.
fn route<T: ?Sized>(
    object: *const T,
    kind: &str,
    ours: impl FnOnce(usize) -> c_int,
    theirs: impl FnOnce() -> c_int,
) -> c_int {
    match whose(object, kind) {
        Ok(Whose::Ours) => ours(object.cast::<()>().expose_provenance()),
        Ok(Whose::Theirs) => theirs(),
        Err(failure) => mistake(failure),
    }
}

/// The result of a call that POSIX gives a number for. An error ends the job unless the program wants errors returned.
fn posix(result: program::Result<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(failure) => mistake(failure),
    }
}

/// The same of a call that may find the object taken.
fn posix_try(result: program::Result<bool>) -> c_int {
    match result {
        Ok(true) => 0,
        Ok(false) => libc::EBUSY,
        Err(failure) => mistake(failure),
    }
}

/// What the program did wrong ends the job, or becomes a number.
fn mistake(failure: Failure) -> c_int {
    let by_code = [(Code::NotOwner, libc::EPERM), (Code::Relock, libc::EDEADLK)];
    let number = by_code.iter().find(|(code, _)| *code == failure.code).map_or(libc::EINVAL, |(_, number)| *number);
    refuse(failure);
    number
}
