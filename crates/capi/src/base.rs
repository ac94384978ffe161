//! `finespun/base.h`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use finespun_errors::Code;
use finespun_runtime::program::{self, Identity};
use finespun_runtime::{Failure, Model, Runners};

use crate::error::{OK, refuse, status, value};
use crate::{hooks, interpose, pthread};

unsafe extern "C" {
    /// The C library's, which tells the exit code where atexit does not.
    pub fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// `fsp_init`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_init(_argc: *mut c_int, _argv: *mut c_void) -> c_int {
    if STARTED_EARLY.swap(false, Ordering::Relaxed) {
        return OK;
    }
    start(Model::Main)
}

/// `fsp_init_spmd`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_init_spmd(_argc: *mut c_int, _argv: *mut c_void) -> c_int {
    start(Model::Spmd)
}

/// The runtime runs already when the program's main begins; its own fsp_init is still to come.
static STARTED_EARLY: AtomicBool = AtomicBool::new(false);

/// The program's variables that are to be shared: address and bytes.
static GLOBALS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// These variables of the program are to be shared. Called by the loader before anything else runs: it only stores.
pub fn share_globals(address: usize, bytes: usize) {
    GLOBALS[0].store(address, Ordering::Relaxed);
    GLOBALS[1].store(bytes, Ordering::Relaxed);
}

/// The addresses of the variables that are to be shared.
pub fn globals() -> Range<usize> {
    let [address, bytes] = [0, 1].map(|index: usize| GLOBALS[index].load(Ordering::Relaxed));
    address..address + bytes
}

/// Starts ahead of main, for a program that may know nothing of ours.
pub fn start_early() -> c_int {
    // SAFETY: a function of this library, which is never unloaded. Also in the processes that serve: a thread there may call
    // exit.
    unsafe { on_exit(at_exit_of_program, std::ptr::null_mut()) };
    let status = status(start_runtime(Model::Main, globals()));
    STARTED_EARLY.store(status == OK, Ordering::Relaxed);
    status
}

fn start(model: Model) -> c_int {
    let started = start_runtime(model, 0..0);
    if started.is_ok() {
        STARTED_BY_CALL.store(true, Ordering::Relaxed);
        // SAFETY: a function of this library, which is never unloaded; atexit only fails for want of memory, and then
        // only the program's own call ends the runtime.
        unsafe { on_exit(at_exit, std::ptr::null_mut()) };
    }
    status(started)
}

fn start_runtime(model: Model, globals: Range<usize>) -> program::Result<()> {
    interpose::let_faults_in();
    if interpose::are_ours() {
        finespun_sys::signals::put_off_from_now_on();
    }
    program::start(model, globals, RUNNERS, finespun_diagnose::begin).map(|_| ())
}

/// Ends the runtime for a program that returns from main without having done it. A program that exits with an error
/// has not come to its end: others may wait for it, and the launcher tells them.
extern "C" fn at_exit(code: c_int, _: *mut c_void) {
    if code == 0 {
        program::end();
    }
}

/// The program ends: main has returned, or some thread on any node has called exit, with whatever code.
pub extern "C" fn at_exit_of_program(code: c_int, _: *mut c_void) {
    hooks::exits(code);
    if code == 0 && program::is_main_process() {
        return program::end();
    }
    // SAFETY: all streams; what they hold must be out before the job ends.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    program::exit_job(code);
}

/// How functions of the program are run.
pub const RUNNERS: Runners = Runners { call: run, make: pthread::make, keep: pthread::keep };

/// Runs a function of the program.
fn run(function: usize, argument: u64) -> u64 {
    // SAFETY: the address is that of a `void *(*)(void *)` which the program gave fsp_thread_create in a process of the same
    // build, moved by this process's load address (`Program::address_of` checked that it lies in the program).
    let function: extern "C" fn(*mut c_void) -> *mut c_void = unsafe { std::mem::transmute(function) };
    function(std::ptr::with_exposed_provenance_mut(argument as usize)) as u64
}

/// `fsp_finalize`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_finalize() {
    program::end();
    if STARTED_BY_CALL.load(Ordering::Relaxed) {
        program::close_memory();
    }
}

/// The program has started the runtime itself. One that was started ahead of its main has its variables and its malloc memory shared, which
/// its exit may use.
static STARTED_BY_CALL: AtomicBool = AtomicBool::new(false);

/// `fsp_abort`
///
/// # Safety
/// `why` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_abort(code: c_int, why: *const c_char) -> ! {
    let why = if why.is_null() {
        "no reason given".into()
    } else {
        // SAFETY: by contract a C string.
        unsafe { CStr::from_ptr(why) }.to_string_lossy()
    };
    program::abort(code, &why)
}

fn identity() -> Identity {
    value(program::identity(), Identity::default())
}

/// `fsp_node`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_node() -> c_int {
    identity().node as c_int
}

/// `fsp_nodes`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_nodes() -> c_int {
    identity().nodes as c_int
}

/// `fsp_processor`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_processor() -> c_int {
    identity().processor as c_int
}

/// `fsp_processors`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_processors() -> c_int {
    identity().processors as c_int
}

/// `fsp_processors_per_node`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_processors_per_node() -> c_int {
    identity().per_node as c_int
}

/// `fsp_process`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_process() -> c_int {
    identity().process as c_int
}

/// `fsp_processes`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_processes() -> c_int {
    identity().processes as c_int
}

/// `fsp_version`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// `fsp_phase_begin`
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_phase_begin(name: *const c_char) {
    if name.is_null() {
        refuse(Failure::new(Code::Argument, "fsp_phase_begin: the name is NULL"));
        return;
    }
    // SAFETY: by contract a C string.
    value(program::begin_phase(&unsafe { CStr::from_ptr(name) }.to_string_lossy()), ());
}

/// `fsp_phase_end`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_phase_end() {
    value(program::end_phase(), ());
}
