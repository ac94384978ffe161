//! Addresses and options of sockets in shared memory.

use std::ffi::{c_int, c_void};

use libc::{sockaddr, sockaddr_storage, socklen_t};

use super::bounce::Bounce;
use super::{errno, is_shared, is_shared_object, real};

/// Makes a call that fills `bytes[..*len]` and says in `*len` how much there was.
///
/// # Safety
/// `bytes` is null, or points to room for so many bytes as `len`, which is then not null, says.
unsafe fn filled(bytes: *mut u8, len: *mut socklen_t, call: impl FnOnce(*mut u8, *mut socklen_t) -> c_int) -> c_int {
    if bytes.is_null() || len.is_null() || !(is_shared(bytes, size_of::<sockaddr_storage>()) || is_shared_object(len)) {
        return call(bytes, len);
    }
    // SAFETY: by contract.
    let room = unsafe { len.read() };
    let result = errno::kept(|| {
        let bounce = Bounce::new(room as usize)?;
        let mut told = room;
        let result = call(bounce.memory(), &raw mut told);
        let Ok(result) = usize::try_from(result) else { return Err(errno::get()) };
        // SAFETY: the kernel has filled no more than the room.
        unsafe {
            std::ptr::copy_nonoverlapping(bounce.memory(), bytes, told.min(room) as usize);
            len.write(told);
        }
        Ok(result)
    });
    result as c_int
}

/// Makes a call that reads so many bytes.
///
/// # Safety
/// `bytes` points to them, or the call says what is wrong with them.
unsafe fn read(bytes: *const u8, len: socklen_t, call: impl FnOnce(*const u8) -> c_int) -> c_int {
    if !is_shared(bytes, len as usize) {
        return call(bytes);
    }
    let result = errno::kept(|| {
        let bounce = Bounce::new(len as usize)?;
        // SAFETY: by contract; the bounce has as many.
        unsafe { std::ptr::copy_nonoverlapping(bytes, bounce.memory(), len as usize) };
        usize::try_from(call(bounce.memory())).map_err(|_| errno::get())
    });
    result as c_int
}

/// `accept(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept(fd: c_int, from: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { filled(from.cast(), len, |from, len| real::accept(fd, from.cast(), len)) }
}

/// `accept4(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept4(fd: c_int, from: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { filled(from.cast(), len, |from, len| real::accept4(fd, from.cast(), len, flags)) }
}

/// `getsockname(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getsockname(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { filled(to.cast(), len, |to, len| real::getsockname(fd, to.cast(), len)) }
}

/// `getpeername(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getpeername(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { filled(to.cast(), len, |to, len| real::getpeername(fd, to.cast(), len)) }
}

/// `getsockopt(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    to: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { filled(to.cast(), len, |to, len| real::getsockopt(fd, level, name, to.cast(), len)) }
}

/// `connect(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn connect(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { read(to.cast(), len, |to| real::connect(fd, to.cast(), len)) }
}

/// `bind(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bind(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { read(to.cast(), len, |to| real::bind(fd, to.cast(), len)) }
}

/// `setsockopt(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { read(value.cast(), len, |value| real::setsockopt(fd, level, name, value.cast(), len)) }
}
