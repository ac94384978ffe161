//! Signals of the program's own.
//!
//! SIGSEGV and SIGBUS are how faults of the shared space arrive. What the program does about them goes behind ours
//! (`finespun_sys::faults`): faults elsewhere still reach its handlers. And they are never blocked, since a fault whose signal
//! is blocked kills the process: every mask that the program sets, or has set while a handler of its own runs, leaves
//! these two out, before `fsp_init` too. So a program that is linked with libfinespun cannot put off a SIGSEGV or
//! SIGBUS that is sent with `kill`; nothing else is different.
//!
//! Handlers for other signals stand behind one of ours too, which puts a signal off while its thread is inside the engine
//! (`finespun_sys::signals`).

use std::ffi::c_int;
use std::mem::MaybeUninit;

use finespun_sys::stack;
use libc::{SIG_ERR, epoll_event, fd_set, nfds_t, pollfd, sigaction as action_t, sigset_t, timespec};

use super::real::{self, PlainHandler};
use super::records::{array, looked_at};
use super::results::with_sets;

/// The signals that faults raise.
const OF_FAULTS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// A mask without the signals of faults.
fn without_faults(mut mask: sigset_t) -> sigset_t {
    for signal in OF_FAULTS {
        // SAFETY: a valid set and signal.
        unsafe { libc::sigdelset(&raw mut mask, signal) };
    }
    mask
}

/// What the program lets in may be all. One of the signals of faults may be blocked in the place of the other one, after a handler
/// (`finespun_sys::faults`), so both are let in.
fn with_both_faults(mut mask: sigset_t) -> sigset_t {
    // SAFETY: a valid set and signals.
    if OF_FAULTS.iter().any(|&signal| unsafe { libc::sigismember(&raw const mask, signal) } == 1) {
        for signal in OF_FAULTS {
            // SAFETY: as above.
            unsafe { libc::sigaddset(&raw mut mask, signal) };
        }
    }
    mask
}

/// Lets the signals of faults in, in the calling thread: it may have inherited a mask from the program that started this one.
pub fn let_faults_in() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `set` is writable, and a valid set after sigemptyset.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in OF_FAULTS {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        real::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Makes a call with the mask less the signals of faults, private; null stays null.
///
/// # Safety
/// `mask` is null or points to a set.
unsafe fn with_mask<T>(mask: *const sigset_t, call: impl FnOnce(*const sigset_t) -> T) -> T {
    stack::on_private(|| {
        // SAFETY: by contract.
        let ours = unsafe { mask.as_ref() }.map(|mask| without_faults(*mask));
        call(ours.as_ref().map_or(mask, std::ptr::from_ref))
    })
}

/// `sigaction(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigaction(signal: c_int, new: *const action_t, old: *mut action_t) -> c_int {
    // SAFETY: by the caller's promise null or readable.
    let ours = unsafe { new.as_ref() }.map(|new| action_t { sa_mask: without_faults(new.sa_mask), ..*new });
    set_action(signal, ours, old)
}

/// Signals are blocked in there, so that nothing on the way may fault.
fn set_action(signal: c_int, new: Option<action_t>, old: *mut action_t) -> c_int {
    stack::on_private(move || {
        let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `new` is null or ours; `old` is the caller's, and written at the end.
        unsafe { finespun_sys::faults::set_user_action(signal, new, old) }
    })
}

/// Do the program's calls of `sigaction` reach ours? Not where the library was loaded late, by dlopen.
pub fn are_ours() -> bool {
    // SAFETY: a C string; asks only where the name leads.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"sigaction".as_ptr()) };
    found.cast_const() == sigaction as *const std::ffi::c_void
}

/// Sets a plain handler; the one before, or SIG_ERR.
fn set_plain(signal: c_int, handler: PlainHandler, flags: c_int) -> PlainHandler {
    if handler == SIG_ERR {
        // SAFETY: the address of this thread's errno, valid while the thread runs.
        unsafe { libc::__errno_location().write(libc::EINVAL) };
        return SIG_ERR;
    }
    // SAFETY: structs of integers, all zeros valid.
    let (mut new, mut old): (action_t, action_t) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    new.sa_sigaction = handler;
    new.sa_flags = flags;
    match set_action(signal, Some(new), &raw mut old) {
        0 => old.sa_sigaction,
        _ => SIG_ERR,
    }
}

/// `signal(2)`, and by two older names.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn signal(signal: c_int, handler: PlainHandler) -> PlainHandler {
    set_plain(signal, handler, libc::SA_RESTART)
}

/// `signal` by its BSD name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bsd_signal(number: c_int, handler: PlainHandler) -> PlainHandler {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { signal(number, handler) }
}

/// `signal` by its other name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ssignal(number: c_int, handler: PlainHandler) -> PlainHandler {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { signal(number, handler) }
}

/// `sysv_signal(3)`: the handler is for one signal, and the signal is not blocked meanwhile.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sysv_signal(signal: c_int, handler: PlainHandler) -> PlainHandler {
    set_plain(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER)
}

/// `signal` in a program that is compiled for strict ISO C.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __sysv_signal(signal: c_int, handler: PlainHandler) -> PlainHandler {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { sysv_signal(signal, handler) }
}

/// `sigprocmask(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { change_mask(how, new, old, |new, old| real::sigprocmask(how, new, old)) }
}

/// `pthread_sigmask(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { change_mask(how, new, old, |new, old| real::pthread_sigmask(how, new, old)) }
}

/// # Safety
/// `new` is null or points to a set, `old` is null or points to memory for one.
unsafe fn change_mask(
    how: c_int,
    new: *const sigset_t,
    old: *mut sigset_t,
    call: impl FnOnce(*const sigset_t, *mut sigset_t) -> c_int,
) -> c_int {
    stack::on_private(|| {
        let mut before = MaybeUninit::uninit();
        // The kernel is given private memory only.
        let to = if old.is_null() { old } else { before.as_mut_ptr() };
        // SAFETY: by contract.
        let theirs = unsafe { new.as_ref() }.copied();
        let ours = theirs.map(if how == libc::SIG_UNBLOCK { with_both_faults } else { without_faults });
        let result = call(ours.as_ref().map_or(std::ptr::null(), std::ptr::from_ref), to);
        if result == 0 && !old.is_null() {
            // SAFETY: the call succeeded, so it filled `before`; `old` by contract.
            unsafe { old.write(before.assume_init()) };
        }
        result
    })
}

/// `sigsuspend(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigsuspend(mask: *const sigset_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { with_mask(mask, |mask| real::sigsuspend(mask)) }
}

/// `ppoll(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ppoll(
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let poll = |list| looked_at(timeout, |timeout| with_mask(mask, |mask| real::ppoll(list, count, timeout, mask)));
        array(list, count as usize, poll)
    }
}

/// `pselect(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    other: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let select = |read, write, other| {
            looked_at(timeout, |timeout| {
                with_mask(mask, |mask| real::pselect(count, read, write, other, timeout, mask))
            })
        };
        with_sets(count, [read, write, other], |[read, write, other]| select(read, write, other))
    }
}

/// `epoll_pwait(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait(
    fd: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let room = usize::try_from(count).unwrap_or(0);
        array(events, room, |events| with_mask(mask, |mask| real::epoll_pwait(fd, events, count, timeout, mask)))
    }
}
