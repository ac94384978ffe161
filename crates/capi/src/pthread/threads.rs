//! `pthread_create(3)` and what takes a `pthread_t`. Ours is the handle of a thread of the job: the same number everywhere.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use finespun_errors::Code;
use finespun_runtime::{Failure, Work, program};
use libc::{clockid_t, pthread_attr_t, pthread_t, sched_param, size_t};

use super::{keys, mistake, output, posix, stacks};
use crate::hooks;
use crate::interpose::real;

/// The handle of the thread that runs main. No thread of the job has it: they count up from 1 in its upper half.
const MAIN: pthread_t = 0xffff_ffff_0000_0000;

thread_local! {
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
    /// What the calling thread will have returned.
    static RESULT: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
}

/// The calling thread runs main.
pub fn become_main() {
    IS_MAIN.set(true);
}

fn unserved(what: &str) -> c_int {
    mistake(Failure::new(Code::NotAcrossNodes, format!("{what} of another thread")))
}

// ---- making a thread, in whichever process it is to run -----------------------------------------------------------

/// Makes the thread.
pub fn make(work: Work) {
    make_thread(stacks::private_size(&work), run, Box::into_raw(Box::new(work)).cast());
}

/// Makes the thread that keeps the places of this process.
pub fn keep() -> program::Result<()> {
    make_thread(0, keep_places, std::ptr::null_mut());
    Ok(())
}

extern "C-unwind" fn keep_places(_: *mut c_void) -> *mut c_void {
    program::keep_places(make);
    std::ptr::null_mut()
}

/// A thread of the operating system that nobody joins.
fn make_thread(stack: usize, start: real::ThreadStart, argument: *mut c_void) {
    let mut attributes = MaybeUninit::<pthread_attr_t>::uninit();
    let mut thread = 0;
    // SAFETY: the attributes are initialised first; `start` takes the argument that goes with it.
    let result = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        if stack > 0 {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
        }
        let result = real::pthread_create(&raw mut thread, attributes.as_ptr(), start, argument);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        result
    };
    if result != 0 {
        let error = std::io::Error::from_raw_os_error(result);
        program::fail(&Failure::new(Code::Machine, format!("a thread of the program could not be made: {error}")));
    }
}

/// The C library's key whose destructor is a thread's end, however it comes.
fn end_key() -> libc::pthread_key_t {
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is writable.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(at_end)) } != 0 {
            program::fail(&Failure::new(Code::Machine, "the C library has no key left for the ends of threads"));
        }
        key
    })
}

extern "C-unwind" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `make` gave it away.
    let work = *unsafe { Box::from_raw(argument.cast::<Work>()) };
    let address = match program::begin_thread(work) {
        Ok(address) => address,
        Err(failure) => program::fail(&failure),
    };
    // SAFETY: a key of ours; any value but null.
    unsafe { libc::pthread_setspecific(end_key(), std::ptr::without_provenance(1)) };
    // SAFETY: what the program gave pthread_create, in a process of the same build, moved by this process's load address.
    let function: real::ThreadStart = unsafe { std::mem::transmute(address) };
    hooks::thread_begins();
    RESULT.set(stacks::run(program::stack_of(&work), function, work.argument));
    std::ptr::null_mut()
}

/// The thread has returned, or called pthread_exit.
extern "C" fn at_end(_: *mut c_void) {
    keys::destroy_values();
    output::flush_stdout();
    hooks::thread_ends();
    stacks::end();
    if let Err(failure) = program::end_thread(RESULT.get() as u64) {
        program::fail(&failure);
    }
}

// ---- create, join, detach, exit -----------------------------------------------------------------------------------

/// Where `fsp_pthread_attr_setnode_np` puts the node plus one: the last word of the attributes, which the C library zeroes
/// and does not use.
fn node_word(attributes: *mut pthread_attr_t) -> *mut u64 {
    // SAFETY: one word before the end of the object.
    unsafe { attributes.add(1).cast::<u64>().sub(1) }
}

/// What may be asked of a thread before it is made.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    near: Option<u32>,
    stack: usize,
    is_detached: bool,
}

/// # Safety
/// `attributes` is null or points to initialised attributes.
unsafe fn asked(attributes: *const pthread_attr_t) -> Asked {
    let mut asked = Asked::default();
    if attributes.is_null() {
        return asked;
    }
    let mut detached = 0;
    // SAFETY: by contract.
    unsafe {
        asked.near = node_word(attributes.cast_mut()).read().checked_sub(1).map(|node| node as u32);
        libc::pthread_attr_getstacksize(attributes, &raw mut asked.stack);
        pthread_attr_getdetachstate(attributes, &raw mut detached);
    }
    asked.is_detached = detached == libc::PTHREAD_CREATE_DETACHED;
    if asked.stack == stacks::usual() {
        asked.stack = 0;
    }
    asked
}

/// Numbers below are passed as arguments themselves.
const NO_POINTER: usize = 1 << 16;

/// An argument that points into memory which the other processes do not see.
fn check_argument(argument: usize) -> program::Result<()> {
    if argument < NO_POINTER || program::is_shared(argument) || program::identity()?.processes == 1 {
        return Ok(());
    }
    match finespun_runtime::private::writable_name_of(argument) {
        None => Ok(()),
        Some(name) => {
            let what = format!("pthread_create: the argument {argument:#x} points to private memory ({name})");
            Err(Failure { code: Code::PrivateArgument, what })
        }
    }
}

/// Creates a thread: its handle, or a number of errno.
fn create(asked: Asked, function: usize, argument: *mut c_void) -> Result<u64, c_int> {
    check_argument(argument.addr()).map_err(mistake)?;
    let (function, argument) = hooks::create(function, argument);
    let argument = argument.expose_provenance() as u64;
    match program::spawn_thread(asked.near, asked.stack, function, argument).map_err(mistake)? {
        None => Err(libc::EAGAIN),
        Some(handle) => {
            if asked.is_detached {
                program::detach_thread(handle).map_err(mistake)?;
            }
            Ok(handle)
        }
    }
}

/// `pthread_create(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: real::ThreadStart,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: by contract.
    match create(unsafe { asked(attributes) }, start as usize, argument) {
        Ok(handle) => {
            // SAFETY: by contract; if it lies in shared memory the store faults and is served.
            unsafe { thread.write(handle) };
            0
        }
        Err(number) => number,
    }
}

/// Creates a thread with no attributes; for `thrd_create`.
pub fn create_plain(function: usize, argument: *mut c_void) -> Result<u64, c_int> {
    create(Asked::default(), function, argument)
}

/// Waits for the end of a thread: its result, or a number of errno.
pub fn join(thread: pthread_t) -> Result<*mut c_void, c_int> {
    if thread == own() {
        return Err(libc::EDEADLK);
    }
    match program::join_thread(thread) {
        Ok(value) => {
            hooks::thread_joined();
            Ok(std::ptr::with_exposed_provenance_mut(value as usize))
        }
        Err(failure) => Err(mistake(failure)),
    }
}

/// `pthread_join(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    match join(thread) {
        Ok(value) => {
            if !result.is_null() {
                // SAFETY: by contract.
                unsafe { result.write(value) };
            }
            0
        }
        Err(number) => number,
    }
}

/// `pthread_detach(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_detach(thread: pthread_t) -> c_int {
    posix(program::detach_thread(thread))
}

/// `pthread_exit(3)`: main waits for all threads of the job, and then ends it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __wrap_pthread_exit(result: *mut c_void) -> ! {
    if IS_MAIN.get() {
        if let Err(failure) = program::await_all_threads() {
            program::fail(&failure);
        }
        // SAFETY: ends the process.
        unsafe { libc::exit(0) };
    }
    RESULT.set(result);
    // SAFETY: as the C library's; it does not return.
    unsafe { real::pthread_exit(result) };
    std::process::abort()
}

/// The handle of the calling thread.
pub fn own() -> pthread_t {
    match program::own_thread() {
        Some(handle) => handle,
        None if IS_MAIN.get() => MAIN,
        // SAFETY: takes no argument.
        None => unsafe { libc::pthread_self() },
    }
}

/// `pthread_self(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_self() -> pthread_t {
    own()
}

/// `pthread_equal(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_equal(one: pthread_t, other: pthread_t) -> c_int {
    c_int::from(one == other)
}

/// `fsp_pthread_attr_setnode_np`
///
/// # Safety
/// `attributes` points to initialised attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_pthread_attr_setnode_np(attributes: *mut pthread_attr_t, node: c_int) -> c_int {
    let nodes = program::identity().map_or(1, |me| me.nodes);
    let node = match usize::try_from(node) {
        Ok(node) if node < nodes => node as u64 + 1,
        Err(_) if node == -1 => 0,
        Ok(_) | Err(_) => return libc::EINVAL,
    };
    // SAFETY: by contract.
    unsafe { node_word(attributes).write(node) };
    0
}

// ---- what the operating system does to a thread: to the caller itself only ----------------------------------------

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: *const pthread_attr_t, state: *mut c_int) -> c_int;
    fn pthread_setschedprio(thread: pthread_t, priority: c_int) -> c_int;
    fn pthread_getname_np(thread: pthread_t, name: *mut c_char, bytes: size_t) -> c_int;
}

/// The C library's number of the calling thread, if it is the thread that is meant.
fn real_self(thread: pthread_t) -> Option<pthread_t> {
    // SAFETY: takes no argument.
    (thread == own()).then(|| unsafe { libc::pthread_self() })
}

macro_rules! of_the_caller {
    ($($(#[$doc:meta])* $wrapped:ident = $real:path, ($($argument:ident: $type:ty),*), otherwise $otherwise:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $wrapped(thread: pthread_t, $($argument: $type),*) -> c_int {
            match real_self(thread) {
                // SAFETY: the caller's own arguments, under the caller's promise.
                Some(thread) => unsafe { $real(thread, $($argument),*) },
                None => $otherwise,
            }
        }
    )* };
}

of_the_caller! {
    /// `pthread_setname_np(3)`: of another thread, without effect.
    __wrap_pthread_setname_np = libc::pthread_setname_np, (name: *const c_char), otherwise 0;
    /// `pthread_getname_np(3)`
    __wrap_pthread_getname_np = pthread_getname_np, (name: *mut c_char, bytes: size_t), otherwise libc::ENOTSUP;
    /// `pthread_setaffinity_np(3)`: of another thread, without effect.
    __wrap_pthread_setaffinity_np = libc::pthread_setaffinity_np, (bytes: size_t, set: *const libc::cpu_set_t), otherwise 0;
    /// `pthread_getaffinity_np(3)`
    __wrap_pthread_getaffinity_np = libc::pthread_getaffinity_np, (bytes: size_t, set: *mut libc::cpu_set_t), otherwise libc::ENOTSUP;
    /// `pthread_setschedparam(3)`: of another thread, without effect.
    __wrap_pthread_setschedparam = libc::pthread_setschedparam, (policy: c_int, value: *const sched_param), otherwise 0;
    /// `pthread_getschedparam(3)`
    __wrap_pthread_getschedparam = libc::pthread_getschedparam, (policy: *mut c_int, value: *mut sched_param), otherwise libc::ENOTSUP;
    /// `pthread_setschedprio(3)`: of another thread, without effect.
    __wrap_pthread_setschedprio = pthread_setschedprio, (priority: c_int), otherwise 0;
    /// `pthread_getattr_np(3)`
    __wrap_pthread_getattr_np = libc::pthread_getattr_np, (attributes: *mut pthread_attr_t), otherwise libc::ENOTSUP;
    /// `pthread_getcpuclockid(3)`
    __wrap_pthread_getcpuclockid = libc::pthread_getcpuclockid, (clock: *mut clockid_t), otherwise libc::ENOTSUP;
    /// `pthread_cancel(3)`
    __wrap_pthread_cancel = libc::pthread_cancel, (), otherwise unserved("pthread_cancel");
}

/// `pthread_kill(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_kill(thread: pthread_t, signal: c_int) -> c_int {
    match real_self(thread) {
        // SAFETY: the calling thread's own number.
        Some(thread) => unsafe { libc::pthread_kill(thread, signal) },
        None => hooks::kill(thread, signal).unwrap_or_else(|| unserved("pthread_kill")),
    }
}

/// `pthread_tryjoin_np(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_tryjoin_np(_: pthread_t, _: *mut *mut c_void) -> c_int {
    unserved("pthread_tryjoin_np")
}

/// `pthread_timedjoin_np(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_timedjoin_np(_: pthread_t, _: *mut *mut c_void, _: *const libc::timespec) -> c_int {
    unserved("pthread_timedjoin_np")
}

/// `pthread_sigqueue(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_sigqueue(_: pthread_t, _: c_int, _: *mut c_void) -> c_int {
    unserved("pthread_sigqueue")
}
