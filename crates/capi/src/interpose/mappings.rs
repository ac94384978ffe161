//! `mprotect(2)` and kin, which must not be called for shared memory: its rights are how loads and stores are noticed.

use std::ffi::{c_int, c_void};

use finespun_runtime::program;
use libc::{off_t, size_t};

use super::{errno, real};
use crate::error;

/// False if the call is refused: the job has ended, or the program wants errors returned, and `errno` is set.
fn is_private(start: *mut c_void, bytes: size_t, call: &str) -> bool {
    let Err(failure) = program::mapping_of_program(start.addr(), bytes, call) else { return true };
    error::refuse(failure);
    errno::set(libc::EACCES);
    false
}

/// `mprotect(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mprotect(start: *mut c_void, bytes: size_t, rights: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    if is_private(start, bytes, "mprotect") { unsafe { real::mprotect(start, bytes, rights) } } else { -1 }
}

/// `munmap(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn munmap(start: *mut c_void, bytes: size_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    if is_private(start, bytes, "munmap") { unsafe { real::munmap(start, bytes) } } else { -1 }
}

/// Only a fixed place takes the place of what is there.
///
/// # Safety
/// As the C library's `mmap`.
unsafe fn map(start: *mut c_void, bytes: size_t, rights: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void {
    if flags & libc::MAP_FIXED != 0 && !is_private(start, bytes, "mmap with MAP_FIXED") {
        return libc::MAP_FAILED;
    }
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { real::mmap(start, bytes, rights, flags, fd, offset) }
}

/// `mmap(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mmap(
    start: *mut c_void,
    bytes: size_t,
    rights: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { map(start, bytes, rights, flags, fd, offset) }
}

/// `mmap64(2)`, which is the same where addresses have 64 bits.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mmap64(
    start: *mut c_void,
    bytes: size_t,
    rights: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { map(start, bytes, rights, flags, fd, offset) }
}

/// `mremap(2)`, whose last argument is there only with MREMAP_FIXED, and else anything.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mremap(
    start: *mut c_void,
    bytes: size_t,
    new_bytes: size_t,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let may_move = flags & libc::MREMAP_FIXED == 0 || is_private(to, new_bytes, "mremap with MREMAP_FIXED");
    if !may_move || !is_private(start, bytes, "mremap") {
        return libc::MAP_FAILED;
    }
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { real::mremap(start, bytes, new_bytes, flags, to) }
}
