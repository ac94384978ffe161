//! Calls that read or write a small object of the program: the kernel gets a private one.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;

use finespun_sys::stack;
use libc::{clockid_t, epoll_event, nfds_t, pid_t, pollfd, rusage, size_t, ssize_t, stat as stat_t, timespec};

use super::bounce::Bounce;
use super::paths::Path;
use super::pieces::{Pieces, piece};
use super::transfer::{Cut, fill};
use super::{errno, is_shared, is_shared_object, real};

/// Makes a call that writes an object.
///
/// # Safety
/// `place` is null or points to memory for the object; the call fills it if its result is not negative.
pub unsafe fn written<T>(place: *mut T, call: impl FnOnce(*mut T) -> c_int) -> c_int {
    if !is_shared_object(place) {
        return call(place);
    }
    stack::on_private(|| {
        let mut object = MaybeUninit::<T>::zeroed();
        let result = call(object.as_mut_ptr());
        if result >= 0 {
            // SAFETY: by contract; if shared, the store faults and is served.
            unsafe { place.copy_from_nonoverlapping(object.as_ptr(), 1) };
        }
        result
    })
}

/// Makes a call that reads an object.
///
/// # Safety
/// `place` is null or points to an object.
pub unsafe fn looked_at<T: Copy, R>(place: *const T, call: impl FnOnce(*const T) -> R) -> R {
    if !is_shared_object(place) {
        return call(place);
    }
    stack::on_private(|| {
        // SAFETY: by contract; if shared, the load faults and is served.
        let object = unsafe { place.read() };
        call(&raw const object)
    })
}

/// Makes a call that reads and writes an object, whatever its result.
///
/// # Safety
/// `place` is null or points to an object.
pub unsafe fn changed<T: Copy, R>(place: *mut T, call: impl FnOnce(*mut T) -> R) -> R {
    if !is_shared_object(place) {
        return call(place);
    }
    stack::on_private(|| {
        // SAFETY: by contract; if shared, load and store fault and are served.
        let mut object = unsafe { place.read() };
        let result = call(&raw mut object);
        // SAFETY: as above.
        unsafe { place.write(object) };
        result
    })
}

/// Makes a call that reads and writes an array, and returns how many are of interest, or -1.
///
/// # Safety
/// `array` is null or points to `count` objects.
pub unsafe fn array<T>(array: *mut T, count: usize, call: impl FnOnce(*mut T) -> c_int) -> c_int {
    let bytes = count.saturating_mul(size_of::<T>());
    if !is_shared(array, bytes) {
        return call(array);
    }
    let list = [piece(array, bytes)];
    let moved = errno::kept(|| {
        let bounce = Bounce::new(bytes)?;
        // SAFETY: both have `bytes` bytes.
        let result = unsafe {
            Pieces::new(&list).gather(0, bounce.memory(), bytes);
            let result = call(bounce.memory().cast());
            Pieces::new(&list).scatter(0, bounce.memory(), bytes);
            result
        };
        usize::try_from(result).map_err(|_| errno::get())
    });
    moved as c_int
}

/// `stat(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn stat(path: *const c_char, to: *mut stat_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let path = Path::of(path);
        written(to, |to| real::stat(path.get(), to))
    }
}

/// `stat64(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn stat64(path: *const c_char, to: *mut stat_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let path = Path::of(path);
        written(to, |to| real::stat64(path.get(), to))
    }
}

/// `lstat(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn lstat(path: *const c_char, to: *mut stat_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let path = Path::of(path);
        written(to, |to| real::lstat(path.get(), to))
    }
}

/// `lstat64(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn lstat64(path: *const c_char, to: *mut stat_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let path = Path::of(path);
        written(to, |to| real::lstat64(path.get(), to))
    }
}

/// `fstat(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fstat(fd: c_int, to: *mut stat_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(to, |to| real::fstat(fd, to)) }
}

/// `fstat64(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fstat64(fd: c_int, to: *mut stat_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(to, |to| real::fstat64(fd, to)) }
}

/// `fstatat(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fstatat(at: c_int, path: *const c_char, to: *mut stat_t, flags: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let path = Path::of(path);
        written(to, |to| real::fstatat(at, path.get(), to, flags))
    }
}

/// `fstatat64(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fstatat64(at: c_int, path: *const c_char, to: *mut stat_t, flags: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let path = Path::of(path);
        written(to, |to| real::fstatat64(at, path.get(), to, flags))
    }
}

/// `pipe(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pipe(pair: *mut [c_int; 2]) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(pair, |pair| real::pipe(pair)) }
}

/// `pipe2(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pipe2(pair: *mut [c_int; 2], flags: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(pair, |pair| real::pipe2(pair, flags)) }
}

/// `socketpair(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    pair: *mut [c_int; 2],
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(pair, |pair| real::socketpair(domain, kind, protocol, pair)) }
}

/// `waitpid(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(status, |status| real::waitpid(pid, status, options)) }
}

/// `wait(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn wait(status: *mut c_int) -> pid_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(status, |status| real::wait(status)) }
}

/// `clock_gettime(2)`: for the clocks that the kernel is asked for
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(time, |time| real::clock_gettime(clock, time)) }
}

/// `getrusage(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getrusage(who: c_int, usage: *mut rusage) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(usage, |usage| real::getrusage(who, usage)) }
}

/// `poll(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn poll(list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { array(list, count as usize, |list| real::poll(list, count, timeout)) }
}

/// `epoll_wait(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_wait(fd: c_int, events: *mut epoll_event, count: c_int, timeout: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { array(events, usize::try_from(count).unwrap_or(0), |events| real::epoll_wait(fd, events, count, timeout)) }
}

/// `getrandom(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getrandom(buffer: *mut c_void, bytes: size_t, flags: c_uint) -> ssize_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        if !is_shared(buffer, bytes) {
            return real::getrandom(buffer, bytes, flags);
        }
        let list = [piece(buffer, bytes)];
        fill(Cut::Nowhere, Pieces::new(&list), |at, bytes, _| real::getrandom(at.cast(), bytes, flags))
    }
}

/// `readlink(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readlink(path: *const c_char, buffer: *mut c_char, bytes: size_t) -> ssize_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let path = Path::of(path);
        if !is_shared(buffer, bytes) {
            return real::readlink(path.get(), buffer, bytes);
        }
        let list = [piece(buffer, bytes)];
        fill(Cut::Nowhere, Pieces::new(&list), |at, bytes, _| real::readlink(path.get(), at.cast(), bytes))
    }
}

/// `nanosleep(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        looked_at(time, |time| {
            // What is left is written when the call fails.
            if time.is_null() || !is_shared_object(left) {
                return real::nanosleep(time, left);
            }
            let mut rest = *time;
            let result = real::nanosleep(time, &raw mut rest);
            if result != 0 && errno::get() == libc::EINTR {
                left.write(rest);
            }
            result
        })
    }
}
