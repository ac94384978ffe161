//! Private memory for the kernel to work on in place of the program's buffer.
//!
//! `read` and `write` may be called in signal handlers, so `malloc` is not for us, and the stack may be a small alternate one. A few
//! buffers are kept for ever, taken by exchanging a flag; who finds none free, or needs more, maps memory for the one call.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The size of a kept buffer, and of the pieces in which long transfers are cut: what the second-level cache holds, twice.
pub const CHUNK: usize = 256 << 10;
const KEPT: usize = 16;

struct Kept {
    taken: AtomicBool,
    /// Null until first needed; then CHUNK bytes for ever.
    memory: AtomicPtr<u8>,
}

static KEPT_BUFFERS: [Kept; KEPT] =
    [const { Kept { taken: AtomicBool::new(false), memory: AtomicPtr::new(null_mut()) } }; KEPT];

/// Page-aligned, readable and writable memory that nobody else uses. Its contents are anything.
pub struct Bounce {
    memory: *mut u8,
    bytes: usize,
    kept: Option<&'static Kept>,
}

impl Bounce {
    /// At least so many bytes.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(bytes: usize) -> Result<Self, c_int> {
        if bytes <= CHUNK
            && let Some(bounce) = Self::kept()
        {
            return Ok(bounce);
        }
        let bytes = bytes.max(1);
        Ok(Self { memory: map(bytes)?, bytes, kept: None })
    }

    fn kept() -> Option<Self> {
        // A flag that is taken twice by one thread, in a signal handler, is just taken: no waiting, no lock.
        let kept = KEPT_BUFFERS.iter().find(|kept| !kept.taken.swap(true, Ordering::Acquire))?;
        let mut memory = kept.memory.load(Ordering::Relaxed);
        if memory.is_null() {
            match map(CHUNK) {
                Ok(mapped) => memory = mapped,
                Err(_) => {
                    kept.taken.store(false, Ordering::Release);
                    return None;
                }
            }
            kept.memory.store(memory, Ordering::Relaxed);
        }
        Some(Self { memory, bytes: CHUNK, kept: Some(kept) })
    }

    /// Where it is.
    pub const fn memory(&self) -> *mut u8 {
        self.memory
    }
}

impl Drop for Bounce {
    fn drop(&mut self) {
        match self.kept {
            Some(kept) => kept.taken.store(false, Ordering::Release),
            // SAFETY: mapped by `new` with this size, and given back once.
            None => unsafe {
                libc::munmap(self.memory.cast(), self.bytes);
            },
        }
    }
}

fn map(bytes: usize) -> Result<*mut u8, c_int> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new memory, at an address that the kernel chooses.
    let memory = unsafe { libc::mmap(null_mut(), bytes, protection, kind, -1, 0) };
    if memory == libc::MAP_FAILED { Err(libc::ENOMEM) } else { Ok(memory.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_hold_the_same_memory_even_when_more_are_wanted_than_kept() {
        let all: Vec<Bounce> = (0..2 * KEPT).map(|_| Bounce::new(CHUNK).unwrap()).collect();
        let mut places: Vec<usize> = all.iter().map(|bounce| bounce.memory().addr()).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= CHUNK));
    }

    #[test]
    fn one_that_was_given_back_is_used_again() {
        let large = Bounce::new(CHUNK + 1).unwrap();
        assert!(large.kept.is_none());
        // SAFETY: its last byte, writable as promised.
        unsafe { large.memory().add(CHUNK).write(1) };
        drop(large);
        for _ in 0..100 * KEPT {
            drop(Bounce::new(1).unwrap());
        }
        let mapped = KEPT_BUFFERS.iter().filter(|kept| !kept.memory.load(Ordering::Relaxed).is_null()).count();
        assert!(mapped >= 1);
    }
}
