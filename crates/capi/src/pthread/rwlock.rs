//! `pthread_rwlock_t`.

use std::ffi::c_int;

use finespun_errors::Code;
use finespun_runtime::Failure;
use finespun_runtime::program::{self, RwAccess};
use libc::{clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};

use super::held::Held;
use super::{mistake, route, time};

const KIND: &str = "rwlock";

thread_local! {
    static READS: Held = const { Held::nothing() };
    static WRITES: Held = const { Held::nothing() };
}

unsafe extern "C" {
    fn pthread_rwlock_clockrdlock(lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> c_int;
    fn pthread_rwlock_clockwrlock(lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> c_int;
}

fn reads(lock: usize) -> bool {
    READS.with(|held| held.count(lock)) > 0
}

fn writes(lock: usize) -> bool {
    WRITES.with(|held| held.count(lock)) > 0
}

/// A thread must be able to say what it holds, or it could not be known who unlocks.
fn note(held: &'static std::thread::LocalKey<Held>, lock: usize) -> c_int {
    if held.with(|held| held.push(lock)) {
        return 0;
    }
    match program::unlock_rw(lock) {
        Ok(()) => libc::EAGAIN,
        Err(failure) => mistake(failure),
    }
}

fn read(lock: usize) -> c_int {
    if writes(lock) {
        return libc::EDEADLK;
    }
    match program::lock_rw(lock, RwAccess::Read { again: reads(lock) }) {
        Ok(()) => note(&READS, lock),
        Err(failure) => mistake(failure),
    }
}

fn write(lock: usize) -> c_int {
    if reads(lock) || writes(lock) {
        return libc::EDEADLK;
    }
    match program::lock_rw(lock, RwAccess::Write) {
        Ok(()) => note(&WRITES, lock),
        Err(failure) => mistake(failure),
    }
}

fn try_read(lock: usize) -> c_int {
    match program::try_lock_rw(lock, RwAccess::Read { again: reads(lock) }) {
        Ok(true) => note(&READS, lock),
        Ok(false) => libc::EBUSY,
        Err(failure) => mistake(failure),
    }
}

fn try_write(lock: usize) -> c_int {
    match program::try_lock_rw(lock, RwAccess::Write) {
        Ok(true) => note(&WRITES, lock),
        Ok(false) => libc::EBUSY,
        Err(failure) => mistake(failure),
    }
}

fn unlock(lock: usize) -> c_int {
    if reads(lock) {
        READS.with(|held| held.pop(lock));
    } else if writes(lock) {
        WRITES.with(|held| held.pop(lock));
    } else {
        let what = format!("unlock of the rwlock at {lock:#x} by a thread that does not hold it");
        return mistake(Failure { code: Code::NotOwner, what });
    }
    match program::unlock_rw(lock) {
        Ok(()) => 0,
        Err(failure) => mistake(failure),
    }
}

/// `pthread_rwlock_init(3)`: every attribute is taken, and none changes anything: the lock serves first come, first served.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_rwlock_init(
    lock: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock, KIND, |_| 0, || unsafe { libc::pthread_rwlock_init(lock, attributes) })
}

/// `pthread_rwlock_destroy(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_rwlock_destroy(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock, KIND, |_| 0, || unsafe { libc::pthread_rwlock_destroy(lock) })
}

/// `pthread_rwlock_rdlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock, KIND, read, || unsafe { libc::pthread_rwlock_rdlock(lock) })
}

/// `pthread_rwlock_wrlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock, KIND, write, || unsafe { libc::pthread_rwlock_wrlock(lock) })
}

/// `pthread_rwlock_tryrdlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock, KIND, try_read, || unsafe { libc::pthread_rwlock_tryrdlock(lock) })
}

/// `pthread_rwlock_trywrlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock, KIND, try_write, || unsafe { libc::pthread_rwlock_trywrlock(lock) })
}

/// `pthread_rwlock_timedrdlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_rwlock_timedrdlock(
    lock: *mut pthread_rwlock_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    let ours = |lock| time::try_until(libc::CLOCK_REALTIME, unsafe { &*until }, || try_read(lock));
    // SAFETY: the caller's own arguments, under the caller's promise.
    let theirs = || unsafe { pthread_rwlock_clockrdlock(lock, libc::CLOCK_REALTIME, until) };
    route(lock, KIND, ours, theirs)
}

/// `pthread_rwlock_timedwrlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_rwlock_timedwrlock(
    lock: *mut pthread_rwlock_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    let ours = |lock| time::try_until(libc::CLOCK_REALTIME, unsafe { &*until }, || try_write(lock));
    // SAFETY: the caller's own arguments, under the caller's promise.
    let theirs = || unsafe { pthread_rwlock_clockwrlock(lock, libc::CLOCK_REALTIME, until) };
    route(lock, KIND, ours, theirs)
}

/// `pthread_rwlock_unlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock, KIND, unlock, || unsafe { libc::pthread_rwlock_unlock(lock) })
}
