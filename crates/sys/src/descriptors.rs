//! Descriptors of ours, out of the way of the program's own.
//!
//! A program opens a file in one process and uses its number in another: a mistake that it cannot make with threads of one machine.
//! There the number must mean nothing (`EBADF`), and not a memfd or a socket of ours. So ours are large: what the program opens
//! gets the smallest numbers, in every process.
//!
//! A program may also close every number from 3 on, as a daemon does. Those that are *kept* are left alone then
//! (`capi/src/interpose/descriptors.rs`).

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

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
        ASIDE.add(descriptor.as_raw_fd());
        return Ok(descriptor);
    }
    // SAFETY: the descriptor is open while it is owned; the call takes a number and no pointer.
    match check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST) }) {
        Ok(moved) => {
            ASIDE.add(moved);
            // SAFETY: the kernel returned it just now: open, and nobody else's.
            Ok(unsafe { OwnedFd::from_raw_fd(moved) })
        }
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMFILE)) => {
            ASIDE.add(descriptor.as_raw_fd());
            Ok(descriptor)
        }
        Err(error) => Err(error),
    }
}

/// Numbers below this can be kept; no limit of open files that leaves room for more was met.
const NUMBERS: usize = 4096;

/// A set of descriptors by their numbers. It takes no lock and allocates nothing: signal handlers close files, too.
struct Numbers([AtomicU64; NUMBERS / 64]);

impl Numbers {
    const fn none() -> Self {
        Self([const { AtomicU64::new(0) }; NUMBERS / 64])
    }

    fn add(&self, fd: RawFd) {
        if let Some(word) = usize::try_from(fd).ok().and_then(|fd| self.0.get(fd / 64)) {
            word.fetch_or(1 << (fd % 64), Ordering::Relaxed);
        }
    }

    #[inline]
    fn has(&self, fd: RawFd) -> bool {
        let word = usize::try_from(fd).ok().and_then(|fd| self.0.get(fd / 64));
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (fd % 64) & 1 != 0)
    }
}

/// Those that `aside` has returned, and that may have been closed since.
static ASIDE: Numbers = Numbers::none();
/// Those that are open for the life of the process, while it has its table of descriptors for itself.
static KEPT: Numbers = Numbers::none();
/// The same for all processes that share a table ([`crate::sibling`]).
static KEPT_TOGETHER: AtomicPtr<Numbers> = AtomicPtr::new(std::ptr::null_mut());

fn kept() -> &'static Numbers {
    let together = KEPT_TOGETHER.load(Ordering::Relaxed);
    // SAFETY: null, or what `keep_together` has put there: mapped for the life of the process, and used only through its atomics.
    unsafe { together.as_ref() }.unwrap_or(&KEPT)
}

/// Siblings are about to be made. What any of them keeps from now on is kept by all.
///
/// # Errors
/// The kernel's.
pub fn keep_together() -> io::Result<()> {
    let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Numbers>(), rights, shared, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let together = page.cast::<Numbers>();
    for (index, word) in KEPT.0.iter().enumerate() {
        // SAFETY: zeros are an empty set; the mapping begins a page and is as large.
        unsafe { &(*together).0[index] }.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    KEPT_TOGETHER.store(together, Ordering::Relaxed);
    Ok(())
}

/// This one is open for the life of the process.
pub fn keep(fd: RawFd) {
    kept().add(fd);
}

/// All that were set aside and are open now are so for the life of the process.
pub fn keep_all_aside() {
    for fd in (0..NUMBERS as RawFd).filter(|&fd| ASIDE.has(fd)) {
        // SAFETY: the call takes a number and no pointer, and changes nothing.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0 {
            keep(fd);
        }
    }
}

/// Is it one of ours, which only the end of the process closes?
#[must_use]
#[inline]
pub fn is_kept(fd: RawFd) -> bool {
    kept().has(fd)
}

/// The first of ours among these numbers.
#[must_use]
pub fn first_kept(among: RangeInclusive<u32>) -> Option<u32> {
    let last = (*among.end()).min(NUMBERS as u32 - 1);
    (*among.start()..=last).find(|&fd| kept().has(fd as RawFd))
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
        let moved = aside(moved).expect("it is already");
        assert_eq!(moved.as_raw_fd(), number);
        assert!(!is_kept(number));
        keep_all_aside();
        assert!(is_kept(number) && first_kept(number as u32..=u32::MAX) == Some(number as u32));
    }

    #[test]
    fn a_number_without_a_place_in_the_table_is_not_kept() {
        for fd in [-1, NUMBERS as RawFd, RawFd::MAX] {
            keep(fd);
            assert!(!is_kept(fd));
        }
        assert_eq!(first_kept(NUMBERS as u32..=u32::MAX), None);
    }
}
