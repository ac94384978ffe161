//! `pthread_barrier_t`, `pthread_once_t`, `sem_t`.

use std::ffi::{c_int, c_uint};

use finespun_errors::Code;
use finespun_runtime::{Failure, program};
use libc::{clockid_t, pthread_barrier_t, pthread_barrierattr_t, sem_t, timespec};

use super::{mistake, posix, route, time};

unsafe extern "C" {
    fn pthread_once(once: *mut c_int, function: Option<extern "C-unwind" fn()>) -> c_int;
    fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> c_int;
}

/// A word of the program's object; if its page is not valid here, the access faults and is served.
fn word(object: usize, offset: usize) -> *mut c_uint {
    std::ptr::with_exposed_provenance_mut(object + offset)
}

/// `pthread_barrier_init(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_barrier_init(
    barrier: *mut pthread_barrier_t,
    attributes: *const pthread_barrierattr_t,
    count: c_uint,
) -> c_int {
    let ours = |barrier| {
        if count == 0 {
            return libc::EINVAL;
        }
        // SAFETY: the program's memory for a barrier.
        unsafe { word(barrier, 0).write(count) };
        0
    };
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(barrier, "barrier", ours, || unsafe { libc::pthread_barrier_init(barrier, attributes, count) })
}

/// `pthread_barrier_destroy(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(barrier, "barrier", |_| 0, || unsafe { libc::pthread_barrier_destroy(barrier) })
}

/// `pthread_barrier_wait(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int {
    let ours = |barrier| {
        // SAFETY: the program's barrier, which pthread_barrier_init has written.
        match program::barrier_told_last(barrier, unsafe { word(barrier, 0).read_volatile() }) {
            Ok(true) => libc::PTHREAD_BARRIER_SERIAL_THREAD,
            Ok(false) => 0,
            Err(failure) => mistake(failure),
        }
    };
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(barrier, "barrier", ours, || unsafe { libc::pthread_barrier_wait(barrier) })
}

/// What the C library leaves in a once-control when the function has run.
const DONE: c_uint = 2;

/// `pthread_once(3)`: the control's address is the lock under which the function runs, so that whoever finds it done has
/// acquired what the function did.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __wrap_pthread_once(
    once: *mut c_int,
    function: Option<extern "C-unwind" fn()>,
) -> c_int {
    let ours = |address: usize| {
        if let Err(failure) = program::lock_address(address) {
            return mistake(failure);
        }
        // SAFETY: the program's control.
        if unsafe { word(address, 0).read_volatile() } != DONE {
            if let Some(function) = function {
                function();
            }
            // SAFETY: as above.
            unsafe { word(address, 0).write_volatile(DONE) };
        }
        posix(program::unlock_address(address))
    };
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(once, "once-control", ours, || unsafe { pthread_once(once, function) })
}

// ---- semaphores: a mutex at the semaphore's address, a condition variable in its second word, the count in its third ----

const CONDITION: usize = 8;
const COUNT: usize = 16;

/// Runs `body` on the count, under the semaphore's lock.
fn with_count(semaphore: usize, body: impl FnOnce(&mut c_uint) -> program::Result<()>) -> program::Result<()> {
    program::lock(semaphore)?;
    // SAFETY: the program's semaphore, whose lock is held.
    let result = body(unsafe { &mut *word(semaphore, COUNT) });
    program::unlock(semaphore)?;
    result
}

/// Takes one, waiting at most for so many nanoseconds.
fn take(semaphore: usize, limit: Option<u64>) -> program::Result<bool> {
    program::lock(semaphore)?;
    let count = word(semaphore, COUNT);
    let mut in_time = true;
    // SAFETY: the program's semaphore, whose lock is held, here and below.
    while unsafe { count.read_volatile() } == 0 && in_time {
        match limit {
            None => program::wait_condition(semaphore + CONDITION, semaphore)?,
            Some(limit) => in_time = program::wait_condition_for(semaphore + CONDITION, semaphore, limit)?,
        }
    }
    // SAFETY: as above.
    let taken = unsafe {
        let left = count.read_volatile();
        count.write_volatile(left.saturating_sub(1));
        left > 0
    };
    program::unlock(semaphore)?;
    Ok(taken)
}

/// Semaphores return -1 and set errno.
fn in_errno(number: c_int) -> c_int {
    if number == 0 {
        return 0;
    }
    // SAFETY: the address of this thread's errno.
    unsafe { libc::__errno_location().write(number) };
    -1
}

fn taken(result: program::Result<bool>, otherwise: c_int) -> c_int {
    in_errno(match result {
        Ok(true) => 0,
        Ok(false) => otherwise,
        Err(failure) => mistake(failure),
    })
}

/// `sem_init(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_sem_init(semaphore: *mut sem_t, shared: c_int, value: c_uint) -> c_int {
    let ours = |semaphore| {
        if value > c_int::MAX as c_uint {
            return in_errno(libc::EINVAL);
        }
        // SAFETY: the program's memory for a semaphore.
        unsafe { word(semaphore, COUNT).write(value) };
        0
    };
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(semaphore, "semaphore", ours, || unsafe { libc::sem_init(semaphore, shared, value) })
}

/// `sem_destroy(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_sem_destroy(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(semaphore, "semaphore", |_| 0, || unsafe { libc::sem_destroy(semaphore) })
}

/// `sem_wait(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_sem_wait(semaphore: *mut sem_t) -> c_int {
    let ours = |semaphore| taken(take(semaphore, None), libc::EAGAIN);
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(semaphore, "semaphore", ours, || unsafe { libc::sem_wait(semaphore) })
}

/// `sem_trywait(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_sem_trywait(semaphore: *mut sem_t) -> c_int {
    let ours = |semaphore| {
        let mut left = false;
        let result = with_count(semaphore, |count| {
            left = *count > 0;
            *count = count.saturating_sub(1);
            Ok(())
        });
        taken(result.map(|()| left), libc::EAGAIN)
    };
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(semaphore, "semaphore", ours, || unsafe { libc::sem_trywait(semaphore) })
}

/// `sem_timedwait(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { clock_wait(semaphore, libc::CLOCK_REALTIME, until) }
}

/// `sem_clockwait(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_sem_clockwait(
    semaphore: *mut sem_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { clock_wait(semaphore, clock, until) }
}

/// # Safety
/// As `sem_clockwait(3)`.
unsafe fn clock_wait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> c_int {
    // SAFETY: by contract.
    let ours = |semaphore| match time::until(clock, unsafe { &*until }) {
        Some(left) => taken(take(semaphore, Some(left)), libc::ETIMEDOUT),
        None => in_errno(libc::EINVAL),
    };
    // SAFETY: by contract.
    route(semaphore, "semaphore", ours, || unsafe { sem_clockwait(semaphore, clock, until) })
}

/// `sem_post(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_sem_post(semaphore: *mut sem_t) -> c_int {
    let ours = |semaphore| {
        let posted = with_count(semaphore, |count| {
            *count += 1;
            program::signal(semaphore + CONDITION, false)
        });
        in_errno(posix(posted))
    };
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(semaphore, "semaphore", ours, || unsafe { libc::sem_post(semaphore) })
}

/// `sem_getvalue(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_sem_getvalue(semaphore: *mut sem_t, value: *mut c_int) -> c_int {
    let ours = |semaphore| {
        let mut now = 0;
        let read = with_count(semaphore, |count| {
            now = *count as c_int;
            Ok(())
        });
        // SAFETY: by contract; outside of the engine, since it may be shared.
        unsafe { value.write(now) };
        in_errno(posix(read))
    };
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(semaphore, "semaphore", ours, || unsafe { libc::sem_getvalue(semaphore, value) })
}

/// `sem_open(3)`: a named semaphore is the operating system's, and neither acquires nor releases.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_sem_open() -> *mut sem_t {
    in_errno(mistake(Failure::new(Code::NotAcrossNodes, "sem_open: named semaphores are not served")));
    libc::SEM_FAILED
}
