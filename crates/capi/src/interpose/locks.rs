//! Locks of the C library on shared memory: they are made of atomic instructions, which each node makes on its own copy.
//!
//! A program gets here with objects of its own only where it is not built by `fspcc --pthread`, whose names lead elsewhere; or by a library, for an
//! object that the program has put into shared memory. Two compares tell, which costs 2 ns of the
//! 8 that a lock and an unlock then take where nobody waits.
//! With `--check locks` the runtime is told also of locks in the program's private variables.

use std::ffi::{c_int, c_void};

use finespun_diagnose::locks;
use finespun_runtime::program;
use libc::{
    clockid_t, pthread_barrier_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_spinlock_t, sem_t,
    timespec,
};

use super::{errno, is_shared_object, real};
use crate::error::refuse;

/// Does the object belong to one node, though it stands in memory that all share? Then that was told, and the call must fail.
#[inline]
fn is_refused<T>(object: *const T, call: &'static str) -> bool {
    if is_shared_object(object) {
        return tell(object.cast::<c_void>().addr(), call);
    }
    if locks::are_looked_for() {
        locks::look_at(object.cast::<c_void>().addr(), call);
    }
    false
}

#[cold]
fn tell(address: usize, call: &'static str) -> bool {
    match program::lock_of_one_node(address, call) {
        Ok(()) => false,
        Err(failure) => {
            refuse(failure);
            true
        }
    }
}

/// The results of calls that fail.
fn number() -> c_int {
    libc::EINVAL
}
fn minus_one() -> c_int {
    errno::set(libc::EINVAL);
    -1
}
/// `thrd_error`
fn of_c11() -> c_int {
    2
}

macro_rules! locks {
    ($($name:ident($object:ident: *mut $type:ty $(, $argument:ident: $of:ty)*) else $failed:ident;)*) => { $(
        #[doc = concat!("`", stringify!($name), "(3)`")]
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($object: *mut $type $(, $argument: $of)*) -> c_int {
            if is_refused($object.cast_const(), stringify!($name)) {
                return $failed();
            }
            // SAFETY: the caller's own arguments, under the caller's promise.
            unsafe { real::$name($object $(, $argument)*) }
        }
    )* };
}

locks! {
    pthread_mutex_lock(mutex: *mut pthread_mutex_t) else number;
    pthread_mutex_trylock(mutex: *mut pthread_mutex_t) else number;
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) else number;
    pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) else number;
    pthread_cond_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) else number;
    pthread_cond_timedwait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec) else number;
    pthread_cond_signal(condition: *mut pthread_cond_t) else number;
    pthread_cond_broadcast(condition: *mut pthread_cond_t) else number;
    pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) else number;
    pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) else number;
    pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) else number;
    pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) else number;
    pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, until: *const timespec) else number;
    pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, until: *const timespec) else number;
    pthread_spin_lock(lock: *mut pthread_spinlock_t) else number;
    pthread_spin_trylock(lock: *mut pthread_spinlock_t) else number;
    pthread_barrier_wait(barrier: *mut pthread_barrier_t) else number;
    sem_wait(semaphore: *mut sem_t) else minus_one;
    sem_trywait(semaphore: *mut sem_t) else minus_one;
    sem_timedwait(semaphore: *mut sem_t, until: *const timespec) else minus_one;
    sem_post(semaphore: *mut sem_t) else minus_one;
    mtx_lock(mutex: *mut c_void) else of_c11;
    mtx_trylock(mutex: *mut c_void) else of_c11;
    mtx_timedlock(mutex: *mut c_void, until: *const timespec) else of_c11;
    cnd_wait(condition: *mut c_void, mutex: *mut c_void) else of_c11;
    cnd_timedwait(condition: *mut c_void, mutex: *mut c_void, until: *const timespec) else of_c11;
    cnd_signal(condition: *mut c_void) else of_c11;
    cnd_broadcast(condition: *mut c_void) else of_c11;
}
