//! Mutexes, conditions, barriers and flags: brings events to the tables of `finespun_sync`, and grants to the waiters.
//!
//! Where the manager's memory is mapped the caller changes the word beside its table, or runs the table; else it sends the event. Either way the caller waits in its own
//! slot, and whoever runs the table writes the grant there and wakes it: no third process is in between.

use std::fmt::Display;
use std::sync::atomic::Ordering;

use finespun_errors::Code;
use finespun_sync::{Error, Event, Grant, Place, Quick, Table, Word, Wrong};
use finespun_sys::clock;
use finespun_types::{Counter, NodeId, ProcessorId};

use crate::cluster::Cluster;
use crate::consistency::along::{self, Told};
use crate::failure::Failure;
use crate::sys::slot::Slot;
use crate::wire::{Mailbox, Reply, Request};
use crate::{asleep, carriers, locks, meter, names, wait};

/// Makes the slot ready for one answer.
pub fn expect_answer(slot: &Slot) {
    slot.granted.store(0, Ordering::Relaxed);
}

/// Waits for the answer, that of an object or of the thread table: see [`crate::asleep`].
pub fn await_answer(cluster: &Cluster, slot: &Slot, from: u64) -> Result<(u64, u64), Failure> {
    wait::until_changed_for(cluster, &slot.granted, 0, &slot.asleep, from);
    let status = slot.status.load(Ordering::Relaxed);
    if status == 0 {
        return Ok((slot.value.load(Ordering::Relaxed), slot.extra.load(Ordering::Relaxed)));
    }
    let code = Code::ALL.iter().copied().find(|code| *code as u32 == status).unwrap_or(Code::Bug);
    Err(Failure { code, what: slot.text.read() })
}

/// Sends a request to a node and waits for the answer.
pub fn ask(cluster: &Cluster, slot: &Slot, to: NodeId, request: Request) -> Result<(u64, u64), Failure> {
    let from = match request {
        Request::Object { event, .. } => event.object(),
        Request::Thread { .. } => asleep::THREADS,
        Request::Migratory { .. } | Request::Start { .. } | Request::Build { .. } => asleep::NOTHING,
        Request::Stop | Request::Heap { .. } | Request::Touched { .. } => asleep::NOTHING,
    };
    expect_answer(slot);
    along::send_request(cluster, to, request);
    cluster.mesh().flush();
    await_answer(cluster, slot, from)
}

/// Gives a processor of the job its answer.
pub fn answer(cluster: &Cluster, who: ProcessorId, result: Result<(u64, u64), Failure>) {
    answer_about(cluster, (NodeId(0), carriers::NOTHING), who, result);
}

/// The same, from the heap or the threads at `keeper`: with what their releasers knew.
pub fn answer_about(cluster: &Cluster, keeper: (NodeId, u64), who: ProcessorId, result: Result<(u64, u64), Failure>) {
    let mailbox = Mailbox::Answer;
    match result {
        Ok((value, extra)) => deliver(cluster, keeper, who, Reply { mailbox, status: 0, value, extra }, ""),
        Err(Failure { code, what }) => {
            deliver(cluster, keeper, who, Reply { mailbox, status: code as u16, value: 0, extra: 0 }, &what);
        }
    }
}

fn deliver(cluster: &Cluster, (keeper, about): (NodeId, u64), who: ProcessorId, reply: Reply, text: &str) {
    let (node, _) = cluster.slot_of(who);
    if cluster.runs_tables_of(node) {
        along::granted(cluster, keeper, about, node);
        answer_here(cluster, who, reply, text.as_bytes());
    } else {
        along::send_reply(cluster, node, who, reply, about, text.as_bytes());
    }
}

/// Gives a processor whose node's memory is mapped its answer.
pub fn answer_here(cluster: &Cluster, who: ProcessorId, reply: Reply, text: &[u8]) {
    let (node, index) = cluster.slot_of(who);
    let slot = cluster.at(node).slot(index);
    if reply.mailbox == Mailbox::Signal {
        slot.signalled.store(1, Ordering::SeqCst);
        return wait::wake(cluster, &slot.signalled, &slot.signal_sleepers);
    }
    slot.value.store(reply.value, Ordering::Relaxed);
    slot.extra.store(reply.extra, Ordering::Relaxed);
    slot.status.store(u32::from(reply.status), Ordering::Relaxed);
    if reply.status != 0 {
        slot.text.write(text);
    }
    slot.granted.store(1, Ordering::SeqCst);
    wait::wake(cluster, &slot.granted, &slot.asleep);
}

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
    if !cluster.runs_tables_of(manager) {
        return Ok(ask(cluster, slot, manager, Request::Object { who, event })?.0);
    }
    expect_answer(slot);
    run_table(cluster, &at, event, &along::of_mine(cluster, event))?;
    if !is_granted(event) {
        return Ok(0);
    }
    Ok(await_answer(cluster, slot, event.object())?.0)
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
    match run_table(cluster, &cluster.manager_of(event.object()), event, told) {
        Ok(()) if is_granted(event) => {}
        Ok(()) => {
            meter::count(cluster, Counter::SyncMessages, 1);
            answer(cluster, who, Ok((0, 0)));
        }
        Err(failure) => answer(cluster, who, Err(failure)),
    }
}

/// Grants that are put off until the table's lock is given back: a waker is often preempted by whom it wakes, and others would
/// wait for the lock meanwhile. What is more is delivered under the lock.
const PUT_OFF: usize = 8;

fn run_table(cluster: &Cluster, at: &Place, event: Event, told: &Told) -> Result<(), Failure> {
    let mailbox = match event {
        Event::Signal { .. } | Event::Broadcast { .. } => Mailbox::Signal,
        Event::Lock { .. }
        | Event::TryLock { .. }
        | Event::Unlock { .. }
        | Event::Arrive { .. }
        | Event::SetFlag { .. } => Mailbox::Answer,
        Event::WaitFlag { .. } | Event::ReadFlag { .. } | Event::ResetFlag { .. } | Event::Enqueue { .. } => {
            Mailbox::Answer
        }
        Event::ReadLock { .. } | Event::TryReadLock { .. } | Event::WriteLock { .. } => Mailbox::Answer,
        Event::TryWriteLock { .. } | Event::RwUnlock { .. } | Event::Leave { .. } => Mailbox::Answer,
    };
    let keeper = (at.node, event.object());
    let deliver = |grant| deliver_grant(cluster, keeper, grant, mailbox);
    let word = cluster.word_of(at);
    let (mut put_off, mut count) = ([None; PUT_OFF], 0);
    // What a grant tells is what is known under the lock.
    let most = if cluster.engine.tells_managers() { 0 } else { PUT_OFF };
    let granted = &mut |grant: Grant| {
        if count < most {
            put_off[count] = Some(grant);
            count += 1;
        } else {
            deliver(grant);
        }
    };
    let run = |table: &mut Table<'_>| {
        along::keep(cluster, at.node, event, told);
        match word {
            Some(word) => table.on_beside(word, event, granted),
            None => table.on(event, granted),
        }
    };
    cluster.at(at.node).with_table(at.table as usize, run).map_err(failure)?;
    put_off.into_iter().flatten().for_each(deliver);
    Ok(())
}

/// Tells a processor that the table of `at` has granted it something.
pub fn grant_from(cluster: &Cluster, at: NodeId, grant: Grant) {
    deliver_grant(cluster, (at, carriers::NOTHING), grant, Mailbox::Answer);
}

fn deliver_grant(cluster: &Cluster, at: (NodeId, u64), grant: Grant, mailbox: Mailbox) {
    if cluster.slot_of(grant.who).0 != at.0 {
        meter::count(cluster, Counter::SyncMessages, 1);
    }
    deliver(cluster, at, grant.who, Reply { mailbox, status: 0, value: grant.value, extra: 0 }, "");
}

/// Queues for a condition, then gives up the mutex.
fn leave_for(cluster: &Cluster, slot_index: usize, condition: u64, mutex: u64) -> Result<(), Failure> {
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
    let slot = cluster.slot(slot_index);
    leave_for(cluster, slot_index, condition, mutex)?;
    wait::until_changed_for(cluster, &slot.signalled, 0, &slot.signal_sleepers, condition);
    Ok(())
}

/// The same for at most so many nanoseconds: false if they passed and no signal came.
pub fn wait_condition_for(
    cluster: &Cluster,
    slot_index: usize,
    condition: u64,
    mutex: u64,
    limit_ns: u64,
) -> Result<bool, Failure> {
    let (slot, who) = (cluster.slot(slot_index), cluster.processor_at(slot_index));
    let deadline = clock::now_ns().saturating_add(limit_ns);
    leave_for(cluster, slot_index, condition, mutex)?;
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

/// Does somebody wait for the event's own grant?
const fn is_granted(event: Event) -> bool {
    match event {
        Event::Lock { .. }
        | Event::TryLock { .. }
        | Event::Arrive { .. }
        | Event::WaitFlag { .. }
        | Event::ReadFlag { .. } => true,
        Event::ReadLock { .. } | Event::TryReadLock { .. } | Event::WriteLock { .. } => true,
        Event::TryWriteLock { .. } | Event::Leave { .. } => true,
        // The grant of an Enqueue comes with a signal, after the mutex was given up.
        Event::Enqueue { .. } | Event::Unlock { .. } | Event::SetFlag { .. } | Event::ResetFlag { .. } => false,
        Event::Signal { .. } | Event::Broadcast { .. } | Event::RwUnlock { .. } => false,
    }
}

/// An error of a table as one of a call.
pub fn failure(error: Error) -> Failure {
    let worded = |code, what: &dyn Display| Failure { code, what: names::named(&what.to_string()) };
    match error {
        Error::Misuse(misuse) => worded(code_of(misuse.wrong), &misuse),
        Error::Full { .. } => worded(Code::TooManyObjects, &error),
        Error::Impossible(_) => worded(Code::Bug, &error),
    }
}

const fn code_of(wrong: Wrong) -> Code {
    match wrong {
        Wrong::NotHeld | Wrong::NotHeldHere | Wrong::NotOwner { .. } => Code::NotOwner,
        Wrong::Relock => Code::Relock,
        Wrong::CountMismatch { .. } | Wrong::TooManyArrived { .. } => Code::BarrierCount,
        Wrong::CountZero | Wrong::FlagBusy { .. } | Wrong::WrongKind { .. } => Code::Argument,
    }
}
