//! `finespun/thread.h`.

use std::ffi::{c_int, c_void};
use std::ptr::with_exposed_provenance_mut;

use finespun_runtime::program;

use crate::error::{BUSY, OK, bad_argument, refuse, status};

/// `fsp_thread_t`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread {
    handle: u64,
}

/// A function of the program that a thread runs.
type Function = extern "C" fn(*mut c_void) -> *mut c_void;

/// `fsp_thread_create`
///
/// # Safety
/// `thread` points to memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_thread_create(
    thread: *mut Thread,
    function: Option<Function>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: by contract.
    unsafe { create(thread, None, function, argument) }
}

/// `fsp_thread_create_on`
///
/// # Safety
/// `thread` points to memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_thread_create_on(
    thread: *mut Thread,
    processor: c_int,
    function: Option<Function>,
    argument: *mut c_void,
) -> c_int {
    match usize::try_from(processor) {
        // SAFETY: by contract.
        Ok(processor) => unsafe { create(thread, Some(processor), function, argument) },
        Err(_) => refuse(bad_argument(format!("fsp_thread_create_on: processor {processor} is negative"))),
    }
}

/// # Safety
/// `thread` points to memory for a handle.
unsafe fn create(thread: *mut Thread, on: Option<usize>, function: Option<Function>, argument: *mut c_void) -> c_int {
    let (Some(function), false) = (function, thread.is_null()) else {
        return refuse(bad_argument("fsp_thread_create: the handle or the function is NULL".to_owned()));
    };
    match program::create_thread(on, function as usize, argument as u64) {
        Ok(Some(handle)) => {
            // SAFETY: by contract; if it lies in shared memory the store faults and is served.
            unsafe { thread.write(Thread { handle }) };
            OK
        }
        Ok(None) => BUSY,
        Err(failure) => refuse(failure),
    }
}

/// `fsp_thread_join`
///
/// # Safety
/// `thread` points to a handle, `result` to memory for a pointer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_thread_join(thread: *const Thread, result: *mut *mut c_void) -> c_int {
    if thread.is_null() {
        return refuse(bad_argument("fsp_thread_join: the handle is NULL".to_owned()));
    }
    // SAFETY: by contract.
    let Thread { handle } = unsafe { thread.read() };
    match program::join_thread(handle) {
        Ok(value) => {
            if !result.is_null() {
                // SAFETY: by contract.
                unsafe { result.write(with_exposed_provenance_mut(value as usize)) };
            }
            OK
        }
        Err(failure) => refuse(failure),
    }
}

/// `fsp_parallel`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_parallel(function: Option<extern "C" fn(*mut c_void)>, argument: *mut c_void) -> c_int {
    let Some(function) = function else {
        return refuse(bad_argument("fsp_parallel: the function is NULL".to_owned()));
    };
    status(program::in_parallel(|| run_everywhere(function, argument)))
}

fn run_everywhere(function: extern "C" fn(*mut c_void), argument: *mut c_void) -> program::Result<()> {
    let here = program::identity()?.processor;
    let mut handles = Vec::new();
    for processor in program::parallel_processors()?.filter(|processor| *processor != here) {
        match program::create_thread(Some(processor), function as usize, argument as u64)? {
            Some(handle) => handles.push(handle),
            None => return Err(bad_argument(format!("fsp_parallel: processor {processor} runs a thread already"))),
        }
    }
    function(argument);
    for handle in handles {
        program::join_thread(handle)?;
    }
    Ok(())
}
