//! A lock of one word, usable by several processes in memory that began as zeroes.

use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Looks taken before the thread gives up its turn: about as long as appending a small message takes.
const LOOKS: u32 = 100;

/// The lock. All bits zero: free.
#[repr(transparent)]
pub(crate) struct WordLock(AtomicU32);

/// The lock is held; dropping this releases it, also when a handler panics.
pub(crate) struct Held<'a>(&'a WordLock);

impl WordLock {
    /// Takes the lock if it is free now.
    pub(crate) fn try_lock(&self) -> Option<Held<'_>> {
        // Made only when the lock was taken: a guard that is thrown away opens it.
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok().then(|| Held(self))
    }

    /// Takes the lock. Holders never sleep while they have it, but they may have lost their core: after a few
    /// looks the caller gives up its own turn.
    pub(crate) fn lock(&self) -> Held<'_> {
        loop {
            for _ in 0..LOOKS {
                if let Some(held) = self.try_lock() {
                    return held;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
    }

    /// Does somebody hold it right now? Only good as a hint.
    pub(crate) fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) != FREE
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.0.store(FREE, Ordering::Release);
    }
}
