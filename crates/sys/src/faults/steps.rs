//! Who is asked first of faults and traps: the steps of [`crate::watch`], which stands above and is seldom there.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::OnceLock;

use super::kind::FaultKind;
use crate::invalid;

/// Single steps over what is watched. All of it is called in the signal handler.
pub(crate) struct Steps {
    /// True: the signal, at this address, is a step's, and the thread can go on. The context is the third argument of a signal handler
    /// with SA_SIGINFO, of a signal that the kernel raised.
    pub on_signal: unsafe fn(signal: c_int, address: usize, kind: FaultKind, context: *mut c_void) -> bool,
    /// The signal goes to the program: a step that it interrupts is over. The context is that of any signal handler with SA_SIGINFO.
    pub abandon: unsafe fn(context: *mut c_void),
    /// Is anything watched now?
    pub are_on: fn() -> bool,
}

/// Empty in all jobs but those that watch: one load and one branch.
static STEPS: OnceLock<Steps> = OnceLock::new();

pub(super) fn set(steps: Steps) -> io::Result<()> {
    STEPS.set(steps).map_err(|_| invalid())
}

/// # Safety
/// As [`Steps::on_signal`] says.
pub(super) unsafe fn on_signal(signal: c_int, address: usize, kind: FaultKind, context: *mut c_void) -> bool {
    // SAFETY: by contract.
    STEPS.get().is_some_and(|steps| unsafe { (steps.on_signal)(signal, address, kind, context) })
}

/// # Safety
/// As [`Steps::abandon`] says.
pub(super) unsafe fn abandon(context: *mut c_void) {
    if let Some(steps) = STEPS.get() {
        // SAFETY: by contract.
        unsafe { (steps.abandon)(context) };
    }
}

pub(super) fn are_on() -> bool {
    STEPS.get().is_some_and(|steps| (steps.are_on)())
}
