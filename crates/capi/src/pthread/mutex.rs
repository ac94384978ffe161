//! `pthread_mutex_t` and `pthread_spinlock_t`.

use std::ffi::{c_int, c_void};

use finespun_errors::Code;
use finespun_runtime::program;
use libc::{clockid_t, pthread_mutex_t, pthread_mutexattr_t, pthread_spinlock_t, timespec};

use super::held::Held;
use super::{mistake, posix, posix_try, route, time};

/// Where the C library keeps the kind of a mutex, also in its static initialisers (`finespun/pthread.h` asserts it).
const KIND_OFFSET: usize = 16;

thread_local! {
    static HELD: Held = const { Held::nothing() };
}

/// What happens when the holder locks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Recursive,
    ErrorChecking,
}

/// The kind that an initialisation has left in the mutex. Looked at only where it matters: a mutex is most often locked
/// while its page is elsewhere.
fn kind_of(mutex: usize) -> Kind {
    // SAFETY: the program's mutex, which is larger; if the page is not valid here, the load faults and is served.
    let kind = unsafe { std::ptr::with_exposed_provenance::<c_int>(mutex + KIND_OFFSET).read_volatile() };
    match kind & 3 {
        libc::PTHREAD_MUTEX_RECURSIVE => Kind::Recursive,
        libc::PTHREAD_MUTEX_ERRORCHECK => Kind::ErrorChecking,
        _ => Kind::Normal,
    }
}

/// Writes an initial mutex of this kind.
pub fn initialise(mutex: usize, kind: c_int) {
    let bytes = std::ptr::with_exposed_provenance_mut::<u8>(mutex);
    // SAFETY: the program's memory for a mutex; if shared, the stores fault and are served.
    unsafe {
        bytes.write_bytes(0, size_of::<pthread_mutex_t>());
        bytes.add(KIND_OFFSET).cast::<c_int>().write(kind & 3);
    }
}

fn lock(mutex: usize) -> c_int {
    match program::lock(mutex) {
        Ok(()) => {
            HELD.with(|held| held.push(mutex));
            0
        }
        Err(failure) if failure.code == Code::Relock => match kind_of(mutex) {
            Kind::Recursive => again(mutex),
            Kind::ErrorChecking => libc::EDEADLK,
            Kind::Normal => mistake(failure),
        },
        Err(failure) => mistake(failure),
    }
}

/// The holder of a recursive mutex has it once more.
fn again(mutex: usize) -> c_int {
    // Without an entry there was no room when it was locked first, nor is there to count now.
    if HELD.with(|held| held.count(mutex) > 0 && held.push(mutex)) { 0 } else { libc::EAGAIN }
}

fn try_lock(mutex: usize) -> c_int {
    match program::try_lock(mutex) {
        Ok(true) => {
            HELD.with(|held| held.push(mutex));
            0
        }
        Ok(false) if HELD.with(|held| held.count(mutex)) > 0 && kind_of(mutex) == Kind::Recursive => again(mutex),
        Ok(false) => libc::EBUSY,
        Err(failure) => mistake(failure),
    }
}

fn unlock(mutex: usize) -> c_int {
    if HELD.with(|held| held.pop(mutex)) > 0 {
        return 0;
    }
    match program::unlock(mutex) {
        Ok(()) => 0,
        Err(failure) if failure.code == Code::NotOwner && kind_of(mutex) != Kind::Normal => libc::EPERM,
        Err(failure) => mistake(failure),
    }
}

/// `pthread_mutex_init(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_mutex_init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    let ours = |mutex| {
        let mut kind = libc::PTHREAD_MUTEX_NORMAL;
        if !attributes.is_null() {
            // SAFETY: by contract; the C library loads and stores in user mode.
            unsafe { pthread_mutexattr_gettype(attributes, &raw mut kind) };
        }
        initialise(mutex, kind);
        0
    };
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(mutex, "mutex", ours, || unsafe { libc::pthread_mutex_init(mutex, attributes) })
}

unsafe extern "C" {
    fn pthread_mutexattr_gettype(attributes: *const pthread_mutexattr_t, kind: *mut c_int) -> c_int;
    fn pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) -> c_int;
    fn pthread_mutex_consistent(mutex: *mut pthread_mutex_t) -> c_int;
}

/// `pthread_mutex_destroy(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(mutex, "mutex", |_| 0, || unsafe { libc::pthread_mutex_destroy(mutex) })
}

/// `pthread_mutex_lock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(mutex, "mutex", lock, || unsafe { libc::pthread_mutex_lock(mutex) })
}

/// `pthread_mutex_trylock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(mutex, "mutex", try_lock, || unsafe { libc::pthread_mutex_trylock(mutex) })
}

/// `pthread_mutex_timedlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int {
    // SAFETY: by contract.
    let ours = |mutex| time::try_until(libc::CLOCK_REALTIME, unsafe { &*until }, || try_lock(mutex));
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(mutex, "mutex", ours, || unsafe { libc::pthread_mutex_timedlock(mutex, until) })
}

/// `pthread_mutex_clocklock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    let ours = |mutex| time::try_until(clock, unsafe { &*until }, || try_lock(mutex));
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(mutex, "mutex", ours, || unsafe { pthread_mutex_clocklock(mutex, clock, until) })
}

/// `pthread_mutex_unlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(mutex, "mutex", unlock, || unsafe { libc::pthread_mutex_unlock(mutex) })
}

/// `pthread_mutex_consistent(3)`: no mutex of ours is ever inconsistent, since with its holder the whole job ends.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_mutex_consistent(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(mutex, "mutex", |_| libc::EINVAL, || unsafe { pthread_mutex_consistent(mutex) })
}

/// The type of the argument without its qualifiers.
type Spin = *mut pthread_spinlock_t;

/// `pthread_spin_init(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_spin_init(lock: Spin, shared: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock.cast::<c_void>(), "spin lock", |_| 0, || unsafe { libc::pthread_spin_init(lock, shared) })
}

/// `pthread_spin_destroy(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_spin_destroy(lock: Spin) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock.cast::<c_void>(), "spin lock", |_| 0, || unsafe { libc::pthread_spin_destroy(lock) })
}

/// `pthread_spin_lock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_spin_lock(lock: Spin) -> c_int {
    let ours = |lock| posix(program::lock_address(lock));
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock.cast::<c_void>(), "spin lock", ours, || unsafe { libc::pthread_spin_lock(lock) })
}

/// `pthread_spin_trylock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_spin_trylock(lock: Spin) -> c_int {
    let ours = |lock| posix_try(program::try_lock_address(lock));
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock.cast::<c_void>(), "spin lock", ours, || unsafe { libc::pthread_spin_trylock(lock) })
}

/// `pthread_spin_unlock(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_spin_unlock(lock: Spin) -> c_int {
    let ours = |lock| posix(program::unlock_address(lock));
    // SAFETY: the caller's own arguments, under the caller's promise.
    route(lock.cast::<c_void>(), "spin lock", ours, || unsafe { libc::pthread_spin_unlock(lock) })
}
