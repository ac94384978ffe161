//! The start and the end of a pthread program, which knows nothing of ours.
//!
//! A constructor of what `fspcc` links in, or of the header, calls this ahead of the program's own constructors: so these run
//! once, in the process that goes on to main, and not in those that only serve, which never come back from the start.

use finespun_runtime::{Model, program};

use super::{keys, output, threads};
use crate::base::{self, RUNNERS, at_exit_of_program, on_exit};
use crate::error::refuse;
use crate::interpose;

/// `fsp_pthread_start`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_pthread_start() {
    static STARTED: std::sync::Once = std::sync::Once::new();
    STARTED.call_once(|| {
        interpose::let_faults_in();
        if interpose::are_ours() {
            finespun_sys::signals::put_off_from_now_on();
        }
        // SAFETY: the C library's stream, which nobody has used yet; no buffer is given. Lines of all processes then come
        // out whole, and in the order in which the program makes them.
        unsafe { libc::setvbuf(output::stdout, std::ptr::null_mut(), libc::_IOLBF, 0) };
        // SAFETY: a function of this library, which is never unloaded. In the processes that serve, too: a thread there may
        // call exit.
        unsafe { on_exit(at_exit_of_program, std::ptr::null_mut()) };
        threads::become_main();
        if let Err(failure) = program::start(Model::Threads, base::globals(), RUNNERS, finespun_diagnose::begin)
            .map(|_| ())
            .and_then(|()| keys::prepare())
        {
            refuse(failure);
        }
    });
}
