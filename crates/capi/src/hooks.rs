//! Functions of what `fspcc` links into a program of threads, called back: `finespun/program.h`.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::OnceLock;

use finespun_runtime::program;

/// As in the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    thread_begins: extern "C" fn(),
    thread_joined: extern "C" fn(),
    thread_ends: extern "C" fn(),
    release: extern "C" fn(),
    exits: extern "C" fn(c_int),
    create: unsafe extern "C" fn(*mut usize, *mut *mut c_void),
    kill: extern "C" fn(c_ulong, c_int) -> c_int,
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// `fsp_program_hook`
///
/// # Safety
/// `hooks` points to functions for all of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_program_hook(hooks: *const Hooks) {
    // SAFETY: by contract.
    let hooks = HOOKS.get_or_init(|| unsafe { *hooks });
    program::on_release(hooks.release);
}

/// A thread begins.
pub fn thread_begins() {
    if let Some(hooks) = HOOKS.get() {
        (hooks.thread_begins)();
    }
}

/// Another thread has been joined.
pub fn thread_joined() {
    if let Some(hooks) = HOOKS.get() {
        (hooks.thread_joined)();
    }
}

/// The calling thread ends.
pub fn thread_ends() {
    if let Some(hooks) = HOOKS.get() {
        (hooks.thread_ends)();
    }
}

/// The program exits here.
pub fn exits(code: c_int) {
    if let Some(hooks) = HOOKS.get() {
        (hooks.exits)(code);
    }
}

/// A thread is about to be made with this function and argument: those that it begins with.
pub fn create(mut function: usize, mut argument: *mut c_void) -> (usize, *mut c_void) {
    if let Some(hooks) = HOOKS.get() {
        // SAFETY: both are writable.
        unsafe { (hooks.create)(&raw mut function, &raw mut argument) };
    }
    (function, argument)
}

/// A signal for another thread; `None` where that is not served.
pub fn kill(thread: c_ulong, number: c_int) -> Option<c_int> {
    HOOKS.get().map(|hooks| (hooks.kill)(thread, number))
}
