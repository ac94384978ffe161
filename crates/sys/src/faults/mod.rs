//! Faults of the shared space, brought to the engine in the faulting thread.
//!
//! One handler serves SIGBUS (userfaultfd) and SIGSEGV (mprotect; and touching the space where it is not mapped,
//! for instance in a child of fork). It runs on the thread that faulted, on its alternate stack if it has one, with
//! every signal blocked, and keeps `errno`. A fault outside the space, one that the handler declines, and a signal
//! that somebody sent go to the action that was there before, as the kernel would have done it (`chain`).
//!
//! **The handler may call**: everything in [`crate::view`], [`crate::futex`], [`crate::lock`], [`crate::clock`];
//! system calls that POSIX calls async-signal-safe (write, read, send, recv, clock_gettime, _exit ...); atomics and
//! memory it knows to be mapped, through the engine's own mapping. **It may not**: allocate or free, print through
//! `std::io`, take locks that application threads hold outside of the handler (`std::sync`, pthread, stdio), use
//! thread-locals with destructors, panic, or touch the shared space: a fault in the handler kills the process.
//!
//! A thread that blocks SIGSEGV or SIGBUS must not touch the space: the kernel kills a process whose fault signal is
//! blocked.

mod chain;
mod death;
mod kind;
mod steps;

use crate::lock::WordLock;
use crate::view::Mechanism;
pub use chain::set_user_action;
pub use death::{Death, Fault, before_death};
pub use kind::FaultKind;
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use steps::Steps;

/// What answers a fault: true if the access can be tried again, false if the fault is none of its business.
pub type Handler = fn(address: usize, kind: FaultKind) -> bool;

static SPACE_START: AtomicUsize = AtomicUsize::new(0);
static SPACE_END: AtomicUsize = AtomicUsize::new(0);
/// The addresses of the view's window; none if it has none.
static WINDOW_START: AtomicUsize = AtomicUsize::new(0);
static WINDOW_END: AtomicUsize = AtomicUsize::new(0);
/// The Handler as an address; read only while the space is not empty.
static HANDLER: AtomicUsize = AtomicUsize::new(0);
/// Orders install and uninstall; never taken by the handler.
static SETUP: WordLock = WordLock::new();

/// Sends the faults of these addresses, a view's of this mechanism, to `handler` from now on. One space at a time: `EBUSY` if there is one.
pub fn install(space: Range<usize>, mechanism: Mechanism, handler: Handler) -> io::Result<()> {
    let _setup = SETUP.guard();
    if SPACE_END.load(Ordering::Relaxed) != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    if space.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    HANDLER.store(handler as usize, Ordering::Relaxed);
    chain::never_block(match mechanism {
        Mechanism::Uffd => libc::SIGBUS,
        Mechanism::Mprotect => libc::SIGSEGV,
    });
    SPACE_START.store(space.start, Ordering::Relaxed);
    // Last: a handler that sees the end sees the rest.
    SPACE_END.store(space.end, Ordering::Release);
    let result = chain::put_in_front(on_signal, kind::OF_FAULTS);
    if result.is_err() {
        SPACE_END.store(0, Ordering::Release);
        chain::step_back(on_signal)?;
    }
    result
}

/// Sends the faults of a view's window to the same handler from now on; before [`install`]. An empty range ends it.
pub fn set_window(window: Range<usize>) {
    WINDOW_END.store(0, Ordering::Release);
    WINDOW_START.store(window.start, Ordering::Relaxed);
    WINDOW_END.store(window.end, Ordering::Release);
}

/// Gives the signals back to the actions of the program. Nothing is done for a signal on which the program has put a
/// handler of its own around [`set_user_action`]. No thread may touch the space any more.
pub fn uninstall() -> io::Result<()> {
    let _setup = SETUP.guard();
    SPACE_END.store(0, Ordering::Release);
    chain::step_back(on_signal)
}

/// Sends traps to the same handler from now on, behind which a handler of the program's own stands as it does for faults; and
/// asks `steps` first, of faults and traps. Once.
///
/// # Errors
/// `EINVAL` if others are asked already.
pub(crate) fn take_traps(steps: Steps) -> io::Result<()> {
    steps::set(steps)?;
    chain::put_in_front(on_signal, &[libc::SIGTRAP])
}

fn space_contains(address: usize) -> bool {
    let end = SPACE_END.load(Ordering::Acquire);
    address < end && address >= SPACE_START.load(Ordering::Relaxed) || end > 0 && window_contains(address)
}

fn window_contains(address: usize) -> bool {
    let end = WINDOW_END.load(Ordering::Acquire);
    address < end && address >= WINDOW_START.load(Ordering::Relaxed)
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the address of this thread's errno, valid while the thread runs.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let errno_before = unsafe { errno.read() };
    // SAFETY: with SA_SIGINFO the kernel passes a filled siginfo.
    let code = unsafe { (*info).si_code };
    // SAFETY: as above. si_addr is meaningful for faults (code > 0) and else not used.
    let address = unsafe { (*info).si_addr() }.addr();
    // SAFETY: with SA_SIGINFO the kernel passes the interrupted context; code > 0: it raised the signal.
    let is_step = code > 0 && unsafe { steps::on_signal(signal, address, kind::of(context), context) };
    let answered = is_step
        || code > 0 && signal != libc::SIGTRAP && space_contains(address) && {
            // SAFETY: `space_contains` saw the end that `install` stored after the handler: the word is a Handler.
            let handler: Handler = unsafe { std::mem::transmute(HANDLER.load(Ordering::Relaxed)) };
            // SAFETY: with SA_SIGINFO the kernel passes the interrupted context.
            handler(address, unsafe { kind::of(context) })
        };
    // The return from here.
    crate::calls::one();
    // SAFETY: the three arguments are those the kernel gave us.
    let is_done = answered || (code <= 0 && unsafe { crate::signals::put_off(signal, info, context) });
    if !is_done {
        // SAFETY: as above.
        unsafe {
            steps::abandon(context);
            chain::deliver(signal, info, context);
        }
    }
    // SAFETY: as above.
    unsafe { errno.write(errno_before) };
}
