//! The parts of a job's moment: copies, views, processors, messages, with pages of a few words. Plain data, compared and hashed.

use finespun_protocol::page::{Outcome, Time};
use finespun_types::{Access, NodeId};

use crate::early::Early;
use crate::program::{UNITS_MAX, WORDS};

/// A unit's contents.
pub type Page = [u8; WORDS];

/// What a message carries beside its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Nothing.
    #[default]
    Nothing,
    /// A whole page.
    Page(Page),
    /// The words that differ from the twin.
    Diff([Option<u8>; WORDS]),
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope<M> {
    /// Who sent.
    pub from: NodeId,
    /// Who receives.
    pub to: NodeId,
    /// About which unit.
    pub unit: u8,
    /// The words.
    pub msg: M,
    /// The rest.
    pub payload: Payload,
    /// A diff that a seeded bug applies late.
    pub late: bool,
}

/// A node's copy of a unit, with the lock that covers it and the directory entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Copy<U> {
    /// The table's state.
    pub unit: U,
    /// The frame.
    pub frame: Page,
    /// The twin; zeros when there is none.
    pub twin: Page,
    /// The task that holds the lock, plus one.
    pub lock: u8,
}

/// A view: its rights and its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// Its rights, by unit.
    pub access: [Access; UNITS_MAX],
    /// The dirty list, one bit for each unit.
    pub dirty: u8,
    /// The list of write notices, likewise.
    pub noticed: u8,
    /// Flushes begun and not done.
    pub open: u8,
    /// The processor that is in a release, plus one; releases of a view exclude each other.
    pub releasing: u8,
    /// The processor that is in an acquire, or guesses, plus one.
    pub acquiring: u8,
    /// Units with fewer rights than the table gave, because a thread of the view changed their mapping late: the next access faults once
    /// more.
    pub lowered: u8,
}

/// What a processor is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doing {
    /// Its program.
    Running,
    /// A fault of this unit.
    Fault {
        /// Of which unit.
        unit: u8,
        /// By a store.
        write: bool,
    },
    /// A read fault of this unit, or of one that is not in this world, together with guesses.
    Ahead {
        /// Of which unit.
        own: Option<u8>,
    },
    /// Flushing its dirty units.
    Releasing,
    /// Obeying its write notices.
    Acquiring,
    /// Waiting for the others.
    AtBarrier,
}

/// What a signal handler has interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interrupted {
    /// The next operation of the script.
    pub next: u8,
    /// What the processor did.
    pub doing: Doing,
    /// When that began.
    pub since: Time,
}

/// A processor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Processor {
    /// The next operation of its script.
    pub next: u8,
    /// What it does.
    pub doing: Doing,
    /// When the fault or the release under way began.
    pub since: Time,
    /// Units of the list taken at the release or acquire, still to be presented.
    pub taken: u8,
    /// Units for which it sleeps until the node is woken.
    pub asleep: u8,
    /// The table's answer to what it presented, until the actions are done.
    pub outcome: Option<(u8, Outcome)>,
    /// Faults that have not happened.
    pub early: Early,
    /// What its signal handler has interrupted, while one runs.
    pub interrupted: Option<Interrupted>,
}

impl Processor {
    /// When the release began in the middle of which the processor is, if it is.
    pub fn release_since(&mut self) -> Option<&mut Time> {
        let (doing, since) = match &mut self.interrupted {
            Some(interrupted) => (interrupted.doing, &mut interrupted.since),
            None => (self.doing, &mut self.since),
        };
        (doing == Doing::Releasing).then_some(since)
    }
}
