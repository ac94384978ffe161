//! Signals of the program's own, kept out of the engine without a system call.
//!
//! A handler of the program may touch shared memory, so it must not run while its thread is inside the engine, whose locks
//! it would wait for. Blocking signals around every call costs two system calls a call, which was more than half of an uncontended
//! lock. So the program's handlers stand behind one of ours: a thread that is inside ([`Inside`]) has the signal *put off*. It is
//! blocked in the interrupted mask, sent once more to the thread, siginfo and all, and let in when the thread leaves.
//!
//! That needs every handler of the program to come through [`set_action`], which our C API's `sigaction` and `signal` see to
//! where they are the ones that the program's calls reach. [`put_off_from_now_on`] says so; without it [`Inside`] blocks.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};

use crate::lock::WordLock;
use crate::process::{SignalsBlocked, set_mask_by};

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    /// The C library's own sigaction: our C API may define `sigaction` itself, and that must not end up here.
    #[link_name = "__sigaction"]
    pub(crate) fn real_sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
}
#[cfg(not(target_env = "gnu"))]
pub(crate) use libc::sigaction as real_sigaction;

/// Signals have numbers from 1 to 64.
const SIGNALS: usize = 64;

/// Do all handlers of the program stand behind ours?
static PUTS_OFF: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How deep this thread is inside the engine.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The signals put off, bit n - 1 for signal n.
    static PUT_OFF: Cell<u64> = const { Cell::new(0) };
    /// Is this thread inside [`not_let_in`]?
    static KEPT_OUT: Cell<bool> = const { Cell::new(false) };
    /// Does this thread sleep in the engine, with signals let in?
    static LET_IN: Cell<bool> = const { Cell::new(false) };
}

/// From now on [`Inside`] puts off instead of blocking: every handler of the program came and will come through [`set_action`].
pub fn put_off_from_now_on() {
    PUTS_OFF.store(true, Ordering::Relaxed);
}

/// While it lives, no signal handler of the program runs in this thread. The thread must not touch a view meanwhile. May be used in
/// the fault handler.
#[derive(Debug)]
pub struct Inside {
    blocked: Option<SignalsBlocked>,
}

impl Inside {
    /// Enters.
    #[must_use = "the signals are let in again when this is dropped"]
    #[inline]
    pub fn new() -> Self {
        if !PUTS_OFF.load(Ordering::Relaxed) {
            return Self { blocked: Some(SignalsBlocked::new()) };
        }
        DEPTH.set(DEPTH.get() + 1);
        // The handler on this thread must see the depth before anything that the engine does.
        compiler_fence(Ordering::SeqCst);
        Self { blocked: None }
    }
}

/// While it lives, no signal handler of the program runs in this thread, whatever the thread waits for. The thread may touch a view.
/// Handlers that do not stand behind ours are not kept out.
#[derive(Debug)]
pub struct Whole {
    inside: Option<Inside>,
    kept_out_before: bool,
}

impl Whole {
    /// Begins.
    #[must_use = "the signals are let in again when this is dropped"]
    #[inline]
    pub fn new() -> Self {
        // What blocks signals would block those of faults.
        let inside = PUTS_OFF.load(Ordering::Relaxed).then(Inside::new);
        Self { inside, kept_out_before: KEPT_OUT.replace(true) }
    }
}

impl Default for Whole {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Whole {
    #[inline]
    fn drop(&mut self) {
        KEPT_OUT.set(self.kept_out_before);
        drop(self.inside.take());
    }
}

/// Is the caller a handler of the program that interrupted its thread's sleep in the engine?
#[inline]
#[must_use]
pub fn is_let_in() -> bool {
    LET_IN.get()
}

impl Default for Inside {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        if self.blocked.is_none() {
            compiler_fence(Ordering::SeqCst);
            let depth = DEPTH.get() - 1;
            DEPTH.set(depth);
            if depth == 0 {
                let_in();
            }
        }
    }
}

/// Sleeps, or does whatever else is safe to interrupt, with the program's handlers let in: a thread that waits for long must
/// end at once when it is told to. Outside of the engine, or within [`not_let_in`], it just runs `body`.
pub fn with_signals_let_in<R>(body: impl FnOnce() -> R) -> R {
    if KEPT_OUT.get() {
        return body();
    }
    let depth = DEPTH.get();
    if depth == 0 {
        return crate::process::with_mask_of_program(body);
    }
    let before = LET_IN.replace(true);
    compiler_fence(Ordering::SeqCst);
    DEPTH.set(0);
    let_in();
    let result = body();
    DEPTH.set(depth);
    compiler_fence(Ordering::SeqCst);
    LET_IN.set(before);
    result
}

/// Runs `body` as a whole: the program's handlers run before it or after it, for [`with_signals_let_in`] lets nothing in meanwhile. Only for a
/// thread that is [`Inside`].
pub fn not_let_in<R>(body: impl FnOnce() -> R) -> R {
    let before = KEPT_OUT.replace(true);
    let result = body();
    KEPT_OUT.set(before);
    result
}

/// Lets in what was put off; the depth is 0, so that what comes from here on runs at once.
#[inline]
fn let_in() {
    compiler_fence(Ordering::SeqCst);
    if PUT_OFF.get() != 0 {
        let signals = PUT_OFF.replace(0);
        set_mask_by(libc::SIG_UNBLOCK, signals);
    }
}

/// Puts a signal off if its thread is inside the engine: true, and the caller returns at once.
///
/// # Safety
/// The arguments are those of the running handler of this signal, with SA_SIGINFO.
pub(crate) unsafe fn put_off(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> bool {
    if DEPTH.get() == 0 {
        return false;
    }
    let bit = 1_u64 << (signal - 1);
    PUT_OFF.set(PUT_OFF.get() | bit);
    // Its handler may have asked not to be blocked while it runs: then it would come again here, and again.
    set_mask_by(libc::SIG_BLOCK, bit);
    // SAFETY: by contract a ucontext_t; the kernel's mask is the first word of the C library's type.
    unsafe { *(&raw mut (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<u64>() |= bit };
    // SAFETY: numbers, and the siginfo that the kernel gave us. A process may send itself any siginfo.
    unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), libc::gettid(), signal, info) };
    true
}

/// The program's handlers, by signal.
struct Actions {
    /// Held for a few loads, stores and one system call, with every signal blocked: a handler that wants it waits for another
    /// thread at most, never for the one it interrupted.
    lock: WordLock,
    of_program: [UnsafeCell<Option<libc::sigaction>>; SIGNALS],
}

// SAFETY: the cells are read and written only by the holder of `lock`: `with` is the one way to them.
unsafe impl Sync for Actions {}

static ACTIONS: Actions = Actions { lock: WordLock::new(), of_program: [const { UnsafeCell::new(None) }; SIGNALS] };

impl Actions {
    fn with<T>(&self, signal: c_int, action: impl FnOnce(&mut Option<libc::sigaction>) -> T) -> T {
        let _blocked = SignalsBlocked::new();
        let _guard = self.lock.guard();
        // SAFETY: the guard makes this the only reference; it ends with `action`, before the guard is dropped.
        action(unsafe { &mut *self.of_program[signal as usize - 1].get() })
    }
}

type InfoHandler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
type PlainHandler = extern "C" fn(c_int);

/// `sigaction` for the program, for any signal but those of faults: handlers of the program stand behind ours. Returns 0, or -1 with
/// `errno` set.
///
/// # Safety
/// As for `sigaction(2)`: `new` and `old` are null or point to an action to read, to write.
pub unsafe fn set_action(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    if !(1..=SIGNALS as c_int).contains(&signal) {
        // SAFETY: the caller's own arguments; the C library says what is wrong with them.
        return unsafe { real_sigaction(signal, new, old) };
    }
    // SAFETY: by contract null or readable. Read before the lock is taken, as it could lie in the shared space.
    let new = unsafe { new.as_ref() }.copied();
    let result = ACTIONS.with(signal, |of_program| {
        let kept = *of_program;
        let ours = new.map(|new| if is_handler(&new) { in_front_of(&new) } else { new });
        // Before the kernel has it: the signal may come at once.
        if let Some(new) = new.filter(is_handler) {
            *of_program = Some(new);
        }
        // SAFETY: a struct of integers and an optional function pointer: zeros are valid.
        let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
        let asked = ours.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: null or a valid action whose handler lives for ever; `before` is writable.
        if unsafe { real_sigaction(signal, asked, &raw mut before) } != 0 {
            *of_program = kept;
            return None;
        }
        if new.is_some_and(|new| !is_handler(&new)) {
            *of_program = None;
        }
        Some(if before.sa_sigaction == on_signal as *const () as usize { kept.unwrap_or(before) } else { before })
    });
    match result {
        None => -1,
        Some(before) => {
            if !old.is_null() {
                // SAFETY: by contract writable.
                unsafe { old.write(before) };
            }
            0
        }
    }
}

fn is_handler(action: &libc::sigaction) -> bool {
    action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}

/// Our handler with the program's mask and flags. A handler for one signal only is reset by us, when it has run: the kernel would do
/// it when the signal is put off.
fn in_front_of(action: &libc::sigaction) -> libc::sigaction {
    let mut ours = *action;
    ours.sa_sigaction = on_signal as *const () as usize;
    ours.sa_flags = action.sa_flags & !libc::SA_RESETHAND | libc::SA_SIGINFO;
    if crate::stack::are_shared() {
        // The kernel cannot put a frame on a page that is not writable.
        ours.sa_flags |= libc::SA_ONSTACK;
    }
    ours
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let errno = crate::process::ErrnoKept::new();
    // SAFETY: the kernel's own arguments.
    let is_put_off = unsafe { put_off(signal, info, context) };
    if is_put_off {
        return;
    }
    let action = take_action(signal);
    // The handler's own errno is its own business.
    drop(errno);
    let Some(action) = action else { return };
    if action.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the program declared its handler to have three arguments.
        let handler: InfoHandler = unsafe { std::mem::transmute(action.sa_sigaction) };
        handler(signal, info, context);
    } else {
        // SAFETY: the program declared its handler to have one argument.
        let handler: PlainHandler = unsafe { std::mem::transmute(action.sa_sigaction) };
        handler(signal);
    }
}

/// The program's handler; `None` if it was taken away while the signal was on its way. One that is for one signal only is spent.
fn take_action(signal: c_int) -> Option<libc::sigaction> {
    ACTIONS.with(signal, |of_program| {
        let action = (*of_program)?;
        if action.sa_flags & libc::SA_RESETHAND != 0 {
            // SAFETY: zeros are the default action; null asks for nothing back.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                real_sigaction(signal, &raw const default, std::ptr::null_mut());
            }
            *of_program = None;
        }
        Some(action)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI32, AtomicU32};

    use super::*;

    static SEEN: AtomicU32 = AtomicU32::new(0);
    static VALUE: AtomicI32 = AtomicI32::new(0);

    extern "C" fn count(_signal: c_int) {
        SEEN.fetch_add(1, Ordering::SeqCst);
    }

    extern "C" fn keep_value(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
        // SAFETY: the kernel's siginfo of a queued signal.
        VALUE.store(unsafe { (*info).si_value().sival_ptr } as usize as i32, Ordering::SeqCst);
        SEEN.fetch_add(1, Ordering::SeqCst);
    }

    fn act(signal: c_int, handler: usize, flags: c_int) -> libc::sigaction {
        // SAFETY: zeros are valid; both actions are valid.
        unsafe {
            let (mut new, mut old): (libc::sigaction, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
            new.sa_sigaction = handler;
            new.sa_flags = flags;
            assert_eq!(set_action(signal, &raw const new, &raw mut old), 0);
            old
        }
    }

    fn send(signal: c_int) {
        // SAFETY: a signal to this thread, which has a handler.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
    }

    fn seen() -> u32 {
        SEEN.swap(0, Ordering::SeqCst)
    }

    /// One test, since the depth is a thread's but the counter and the mode are the process's.
    #[test]
    fn a_signal_waits_until_its_thread_is_outside_and_then_comes_as_it_was() {
        put_off_from_now_on();
        for flags in [0, libc::SA_NODEFER, libc::SA_RESTART] {
            act(libc::SIGUSR1, count as *const () as usize, flags);
            send(libc::SIGUSR1);
            assert_eq!(seen(), 1, "outside it comes at once");
            let (outer, inner) = (Inside::new(), Inside::new());
            send(libc::SIGUSR1);
            drop(inner);
            assert_eq!(seen(), 0, "inside it waits");
            with_signals_let_in(|| assert_eq!(seen(), 1, "who sleeps is interrupted"));
            send(libc::SIGUSR1);
            not_let_in(|| with_signals_let_in(|| assert_eq!(seen(), 0, "unless what sleeps is to be whole")));
            assert_eq!(seen(), 0);
            drop(outer);
            assert_eq!(seen(), 1, "and comes when its thread leaves");
            send(libc::SIGUSR1);
            assert_eq!(seen(), 1, "and is not blocked afterwards");
        }
        let old = act(libc::SIGUSR1, libc::SIG_IGN, 0);
        assert_eq!(old.sa_sigaction, count as *const () as usize, "the program sees its own handler");

        act(libc::SIGUSR2, keep_value as *const () as usize, libc::SA_SIGINFO);
        let inside = Inside::new();
        // SAFETY: a signal to ourselves with a value.
        unsafe { libc::sigqueue(libc::getpid(), libc::SIGUSR2, libc::sigval { sival_ptr: 77 as *mut c_void }) };
        // It may have gone to another thread of the test program; only then it was seen already.
        drop(inside);
        while seen() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(VALUE.load(Ordering::SeqCst), 77);

        act(libc::SIGUSR2, count as *const () as usize, libc::SA_RESETHAND);
        let inside = Inside::new();
        send(libc::SIGUSR2);
        drop(inside);
        assert_eq!(seen(), 1);
        assert_eq!(
            act(libc::SIGUSR2, libc::SIG_IGN, 0).sa_sigaction,
            libc::SIG_DFL,
            "a handler for one signal is spent"
        );
        assert_eq!(
            // SAFETY: what is wrong with the number is told by the result.
            unsafe { set_action(65, std::ptr::null(), std::ptr::null_mut()) },
            -1
        );
    }
}
