//! `close(2)` and kin. A program that closes every number from 3 on, or puts a file of its own on each, leaves the runtime's
//! descriptors open: they answer as numbers under which nothing is open (`EBADF`). In a child made by fork, which is no part of the job, they
//! are closed as any other.

use std::ffi::{CStr, c_int, c_long, c_uint};

use finespun_job::ENV_KEEP;
use finespun_runtime::is_forked;
use finespun_sys::descriptors;

use super::{errno, real};

/// Run when the library is loaded: the program may close descriptors before it calls `fsp_init`.
#[used]
#[unsafe(link_section = ".init_array")]
static KEEP_INHERITED: extern "C" fn() = keep_inherited;

extern "C" fn keep_inherited() {
    let Some(name) = NAME else { return };
    // SAFETY: a C string; no other thread runs while libraries are loaded that could change the environment.
    let text = unsafe { libc::getenv(name.as_ptr()) };
    if !text.is_null() {
        // SAFETY: getenv returns a C string of the environment, which is not changed meanwhile.
        let text = unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default();
        text.split(',').filter_map(|number| number.parse().ok()).for_each(descriptors::keep);
    }
}

const NAME: Option<&CStr> = {
    const BYTES: usize = ENV_KEEP.len() + 1;
    const ENDED: [u8; BYTES] = {
        let (mut ended, mut at) = ([0; BYTES], 0);
        while at < ENV_KEEP.len() {
            ended[at] = ENV_KEEP.as_bytes()[at];
            at += 1;
        }
        ended
    };
    match CStr::from_bytes_with_nul(&ENDED) {
        Ok(name) => Some(name),
        Err(_) => None,
    }
};

#[inline]
fn is_ours(fd: c_int) -> bool {
    descriptors::is_kept(fd) && !is_forked()
}

fn not_open() -> c_int {
    errno::set(libc::EBADF);
    -1
}

/// `close(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if is_ours(fd) {
        return not_open();
    }
    // SAFETY: the caller's own argument, under the caller's promise.
    unsafe { real::close(fd) }
}

/// `dup2(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup2(old: c_int, new: c_int) -> c_int {
    if is_ours(new) {
        return not_open();
    }
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { real::dup2(old, new) }
}

/// `dup3(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if is_ours(new) {
        return not_open();
    }
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { real::dup3(old, new, flags) }
}

/// The kernel's close_range: not every C library has one.
fn close_all(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: takes numbers; closing is what the caller asks for.
    let result: c_long = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    result as c_int
}

/// `close_range(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // Ours are closed at exec anyhow.
    let only_marks = flags & libc::CLOSE_RANGE_CLOEXEC as c_int != 0;
    if first > last || only_marks || is_forked() {
        return close_all(first, last, flags);
    }
    let mut from = first;
    while let Some(ours) = descriptors::first_kept(from..=last) {
        if ours > from && close_all(from, ours - 1, flags) != 0 {
            return -1;
        }
        from = ours + 1;
    }
    if from <= last { close_all(from, last, flags) } else { 0 }
}

/// `closefrom(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn closefrom(lowest: c_int) {
    let before = errno::get();
    let lowest = lowest.max(0);
    // SAFETY: closing is what the caller asks for.
    if unsafe { close_range(lowest as c_uint, c_uint::MAX, 0) } != 0 {
        // A kernel before 5.9.
        // SAFETY: takes a number.
        let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
        for fd in lowest..c_int::try_from(most).unwrap_or(c_int::MAX) {
            // SAFETY: closing is what the caller asks for.
            unsafe { close(fd) };
        }
    }
    errno::set(before);
}
