//! The start and the end of a pthread program, which knows nothing of ours.
//!
//! The program's entry code calls the C library's `__libc_start_main`; wrapped, that call comes here. The runtime is started
//! before the program's own constructors run: so they run once, in the process that goes on to main, and not in those
//! that only serve, which never come back from the start.

use std::ffi::{c_char, c_int, c_void};

use finespun_runtime::{Model, program};

use super::{keys, threads};
use crate::base::{self, RUNNERS, on_exit};
use crate::error::refuse;
use crate::interpose;

type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = Option<extern "C" fn()>;

unsafe extern "C" {
    static stdout: *mut libc::FILE;

    fn __libc_start_main(
        main: Main,
        argc: c_int,
        argv: *mut *mut c_char,
        init: Hook,
        fini: Hook,
        at_end: Hook,
        stack_end: *mut c_void,
    ) -> c_int;
}

/// The C library's function of this name, after the start of the runtime.
///
/// # Safety
/// Called by the program's entry code only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap___libc_start_main(
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Hook,
    fini: Hook,
    at_end: Hook,
    stack_end: *mut c_void,
) -> c_int {
    fsp_pthread_start();
    // SAFETY: the entry code's own arguments.
    unsafe { __libc_start_main(main, argc, argv, init, fini, at_end, stack_end) }
}

/// `fsp_pthread_start`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_pthread_start() {
    static STARTED: std::sync::Once = std::sync::Once::new();
    STARTED.call_once(|| {
        interpose::let_faults_in();
        // SAFETY: the C library's stream, which nobody has used yet; no buffer is given. Lines of all processes then come
        // out whole, and in the order in which the program makes them.
        unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOLBF, 0) };
        // SAFETY: a function of this library, which is never unloaded. In the processes that serve, too: a thread there may
        // call exit.
        unsafe { on_exit(at_exit, std::ptr::null_mut()) };
        threads::become_main();
        if let Err(failure) =
            program::start(Model::Threads, base::globals(), RUNNERS).map(|_| ()).and_then(|()| keys::prepare())
        {
            refuse(failure);
        }
    });
}

/// The program ends: main has returned, or some thread has called exit.
extern "C" fn at_exit(code: c_int, _: *mut c_void) {
    if code == 0 && program::is_main_process() {
        return program::end();
    }
    // SAFETY: all streams; what they hold must be out before the job ends.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    program::exit_job(code);
}
