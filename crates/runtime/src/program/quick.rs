//! Mutexes and flags by the word beside their table, which for a mutex that migrates is this node's, where that is all there is to do.
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

use finespun_sync::{Event, Place, Quick, Word, migratory};
use finespun_types::{Counter, ProcessorId};

use super::inside_slot;
use super::memory::offset;
use crate::consistency;
use crate::node::runtime::{Runtime, running};
use crate::node::{hooks, meter};
use crate::sync::locks;

/// An object that is reached the quick way.
struct At {
    runtime: &'static Runtime,
    slot: usize,
    who: ProcessorId,
    object: u64,
    place: Place,
}

impl At {
    #[inline(always)] // in the five functions below
    fn of(object: usize) -> Option<Self> {
        offset(running()?.cluster, object)?;
        Self::numbered(object)
    }

    /// The same for an object that is known by a number, which is no address of shared memory.
    #[inline(always)]
    fn numbered(object: usize) -> Option<Self> {
        let runtime = running()?;
        let cluster = runtime.cluster;
        // A thread that the program made itself gets its slot the long way.
        let slot = meter::slot_index()?;
        let (who, place) = (cluster.processor_at(slot), cluster.manager_of(object as u64));
        Some(Self { runtime, slot, who, object: object as u64, place })
    }

    /// The word beside the manager's table, if this process may change it.
    #[inline]
    fn word(&self) -> Option<&'static Word> {
        self.runtime.cluster.word_of(&self.place)
    }

    /// The word of this node's part, if mutexes migrate.
    #[inline]
    fn own_word(&self) -> Option<&'static Word> {
        let cluster = self.runtime.cluster;
        let Place { table, word, .. } = self.place;
        locks::migrate(cluster).then(|| cluster.mine().own_word(table as usize, word as usize))
    }

    #[inline]
    fn release(&self) {
        hooks::before_release();
        if hooks::stores().is_some() || !consistency::has_nothing_to_release(self.runtime.cluster) {
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
        if messages > 0 && self.place.node != self.runtime.cluster.me {
            slot.count_own(Counter::SyncMessages, messages);
        }
    }
}

/// Locks a mutex that nobody holds.
#[inline]
pub(super) fn lock(mutex: usize) -> bool {
    At::of(mutex).is_some_and(|at| lock_at(&at))
}

/// The same for one that is known by a number.
#[inline]
pub(super) fn lock_numbered(mutex: usize) -> bool {
    At::numbered(mutex).is_some_and(|at| lock_at(&at))
}

#[inline(always)]
fn lock_at(at: &At) -> bool {
    let mutex = at.object;
    let (quick, messages) = match at.own_word() {
        Some(word) => (word.on_resting(at.object, &migratory::Event::Lock(at.who)), 0),
        None => match at.word() {
            Some(word) => (word.on(Event::Lock { mutex, who: at.who }), 2),
            None => return false,
        },
    };
    let Quick::Granted(_) = quick else { return false };
    at.count(Some(Counter::LockAcquires), messages);
    at.acquire();
    true
}

/// Unlocks a mutex that this processor holds and nobody waits for.
#[inline]
pub(super) fn unlock(mutex: usize) -> bool {
    At::of(mutex).is_some_and(|at| unlock_at(&at, true))
}

/// The same for one that is known by a number; `releases` says whether the processor has written since it locked.
#[inline]
pub(super) fn unlock_numbered(mutex: usize, releases: bool) -> bool {
    At::numbered(mutex).is_some_and(|at| unlock_at(&at, releases))
}

#[inline(always)]
fn unlock_at(at: &At, releases: bool) -> bool {
    let own = at.own_word();
    let Some(word) = own.or_else(|| at.word()) else { return false };
    if !word.is_held_by(at.object, at.who) {
        return false;
    }
    if releases || own.is_some() {
        at.release();
    }
    let (quick, messages) = match own {
        Some(word) => (word.on_resting(at.object, &migratory::Event::Unlock(at.who)), 0),
        None => (word.on(Event::Unlock { mutex: at.object, who: at.who }), 1),
    };
    let Quick::Taken = quick else { return false };
    at.count(None, messages);
    true
}

/// Raises a flag that nobody sleeps on.
#[inline]
pub(super) fn set_flag(flag: usize, value: u32) -> bool {
    let Some(at) = At::of(flag) else { return false };
    let Some(word) = at.word() else { return false };
    at.release();
    let Quick::Taken = word.on(Event::SetFlag { flag: at.object, value }) else { return false };
    at.count(Some(Counter::Flags), 1);
    true
}

/// The value of a flag that has reached `value` already.
#[inline]
pub(super) fn wait_flag(flag: usize, value: u32) -> Option<u32> {
    let at = At::of(flag)?;
    let Quick::Granted(grant) = at.word()?.on(Event::WaitFlag { flag: at.object, value, who: at.who }) else {
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
    let Quick::Granted(grant) = at.word()?.on(Event::ReadFlag { flag: at.object, who: at.who }) else { return None };
    at.count(None, 2);
    at.acquire();
    Some(grant.value as u32)
}
