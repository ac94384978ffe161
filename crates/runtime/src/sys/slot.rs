//! A processor's slot in its node's segment. Atomics only: any process of the job may write what the processor waits for.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use finespun_types::{Bucket, Counter, Counters};

use super::phase::{PHASES_MAX, Phase};
use super::text::Text;
use crate::sys::asleep::Asleep;

/// A processor's slot: where it waits, what it is told, what it counted.
#[repr(C, align(128))]
pub struct Slot {
    /// 0 while the processor waits for a grant; 1 when it has one.
    pub granted: AtomicU32,
    /// The processor sleeps on `granted`.
    pub asleep: AtomicU32,
    /// What came with the grant.
    pub value: AtomicU64,
    /// And more of it.
    pub extra: AtomicU64,
    /// 0, or the number of an error, and then its text.
    pub status: AtomicU32,
    /// See `status`.
    pub text: Text,
    /// 1 once a condition variable's signal came.
    pub signalled: AtomicU32,
    /// The processor sleeps on `signalled`.
    pub signal_sleepers: AtomicU32,
    /// What to run, for a processor that serves: see [`crate::sync::threads`].
    pub command: AtomicU32,
    /// Whether it sleeps on `command`.
    pub command_sleepers: AtomicU32,
    /// The function, as an offset in the program.
    pub function: AtomicU64,
    /// Its argument.
    pub argument: AtomicU64,
    /// The thread that runs it.
    pub thread: AtomicU64,
    /// What its thread sleeps for.
    pub asleep_for: Asleep,
    /// Ticks when the processor began to wait for a thread to run; 0 while it runs one, and where nobody asks.
    pub idle_ticks: AtomicU64,
    /// Ticks when the processor started and ended.
    pub started_ticks: AtomicU64,
    /// See `started_ticks`; 0 while it runs.
    pub ended_ticks: AtomicU64,
    /// The phases that the program marked.
    pub phases: [Phase; PHASES_MAX],
    counts: [AtomicU64; Counter::COUNT],
    ticks: [AtomicU64; Bucket::COUNT],
    own: Own,
}

/// Counts that the slot's own thread alone makes, on the quick way through mutexes and flags: without a locked instruction.
#[repr(C, align(64))]
struct Own {
    locks: AtomicU64,
    flags: AtomicU64,
    messages: AtomicU64,
}

impl Slot {
    /// Counts locks, flags or their messages, as the thread whose slot this is.
    #[inline]
    pub fn count_own(&self, counter: Counter, by: u64) {
        let own = if counter == Counter::LockAcquires {
            &self.own.locks
        } else if counter == Counter::Flags {
            &self.own.flags
        } else {
            debug_assert!(counter == Counter::SyncMessages, "counts that a thread makes by itself");
            &self.own.messages
        };
        // Nobody else writes it; a signal handler in between that counts too would be forgotten, and only counted.
        own.store(own.load(Ordering::Relaxed) + by, Ordering::Relaxed);
    }

    /// Adds to a count.
    #[inline]
    pub fn count(&self, counter: Counter, by: u64) {
        self.counts[counter as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// Adds time.
    #[inline]
    pub fn spend(&self, bucket: Bucket, ticks: u64) {
        self.ticks[bucket as usize].fetch_add(ticks, Ordering::Relaxed);
    }

    /// How often the thread has synchronized so far: another number, another interval.
    pub fn interval(&self) -> u64 {
        let counted = [Counter::LockAcquires, Counter::Flags, Counter::Barriers, Counter::ConditionWaits];
        let counted: u64 = counted.iter().map(|&at| self.counts[at as usize].load(Ordering::Relaxed)).sum();
        counted + self.own.locks.load(Ordering::Relaxed) + self.own.flags.load(Ordering::Relaxed)
    }

    /// The counts so far.
    pub fn counts(&self) -> [u64; Counter::COUNT] {
        let mut counts = std::array::from_fn(|counter| self.counts[counter].load(Ordering::Relaxed));
        for (counter, own) in [
            (Counter::LockAcquires, &self.own.locks),
            (Counter::Flags, &self.own.flags),
            (Counter::SyncMessages, &self.own.messages),
        ] {
            counts[counter as usize] += own.load(Ordering::Relaxed);
        }
        counts
    }

    /// Everything so far, in nanoseconds; a slot that still runs is read as of `now_ticks`.
    pub fn read(&self, now_ticks: u64, ticks_per_ms: u64) -> Counters {
        let nanos = |ticks: u64| (u128::from(ticks) * 1_000_000 / u128::from(ticks_per_ms.max(1))) as u64;
        let mut counters = Counters { counts: self.counts(), ..Counters::ZERO };
        for (to, from) in counters.nanos.iter_mut().zip(&self.ticks) {
            *to = nanos(from.load(Ordering::Relaxed));
        }
        let started = self.started_ticks.load(Ordering::Relaxed);
        if started != 0 {
            let ended = match self.ended_ticks.load(Ordering::Relaxed) {
                0 => now_ticks,
                ended => ended,
            };
            let elsewhere: u64 = counters.nanos.iter().sum();
            counters.nanos[Bucket::Compute as usize] = nanos(ended.saturating_sub(started)).saturating_sub(elsewhere);
        }
        counters
    }
}
