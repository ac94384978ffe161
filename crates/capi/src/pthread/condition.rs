//! `pthread_cond_t`.

use std::ffi::c_int;

use finespun_errors::Code;
use finespun_runtime::{Failure, program};
use libc::{clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};

use super::{Whose, mistake, posix, route, time, whose};

const KIND: &str = "condition variable";

unsafe extern "C" {
    fn pthread_cond_clockwait(
        condition: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        until: *const timespec,
    ) -> c_int;
}

/// Writes an initial condition variable, whose waits with a limit go by this clock: its first word. Zeros are the clock that
/// tells the time of day, as the C library has it.
pub fn initialise(condition: usize, clock: clockid_t) {
    let bytes = std::ptr::with_exposed_provenance_mut::<u8>(condition);
    // SAFETY: the program's memory for a condition variable; if shared, the stores fault and are served.
    unsafe {
        bytes.write_bytes(0, size_of::<pthread_cond_t>());
        bytes.cast::<clockid_t>().write(clock);
    }
}

fn clock_of(condition: usize) -> clockid_t {
    // SAFETY: the program's condition variable; if its page is not valid here, the load faults and is served.
    unsafe { std::ptr::with_exposed_provenance::<clockid_t>(condition).read_volatile() }
}

/// Condition variable and mutex must be both ours or both the C library's.
fn same(condition: Whose, mutex: *mut pthread_mutex_t) -> Result<(), Failure> {
    if whose(mutex, "mutex")? == condition {
        return Ok(());
    }
    let what = "a condition variable in shared memory with a mutex in private memory, or the other way round";
    Err(Failure::new(Code::PrivateObject, what))
}

fn wait_until(condition: usize, mutex: usize, clock: clockid_t, until: &timespec) -> c_int {
    let Some(left) = time::until(clock, until) else { return libc::EINVAL };
    match program::wait_condition_for(condition, mutex, left) {
        Ok(true) => 0,
        Ok(false) => libc::ETIMEDOUT,
        Err(failure) => mistake(failure),
    }
}

/// `pthread_cond_init(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_cond_init(
    condition: *mut pthread_cond_t,
    attributes: *const pthread_condattr_t,
) -> c_int {
    let ours = |condition| {
        let mut clock = libc::CLOCK_REALTIME;
        if !attributes.is_null() {
            // SAFETY: by contract; the C library loads and stores in user mode.
            unsafe { libc::pthread_condattr_getclock(attributes, &raw mut clock) };
        }
        initialise(condition, clock);
        0
    };
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(condition, KIND, ours, || unsafe { libc::pthread_cond_init(condition, attributes) })
}

/// `pthread_cond_destroy(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_cond_destroy(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(condition, KIND, |_| 0, || unsafe { libc::pthread_cond_destroy(condition) })
}

/// `pthread_cond_signal(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_cond_signal(condition: *mut pthread_cond_t) -> c_int {
    let ours = |condition| posix(program::signal(condition, false));
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(condition, KIND, ours, || unsafe { libc::pthread_cond_signal(condition) })
}

/// `pthread_cond_broadcast(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_cond_broadcast(condition: *mut pthread_cond_t) -> c_int {
    let ours = |condition| posix(program::signal(condition, true));
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(condition, KIND, ours, || unsafe { libc::pthread_cond_broadcast(condition) })
}

/// Waits in the way of whoever owns both.
fn wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    ours: impl FnOnce(usize, usize) -> c_int,
    theirs: impl FnOnce() -> c_int,
) -> c_int {
    let owner = whose(condition, KIND).and_then(|owner| same(owner, mutex).map(|()| owner));
    match owner {
        Ok(Whose::Ours) => ours(condition.expose_provenance(), mutex.expose_provenance()),
        Ok(Whose::Theirs) => theirs(),
        Err(failure) => mistake(failure),
    }
}

/// `pthread_cond_wait(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_cond_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    let ours = |condition, mutex| posix(program::wait_condition(condition, mutex));
    // SAFETY: the caller's own arguments, under the caller's promise.
    wait(condition, mutex, ours, || unsafe { libc::pthread_cond_wait(condition, mutex) })
}

/// `pthread_cond_timedwait(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    let ours = |condition, mutex| wait_until(condition, mutex, clock_of(condition), unsafe { &*until });
    // SAFETY: the caller's own arguments, under the caller's promise.
    wait(condition, mutex, ours, || unsafe { libc::pthread_cond_timedwait(condition, mutex, until) })
}

/// `pthread_cond_clockwait(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_cond_clockwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    let ours = |condition, mutex| wait_until(condition, mutex, clock, unsafe { &*until });
    // SAFETY: the caller's own arguments, under the caller's promise.
    wait(condition, mutex, ours, || unsafe { pthread_cond_clockwait(condition, mutex, clock, until) })
}
