//! Sleeping on a word of shared memory until another thread wakes its sleepers: what the kernel's futex does within one machine.
//!
//! A word's sleepers are those of a condition variable at its address, whose mutex is the word's lock ([`super::words`]):
//!
//! ```text
//!   wait: lock of the word --> acquire --> still the value? --> release, queue, unlock --> sleep
//!   wake: signal, or broadcast
//! ```
//!
//! No wake is lost. A thread that changes the word by an atomic operation needs the word's lock. If it has it before the sleeper
//! compares, the sleeper finds the new value and returns. If it has it later, the sleeper stands in the queue already when it is woken.
//!
//! A handler of the program does not run between the lock and the queue. While the thread sleeps it does.

use finespun_sync::Event;
use finespun_sys::clock;
use finespun_sys::signals::Whole;
use finespun_types::{Bucket, Counter};

use super::memory::offset;
use super::objects::{leave_entered, lock_entered};
use super::words::{SlotOfHandler, lock_of};
use super::{Result, inside, quick};
use crate::consistency;
use crate::node::cluster::Cluster;
use crate::node::meter;
use crate::node::runtime::running;
use crate::sync::objects;

/// More sleepers than this are all of them.
const COUNTED_MAX: u32 = 64;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Another thread woke it.
    Woken,
    /// The word had another value.
    Changed,
    /// The time was up.
    TimedOut,
}

/// Waits to be woken if `is_still` says, under the word's lock, that there is something to wait for, for at most so many nanoseconds. `None`
/// if the word is not shared memory, and then nothing has happened. `is_still` may touch shared memory, and must not call the library.
///
/// # Errors
/// As [`super::operate`].
pub fn sleep_on(address: usize, limit_ns: Option<u64>, is_still: impl FnOnce() -> bool) -> Result<Option<Waited>> {
    let Some(cluster) = cluster_with(address) else { return Ok(None) };
    let _slot = SlotOfHandler::new(cluster)?;
    let (condition, deadline) = (address as u64, limit_ns.map(|limit| clock::now_ns().saturating_add(limit)));
    if !queue(address, is_still)? {
        return Ok(Some(Waited::Changed));
    }
    let is_woken = inside(move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        meter::count(cluster, Counter::ConditionWaits, 1);
        let woken = meter::timed(cluster, Bucket::LockWait, || match deadline {
            None => Ok(objects::await_signal(cluster, slot, condition)),
            Some(deadline) => objects::await_signal_before(cluster, slot, condition, deadline),
        })?;
        consistency::acquire(cluster);
        Ok(woken)
    })?;
    Ok(Some(if is_woken { Waited::Woken } else { Waited::TimedOut }))
}

/// Stands among the word's sleepers, unless there is nothing to wait for.
fn queue(address: usize, is_still: impl FnOnce() -> bool) -> Result<bool> {
    let _whole = Whole::new();
    let lock = lock_of(address);
    if !quick::lock_numbered(lock) {
        inside(move |entered| lock_entered(entered, lock))?;
    }
    if !is_still() {
        if !quick::unlock_numbered(lock, false) {
            inside(move |entered| leave_entered(entered, lock))?;
        }
        return Ok(false);
    }
    inside(move |entered| {
        consistency::release(entered.cluster);
        objects::leave_for(entered.cluster, entered.slot, address as u64, lock as u64)
    })?;
    Ok(true)
}

/// Wakes so many of a word's sleepers, the longest first; false if the word is not shared memory.
///
/// # Errors
/// As [`super::operate`].
pub fn wake_sleepers(address: usize, count: u32) -> Result<bool> {
    let Some(cluster) = cluster_with(address) else { return Ok(false) };
    let _slot = SlotOfHandler::new(cluster)?;
    let condition = address as u64;
    inside(move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        if count > COUNTED_MAX {
            objects::call(cluster, slot, Event::Broadcast { condition })?;
        } else {
            for _ in 0..count {
                objects::call(cluster, slot, Event::Signal { condition })?;
            }
        }
        Ok(true)
    })
}

fn cluster_with(address: usize) -> Option<&'static Cluster> {
    let cluster = running()?.cluster;
    offset(cluster, address).map(|_| cluster)
}
