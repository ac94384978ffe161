//! The actions that the program has for SIGSEGV and SIGBUS while ours stands in front of them.
//!
//! What the program would have got from the kernel it gets from [`deliver`]: the default action ends the process
//! with the right signal, a handler runs with the mask and flags it asked for. Differences: it runs on the alternate
//! stack if the thread has one, even without SA_ONSTACK, and SA_RESTART is as if set.
//!
//! One signal is never blocked: that by which the faults of the space come. A handler may touch the space, and it may leave by
//! `longjmp`, which leaves the mask as it is. Where the kernel would have blocked that signal, the other one of the two is
//! blocked in its place ([`stand_in`]). That the first counts as blocked can be seen by it, also after `siglongjmp` has put back a mask: a fault
//! of the program's own ends the process then, as it would have done.

use super::death;
use super::kind::InfoHandler;
use crate::check;
use crate::lock::WordLock;
use crate::signals::real_sigaction;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// The signals that faults raise, and that of single steps.
const SIGNALS: [libc::c_int; 3] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGTRAP];
type PlainHandler = extern "C" fn(libc::c_int);

/// The program's actions, one for each of [`SIGNALS`].
struct Actions {
    /// Held for a few loads and stores, with every signal blocked, and nothing can fault while it is held: so a
    /// handler that wants it waits for another thread at most, never for the one it interrupted.
    lock: WordLock,
    /// While ours stands in front.
    of_program: [UnsafeCell<Option<libc::sigaction>>; 3],
}

// SAFETY: the cells are read and written only by the holder of `lock`: `with` is the one way to them.
unsafe impl Sync for Actions {}

static ACTIONS: Actions = Actions { lock: WordLock::new(), of_program: [const { UnsafeCell::new(None) }; 3] };

impl Actions {
    /// Runs `action` on what is known of SIGNALS[index], alone and uninterrupted.
    fn with<T>(&self, index: usize, action: impl FnOnce(&mut Option<libc::sigaction>) -> T) -> T {
        let _blocked = crate::process::SignalsBlocked::new();
        let _guard = self.lock.guard();
        // SAFETY: the guard makes this the only reference; it ends with `action`, before it is dropped.
        action(unsafe { &mut *self.of_program[index].get() })
    }
}

/// The signals of [`super::kind::OF_FAULTS`] in a mask of the kernel.
const FAULT_BITS: u64 = bit(libc::SIGSEGV) | bit(libc::SIGBUS);

/// In a mask of the kernel, the signal by which the faults of the space come; 0 before there is a space.
static OF_SPACE: AtomicU64 = AtomicU64::new(0);

/// The faults of the space come by this signal of [`super::kind::OF_FAULTS`].
pub(super) fn never_block(signal: libc::c_int) {
    OF_SPACE.store(bit(signal), Ordering::Relaxed);
}

const fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// In a mask of the kernel, the signal that is blocked in the place of the one by which the faults of the space come.
fn stand_in() -> u64 {
    match OF_SPACE.load(Ordering::Relaxed) {
        0 => 0,
        of_space => FAULT_BITS & !of_space,
    }
}

fn index_of(signal: libc::c_int) -> Option<usize> {
    SIGNALS.iter().position(|&known| known == signal)
}

/// Installs `handler` for these signals and keeps what was there.
pub(super) fn put_in_front(handler: InfoHandler, signals: &[libc::c_int]) -> io::Result<()> {
    for (index, signal) in SIGNALS.into_iter().enumerate().filter(|(_, signal)| signals.contains(signal)) {
        let mut ours = default_action();
        ours.sa_sigaction = handler as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: `sa_mask` is a valid set to fill.
        unsafe { libc::sigfillset(&raw mut ours.sa_mask) };
        ACTIONS.with(index, |of_program| {
            let mut before = default_action();
            // SAFETY: both point to valid actions; `handler` is an InfoHandler as SA_SIGINFO says, and lives for ever.
            check(unsafe { real_sigaction(signal, &raw const ours, &raw mut before) })?;
            *of_program = Some(before);
            Ok::<(), io::Error>(())
        })?;
    }
    Ok(())
}

/// Puts the program's actions back wherever `handler` still is the action.
pub(super) fn step_back(handler: InfoHandler) -> io::Result<()> {
    for (index, signal) in SIGNALS.into_iter().enumerate() {
        ACTIONS.with(index, |of_program| {
            let Some(before) = of_program.take() else { return Ok(()) };
            let mut now = default_action();
            // SAFETY: null asks for the current action only, which goes to `now`.
            check(unsafe { real_sigaction(signal, std::ptr::null(), &raw mut now) })?;
            if now.sa_sigaction == handler as usize {
                // SAFETY: `before` is an action that the kernel gave us or the program would have given it.
                check(unsafe { real_sigaction(signal, &raw const before, std::ptr::null_mut()) })?;
            }
            Ok::<(), io::Error>(())
        })?;
    }
    Ok(())
}

/// `sigaction` for the program: what the C API's `sigaction` and `signal` call. Ours stays in front for SIGSEGV and
/// SIGBUS while installed; any other signal goes to [`crate::signals::set_action`]. Returns 0, or -1 with `errno` set.
///
/// # Safety
/// As for `sigaction(2)`: `new` and `old` are null or point to an action to read, to write.
pub unsafe fn set_user_action(
    signal: libc::c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> libc::c_int {
    let Some(index) = index_of(signal) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        let done = unsafe { crate::signals::set_action(signal, new, old) };
        // SAFETY: by contract null or writable, and `set_action` has written it.
        if let Some(old) = unsafe { old.as_mut() }.filter(|old| done == 0 && death::is_ours(old)) {
            *old = default_action();
        }
        return done;
    };
    // SAFETY: by contract null or readable. Read before the lock is taken, as it could lie in the shared space.
    let new_action = unsafe { new.as_ref() }.copied();
    let replaced = ACTIONS.with(index, |of_program| {
        let before = (*of_program)?;
        *of_program = new_action.or(Some(before));
        Some(before)
    });
    match replaced {
        Some(before) if !old.is_null() => {
            // SAFETY: by contract writable.
            unsafe { old.write(before) };
            0
        }
        Some(_) => 0,
        // SAFETY: the caller's own arguments, under the caller's promise.
        None if signal == libc::SIGTRAP => unsafe { crate::signals::set_action(signal, new, old) },
        // SAFETY: as above.
        None => unsafe { real_sigaction(signal, new, old) },
    }
}

/// Does for the program what the kernel would have done with this signal.
///
/// # Safety
/// The arguments are those of the running handler of this signal.
pub(super) unsafe fn deliver(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: by contract the kernel's siginfo.
    let sent_by_a_process = unsafe { (*info).si_code } <= 0;
    // SAFETY: by contract a ucontext_t.
    let interrupted = unsafe { mask_of(context) };
    if !sent_by_a_process && bit(signal) & OF_SPACE.load(Ordering::Relaxed) != 0 && interrupted & stand_in() != 0 {
        // SAFETY: by contract.
        return unsafe { die(signal, info, context) };
    }
    // SAFETY: by contract.
    let Some(action) = take_action(signal) else { return unsafe { die(signal, info, context) } };
    match action.sa_sigaction {
        libc::SIG_IGN if sent_by_a_process => {}
        // A fault cannot be ignored: the instruction would fault for ever, so the kernel kills too.
        // SAFETY: by contract.
        libc::SIG_DFL | libc::SIG_IGN => unsafe { die(signal, info, context) },
        handler => {
            block_as_asked(signal, &action, interrupted);
            if action.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: the program declared its handler to have three arguments.
                let handler: InfoHandler = unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: the program declared its handler to have one argument.
                let handler: PlainHandler = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
        }
    }
}

/// The program's action, which is spent by this if it is a handler for one signal only (SA_RESETHAND).
fn take_action(signal: libc::c_int) -> Option<libc::sigaction> {
    ACTIONS.with(index_of(signal)?, |of_program| {
        let action = *of_program;
        if action.is_some_and(|action| action.sa_flags & libc::SA_RESETHAND != 0 && is_handler(&action)) {
            *of_program = Some(default_action());
        }
        action
    })
}

fn is_handler(action: &libc::sigaction) -> bool {
    action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}

/// Ends the process by the default action: a fault by happening again when we return, a sent signal by being sent
/// again (it is blocked until we return). Tells of the fault before.
///
/// # Safety
/// The arguments are those of the running handler of this signal.
unsafe fn die(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: by contract.
    unsafe { death::announce(signal, info, context) };
    // SAFETY: by contract the kernel's siginfo.
    let sent_by_a_process = unsafe { (*info).si_code } <= 0;
    let action = default_action();
    // SAFETY: a valid action; null asks for nothing back.
    unsafe { real_sigaction(signal, &raw const action, std::ptr::null_mut()) };
    if sent_by_a_process {
        // SAFETY: numbers only; the thread is ourselves.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
    }
}

/// While a handler runs, the kernel blocks what was blocked, what its action names, and the signal itself unless
/// SA_NODEFER. When we return, the kernel restores the mask of the context.
fn block_as_asked(signal: libc::c_int, action: &libc::sigaction, interrupted: u64) {
    let itself = if action.sa_flags & libc::SA_NODEFER != 0 { 0 } else { bit(signal) };
    // SAFETY: the first word of a sigset_t of the C library, which has 16.
    let asked = unsafe { (&raw const action.sa_mask).cast::<u64>().read() };
    // A handler of the program may touch what is watched.
    let never = if super::steps::are_on() { crate::process::OF_FAULTS_AND_TRAPS } else { 0 };
    let (wanted, of_space) = (interrupted | asked | itself, OF_SPACE.load(Ordering::Relaxed));
    let in_place = if wanted & of_space != 0 { stand_in() } else { 0 };
    let mask = (wanted | in_place) & !(of_space | never);
    // SAFETY: `mask` is the 8 bytes that the kernel is told to read.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            std::ptr::null_mut::<u64>(),
            size_of::<u64>(),
        )
    };
}

/// The mask of what was interrupted.
///
/// # Safety
/// `context` is the third argument of a signal handler with SA_SIGINFO.
unsafe fn mask_of(context: *mut c_void) -> u64 {
    // SAFETY: by contract a ucontext_t. The kernel's mask is one word of 64 bits, the first of the C library's type,
    // and only that much is there in a context that the kernel made.
    unsafe { (&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<u64>().read() }
}

fn default_action() -> libc::sigaction {
    // SAFETY: a struct of integers and an optional function pointer: zeros are SIG_DFL, no flags, nothing blocked.
    unsafe { std::mem::zeroed() }
}
