//! `finespun/threads.h`: the threads of C11, which are those of POSIX by other names.

use std::ffi::{c_int, c_void};

use libc::{pthread_cond_t, pthread_mutex_t, pthread_t, timespec};

use super::{Whose, condition, keys, mistake, mutex, others, threads, whose};
use crate::interpose::real;

/// Results, as the C library numbers them.
const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

/// A bit of a mutex's type.
const RECURSIVE: c_int = 1;

const fn result(number: c_int) -> c_int {
    match number {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ENOMEM | libc::EAGAIN => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// `thrd_create(3)`: the function's result is in the lower half of what a thread's function returns.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_thrd_create(
    thread: *mut pthread_t,
    function: real::C11Start,
    argument: *mut c_void,
) -> c_int {
    match threads::create_plain(function as usize, argument) {
        Ok(handle) => {
            // SAFETY: by contract; if it lies in shared memory the store faults and is served.
            unsafe { thread.write(handle) };
            SUCCESS
        }
        Err(number) => result(number),
    }
}

/// `thrd_join(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_thrd_join(thread: pthread_t, to: *mut c_int) -> c_int {
    match threads::join(thread) {
        Ok(value) => {
            if !to.is_null() {
                // SAFETY: by contract.
                unsafe { to.write(value.addr() as c_int) };
            }
            SUCCESS
        }
        Err(number) => result(number),
    }
}

/// `thrd_detach(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_thrd_detach(thread: pthread_t) -> c_int {
    result(threads::__wrap_pthread_detach(thread))
}

/// `thrd_exit(3)`
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __wrap_thrd_exit(value: c_int) -> ! {
    threads::__wrap_pthread_exit(std::ptr::without_provenance_mut(value as usize))
}

/// `thrd_current(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_thrd_current() -> pthread_t {
    threads::own()
}

/// `thrd_equal(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_thrd_equal(one: pthread_t, other: pthread_t) -> c_int {
    c_int::from(one == other)
}

unsafe extern "C" {
    fn mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int;
    fn cnd_init(condition: *mut pthread_cond_t) -> c_int;
}

/// `mtx_init(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_mtx_init(of: *mut pthread_mutex_t, kind: c_int) -> c_int {
    match whose(of, "mutex") {
        Ok(Whose::Ours) => {
            let recursive = kind & RECURSIVE != 0;
            let kind = if recursive { libc::PTHREAD_MUTEX_RECURSIVE } else { libc::PTHREAD_MUTEX_NORMAL };
            mutex::initialise(of.expose_provenance(), kind);
            SUCCESS
        }
        // SAFETY: the caller's own arguments, under the caller's promise.
        Ok(Whose::Theirs) => unsafe { mtx_init(of, kind) },
        Err(failure) => result(mistake(failure)),
    }
}

/// `cnd_init(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_cnd_init(of: *mut pthread_cond_t) -> c_int {
    match whose(of, "condition variable") {
        Ok(Whose::Ours) => {
            condition::initialise(of.expose_provenance(), libc::CLOCK_REALTIME);
            SUCCESS
        }
        // SAFETY: the caller's own arguments, under the caller's promise.
        Ok(Whose::Theirs) => unsafe { cnd_init(of) },
        Err(failure) => result(mistake(failure)),
    }
}

macro_rules! as_posix {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $posix:path;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's own arguments, under the caller's promise: the types are those of POSIX by other names.
            result(unsafe { $posix($($argument),*) })
        }
    )* };
}

as_posix! {
    /// `mtx_lock(3)`
    __wrap_mtx_lock(of: *mut pthread_mutex_t) = mutex::__wrap_pthread_mutex_lock;
    /// `mtx_trylock(3)`
    __wrap_mtx_trylock(of: *mut pthread_mutex_t) = mutex::__wrap_pthread_mutex_trylock;
    /// `mtx_timedlock(3)`
    __wrap_mtx_timedlock(of: *mut pthread_mutex_t, until: *const timespec) = mutex::__wrap_pthread_mutex_timedlock;
    /// `mtx_unlock(3)`
    __wrap_mtx_unlock(of: *mut pthread_mutex_t) = mutex::__wrap_pthread_mutex_unlock;
    /// `cnd_wait(3)`
    __wrap_cnd_wait(of: *mut pthread_cond_t, with: *mut pthread_mutex_t) = condition::__wrap_pthread_cond_wait;
    /// `cnd_timedwait(3)`
    __wrap_cnd_timedwait(of: *mut pthread_cond_t, with: *mut pthread_mutex_t, until: *const timespec) = condition::__wrap_pthread_cond_timedwait;
    /// `cnd_signal(3)`
    __wrap_cnd_signal(of: *mut pthread_cond_t) = condition::__wrap_pthread_cond_signal;
    /// `cnd_broadcast(3)`
    __wrap_cnd_broadcast(of: *mut pthread_cond_t) = condition::__wrap_pthread_cond_broadcast;
    /// `tss_create(3)`
    __wrap_tss_create(to: *mut u32, destructor: Option<extern "C-unwind" fn(*mut c_void)>) = keys::__wrap_pthread_key_create;
    /// `tss_set(3)`
    __wrap_tss_set(key: u32, value: *mut c_void) = set_value;
}

/// # Safety
/// None needed.
unsafe fn set_value(key: u32, value: *mut c_void) -> c_int {
    keys::__wrap_pthread_setspecific(key, value)
}

/// `tss_get(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_tss_get(key: u32) -> *mut c_void {
    keys::__wrap_pthread_getspecific(key)
}

/// `tss_delete(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_tss_delete(key: u32) {
    keys::__wrap_pthread_key_delete(key);
}

/// `mtx_destroy(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_mtx_destroy(of: *mut pthread_mutex_t) {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { mutex::__wrap_pthread_mutex_destroy(of) };
}

/// `cnd_destroy(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_cnd_destroy(of: *mut pthread_cond_t) {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { condition::__wrap_pthread_cond_destroy(of) };
}

/// `call_once(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __wrap_call_once(once: *mut c_int, function: Option<extern "C-unwind" fn()>) {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { others::__wrap_pthread_once(once, function) };
}
