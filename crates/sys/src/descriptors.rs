//! Descriptors of ours, out of the way of the program's own.
//!
//! A program opens a file in one process and uses its number in another: a mistake that it cannot make with threads of one machine.
//! There the number must mean nothing (`EBADF`), and not a memfd or a socket of ours. So ours are large: what the program opens
//! gets the smallest numbers, in every process.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::check;

/// Ours are numbered from here on, where the limit of open files allows it: more than programs commonly open, and half of the usual
/// limit of 1,024.
pub const FIRST: RawFd = 512;

/// The same open file under a large number, closed at exec. Where there is none left, as it is.
///
/// # Errors
/// The kernel's.
pub fn aside(descriptor: impl Into<OwnedFd>) -> io::Result<OwnedFd> {
    let descriptor = descriptor.into();
    if descriptor.as_raw_fd() >= FIRST {
        return Ok(descriptor);
    }
    // SAFETY: the descriptor is open while it is owned; the call takes a number and no pointer.
    match check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST) }) {
        // SAFETY: the kernel returned it just now: open, and nobody else's.
        Ok(moved) => Ok(unsafe { OwnedFd::from_raw_fd(moved) }),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMFILE)) => Ok(descriptor),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    #[test]
    fn a_descriptor_set_aside_is_the_same_file_under_a_large_number() {
        let mut file = File::open("/proc/self/comm").expect("there");
        let mut first = [0; 1];
        file.read_exact(&mut first).expect("a name");
        let moved = aside(file).expect("the limit is larger");
        assert!(moved.as_raw_fd() >= FIRST);
        let number = moved.as_raw_fd();
        assert_eq!(aside(moved).expect("it is already").as_raw_fd(), number);
    }
}
