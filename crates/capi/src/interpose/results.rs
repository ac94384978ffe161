//! More calls whose results and parameters are small objects of the program: the kernel gets private ones. Most matter only where
//! a thread's variables are shared (`fspcc --share-stacks`).

use std::ffi::{c_char, c_int, c_uint};

use finespun_sys::stack;
use libc::{
    clock_t, clockid_t, epoll_event, fd_set, id_t, idtype_t, itimerval, pid_t, rlimit, rusage, siginfo_t, sigset_t,
    size_t, statfs as statfs_t, sysinfo as sysinfo_t, timespec, timeval, tms, utsname,
};

use super::bounce::Bounce;
use super::paths::Path;
use super::pieces::{Pieces, piece};
use super::records::{changed, looked_at, written};
use super::{errno, is_shared, real};

/// `uname(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn uname(to: *mut utsname) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(to, |to| real::uname(to)) }
}

/// `sysinfo(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sysinfo(to: *mut sysinfo_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(to, |to| real::sysinfo(to)) }
}

/// `times(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn times(to: *mut tms) -> clock_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { changed(to, |to| real::times(to)) }
}

/// `getrlimit(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getrlimit(resource: c_uint, to: *mut rlimit) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(to, |to| real::getrlimit(resource, to)) }
}

/// `statfs(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn statfs(path: *const c_char, to: *mut statfs_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        let path = Path::of(path);
        written(to, |to| real::statfs(path.get(), to))
    }
}

/// `fstatfs(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fstatfs(fd: c_int, to: *mut statfs_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(to, |to| real::fstatfs(fd, to)) }
}

/// `getcwd(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getcwd(buffer: *mut c_char, bytes: size_t) -> *mut c_char {
    if !is_shared(buffer, bytes) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::getcwd(buffer, bytes) };
    }
    let list = [piece(buffer, bytes)];
    let got = errno::kept(|| {
        let bounce = Bounce::new(bytes)?;
        // SAFETY: both have `bytes` bytes.
        unsafe {
            let name = real::getcwd(bounce.memory().cast(), bytes);
            if name.is_null() {
                return Err(errno::get());
            }
            Pieces::new(&list).scatter(0, bounce.memory(), libc::strlen(name) + 1);
        }
        Ok(0)
    });
    if got < 0 { std::ptr::null_mut() } else { buffer }
}

/// `getitimer(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getitimer(which: c_int, to: *mut itimerval) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(to, |to| real::getitimer(which, to)) }
}

/// `setitimer(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { looked_at(new, |new| written(old, |old| real::setitimer(which, new, old))) }
}

/// `epoll_ctl(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_ctl(epoll: c_int, way: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { looked_at(event, |event| real::epoll_ctl(epoll, way, fd, event.cast_mut())) }
}

/// `select(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    other: *mut fd_set,
    left: *mut timeval,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe {
        with_sets(count, [read, write, other], |[read, write, other]| {
            changed(left, |left| real::select(count, read, write, other, left))
        })
    }
}

/// Makes a call that reads and writes three sets of descriptors.
///
/// # Safety
/// Each is null or points to a set for descriptors below `count`.
pub unsafe fn with_sets(
    count: c_int,
    [read, write, other]: [*mut fd_set; 3],
    call: impl FnOnce([*mut fd_set; 3]) -> c_int,
) -> c_int {
    if count > libc::FD_SETSIZE as c_int {
        return call([read, write, other]); // larger sets than we would copy
    }
    // SAFETY: by contract.
    unsafe { changed(read, |read| changed(write, |write| changed(other, |other| call([read, write, other])))) }
}

/// `wait3(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn wait3(status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { wait4(-1, status, options, usage) }
}

/// `wait4(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn wait4(pid: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(status, |status| written(usage, |usage| real::wait4(pid, status, options, usage))) }
}

/// `waitid(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn waitid(kind: idtype_t, id: id_t, to: *mut siginfo_t, options: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { written(to, |to| real::waitid(kind, id, to, options)) }
}

/// `sigwait(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int {
    // The C library lets the kernel write to a variable of its own: not on a shared stack.
    // SAFETY: the caller's own arguments, under the caller's promise.
    stack::on_private(|| unsafe { looked_at(set, |set| written(signal, |signal| real::sigwait(set, signal))) })
}

/// `sigwaitinfo(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigwaitinfo(set: *const sigset_t, to: *mut siginfo_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    stack::on_private(|| unsafe { looked_at(set, |set| written(to, |to| real::sigwaitinfo(set, to))) })
}

/// `sigtimedwait(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigtimedwait(
    set: *const sigset_t,
    to: *mut siginfo_t,
    limit: *const timespec,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    stack::on_private(|| unsafe {
        looked_at(set, |set| looked_at(limit, |limit| written(to, |to| real::sigtimedwait(set, to, limit))))
    })
}

/// `clock_nanosleep(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { looked_at(time, |time| changed(left, |left| real::clock_nanosleep(clock, flags, time, left))) }
}

/// `sleep(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sleep(seconds: c_uint) -> c_uint {
    // SAFETY: takes no pointer.
    stack::on_private(move || unsafe { real::sleep(seconds) })
}

/// `usleep(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn usleep(micros: c_uint) -> c_int {
    // SAFETY: takes no pointer.
    stack::on_private(move || unsafe { real::usleep(micros) })
}
