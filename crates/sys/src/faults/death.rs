//! What is done just before a signal ends the process with a core: the caller's last call, [`before_death`].
//!
//! Faults come by the handler of faults. For SIGABRT, SIGFPE and SIGILL a handler of our own stands where the program has none: it makes
//! the call, puts the default action back and lets the signal come again.

use crate::check;
use crate::signals::real_sigaction;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Besides faults: the signals that a program ends itself by.
const SIGNALS: [libc::c_int; 3] = [libc::SIGABRT, libc::SIGFPE, libc::SIGILL];

/// A `fn()` as an address; 0: none.
static LAST: AtomicUsize = AtomicUsize::new(0);

/// Has `last` called in the thread that a signal is about to end the process by. It may do what a handler of faults may.
///
/// # Errors
/// The kernel's, when a handler cannot be installed.
pub fn before_death(last: fn()) -> io::Result<()> {
    LAST.store(last as usize, Ordering::Release);
    for signal in SIGNALS {
        let mut now = default_action();
        // SAFETY: null asks for the current action only, which goes to `now`.
        check(unsafe { real_sigaction(signal, std::ptr::null(), &raw mut now) })?;
        if now.sa_sigaction != libc::SIG_DFL {
            continue;
        }
        let mut ours = default_action();
        ours.sa_sigaction = on_end as extern "C" fn(libc::c_int) as usize;
        // The default action is back when the handler runs, and what it raises again is not blocked.
        ours.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND | libc::SA_NODEFER;
        // SAFETY: a valid action with a handler of one argument that lives for ever.
        check(unsafe { real_sigaction(signal, &raw const ours, std::ptr::null_mut()) })?;
    }
    Ok(())
}

/// Is this action ours? Then the program has none.
pub(super) fn is_ours(action: &libc::sigaction) -> bool {
    action.sa_sigaction == on_end as extern "C" fn(libc::c_int) as usize
}

extern "C" fn on_end(signal: libc::c_int) {
    announce();
    // SAFETY: numbers only; the thread is ourselves.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
}

/// The process is about to end.
pub(super) fn announce() {
    let last = LAST.load(Ordering::Acquire);
    if last != 0 {
        // SAFETY: not 0, so `before_death` stored a `fn()`.
        let last: fn() = unsafe { std::mem::transmute(last) };
        last();
    }
}

fn default_action() -> libc::sigaction {
    // SAFETY: a struct of integers and an optional function pointer: zeros are SIG_DFL, no flags, nothing blocked.
    unsafe { std::mem::zeroed() }
}
