//! `read(2)`, `write(2)` and kin.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, size_t, ssize_t};

use super::pieces::{Pieces, piece};
use super::transfer::{cut_of, drain, fill};
use super::{is_shared, real};

unsafe extern "C" {
    /// The C library's end for a call with a buffer smaller than said.
    pub fn __chk_fail() -> !;
}

/// Where piece `done` of a transfer goes; -1 is the descriptor's own position (`preadv2`).
const fn further(offset: off_t, done: usize) -> off_t {
    if offset == -1 { -1 } else { offset + done as off_t }
}

/// `read(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn read(fd: c_int, buffer: *mut c_void, bytes: size_t) -> ssize_t {
    if !is_shared(buffer, bytes) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::read(fd, buffer, bytes) };
    }
    let list = [piece(buffer, bytes)];
    // SAFETY: the caller's buffer; the call gets memory of as many bytes as it is told.
    unsafe { fill(cut_of(fd, bytes), Pieces::new(&list), |at, bytes, _| real::read(fd, at.cast(), bytes)) }
}

/// `write(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn write(fd: c_int, buffer: *const c_void, bytes: size_t) -> ssize_t {
    if !is_shared(buffer, bytes) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::write(fd, buffer, bytes) };
    }
    let list = [piece(buffer, bytes)];
    // SAFETY: the caller's buffer; the call gets memory of as many bytes as it is told.
    unsafe { drain(cut_of(fd, bytes), Pieces::new(&list), |at, bytes, _| real::write(fd, at.cast(), bytes)) }
}

/// `pread(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pread(fd: c_int, buffer: *mut c_void, bytes: size_t, offset: off_t) -> ssize_t {
    if !is_shared(buffer, bytes) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::pread(fd, buffer, bytes, offset) };
    }
    let list = [piece(buffer, bytes)];
    // SAFETY: the caller's buffer; the call gets memory of as many bytes as it is told.
    unsafe {
        fill(cut_of(fd, bytes), Pieces::new(&list), |at, bytes, done| {
            real::pread(fd, at.cast(), bytes, further(offset, done))
        })
    }
}

/// `pwrite(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwrite(fd: c_int, buffer: *const c_void, bytes: size_t, offset: off_t) -> ssize_t {
    if !is_shared(buffer, bytes) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::pwrite(fd, buffer, bytes, offset) };
    }
    let list = [piece(buffer, bytes)];
    // SAFETY: the caller's buffer; the call gets memory of as many bytes as it is told.
    unsafe {
        drain(cut_of(fd, bytes), Pieces::new(&list), |at, bytes, done| {
            real::pwrite(fd, at.cast(), bytes, further(offset, done))
        })
    }
}

/// `readv(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readv(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's list.
    let Some(pieces) = (unsafe { Pieces::shared(list, count) }) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::readv(fd, list, count) };
    };
    // SAFETY: the caller's pieces; the call gets memory of as many bytes as it is told.
    unsafe { fill(cut_of(fd, pieces.bytes()), pieces, |at, bytes, _| real::read(fd, at.cast(), bytes)) }
}

/// `writev(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn writev(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's list.
    let Some(pieces) = (unsafe { Pieces::shared(list, count) }) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::writev(fd, list, count) };
    };
    // SAFETY: the caller's pieces; the call gets memory of as many bytes as it is told.
    unsafe { drain(cut_of(fd, pieces.bytes()), pieces, |at, bytes, _| real::write(fd, at.cast(), bytes)) }
}

/// `preadv(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn preadv(fd: c_int, list: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    // SAFETY: the caller's list.
    let Some(pieces) = (unsafe { Pieces::shared(list, count) }) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::preadv(fd, list, count, offset) };
    };
    // SAFETY: the caller's pieces; the call gets memory of as many bytes as it is told.
    unsafe {
        fill(cut_of(fd, pieces.bytes()), pieces, |at, bytes, done| {
            real::pread(fd, at.cast(), bytes, further(offset, done))
        })
    }
}

/// `pwritev(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev(fd: c_int, list: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    // SAFETY: the caller's list.
    let Some(pieces) = (unsafe { Pieces::shared(list, count) }) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::pwritev(fd, list, count, offset) };
    };
    // SAFETY: the caller's pieces; the call gets memory of as many bytes as it is told.
    unsafe {
        drain(cut_of(fd, pieces.bytes()), pieces, |at, bytes, done| {
            real::pwrite(fd, at.cast(), bytes, further(offset, done))
        })
    }
}

/// `preadv2(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn preadv2(
    fd: c_int,
    list: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's list.
    let Some(pieces) = (unsafe { Pieces::shared(list, count) }) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::preadv2(fd, list, count, offset, flags) };
    };
    // SAFETY: the caller's pieces; the call gets memory of as many bytes as it is told.
    unsafe {
        fill(cut_of(fd, pieces.bytes()), pieces, |at, bytes, done| {
            let one = piece(at, bytes);
            real::preadv2(fd, &raw const one, 1, further(offset, done), flags)
        })
    }
}

/// `pwritev2(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev2(
    fd: c_int,
    list: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's list.
    let Some(pieces) = (unsafe { Pieces::shared(list, count) }) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::pwritev2(fd, list, count, offset, flags) };
    };
    // SAFETY: the caller's pieces; the call gets memory of as many bytes as it is told.
    unsafe {
        drain(cut_of(fd, pieces.bytes()), pieces, |at, bytes, done| {
            let one = piece(at, bytes);
            real::pwritev2(fd, &raw const one, 1, further(offset, done), flags)
        })
    }
}

/// `pread` by another name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pread64(fd: c_int, buffer: *mut c_void, bytes: size_t, offset: off_t) -> ssize_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { pread(fd, buffer, bytes, offset) }
}

/// `pwrite` by another name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwrite64(fd: c_int, buffer: *const c_void, bytes: size_t, offset: off_t) -> ssize_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { pwrite(fd, buffer, bytes, offset) }
}

/// `preadv` by another name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn preadv64(fd: c_int, list: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { preadv(fd, list, count, offset) }
}

/// `pwritev` by another name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev64(fd: c_int, list: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { pwritev(fd, list, count, offset) }
}

/// `preadv2` by another name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn preadv64v2(
    fd: c_int,
    list: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { preadv2(fd, list, count, offset, flags) }
}

/// `pwritev2` by another name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev64v2(
    fd: c_int,
    list: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { pwritev2(fd, list, count, offset, flags) }
}

/// `read` as `_FORTIFY_SOURCE` calls it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(fd: c_int, buffer: *mut c_void, bytes: size_t, room: size_t) -> ssize_t {
    if bytes > room {
        // SAFETY: ends the process.
        unsafe { __chk_fail() }
    }
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { read(fd, buffer, bytes) }
}

/// `pread` as `_FORTIFY_SOURCE` calls it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __pread_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    offset: off_t,
    room: size_t,
) -> ssize_t {
    if bytes > room {
        // SAFETY: ends the process.
        unsafe { __chk_fail() }
    }
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { pread(fd, buffer, bytes, offset) }
}

/// `pread` as `_FORTIFY_SOURCE` calls it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __pread64_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    offset: off_t,
    room: size_t,
) -> ssize_t {
    if bytes > room {
        // SAFETY: ends the process.
        unsafe { __chk_fail() }
    }
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { pread(fd, buffer, bytes, offset) }
}
