//! Mutexes, conditions, barriers, flags and threads: which table an event is for, and which processors hear what its row grants.
//!
//! The tables stand in `finespun_sync`. A driver brings [`Keepers`]: it runs a table under its lock, sends a message, and puts an answer
//! into a processor's mailbox. What follows from what stands here.
//!
//! ```text
//!   processor --event--> run: the manager's table --grants--> answer, each to its mailbox
//!                        run_mutex: this node's table of mutexes that migrate --Send--> the same at another node, or a message
//!                        run_threads: the keeper's table --Start--> the processor's node
//! ```

use finespun_sync::migratory::{self, Message};
use finespun_sync::threads::{self, Handle};
use finespun_sync::{Event, Grant, Place};
use finespun_types::{NodeId, ProcessorId};

use crate::homes::KEEPER;

/// Which of a processor's two mailboxes an answer goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mailbox {
    /// Answers to what it asked.
    Answer,
    /// The signal of a condition variable, which may come while the processor still gives up the mutex.
    Signal,
}

/// What keeps the knowledge that goes with an answer: what earlier releasers there knew (Keleher92). Of interest to lazy release
/// consistency only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Nothing: the answer is no acquire.
    Nothing,
    /// The object at this address.
    Object(u64),
    /// The threads of the job.
    Threads,
}

/// An answer on its way to a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The node whose table gives it.
    pub from: NodeId,
    /// What it is about.
    pub about: About,
    /// The processor.
    pub who: ProcessorId,
    /// The mailbox.
    pub mailbox: Mailbox,
    /// The result, and more of it.
    pub value: (u64, u64),
}

/// How the processor that brought an event goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It goes on.
    Done,
    /// It waits for the answer, which may be there.
    Waits,
}

/// A thread that a processor is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The processor.
    pub who: ProcessorId,
    /// The function, as an offset in the program.
    pub function: u64,
    /// Its argument.
    pub argument: u64,
    /// The thread.
    pub thread: Handle,
}

/// What a driver gives. The sinks that it is called with get the driver back, because a table may grant while it runs.
pub trait Keepers: Sized {
    /// Why a table refused an event.
    type Refusal;

    /// Does this driver run the tables of the node itself? Else it sends messages there.
    fn runs_tables_of(&self, node: NodeId) -> bool;
    /// Where the state of an object stands.
    fn manager_of(&self, object: u64) -> Place;
    /// The node that a processor belongs to.
    fn node_with(&self, who: ProcessorId) -> NodeId;
    /// May grants wait until the table's lock is given back? Not where an answer tells what is known under the lock.
    fn puts_off(&self) -> bool {
        true
    }

    /// Runs an event by a table of objects, under its lock.
    ///
    /// # Errors
    /// The table's. Nothing has changed then.
    fn on_object(
        &mut self,
        at: &Place,
        event: Event,
        granted: impl FnMut(&mut Self, Grant),
    ) -> Result<(), Self::Refusal>;
    /// Runs an event by a node's table of mutexes that migrate, under its lock: was a processor granted?
    ///
    /// # Errors
    /// The table's. Nothing has changed then.
    fn on_mutex(
        &mut self,
        node: NodeId,
        mutex: u64,
        event: &migratory::Event,
        out: &mut dyn FnMut(migratory::Action),
    ) -> Result<bool, Self::Refusal>;
    /// Runs an event by the table of threads, under its lock.
    ///
    /// # Errors
    /// The table's. Nothing has changed then.
    fn on_threads(
        &mut self,
        event: threads::Event,
        out: impl FnMut(&mut Self, threads::Action),
    ) -> Result<(), Self::Refusal>;

    /// Brings an answer to its processor: into its mailbox, or by a message.
    fn answer(&mut self, answer: Answer);
    /// Sends a mutex's message to a node whose tables this driver does not run.
    fn send(&mut self, from: NodeId, to: NodeId, mutex: u64, message: Message);
    /// Brings a thread to its processor, at once or by a message.
    fn start(&mut self, start: Start);
    /// Something goes from a node to another one, by a message or as one: counted, or priced.
    fn pass(&mut self, _from: NodeId, _to: NodeId) {}
}

/// The mailbox for what an event grants.
#[must_use]
pub const fn mailbox_of(event: Event) -> Mailbox {
    match event {
        Event::Signal { .. } | Event::Broadcast { .. } => Mailbox::Signal,
        Event::Lock { .. } | Event::TryLock { .. } | Event::Unlock { .. } | Event::Arrive { .. } => Mailbox::Answer,
        Event::SetFlag { .. } | Event::WaitFlag { .. } | Event::ReadFlag { .. } | Event::ResetFlag { .. } => {
            Mailbox::Answer
        }
        Event::Enqueue { .. } | Event::Leave { .. } => Mailbox::Answer,
        Event::ReadLock { .. } | Event::TryReadLock { .. } | Event::WriteLock { .. } => Mailbox::Answer,
        Event::TryWriteLock { .. } | Event::RwUnlock { .. } => Mailbox::Answer,
    }
}

/// How the processor that brings an event goes on: does it wait for the event's own grant?
#[must_use]
pub const fn asked(event: Event) -> Asked {
    match event {
        Event::Lock { .. } | Event::TryLock { .. } | Event::Arrive { .. } => Asked::Waits,
        Event::WaitFlag { .. } | Event::ReadFlag { .. } | Event::Leave { .. } => Asked::Waits,
        Event::ReadLock { .. } | Event::TryReadLock { .. } => Asked::Waits,
        Event::WriteLock { .. } | Event::TryWriteLock { .. } => Asked::Waits,
        // The grant of an Enqueue comes with a signal, after the mutex was given up.
        Event::Enqueue { .. } | Event::Unlock { .. } | Event::SetFlag { .. } | Event::ResetFlag { .. } => Asked::Done,
        Event::Signal { .. } | Event::Broadcast { .. } | Event::RwUnlock { .. } => Asked::Done,
    }
}

/// Grants that wait until the table's lock is given back: the thread that is woken often takes the waker's processor, and others would
/// wait for the lock meanwhile. Further ones are answered under the lock.
const PUT_OFF: usize = 8;

/// Runs an event at its manager, whose tables this driver runs, and answers each processor that it grants something.
///
/// # Errors
/// The table's.
pub fn run<K: Keepers>(keepers: &mut K, at: &Place, event: Event) -> Result<Asked, K::Refusal> {
    let (mut put_off, mut count) = ([None; PUT_OFF], 0);
    let most = if keepers.puts_off() { PUT_OFF } else { 0 };
    keepers.on_object(at, event, |keepers, grant| {
        if count < most {
            put_off[count] = Some(grant);
            count += 1;
        } else {
            grant_of(keepers, at.node, event, grant);
        }
    })?;
    for &grant in put_off.iter().flatten() {
        grant_of(keepers, at.node, event, grant);
    }
    Ok(asked(event))
}

fn grant_of<K: Keepers>(keepers: &mut K, from: NodeId, event: Event, Grant { who, value }: Grant) {
    keepers.pass(from, keepers.node_with(who));
    let (about, mailbox) = (About::Object(event.object()), mailbox_of(event));
    keepers.answer(Answer { from, about, who, mailbox, value: (value, 0) });
}

/// Runs an event that came by a message, at its manager, and answers its processor also where nothing is granted.
///
/// # Errors
/// The table's. The processor is not answered then.
pub fn serve<K: Keepers>(keepers: &mut K, who: ProcessorId, event: Event) -> Result<(), K::Refusal> {
    let at = keepers.manager_of(event.object());
    if run(keepers, &at, event)? == Asked::Done {
        keepers.pass(at.node, keepers.node_with(who));
        done(keepers, at.node, who);
    }
    Ok(())
}

fn done<K: Keepers>(keepers: &mut K, from: NodeId, who: ProcessorId) {
    keepers.answer(Answer { from, about: About::Nothing, who, mailbox: Mailbox::Answer, value: (0, 0) });
}

/// The most actions of one event of a mutex that migrates: a grant, the mutex to the next node, and a request for those left behind.
const ACTIONS_MAX: usize = 3;

/// Runs an event by a node's table of mutexes that migrate, and does what it says: was a processor granted? Where this driver runs the
/// tables of other nodes too, they run one after the other, with no lock held in between; `finespun_sync::migratory` needs no order.
///
/// # Errors
/// The table's.
pub fn run_mutex<K: Keepers>(
    keepers: &mut K,
    at: NodeId,
    mutex: u64,
    event: &migratory::Event,
) -> Result<bool, K::Refusal> {
    let (mut actions, mut count) = ([None; ACTIONS_MAX], 0);
    let granted = keepers.on_mutex(at, mutex, event, &mut |action| {
        actions[count] = Some(action);
        count += 1;
    })?;
    for action in actions.into_iter().flatten() {
        match action {
            migratory::Action::Grant(Grant { who, value }) => {
                keepers.pass(at, keepers.node_with(who));
                let (about, mailbox) = (About::Nothing, Mailbox::Answer);
                keepers.answer(Answer { from: at, about, who, mailbox, value: (value, 0) });
            }
            migratory::Action::Send { to, message } => {
                keepers.pass(at, to);
                if to == at || keepers.runs_tables_of(to) {
                    run_mutex(keepers, to, mutex, &migratory::Event::Receive(message))?;
                } else {
                    keepers.send(at, to, mutex, message);
                }
            }
        }
    }
    Ok(granted)
}

/// Runs an event by the table of threads, at the keeper, and does what it says.
///
/// # Errors
/// The table's.
pub fn run_threads<K: Keepers>(keepers: &mut K, event: threads::Event) -> Result<(), K::Refusal> {
    keepers.on_threads(event, |keepers, action| {
        let (about, who, value) = match action {
            threads::Action::Start { who, function, argument, thread } => {
                return keepers.start(Start { who, function, argument, thread });
            }
            threads::Action::Created { by, thread } => (About::Nothing, by, (thread.0, 0)),
            threads::Action::Refused { by, unjoined } => (About::Nothing, by, (0, u64::from(unjoined))),
            threads::Action::Joined { by, result } => (About::Threads, by, (result, 0)),
            threads::Action::Done { by } => (About::Threads, by, (0, 0)),
        };
        keepers.answer(Answer { from: KEEPER, about, who, mailbox: Mailbox::Answer, value });
    })
}

#[cfg(test)]
mod tests;
