//! Descriptors that the process inherited by number, and what the C library is told at start.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// What the kernel says of a number under which nothing is open.
pub const NOT_OPEN: i32 = libc::EBADF;

/// A descriptor of the job, which the launcher left open for the life of the process.
pub fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    assert!(fd >= 0, "a job names descriptors by their numbers");
    // SAFETY: the launcher made it inheritable for the job, and nothing in this process closes it. A program that
    // closes descriptors it does not own finds the mapping refused, not memory unsafe.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// A descriptor that was handed to this process alone.
pub fn own(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: named by the launcher for this process; taken once, at start.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Keeps a descriptor from programs that this one executes.
pub fn close_on_exec(fd: RawFd) -> io::Result<()> {
    finespun_sys::memory::set_inheritable(borrow(fd), false)
}

/// Keeps variables from programs that this one executes.
pub fn forget_variables(names: &[&str]) {
    for name in names {
        // SAFETY: called from fsp_init, which by its contract comes first in main, before other threads exist.
        unsafe { std::env::remove_var(name) };
    }
}

/// The whole of an inherited file, from its start, whoever else reads it meanwhile.
pub fn read_all(fd: RawFd) -> io::Result<Vec<u8>> {
    let mut file = File::open(format!("/proc/self/fd/{fd}"))?;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
