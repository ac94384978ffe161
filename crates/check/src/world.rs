//! The model: what a whole job is in one moment, with pages of a few words. Plain data, compared and hashed.

use finespun_engine::Transaction;
use finespun_protocol::page::{Outcome, Time};
use finespun_types::{Access, NodeId};

use crate::ahead::Early;
use crate::program::{Program, Shape, UNITS_MAX, WORDS};
use crate::subject::{INTERVAL_BASE, Subject};

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

/// What one task is in the middle of.
#[derive(Clone, Debug, Hash)]
pub struct Chain<P: Subject> {
    /// A transaction, of this unit.
    pub nest: Option<(u8, Box<Transaction<P, Payload>>)>,
    /// What a seeded bug applies late.
    pub late: Vec<Envelope<P::Msg>>,
    /// Locks beside those of the handlers: a guess holds them until it is over.
    pub held: Vec<(NodeId, u8)>,
}

impl<P: Subject> Default for Chain<P> {
    fn default() -> Self {
        Self { nest: None, late: Vec::new(), held: Vec::new() }
    }
}

impl<P: Subject> Chain<P> {
    /// Nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.nest.is_none() && self.late.is_empty() && self.held.is_empty()
    }

    /// Does a handler run?
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.nest.as_ref().is_some_and(|(_, nest)| nest.is_inside())
    }
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

/// Everything.
#[derive(Clone, Debug, Hash)]
pub struct World<P: Subject> {
    /// By node and unit.
    pub copies: Vec<Copy<P::Unit>>,
    /// By node and unit: empty but at the home, and at former homes.
    pub directories: Vec<P::Directory>,
    /// By unit, at the manager.
    pub homes: Vec<P::Manager>,
    /// By node and view.
    pub views: Vec<View>,
    /// By node: the unit in its broadcast buffer, and the page. One buffer each, so that units push each other out.
    pub buffers: Vec<Option<(u8, Page)>>,
    /// By node, view and thread.
    pub processors: Vec<Processor>,
    /// What each processor is in the middle of, then each channel's delivery, then each view's communication thread if the
    /// protocol has such.
    pub chains: Vec<Chain<P>>,
    /// By sender and receiver, oldest first.
    pub channels: Vec<Vec<Envelope<P::Msg>>>,
    /// By lock: the holder, plus one.
    pub locks: [u8; 4],
    /// Flags that were set.
    pub flags: u8,
    /// Processors at the barrier, or not yet gone on from it.
    pub arrived: u16,
    /// The barrier is open for those.
    pub open: u16,
    /// The last store of each word: what a load must return.
    pub latest: Vec<Page>,
    /// What was kept for the outcome.
    pub registers: Vec<u8>,
    /// By node: its releases, for a protocol that counts them.
    pub intervals: Vec<u32>,
    /// So many guesses may still be made.
    pub guesses: u8,
    /// So many signals may still come.
    pub signals: u8,
    /// The ticks of each node's clock since the state was made canonical.
    pub clocks: Vec<Time>,
}

/// Where clocks start in a canonical state: above every rank.
const CLOCK_BASE: Time = 1_000;

impl<P: Subject> World<P> {
    /// Before the first step.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let Shape { nodes, views, threads: _, units } = program.shape;
        let view = View {
            access: [Access::None; UNITS_MAX],
            dirty: 0,
            noticed: 0,
            open: 0,
            releasing: 0,
            acquiring: 0,
            lowered: 0,
        };
        let processor = Processor {
            next: 0,
            doing: Doing::Running,
            since: 0,
            taken: 0,
            asleep: 0,
            outcome: None,
            early: Early::default(),
            interrupted: None,
        };
        let processors = program.shape.processors();
        let tasks = processors + nodes * nodes + if P::REVOKES { nodes * views } else { 0 };
        Self {
            copies: vec![Copy::default(); nodes * units],
            directories: vec![P::Directory::default(); nodes * units],
            homes: vec![P::Manager::default(); units],
            views: vec![view; nodes * views],
            buffers: vec![None; nodes],
            processors: vec![processor; processors],
            chains: (0..tasks).map(|_| Chain::default()).collect(),
            channels: vec![Vec::new(); nodes * nodes],
            locks: [0; 4],
            flags: 0,
            arrived: 0,
            open: 0,
            latest: vec![[0; WORDS]; units],
            registers: vec![0; program.registers.len()],
            intervals: vec![INTERVAL_BASE; nodes],
            guesses: if P::READS_AHEAD { program.guesses.0 } else { 0 },
            signals: program.signals,
            clocks: vec![CLOCK_BASE; nodes],
        }
    }

    /// Makes states equal that can never be told apart: the tables only compare times, so only their order counts, and
    /// only among those that are compared.
    pub fn make_canonical(&mut self, shape: Shape) {
        let per_node = shape.views * shape.threads;
        for node in 0..shape.nodes {
            self.clocks[node] = CLOCK_BASE;
            let processors = &mut self.processors[node * per_node..(node + 1) * per_node];
            let copies = &mut self.copies[node * shape.units..(node + 1) * shape.units];
            P::make_canonical(copies, processors);
        }
        if P::BROADCASTS {
            for (entry, directory) in self.directories.iter_mut().enumerate() {
                P::make_entry_canonical(directory, self.intervals[entry / shape.units]);
            }
            self.intervals.fill(INTERVAL_BASE);
        }
    }
}
