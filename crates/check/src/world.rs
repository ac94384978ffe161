//! The model: what a whole job is in one moment, with pages of a few words. Plain data, compared and hashed.

use finespun_protocol::cashmere::{Action, Directory, Homes, Mode, Msg, Outcome, Time, Unit};
use finespun_types::{Access, NodeId};

use crate::program::{Program, Shape, UNITS_MAX, WORDS};

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
pub struct Envelope {
    /// Who sent.
    pub from: NodeId,
    /// Who receives.
    pub to: NodeId,
    /// About which unit.
    pub unit: u8,
    /// The words.
    pub msg: Msg,
    /// The rest.
    pub payload: Payload,
    /// A diff that a seeded bug applies late.
    pub late: bool,
}

/// A node's copy of a unit, with the lock that covers it and the directory entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Copy {
    /// The table's state.
    pub unit: Unit,
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
    /// The processor that is in an acquire, plus one.
    pub acquiring: u8,
}

/// A handler that runs: what is left to do of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Where.
    pub node: NodeId,
    /// About which unit.
    pub unit: u8,
    /// Who sent what it answers.
    pub from: NodeId,
    /// What came with the message.
    pub payload: Payload,
    /// The actions to come, the next one last.
    pub actions: Vec<Action>,
    /// It took the lock, and gives it back at its end.
    pub locked: bool,
}

/// What one task is in the middle of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Chain {
    /// Handlers, each run by an action of the one before.
    pub frames: Vec<Frame>,
    /// Messages put aside until the locks are dropped, in order.
    pub aside: Vec<Envelope>,
}

impl Chain {
    /// Nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.frames.is_empty() && self.aside.is_empty()
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
    /// Flushing its dirty units.
    Releasing,
    /// Obeying its write notices.
    Acquiring,
    /// Waiting for the others.
    AtBarrier,
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
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// By node and unit.
    pub copies: Vec<Copy>,
    /// By unit, at the home.
    pub directories: Vec<Directory>,
    /// By unit, at the manager.
    pub homes: Vec<Homes>,
    /// By node and view.
    pub views: Vec<View>,
    /// By node, view and thread.
    pub processors: Vec<Processor>,
    /// What each processor, and then each channel's delivery, is in the middle of.
    pub chains: Vec<Chain>,
    /// By sender and receiver, oldest first.
    pub channels: Vec<Vec<Envelope>>,
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
    /// The ticks of each node's clock since the state was made canonical.
    pub clocks: Vec<Time>,
}

/// Where clocks start in a canonical state: above every rank.
const CLOCK_BASE: Time = 1_000;

impl World {
    /// Before the first step.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let Shape { nodes, views, threads: _, units } = program.shape;
        let view =
            View { access: [Access::None; UNITS_MAX], dirty: 0, noticed: 0, open: 0, releasing: 0, acquiring: 0 };
        let processor = Processor { next: 0, doing: Doing::Running, since: 0, taken: 0, asleep: 0, outcome: None };
        let processors = program.shape.processors();
        Self {
            copies: vec![Copy::default(); nodes * units],
            directories: vec![Directory::default(); units],
            homes: vec![Homes::default(); units],
            views: vec![view; nodes * views],
            processors: vec![processor; processors],
            chains: vec![Chain::default(); processors + nodes * nodes],
            channels: vec![Vec::new(); nodes * nodes],
            locks: [0; 4],
            flags: 0,
            arrived: 0,
            open: 0,
            latest: vec![[0; WORDS]; units],
            registers: vec![0; program.registers.len()],
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
            for (number, copy) in copies.iter_mut().enumerate() {
                rank_fetches(&mut copy.unit, number, processors);
            }
            rank_flushes(copies, processors);
        }
    }
}

/// `updated`, `asked` and `noticed_at` are compared with each other and with the faults of the unit.
fn rank_fetches(unit: &mut Unit, number: usize, processors: &mut [Processor]) {
    match unit.mode {
        Mode::Fetching => {}
        Mode::Shared | Mode::Upgrading | Mode::Exclusive => unit.asked = 0,
        Mode::Untouched | Mode::AskingHome | Mode::NoCopy => {
            (unit.asked, unit.updated, unit.noticed_at) = (0, 0, 0);
        }
    }
    let mut times = Ranks::default();
    let faults = |processor: &&mut Processor| matches!(processor.doing, Doing::Fault { unit, .. } if usize::from(unit) == number);
    for processor in processors.iter_mut().filter(faults) {
        times.add(processor.since);
    }
    times.add(unit.updated);
    times.add(unit.noticed_at);
    if unit.mode == Mode::Fetching {
        times.add(unit.asked);
    }
    times.sort();
    for processor in processors.iter_mut().filter(faults) {
        times.rank(&mut processor.since);
    }
    for time in [&mut unit.updated, &mut unit.asked, &mut unit.noticed_at] {
        times.rank(time);
    }
}

/// `flushed` is compared with the releases of the node.
fn rank_flushes(copies: &mut [Copy], processors: &mut [Processor]) {
    let releases = |processor: &&mut Processor| processor.doing == Doing::Releasing && processor.since != Time::MAX;
    let any = processors.iter_mut().any(|processor| releases(&processor));
    let mut times = Ranks::default();
    for processor in processors.iter_mut().filter(releases) {
        times.add(processor.since);
    }
    for copy in copies.iter_mut() {
        copy.unit.flushed = if any { copy.unit.flushed } else { 0 };
        times.add(copy.unit.flushed);
    }
    times.sort();
    for processor in processors.iter_mut().filter(releases) {
        times.rank(&mut processor.since);
    }
    for copy in copies {
        times.rank(&mut copy.unit.flushed);
    }
}

/// A few times, to be replaced by their ranks.
#[derive(Default)]
struct Ranks {
    times: [Time; 24],
    len: usize,
}

impl Ranks {
    fn add(&mut self, time: Time) {
        if !self.times[..self.len].contains(&time) {
            self.times[self.len] = time;
            self.len += 1;
        }
    }

    fn sort(&mut self) {
        self.times[..self.len].sort_unstable();
    }

    fn rank(&self, time: &mut Time) {
        *time = self.times[..self.len].iter().take_while(|other| *other < time).count() as Time;
    }
}
