//! What is done just before a signal ends the process with a core: the caller's last call, [`before_death`], which is told what happened.
//!
//! Faults come by the handler of faults. For SIGABRT, SIGFPE and SIGILL a handler of our own stands where the program has none: it makes
//! the call, puts the default action back and lets the signal come again.

use super::kind::{self, FaultKind, InfoHandler, OF_FAULTS};
use crate::check;
use crate::signals::real_sigaction;
use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Besides faults: the signals that a program ends itself by.
const SIGNALS: [libc::c_int; 3] = [libc::SIGABRT, libc::SIGFPE, libc::SIGILL];

/// How a signal ends the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// The signal.
    pub signal: libc::c_int,
    /// The access to memory that raised it, if one did.
    pub fault: Option<Fault>,
    /// The instruction that the thread was at; 0: it is not known.
    pub instruction: usize,
    /// Its stack pointer; 0: likewise.
    pub stack: usize,
}

/// An access to memory that neither the space nor a handler of the program answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address that the instruction wanted; `usize::MAX`: none that a program can have.
    pub address: usize,
    /// What it wanted there.
    pub kind: FaultKind,
}

/// The caller's last call.
type Last = fn(Death);

/// The kernel's word for a fault without an address: x86-64 has none for a pointer that is no address of a program.
const SI_KERNEL: libc::c_int = 0x80;

/// A [`Last`] as an address; 0: none.
static LAST: AtomicUsize = AtomicUsize::new(0);

/// Has `last` called in the thread that a signal is about to end the process by. It may do what a handler of faults may.
///
/// # Errors
/// The kernel's, when a handler cannot be installed.
pub fn before_death(last: Last) -> io::Result<()> {
    LAST.store(last as usize, Ordering::Release);
    for signal in SIGNALS {
        let mut now = default_action();
        // SAFETY: null asks for the current action only, which goes to `now`.
        check(unsafe { real_sigaction(signal, std::ptr::null(), &raw mut now) })?;
        if now.sa_sigaction != libc::SIG_DFL {
            continue;
        }
        let mut ours = default_action();
        ours.sa_sigaction = on_end as InfoHandler as usize;
        // The default action is back when the handler runs, and what it raises again is not blocked.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND | libc::SA_NODEFER;
        // SAFETY: a valid action with a handler of three arguments that lives for ever.
        check(unsafe { real_sigaction(signal, &raw const ours, std::ptr::null_mut()) })?;
    }
    Ok(())
}

/// Is this action ours? Then the program has none.
pub(super) fn is_ours(action: &libc::sigaction) -> bool {
    action.sa_sigaction == on_end as InfoHandler as usize
}

extern "C" fn on_end(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the three arguments are those the kernel gave us.
    unsafe { announce(signal, info, context) };
    // SAFETY: numbers only; the thread is ourselves.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
}

/// The process is about to end.
///
/// # Safety
/// The arguments are those of the running handler of this signal.
pub(super) unsafe fn announce(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let last = LAST.load(Ordering::Acquire);
    if last == 0 {
        return;
    }
    // SAFETY: not 0, so `before_death` stored a `Last`.
    let last: Last = unsafe { std::mem::transmute(last) };
    // SAFETY: by contract.
    let (fault, (instruction, stack)) = unsafe { (fault(signal, info, context), registers(context)) };
    last(Death { signal, fault, instruction, stack });
}

/// The access that raised the signal, if one did.
///
/// # Safety
/// As for [`announce`].
unsafe fn fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> Option<Fault> {
    // SAFETY: by contract the kernel's siginfo, filled for a fault if its code says that the kernel raised it.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    let is_fault = code > 0 && OF_FAULTS.contains(&signal);
    is_fault.then(|| Fault {
        address: if code == SI_KERNEL { usize::MAX } else { address },
        // SAFETY: by contract the kernel's context.
        kind: unsafe { kind::of(context) },
    })
}

/// The instruction pointer and the stack pointer of what was interrupted.
///
/// # Safety
/// `context` is the third argument of a signal handler with SA_SIGINFO.
#[cfg(target_arch = "x86_64")]
unsafe fn registers(context: *mut c_void) -> (usize, usize) {
    // SAFETY: by contract a ucontext_t.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    (registers[libc::REG_RIP as usize] as usize, registers[libc::REG_RSP as usize] as usize)
}

/// # Safety
/// None needed; the twin of the x86-64 one.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn registers(_context: *mut c_void) -> (usize, usize) {
    (0, 0)
}

fn default_action() -> libc::sigaction {
    // SAFETY: a struct of integers and an optional function pointer: zeros are SIG_DFL, no flags, nothing blocked.
    unsafe { std::mem::zeroed() }
}
