//! `finespun/program.h`: what `fspcc` links into a program.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::with_exposed_provenance;

use finespun_errors::Code;
use finespun_runtime::{Failure, program};

use crate::base;
use crate::error::{OK, refuse};

/// `fsp_program_globals`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_globals(globals: *mut c_void, bytes: usize) {
    base::share_globals(globals.expose_provenance(), bytes);
}

/// `fsp_program_start`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_start() -> c_int {
    if program::runs() { OK } else { base::start_early() }
}

/// `fsp_program_heap`
///
/// # Safety
/// Both point to memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_program_heap(begin: *mut *const c_void, end: *mut *const c_void) {
    let heap = program::heap_addresses();
    // SAFETY: by contract.
    unsafe {
        begin.write(with_exposed_provenance(heap.start));
        end.write(with_exposed_provenance(heap.end));
    }
}

/// `fsp_program_exit`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_exit(code: c_int) {
    program::exit_job(code);
}

/// `fsp_program_refuse`
///
/// # Safety
/// `what` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_program_refuse(number: c_int, what: *const c_char) -> c_int {
    let code = Code::ALL.iter().copied().find(|code| *code as c_int == number).unwrap_or(Code::Bug);
    // SAFETY: by contract.
    let what = unsafe { CStr::from_ptr(what) }.to_string_lossy().into_owned();
    refuse(Failure { code, what })
}

/// `fsp_program_runs`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_runs() -> c_int {
    c_int::from(program::runs())
}

/// `fsp_program_processor`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_processor() -> c_int {
    program::own_processor().map_or(-1, |processor| processor as c_int)
}
