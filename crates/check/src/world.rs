//! A whole job in one moment, made of the parts in [`crate::model`]. Plain data, compared and hashed.

use finespun_engine::Transaction;
use finespun_protocol::page::Time;
use finespun_types::{Access, NodeId};

use crate::early::Early;
use crate::model::{Copy, Doing, Envelope, Page, Payload, Processor, View};
use crate::program::{Program, Shape, UNITS_MAX, WORDS};
use crate::subject::{INTERVAL_BASE, Subject};

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
