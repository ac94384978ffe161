//! The model of a job under lazy release consistency: nodes of one view each, with intervals, diffs and vector times.

use finespun_engine::lazy::{Acquire, Release};
use finespun_protocol::tmk::{Action, Knowledge, Outcome, Seen, Unit};
use finespun_types::{Access, NodeId};

use crate::program::{Program, UNITS_MAX, WORDS};

/// A model page.
pub type Page = [u8; WORDS];

/// A vector time, one word per node.
pub type Times = Vec<u32>;

/// One diff of one writer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diff {
    /// Whose.
    pub from: u8,
    /// The interval it counts as.
    pub index: u32,
    /// What it is ordered by.
    pub stamp: u32,
    /// The words changed; the others are nothing.
    pub words: [Option<u8>; WORDS],
}

/// One interval, as told to other nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Its index.
    pub index: u32,
    /// Its stamp.
    pub stamp: u32,
    /// The units written in it, a bit for each.
    pub units: u8,
}

/// A node's copy of one unit with its data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Copy {
    /// The table's state.
    pub unit: Unit,
    /// By writer.
    pub writers: Vec<Seen>,
    /// The frame.
    pub frame: Page,
    /// The twin, if there is one; else zero.
    pub twin: Page,
    /// The node's own diffs of the unit, oldest first.
    pub diffs: Vec<Diff>,
    /// Diffs that came and are not applied yet.
    pub inbox: Vec<Diff>,
    /// What the view may really do.
    pub access: Option<Access>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// See [`Knowledge`].
    pub seen: Times,
    /// Likewise.
    pub granted: Times,
    /// Likewise.
    pub known: Times,
    /// Likewise, by node.
    pub told: Times,
    /// Likewise.
    pub clock: u32,
    /// By writer: the intervals known and not collected.
    pub log: Vec<Vec<Interval>>,
    /// The dirty list.
    pub dirty: u8,
    /// The processor that releases, plus one.
    pub releasing: u8,
    /// The processor that acquires, plus one.
    pub acquiring: u8,
    /// Processors in a collection: while all are, no thread of the node faults.
    pub collecting: u8,
}

/// What a processor is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Doing {
    /// Its script.
    Running,
    /// A fault.
    Fault {
        /// Of this unit.
        unit: u8,
        /// By a store.
        write: bool,
    },
    /// A release: these units of the interval are still to be closed.
    Closing {
        /// A bit for each.
        left: u8,
        /// All of them.
        all: u8,
        /// The interval that ends.
        release: Release,
    },
    /// For a grant.
    Waiting,
    /// It has a grant, and acquires next.
    Granted,
    /// An acquire: these notices are still to be obeyed.
    Acquiring {
        /// Unit, writer, index, stamp.
        left: Vec<(u8, u8, u32, u32)>,
        /// What is acquired then.
        acquire: Acquire<Times>,
    },
    /// A collection: these units are still to be kept.
    Keeping {
        /// A bit for each.
        left: u8,
    },
    /// A collection: these are still to be collected.
    Collecting {
        /// Unit, writer, its last interval that has written the unit and is collected.
        left: Vec<(u8, u8, u32)>,
    },
}

/// A processor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Processor {
    /// Its next operation.
    pub next: u8,
    /// What it is about.
    pub doing: Doing,
    /// It waits for the node to be woken.
    pub asleep: bool,
    /// How what it presented ended, while the actions are performed.
    pub outcome: Option<Outcome>,
    /// Which of the three meetings of a collecting barrier comes next.
    pub meeting: u8,
    /// What the barrier brought that it collects at; empty when nothing is left to collect.
    pub collects: Times,
    /// What its signal handler has interrupted, while one runs: the next operation of the script, and what it was about.
    pub interrupted: Option<(u8, Doing)>,
}

impl Processor {
    /// What it waits for has been granted. A signal handler that runs goes on.
    pub fn grant(&mut self) {
        match &mut self.interrupted {
            Some((_, doing)) => *doing = Doing::Granted,
            None => self.doing = Doing::Granted,
        }
    }
}

/// A handler in the middle of its actions: it holds the unit's lock at the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Handler {
    /// Where.
    pub node: u8,
    /// Which unit.
    pub unit: u8,
    /// What is left, the next one last.
    pub actions: Vec<Action>,
    /// The page that came.
    pub page: Option<Page>,
}

/// A synchronization object at its manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Object {
    /// The holder plus one; for a flag 1: set; for a barrier the number arrived.
    pub state: u8,
    /// Who waits, oldest first.
    pub queue: Vec<u8>,
    /// What its releasers knew.
    pub time: Times,
}

/// What processors ask of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A lock.
    Lock(u8),
    /// Gives it back.
    Unlock(u8),
    /// Sets a flag.
    Set(u8),
    /// Waits for it.
    Await(u8),
    /// Arrives at the barrier of all, or at one of the further meetings of a collection.
    Arrive(u8),
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Letter {
    /// The diffs of a unit, please.
    AskDiffs(u8, u32, u32),
    /// Here they are.
    Diffs(u8, Vec<Diff>),
    /// The copy of a unit, please.
    AskBase(u8),
    /// Here it is, with what it has applied.
    Base(u8, Page, Times),
    /// There is none; this node wrote last, with this stamp.
    NoBase(u8, NodeId, u32),
    /// A processor asks something of an object; who releases adds news.
    Ask(u8, Ask, Times, Option<Vec<Vec<Interval>>>),
    /// A processor gets what it waits for.
    Grant(u8, Times, Vec<Vec<Interval>>),
}

/// A message under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// From this node.
    pub from: u8,
    /// To this one.
    pub to: u8,
    /// What it says.
    pub letter: Letter,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// By node and unit.
    pub copies: Vec<Copy>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The processors.
    pub processors: Vec<Processor>,
    /// By task: processors, then channels.
    pub handlers: Vec<Option<Handler>>,
    /// By sender and receiver.
    pub channels: Vec<Vec<Envelope>>,
    /// Four locks, four flags, three meetings.
    pub objects: Vec<Object>,
    /// The last store to each word.
    pub latest: [Page; UNITS_MAX],
    /// What loads kept.
    pub registers: Vec<u8>,
    /// So many signals may still come.
    pub signals: u8,
    /// By node and interval: what its node knew when it ended. Not part of the protocol: the past that must be known with it.
    pub past: Vec<Vec<Times>>,
}

impl World {
    /// Before the first step. Every view of the program's shape is a node.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let nodes = program.shape.nodes * program.shape.views;
        let zero = vec![0; nodes];
        let node = Node {
            seen: zero.clone(),
            granted: zero.clone(),
            known: zero.clone(),
            told: vec![0; nodes * nodes],
            clock: 0,
            log: vec![Vec::new(); nodes],
            dirty: 0,
            releasing: 0,
            acquiring: 0,
            collecting: 0,
        };
        let processor = Processor {
            next: 0,
            doing: Doing::Running,
            asleep: false,
            outcome: None,
            meeting: 0,
            collects: Times::new(),
            interrupted: None,
        };
        let processors = program.shape.processors();
        let copy = Copy { writers: vec![Seen::default(); nodes], ..Copy::default() };
        Self {
            copies: vec![copy; nodes * program.shape.units],
            nodes: vec![node; nodes],
            processors: vec![processor; processors],
            handlers: vec![None; processors + nodes * nodes],
            channels: vec![Vec::new(); nodes * nodes],
            objects: vec![Object { time: zero, ..Object::default() }; OBJECTS],
            latest: [[0; WORDS]; UNITS_MAX],
            registers: vec![0; program.registers.len()],
            signals: program.signals,
            past: vec![Vec::new(); nodes],
        }
    }

    /// A node's knowledge.
    pub fn knowledge(&mut self, node: usize) -> Knowledge<'_> {
        let Node { seen, granted, known, told, clock, .. } = &mut self.nodes[node];
        Knowledge { me: NodeId::of(node), seen, granted, known, told, clock }
    }
}

/// Locks, flags, meetings.
const OBJECTS: usize = 4 + 4 + 3;

impl Ask {
    /// Its object's number.
    #[must_use]
    pub fn object(self) -> usize {
        match self {
            Self::Lock(lock) | Self::Unlock(lock) => usize::from(lock),
            Self::Set(flag) | Self::Await(flag) => 4 + usize::from(flag),
            Self::Arrive(meeting) => 8 + usize::from(meeting),
        }
    }

    /// Is it a release?
    #[must_use]
    pub const fn releases(self) -> bool {
        match self {
            Self::Unlock(_) | Self::Set(_) | Self::Arrive(_) => true,
            Self::Lock(_) | Self::Await(_) => false,
        }
    }
}
