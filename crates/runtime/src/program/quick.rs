//! Mutexes and flags by the word beside their table, where that is all there is to do.
//!
//! What surrounds every other call is left out here, and may be:
//!
//! - *Signals are not put off.* No lock of the engine is held, so a signal handler of the program that comes in between, and
//!   touches shared memory or even locks something, finds nothing in its way. What the word says changes in one instruction:
//!   before it the call has not begun, after it the mutex is locked, unlocked, the flag set.
//! - *Nothing is sent, nobody is waited for*, so there is nothing to flush, `errno` stays as it is, and no time is booked as
//!   waiting: what the call takes counts as the program's own.
//!
//! A release or an acquire that has something to do enters the engine as usual. Every function says whether the quick way led
//! to the end; if not, nothing has happened but perhaps a release, and the caller goes the long way, which also finds out about
//! mistakes.

use finespun_sync::{Event, Quick, Word};
use finespun_types::{Counter, ProcessorId};

use super::inside_slot;
use super::memory::offset;
use crate::start::{Runtime, running};
use crate::{consistency, locks, meter};

/// An object whose word this process may change.
struct At {
    runtime: &'static Runtime,
    slot: usize,
    who: ProcessorId,
    object: u64,
    word: &'static Word,
    is_remote: bool,
}

impl At {
    #[inline(always)] // in the five functions below
    fn of(object: usize) -> Option<Self> {
        let runtime = running()?;
        let cluster = runtime.cluster;
        // A thread that the program made itself gets its slot the long way.
        let slot = meter::slot_index()?;
        offset(cluster, object)?;
        let at = cluster.manager_of(object as u64);
        let word = cluster.word_of(&at)?;
        let who = cluster.processor_at(slot);
        Some(Self { runtime, slot, who, object: object as u64, word, is_remote: at.node != cluster.me })
    }

    /// Has the mutex its queue at its manager? One that migrates is another table's.
    #[inline]
    fn has_queue(&self) -> bool {
        !locks::migrate(self.runtime.cluster)
    }

    #[inline]
    fn release(&self) {
        if !consistency::has_nothing_to_release(self.runtime.cluster) {
            inside_slot(self.runtime, self.slot, |entered| consistency::release(entered.cluster));
        }
    }

    #[inline]
    fn acquire(&self) {
        if !consistency::has_nothing_to_acquire(self.runtime.cluster) {
            inside_slot(self.runtime, self.slot, |entered| consistency::acquire(entered.cluster));
        }
    }

    /// Counts, with as many operations on the manager's memory as there would have been messages.
    #[inline]
    fn count(&self, counter: Option<Counter>, messages: u64) {
        let slot = self.runtime.cluster.slot(self.slot);
        if let Some(counter) = counter {
            slot.count_own(counter, 1);
        }
        if self.is_remote {
            slot.count_own(Counter::SyncMessages, messages);
        }
    }
}

/// Locks a mutex that nobody holds.
#[inline]
pub(super) fn lock(mutex: usize) -> bool {
    let Some(at) = At::of(mutex).filter(At::has_queue) else { return false };
    let Quick::Granted(_) = at.word.on(Event::Lock { mutex: at.object, who: at.who }) else { return false };
    at.count(Some(Counter::LockAcquires), 2);
    at.acquire();
    true
}

/// Unlocks a mutex that this processor holds and nobody waits for.
#[inline]
pub(super) fn unlock(mutex: usize) -> bool {
    let Some(at) = At::of(mutex).filter(At::has_queue) else { return false };
    if !at.word.is_held_by(at.object, at.who) {
        return false;
    }
    at.release();
    let Quick::Taken = at.word.on(Event::Unlock { mutex: at.object, who: at.who }) else { return false };
    at.count(None, 1);
    true
}

/// Raises a flag that nobody sleeps on.
#[inline]
pub(super) fn set_flag(flag: usize, value: u32) -> bool {
    let Some(at) = At::of(flag) else { return false };
    at.release();
    let Quick::Taken = at.word.on(Event::SetFlag { flag: at.object, value }) else { return false };
    at.count(Some(Counter::Flags), 1);
    true
}

/// The value of a flag that has reached `value` already.
#[inline]
pub(super) fn wait_flag(flag: usize, value: u32) -> Option<u32> {
    let at = At::of(flag)?;
    let Quick::Granted(grant) = at.word.on(Event::WaitFlag { flag: at.object, value, who: at.who }) else {
        return None;
    };
    at.count(Some(Counter::Flags), 2);
    at.acquire();
    Some(grant.value as u32)
}

/// The value of a flag.
#[inline]
pub(super) fn read_flag(flag: usize) -> Option<u32> {
    let at = At::of(flag)?;
    let Quick::Granted(grant) = at.word.on(Event::ReadFlag { flag: at.object, who: at.who }) else { return None };
    at.count(None, 2);
    at.acquire();
    Some(grant.value as u32)
}
