//! A lock of one word for memory that several processes share.
//!
//! ```text
//!   0 free --lock--> 1 held --contended lock--> 2 held, somebody may sleep --unlock, wake one--> 0
//! ```
//!
//! The second mutex of Drepper's "Futexes Are Tricky": unlock makes a system call only if somebody may sleep. Before
//! sleeping it spins a little, because holders keep it for some hundred nanoseconds and a wake-up costs ten
//! thousand. Zeroed memory is a free lock. May be used in the fault handler, provided no thread can fault while it
//! holds the lock; the engine therefore touches frames through its own mapping only.
//!
//! A process that dies with the lock held leaves it held: there is no owner in the word. Whoever notices the death
//! ends the job, as for any lost processor.

use crate::futex;
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// How often to look before sleeping: 1 to 4 us with the pause instruction of today's processors.
const SPINS: u32 = 100;

/// The lock. `#[repr(transparent)]` over its word, so that it can be laid over shared memory.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct WordLock(AtomicU32);

/// Holds a [`WordLock`] until dropped.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<'a>(&'a WordLock);

impl WordLock {
    /// A free lock.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// The lock whose word is `word`.
    #[must_use]
    pub const fn from_word(word: &AtomicU32) -> &Self {
        // SAFETY: WordLock is a transparent wrapper of AtomicU32: same layout, and the reference has its lifetime.
        unsafe { &*std::ptr::from_ref(word).cast::<Self>() }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the lock, waiting as long as it takes. Not recursive.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.lock_contended();
        }
    }

    #[cold]
    fn lock_contended(&self) {
        for _ in 0..SPINS {
            std::hint::spin_loop();
            if self.0.load(Ordering::Relaxed) == FREE && self.try_lock() {
                return;
            }
        }
        // From here on the word says CONTENDED also when we take it: others may sleep, and our unlock wakes one.
        while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
            futex::wait(&self.0, CONTENDED, None);
        }
    }

    /// Gives the lock back. Only its holder may call this.
    #[inline]
    pub fn unlock(&self) {
        let was = self.0.swap(FREE, Ordering::Release);
        debug_assert_ne!(was, FREE, "unlock of a free WordLock");
        if was == CONTENDED {
            futex::wake(&self.0, 1);
        }
    }

    /// Takes the lock until the guard is dropped.
    pub fn guard(&self) -> Guard<'_> {
        self.lock();
        Guard(self)
    }

    /// Takes the lock until the guard is dropped, if it is free.
    pub fn try_guard(&self) -> Option<Guard<'_>> {
        // Made only once the lock is taken: dropping a guard releases it, whoever holds it.
        self.try_lock().then(|| Guard(self))
    }

    /// True while somebody holds it. After false, what the last holder did is visible; the next may hold it already.
    #[must_use]
    #[inline]
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire) != FREE
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE_BYTES;
    use crate::memory::{self, Mapping};
    use std::os::fd::AsFd;

    #[test]
    fn a_held_lock_cannot_be_taken_and_a_dropped_guard_frees_it() {
        let lock = WordLock::new();
        let guard = lock.guard();
        assert!(!lock.try_lock() && lock.try_guard().is_none() && lock.is_held());
        drop(guard);
        assert!(lock.try_guard().is_some());
        assert!(lock.try_lock());
        lock.unlock();
        assert!(!lock.is_held());
    }

    /// Two words of shared memory: a lock, and a counter that only its holder touches, and not atomically.
    struct Shared(Mapping);

    impl Shared {
        fn new() -> Self {
            let fd = memory::create(c"test", PAGE_BYTES).unwrap();
            Self(Mapping::shared(fd.as_fd(), PAGE_BYTES).unwrap())
        }

        fn add(&self, times: u32) {
            // SAFETY: the page is mapped read-write, zeroed, and aligned; the first word is only used as a lock.
            let lock = WordLock::from_word(unsafe { AtomicU32::from_ptr(self.0.as_ptr().cast()) });
            // SAFETY: inside the same page.
            let counter: *mut u32 = unsafe { self.0.as_ptr().add(64) }.cast();
            for _ in 0..times {
                let guard = lock.guard();
                // SAFETY: mapped and aligned; the guard keeps every other thread and process out.
                unsafe { counter.write_volatile(counter.read_volatile() + 1) };
                drop(guard);
            }
        }

        fn total(&self) -> u32 {
            // SAFETY: mapped and aligned; called when nobody adds any more.
            unsafe { self.0.as_ptr().add(64).cast::<u32>().read_volatile() }
        }
    }

    #[test]
    fn threads_that_share_a_lock_lose_no_count() {
        let shared = Shared::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| shared.add(20_000));
            }
        });
        assert_eq!(shared.total(), 80_000);
    }

    #[test]
    fn processes_that_share_a_lock_lose_no_count() {
        let shared = Shared::new();
        let mut children = Vec::new();
        for _ in 0..3 {
            // SAFETY: the child only uses the mapping, atomics and futexes, and ends by _exit: nothing that another
            // thread of the test program could have held at the fork.
            let child = unsafe { libc::fork() };
            if child == 0 {
                shared.add(20_000);
                // SAFETY: ends the child without running the test program's own exit.
                unsafe { libc::_exit(0) };
            }
            assert!(child > 0);
            children.push(child);
        }
        shared.add(20_000);
        for child in children {
            let mut status = -1;
            // SAFETY: `status` is a valid int to write to, `child` our own.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
        assert_eq!(shared.total(), 80_000);
    }
}
