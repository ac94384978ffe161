//! Functions of what `fspcc` links into a program, called back: `finespun/program.h`.

use std::sync::atomic::{AtomicUsize, Ordering};

use finespun_runtime::program;

/// A function of the program, as an address; 0: none.
struct Hook(AtomicUsize);

impl Hook {
    const fn none() -> Self {
        Self(AtomicUsize::new(0))
    }

    fn set(&self, function: extern "C" fn()) {
        self.0.store(function as usize, Ordering::Relaxed);
    }

    fn call(&self) {
        let function = self.0.load(Ordering::Relaxed);
        if function != 0 {
            // SAFETY: what `set` was given.
            let function: extern "C" fn() = unsafe { std::mem::transmute(function) };
            function();
        }
    }
}

static ON_THREAD: Hook = Hook::none();
static ON_EXIT: Hook = Hook::none();

/// `fsp_program_on_thread`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_on_thread(function: extern "C" fn()) {
    ON_THREAD.set(function);
}

/// `fsp_program_on_release`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_on_release(function: extern "C" fn()) {
    program::on_release(function);
}

/// `fsp_program_on_exit`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_on_exit(function: extern "C" fn()) {
    ON_EXIT.set(function);
}

/// A thread begins here, or another has been joined.
pub fn on_thread() {
    ON_THREAD.call();
}

/// The program ends, and the runtime still runs.
pub fn on_exit() {
    ON_EXIT.call();
}
