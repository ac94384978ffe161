//! `errno`, which a call changes only when it fails.

use std::ffi::c_int;

use finespun_sys::stack;

/// The calling thread's.
pub fn get() -> c_int {
    // SAFETY: the address of this thread's errno, valid while the thread runs.
    unsafe { libc::__errno_location().read() }
}

/// Sets the calling thread's.
pub fn set(errno: c_int) {
    // SAFETY: as in `get`.
    unsafe { libc::__errno_location().write(errno) }
}

/// Runs a call of several steps, whose own objects are private: -1 and its `errno` if it fails, else the number, and `errno` as
/// it was.
pub fn kept(call: impl FnOnce() -> Result<usize, c_int>) -> isize {
    let before = get();
    match stack::on_private(call) {
        Ok(number) => {
            set(before);
            number as isize
        }
        Err(errno) => {
            set(errno);
            -1
        }
    }
}
