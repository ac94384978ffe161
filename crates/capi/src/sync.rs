//! `finespun/sync.h`. Objects are never looked at here: they are known by their addresses.

use std::ffi::{c_int, c_uint, c_void};

use finespun_runtime::program;

use crate::error::{BUSY, OK, refuse, status, value};

/// `fsp_mutex_lock`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_mutex_lock(mutex: *mut c_void) -> c_int {
    status(program::lock(mutex as usize))
}

/// `fsp_mutex_trylock`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_mutex_trylock(mutex: *mut c_void) -> c_int {
    match program::try_lock(mutex as usize) {
        Ok(true) => OK,
        Ok(false) => BUSY,
        Err(failure) => refuse(failure),
    }
}

/// `fsp_mutex_unlock`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_mutex_unlock(mutex: *mut c_void) -> c_int {
    status(program::unlock(mutex as usize))
}

/// `fsp_cond_wait`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_cond_wait(cond: *mut c_void, mutex: *mut c_void) -> c_int {
    status(program::wait_condition(cond as usize, mutex as usize))
}

/// `fsp_cond_signal`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_cond_signal(cond: *mut c_void) -> c_int {
    status(program::signal(cond as usize, false))
}

/// `fsp_cond_broadcast`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_cond_broadcast(cond: *mut c_void) -> c_int {
    status(program::signal(cond as usize, true))
}

/// `fsp_barrier_wait`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_barrier_wait(barrier: *mut c_void, count: c_uint) -> c_int {
    status(program::barrier(barrier as usize, count))
}

/// `fsp_barrier_all`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_barrier_all() -> c_int {
    status(program::barrier_all())
}

/// `fsp_flag_set`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_flag_set(flag: *mut c_void, to: u32) -> c_int {
    status(program::set_flag(flag as usize, to))
}

/// `fsp_flag_wait`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_flag_wait(flag: *mut c_void, until: u32) -> c_int {
    status(program::wait_flag(flag as usize, until).map(|_| ()))
}

/// `fsp_flag_read`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_flag_read(flag: *mut c_void) -> u32 {
    value(program::read_flag(flag as usize), 0)
}

/// `fsp_flag_reset`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_flag_reset(flag: *mut c_void) -> c_int {
    status(program::reset_flag(flag as usize))
}
