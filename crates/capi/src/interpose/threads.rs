//! `pthread_create(3)` and kin: the runtime has to know of threads that the program makes itself, because what it may
//! skip in a process with one thread would lose their stores.

use std::ffi::{c_int, c_void};

use finespun_runtime::program;
use finespun_sys::stack;
use libc::{pthread_attr_t, pthread_t};

use super::is_shared_object;
use super::real::{self, C11Start, ThreadStart};

/// Calls with a place for the thread's handle that is not shared: the C library may write it with all signals blocked.
fn with_private_handle(thread: *mut pthread_t, create: impl FnOnce(*mut pthread_t) -> c_int) -> c_int {
    program::note_own_thread();
    if !is_shared_object(thread) {
        return stack::on_private(|| create(thread));
    }
    stack::on_private(|| {
        let mut handle: pthread_t = 0;
        let result = create(&raw mut handle);
        if result == 0 {
            // SAFETY: the caller's place for the handle; if shared, the store faults and is served.
            unsafe { thread.write(handle) };
        }
        result
    })
}

/// `pthread_create(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: ThreadStart,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    with_private_handle(thread, |thread| unsafe { real::pthread_create(thread, attributes, start, argument) })
}

/// `thrd_create(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn thrd_create(thread: *mut pthread_t, start: C11Start, argument: *mut c_void) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    with_private_handle(thread, |thread| unsafe { real::thrd_create(thread, start, argument) })
}
