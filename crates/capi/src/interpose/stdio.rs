//! `fread(3)`, `fwrite(3)` and kin. Most of stdio copies between the program's memory and the stream's buffer, in user mode; but
//! these go past the buffer when there is much, and a stream may have none.

use std::ffi::{c_char, c_int, c_void};

use libc::{FILE, size_t};

use super::bounce::{Bounce, CHUNK};
use super::files::__chk_fail;
use super::pieces::{Pieces, piece};
use super::{errno, is_shared, real};

unsafe extern "C" {
    static stdout: *mut FILE;
    fn flockfile(stream: *mut FILE);
    fn funlockfile(stream: *mut FILE);
    fn putc_unlocked(byte: c_int, stream: *mut FILE) -> c_int;
}

/// Holds a stream, so that the pieces of one transfer stay together.
struct Held(*mut FILE);

impl Held {
    /// # Safety
    /// `stream` is an open stream, also until this is dropped.
    unsafe fn new(stream: *mut FILE) -> Self {
        // SAFETY: by contract.
        unsafe { flockfile(stream) };
        Self(stream)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the stream that `new` took.
        unsafe { funlockfile(self.0) };
    }
}

/// What went through when a stream took or gave `bytes` of `count` items.
const fn items(bytes: usize, size: usize, count: usize) -> usize {
    if bytes == size * count { count } else { bytes / size }
}

/// Reads items of a stream into shared memory; the caller holds the stream or does not care.
///
/// # Safety
/// As for `fread(3)`; size times count is no overflow and not 0.
unsafe fn read_items(buffer: *mut c_void, size: usize, count: usize, stream: *mut FILE) -> usize {
    let total = size * count;
    let Ok(bounce) = Bounce::new(total.min(CHUNK)) else { return 0 };
    let list = [piece(buffer, total)];
    let mut done = 0;
    while done < total {
        let want = (total - done).min(CHUNK);
        // SAFETY: `bounce` has room for `want` bytes, the caller's buffer for `total`.
        let got = unsafe {
            let got = real::fread_unlocked(bounce.memory().cast(), 1, want, stream);
            Pieces::new(&list).scatter(done, bounce.memory(), got);
            got
        };
        done += got;
        if got < want {
            break;
        }
    }
    items(done, size, count)
}

/// Writes bytes of shared memory to a stream; how many it took.
///
/// # Safety
/// As for `fwrite(3)`.
unsafe fn write_bytes(buffer: *const c_void, total: usize, stream: *mut FILE) -> usize {
    let Ok(bounce) = Bounce::new(total.min(CHUNK)) else { return 0 };
    let list = [piece(buffer, total)];
    let mut done = 0;
    while done < total {
        let want = (total - done).min(CHUNK);
        // SAFETY: `bounce` has room for `want` bytes, and the caller's buffer has `total`.
        let put = unsafe {
            Pieces::new(&list).gather(done, bounce.memory(), want);
            real::fwrite_unlocked(bounce.memory().cast(), 1, want, stream)
        };
        done += put;
        if put < want {
            break;
        }
    }
    done
}

/// The bytes of a transfer that must go around the kernel.
fn shared_bytes(buffer: *const c_void, size: usize, count: usize) -> Option<usize> {
    size.checked_mul(count).filter(|&bytes| is_shared(buffer, bytes))
}

/// `fread(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fread(buffer: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t {
    if shared_bytes(buffer, size, count).is_none() {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::fread(buffer, size, count, stream) };
    }
    // SAFETY: as above.
    unsafe {
        let _held = Held::new(stream);
        read_items(buffer, size, count, stream)
    }
}

/// `fread_unlocked(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fread_unlocked(
    buffer: *mut c_void,
    size: size_t,
    count: size_t,
    stream: *mut FILE,
) -> size_t {
    if shared_bytes(buffer, size, count).is_none() {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::fread_unlocked(buffer, size, count, stream) };
    }
    // SAFETY: as above.
    unsafe { read_items(buffer, size, count, stream) }
}

/// `fread` as `_FORTIFY_SOURCE` calls it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __fread_chk(
    buffer: *mut c_void,
    room: size_t,
    size: size_t,
    count: size_t,
    stream: *mut FILE,
) -> size_t {
    check_room(room, size, count);
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { fread(buffer, size, count, stream) }
}

/// `fread_unlocked` as `_FORTIFY_SOURCE` calls it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __fread_unlocked_chk(
    buffer: *mut c_void,
    room: size_t,
    size: size_t,
    count: size_t,
    stream: *mut FILE,
) -> size_t {
    check_room(room, size, count);
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { fread_unlocked(buffer, size, count, stream) }
}

fn check_room(room: usize, size: usize, count: usize) {
    if size.checked_mul(count).is_none_or(|bytes| bytes > room) {
        // SAFETY: ends the process.
        unsafe { __chk_fail() }
    }
}

/// `fwrite(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fwrite(
    buffer: *const c_void,
    size: size_t,
    count: size_t,
    stream: *mut FILE,
) -> size_t {
    let Some(bytes) = shared_bytes(buffer, size, count) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::fwrite(buffer, size, count, stream) };
    };
    // SAFETY: as above.
    unsafe {
        let _held = Held::new(stream);
        items(write_bytes(buffer, bytes, stream), size, count)
    }
}

/// `fwrite_unlocked(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fwrite_unlocked(
    buffer: *const c_void,
    size: size_t,
    count: size_t,
    stream: *mut FILE,
) -> size_t {
    let Some(bytes) = shared_bytes(buffer, size, count) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::fwrite_unlocked(buffer, size, count, stream) };
    };
    // SAFETY: as above.
    items(unsafe { write_bytes(buffer, bytes, stream) }, size, count)
}

/// Writes a string of shared memory; false if the stream did not take it all.
///
/// # Safety
/// As for `fputs_unlocked(3)`.
unsafe fn write_text(text: *const c_char, stream: *mut FILE) -> bool {
    // SAFETY: by contract.
    unsafe {
        let bytes = libc::strlen(text);
        bytes == 0 || write_bytes(text.cast(), bytes, stream) == bytes
    }
}

/// `fputs(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fputs(text: *const c_char, stream: *mut FILE) -> c_int {
    if !is_shared(text, 1) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::fputs(text, stream) };
    }
    // SAFETY: as above.
    unsafe {
        let _held = Held::new(stream);
        if write_text(text, stream) { 1 } else { libc::EOF }
    }
}

/// `fputs_unlocked(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fputs_unlocked(text: *const c_char, stream: *mut FILE) -> c_int {
    if !is_shared(text, 1) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::fputs_unlocked(text, stream) };
    }
    // SAFETY: as above.
    if unsafe { write_text(text, stream) } { 1 } else { libc::EOF }
}

/// `puts(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn puts(text: *const c_char) -> c_int {
    if !is_shared(text, 1) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::puts(text) };
    }
    // SAFETY: as above; `stdout` is set by the C library, and by the program if it wants another.
    unsafe {
        let stream = stdout;
        let _held = Held::new(stream);
        let written = write_text(text, stream) && putc_unlocked(c_int::from(b'\n'), stream) != libc::EOF;
        if written { 1 } else { libc::EOF }
    }
}

/// `setvbuf(3)`. The C library gives a stream's buffer to the kernel: it gets one of its own in place of a shared one.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setvbuf(stream: *mut FILE, buffer: *mut c_char, mode: c_int, bytes: size_t) -> c_int {
    let buffer = if is_shared(buffer, bytes) { std::ptr::null_mut() } else { buffer };
    // SAFETY: the caller's own arguments, under the caller's promise; null is a valid buffer.
    unsafe { real::setvbuf(stream, buffer, mode, bytes) }
}

/// `setbuffer(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setbuffer(stream: *mut FILE, buffer: *mut c_char, bytes: size_t) {
    let mode = if buffer.is_null() { libc::_IONBF } else { libc::_IOFBF };
    // It returns nothing, so it may not fail: `errno` stays.
    let before = errno::get();
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { setvbuf(stream, buffer, mode, bytes) };
    errno::set(before);
}

/// `setbuf(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setbuf(stream: *mut FILE, buffer: *mut c_char) {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { setbuffer(stream, buffer, libc::BUFSIZ as usize) }
}
