//! Which signals faults raise, what handles one, and what a faulting instruction wanted, as the processor says.

use std::ffi::c_void;

/// The signals that faults raise.
pub(super) const OF_FAULTS: &[libc::c_int] = &[libc::SIGSEGV, libc::SIGBUS];

/// `extern "C" fn` with SA_SIGINFO.
pub(super) type InfoHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void);

/// What the faulting instruction wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A load, or an instruction fetch.
    Read,
    /// A store, or a read-modify-write.
    Write,
    /// The processor does not say (not x86-64).
    Unknown,
}

/// What the interrupted instruction wanted.
///
/// # Safety
/// `context` is the third argument of a signal handler with SA_SIGINFO.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn of(context: *mut c_void) -> FaultKind {
    /// Vector of the page fault; its error code has bit 1 set for a store. Intel SDM volume 3, section 4.7.
    const PAGE_FAULT: i64 = 14;
    const STORE: i64 = 1 << 1;
    // SAFETY: by contract it is a ucontext_t.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    if registers[libc::REG_TRAPNO as usize] != PAGE_FAULT {
        FaultKind::Unknown
    } else if registers[libc::REG_ERR as usize] & STORE != 0 {
        FaultKind::Write
    } else {
        FaultKind::Read
    }
}

/// # Safety
/// None needed; the twin of the x86-64 one.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn of(_context: *mut c_void) -> FaultKind {
    FaultKind::Unknown
}
