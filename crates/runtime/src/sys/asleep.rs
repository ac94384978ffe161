//! What a thread that sleeps in the engine tells a process that looks from outside ([`crate::node::waits`]).
//!
//! It is written just before the thread goes to sleep in the kernel, which costs far more; a thread that never sleeps writes nothing.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a thread sleeps for, where that is not the address of an object.
pub const NOTHING: u64 = 0;
/// A command, in a processor that serves.
pub const WORK: u64 = 1;
/// An answer of the keeper of the job's threads.
pub const THREADS: u64 = 2;
/// The end of a round of the barrier of all, in the node's own memory.
pub const ROUND: u64 = 3;

/// A slot's part.
#[repr(C)]
pub struct Asleep {
    /// One of the constants above, or the address of an object; [`NOTHING`] while the thread runs, and where others cannot end its sleep.
    what: AtomicU64,
    /// The kernel's number of the thread.
    thread: AtomicU32,
    /// What the word was that the thread sleeps on.
    old: AtomicU32,
    /// How often the thread has gone to sleep.
    number: AtomicU32,
}

/// One sleep, as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// See [`Asleep`].
    pub what: u64,
    /// See [`Asleep`].
    pub thread: u32,
    /// See [`Asleep`].
    pub old: u32,
    /// See [`Asleep`].
    pub number: u32,
}

impl Asleep {
    /// The slot's thread goes to sleep.
    pub fn begin(&self, what: u64, thread: u32, old: u32) {
        self.thread.store(thread, Ordering::Relaxed);
        self.old.store(old, Ordering::Relaxed);
        self.number.store(self.number.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.what.store(what, Ordering::SeqCst);
    }

    /// It is awake.
    pub fn end(&self) {
        self.what.store(NOTHING, Ordering::SeqCst);
    }

    /// The sleep that is under way.
    pub fn read(&self) -> Option<Sleep> {
        let what = self.what.load(Ordering::SeqCst);
        let sleep = Sleep {
            what,
            thread: self.thread.load(Ordering::Relaxed),
            old: self.old.load(Ordering::Relaxed),
            number: self.number.load(Ordering::SeqCst),
        };
        (what != NOTHING && self.what.load(Ordering::SeqCst) == what).then_some(sleep)
    }
}
