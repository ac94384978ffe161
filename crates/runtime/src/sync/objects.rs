//! Mutexes, conditions, barriers and flags: brings events to the tables of `finespun_sync`, and grants to the waiters.
//!
//! Where the manager's memory is mapped the caller changes the word beside its table, or runs the table; else it sends the event. Either
//! way the caller waits for the grant ([`requests`]): no third process is in between.

use std::sync::atomic::Ordering;

use finespun_engine::objects::{self, Asked};
use finespun_sync::{Event, Quick, Word};
use finespun_sys::clock;
use finespun_types::{Counter, NodeId, ProcessorId};

use crate::consistency::along::{self, Told};
use crate::messages::wait;
use crate::messages::wire::Request;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::meter;
use crate::sync::keepers::Live;
use crate::sync::{locks, requests};

/// One event of this processor for an object: returns when it is granted, or taken where nothing is granted.
pub fn call(cluster: &Cluster, slot_index: usize, event: Event) -> Result<u64, Failure> {
    let at = cluster.manager_of(event.object());
    let manager = at.node;
    if let Some(granted) = cluster.word_of(&at).and_then(|word| quick(cluster, word, manager, event)) {
        return Ok(granted);
    }
    let (slot, who) = (cluster.slot(slot_index), cluster.processor_at(slot_index));
    if manager != cluster.me {
        meter::count(cluster, Counter::SyncMessages, 1);
    }
    if !cluster.reach.runs_tables_of(manager) {
        return Ok(requests::ask(cluster, slot, manager, Request::Object { who, event })?.0);
    }
    requests::expect_answer(slot);
    match objects::run(&mut Live::told(cluster, &along::of_mine(cluster, event)), &at, event)? {
        Asked::Done => Ok(0),
        Asked::Waits => Ok(requests::await_answer(cluster, slot, event.object())?.0),
    }
}

/// The quick way, by the word; `None` if the event is for the table.
fn quick(cluster: &Cluster, word: &Word, manager: NodeId, event: Event) -> Option<u64> {
    let look = || match word.on(event) {
        Quick::Granted(grant) => Some(Some((grant.value, 2))),
        Quick::Taken => Some(Some((0, 1))),
        Quick::ForTable => Some(None),
        Quick::NotYet => None,
    };
    let (value, messages) = look().or_else(|| wait::spin_until(cluster, look)).flatten()?;
    if manager != cluster.me {
        meter::count(cluster, Counter::SyncMessages, messages);
    }
    Some(value)
}

/// An event that came by a message.
pub fn serve(cluster: &Cluster, who: ProcessorId, event: Event, told: &Told) {
    if let Err(failure) = objects::serve(&mut Live::told(cluster, told), who, event) {
        requests::answer(cluster, who, Err(failure));
    }
}

/// Queues for a condition, then gives up the mutex. Then [`await_signal`], or [`await_signal_before`].
pub fn leave_for(cluster: &Cluster, slot_index: usize, condition: u64, mutex: u64) -> Result<(), Failure> {
    let (slot, who) = (cluster.slot(slot_index), cluster.processor_at(slot_index));
    slot.signalled.store(0, Ordering::Relaxed);
    call(cluster, slot_index, Event::Enqueue { condition, who })?;
    if locks::migrate(cluster) {
        locks::unlock(cluster, slot_index, mutex)?;
    } else {
        call(cluster, slot_index, Event::Unlock { mutex, who })?;
    }
    Ok(())
}

/// Waits for the condition `condition` with `mutex` given up, without the release and the lock around it.
pub fn wait_condition(cluster: &Cluster, slot_index: usize, condition: u64, mutex: u64) -> Result<(), Failure> {
    leave_for(cluster, slot_index, condition, mutex)?;
    await_signal(cluster, slot_index, condition);
    Ok(())
}

/// Waits for a signal of the condition: true.
pub fn await_signal(cluster: &Cluster, slot_index: usize, condition: u64) -> bool {
    let slot = cluster.slot(slot_index);
    wait::until_changed_for(cluster, &slot.signalled, 0, &slot.signal_sleepers, condition);
    true
}

/// The same for at most so many nanoseconds: false if they passed and no signal came.
pub fn wait_condition_for(
    cluster: &Cluster,
    slot_index: usize,
    condition: u64,
    mutex: u64,
    limit_ns: u64,
) -> Result<bool, Failure> {
    let deadline = clock::now_ns().saturating_add(limit_ns);
    leave_for(cluster, slot_index, condition, mutex)?;
    await_signal_before(cluster, slot_index, condition, deadline)
}

/// Waits for a signal of the condition until a moment of the monotonic clock: false, and no longer in its queue, if none came.
pub fn await_signal_before(
    cluster: &Cluster,
    slot_index: usize,
    condition: u64,
    deadline: u64,
) -> Result<bool, Failure> {
    let (slot, who) = (cluster.slot(slot_index), cluster.processor_at(slot_index));
    if wait::until_changed_before(cluster, &slot.signalled, 0, &slot.signal_sleepers, deadline) {
        return Ok(true);
    }
    if call(cluster, slot_index, Event::Leave { condition, who })? == 1 {
        return Ok(false);
    }
    // A signal was spent on this processor: it is here, or on its way.
    wait::until_changed(cluster, &slot.signalled, 0, &slot.signal_sleepers);
    Ok(true)
}
