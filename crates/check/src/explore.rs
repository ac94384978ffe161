//! Every interleaving of one small world: breadth first, so that a violation comes with a shortest run to it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use finespun_types::ViewId;

use crate::ahead::is_late;
use crate::driver::{Broken, Rules, Run};
use crate::processor::Move;
use crate::subject::{Model, Subject};

/// Nothing can happen, and somebody still waits.
pub const ENDS: &str = "every run ends: nobody waits for ever";
/// Nobody is caught in a circle.
pub const CIRCLE: &str = "from every state everybody can come to the end";
/// At the end.
pub const MASTER: &str = "when every view has released, the master copy has every store";
/// Table and memory must agree.
pub const RIGHTS: &str = "a view has the rights that the table gave it, no others";
/// Likewise.
pub const LISTS: &str = "a view's lists hold what the table says they hold";
/// The state space is larger than expected.
pub const TOO_MANY: &str = "the world is small enough to be explored";

/// What was found of one world.
#[derive(Debug)]
pub struct Report {
    /// Distinct states.
    pub states: usize,
    /// Steps taken, also to states known already.
    pub transitions: usize,
    /// The outcomes of complete runs: registers in order.
    pub outcomes: BTreeSet<Vec<u8>>,
    /// For each outcome the moves of a shortest run to it.
    pub ways: BTreeMap<Vec<u8>, Vec<Move>>,
    /// The first violation.
    pub violation: Option<Violation>,
}

/// A sentence that does not hold, and the run that leads there.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The sentence.
    pub sentence: &'static str,
    /// What was seen.
    pub detail: String,
    /// One line for each transition.
    pub trace: Vec<String>,
    /// The seed of the random run.
    pub seed: Option<u64>,
    /// How many steps the run has.
    pub steps: usize,
}

impl Report {
    /// Before the first step.
    pub(crate) const fn new() -> Self {
        Self { states: 0, transitions: 0, outcomes: BTreeSet::new(), ways: BTreeMap::new(), violation: None }
    }
}

impl Violation {
    /// A broken sentence at the end of a run of so many steps.
    pub(crate) fn after(broken: Broken, trace: Vec<String>, steps: usize, seed: Option<u64>) -> Self {
        Self { sentence: broken.sentence, detail: broken.detail, trace, seed, steps }
    }
}

/// Without a run that leads there.
impl From<Broken> for Violation {
    fn from(broken: Broken) -> Self {
        Self::after(broken, Vec::new(), 0, None)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "violated after {} steps: {} ({})", self.steps, self.sentence, self.detail)?;
        if let Some(seed) = self.seed {
            writeln!(f, "  seed {seed}")?;
        }
        self.trace.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Explores a world up to so many states.
#[must_use]
pub fn explore<P: Subject>(rules: &Rules<P>, states_max: usize) -> Report {
    let first = Run::new(rules).world;
    let mut seen: HashMap<u128, u32, BuildHasherDefault<Ready>> = HashMap::default();
    let mut ends = Ends::default();
    let mut parents: Vec<(u32, Move)> = vec![(0, Move { task: 0, choice: 0 })];
    let mut waiting = VecDeque::from([(first, 0_u32)]);
    let mut report = Report::new();
    let mut moves = Vec::new();
    while let Some((world, id)) = waiting.pop_front() {
        let run = Run::at(rules, world);
        run.moves(&mut moves);
        let violated = |broken: Broken, last: Option<Move>| Some(replay(rules, &parents, id, last, broken));
        if moves.is_empty() {
            match ended(&run) {
                Ok(()) => {
                    if report.outcomes.insert(run.world.registers.clone()) {
                        report.ways.insert(run.world.registers.clone(), way_to(&parents, id, None));
                    }
                    ends.finished.push(id);
                }
                Err(broken) => report.violation = violated(broken, None),
            }
        }
        let mut next_ones = Vec::new();
        for &next_move in &moves {
            report.transitions += 1;
            let mut next = Run::at(rules, run.world.clone());
            if let Err(broken) = next.apply(next_move).and_then(|()| look(&next)) {
                report.violation = violated(broken, Some(next_move));
                break;
            }
            next.world.make_canonical(rules.program.shape);
            next_ones.push((next.world, next_move));
        }
        if report.violation.is_some() {
            break;
        }
        for (next, next_move) in next_ones {
            let known = match seen.entry(digest(&next)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    parents.push((id, next_move));
                    let fresh = parents.len() as u32 - 1;
                    waiting.push_back((next, fresh));
                    *new.insert(fresh)
                }
            };
            if P::REVOKES {
                ends.steps.push((known, id));
            }
        }
        if parents.len() > states_max {
            report.violation = Some(Broken::new(TOO_MANY, format!("more than {states_max} states")).into());
            break;
        }
    }
    report.states = parents.len();
    if P::REVOKES && report.violation.is_none() {
        report.violation = ends.unreachable_from(parents.len()).map(|state| {
            let broken = Broken::new(CIRCLE, "no way leads from here to the end");
            replay(rules, &parents, state, None, broken)
        });
    }
    report
}

/// Where a protocol takes mappings away at once, a run may go in circles, page to and fro. From every state some run must end:
/// then whoever gets a fair share ends too.
#[derive(Default)]
struct Ends {
    finished: Vec<u32>,
    /// Each step, as the state behind it and the state before it.
    steps: Vec<(u32, u32)>,
}

impl Ends {
    /// A state from which no finished one can be reached.
    fn unreachable_from(mut self, states: usize) -> Option<u32> {
        self.steps.sort_unstable();
        let mut reaches = vec![false; states];
        let mut waiting = self.finished;
        while let Some(state) = waiting.pop() {
            if std::mem::replace(&mut reaches[state as usize], true) {
                continue;
            }
            let first = self.steps.partition_point(|&(behind, _)| behind < state);
            let into = self.steps[first..].iter().take_while(|&&(behind, _)| behind == state);
            waiting.extend(into.map(|&(_, before)| before).filter(|&before| !reaches[before as usize]));
        }
        reaches.iter().position(|reaches| !reaches).map(|state| state as u32)
    }
}

/// The moves from the beginning to the state `id`, and then `last`. A state knows the one before it, and the move from there.
pub(crate) fn way_to(parents: &[(u32, Move)], id: u32, last: Option<Move>) -> Vec<Move> {
    let mut moves: Vec<Move> = last.into_iter().collect();
    let mut at = id;
    while at != 0 {
        let (before, step) = parents[at as usize];
        moves.push(step);
        at = before;
    }
    moves.reverse();
    moves
}

/// Runs the way to a violation once more, writing it down.
fn replay<P: Subject>(
    rules: &Rules<P>,
    parents: &[(u32, Move)],
    id: u32,
    last: Option<Move>,
    broken: Broken,
) -> Violation {
    let moves = way_to(parents, id, last);
    Violation::after(broken, trace_of(rules, &moves), moves.len(), None)
}

/// Runs these moves once more, writing down each transition.
pub(crate) fn trace_of<P: Subject>(rules: &Rules<P>, moves: &[Move]) -> Vec<String> {
    let mut run = Run::new(rules);
    run.trace = Some(Vec::new());
    for &step in moves {
        if run.apply(step).is_err() {
            break;
        }
        run.world.make_canonical(rules.program.shape);
    }
    run.trace.unwrap_or_default()
}

/// What must hold after every step.
///
/// # Errors
/// The sentence that does not.
pub fn look<P: Subject>(run: &Run<'_, P>) -> Result<(), Broken> {
    let shape = run.rules.program.shape;
    let (mut units, mut directories) = ([P::Unit::default(); 16], [P::Directory::default(); 16]);
    for unit in 0..shape.units {
        for node in 0..shape.nodes {
            units[node] = run.world.copies[node * shape.units + unit].unit;
            directories[node] = run.world.directories[node * shape.units + unit];
        }
        P::check_all(&units[..shape.nodes], &directories[..shape.nodes], run.in_flight(unit as u8))
            .map_err(|sentence| Broken::new(sentence, format!("u{unit}")))?;
        for (node, directory) in directories[..shape.nodes].iter().enumerate() {
            agree(run, node, unit)?;
            let buffered = run.world.buffers[node].is_some_and(|(of, _)| usize::from(of) == unit);
            if buffered && !run.is_busy(node, unit as u8) {
                let buffered = P::check_buffered(directory);
                buffered.map_err(|sentence| Broken::new(sentence, format!("u{unit} at n{node}")))?;
            }
        }
    }
    Ok(())
}

/// Memory is as the table believes it to be, when no handler is in the middle of changing it.
fn agree<P: Subject>(run: &Run<'_, P>, node: usize, unit: usize) -> Result<(), Broken> {
    let shape = run.rules.program.shape;
    if run.is_busy(node, unit as u8) {
        return Ok(());
    }
    let state = &run.world.copies[node * shape.units + unit].unit;
    for number in 0..shape.views {
        let (view, seen) = (ViewId(number as u8), &run.world.views[node * shape.views + number]);
        let expected = P::access(state, view);
        // A node's own list may be taken by any of its processors.
        let (first, each) =
            if P::RELEASES_NODE { (node * shape.views, shape.views) } else { (node * shape.views + number, 1) };
        let processors = &run.world.processors[first * shape.threads..(first + each) * shape.threads];
        let taken = processors.iter().fold(0, |all, processor| all | processor.taken);
        let (dirty, noticed) = (seen.dirty | taken, seen.noticed | taken);
        let why = || format!("n{node} v{number} u{unit}");
        let has = seen.access[unit];
        if has != expected && !is_late(processors, unit) && !(seen.lowered & 1 << unit != 0 && has < expected) {
            return Err(Broken::new(RIGHTS, format!("{}: {has:?}, not {expected:?}", why())));
        }
        let bit = 1 << unit;
        let missing = |list: u8, says: bool| says && list & bit == 0;
        let surplus = |list: u8, says: bool| !says && list & bit != 0;
        if missing(dirty, P::is_dirty(state, view)) || surplus(seen.dirty, P::is_dirty(state, view)) {
            return Err(Broken::new(LISTS, format!("{}: dirty list", why())));
        }
        if missing(noticed, P::is_noticed(state, view)) || surplus(seen.noticed, P::is_noticed(state, view)) {
            return Err(Broken::new(LISTS, format!("{}: notices", why())));
        }
    }
    Ok(())
}

/// What must hold when nothing can happen any more.
///
/// # Errors
/// The sentence that does not.
pub fn ended<P: Subject>(run: &Run<'_, P>) -> Result<(), Broken> {
    if !run.is_finished() {
        return Err(Broken::new(ENDS, waiting_ones(run)));
    }
    let shape = run.rules.program.shape;
    for unit in 0..shape.units {
        let at = |node: usize| &run.world.copies[node * shape.units + unit];
        let units: Vec<P::Unit> = (0..shape.nodes).map(|node| at(node).unit).collect();
        let is_dirty = |state: &P::Unit| (0..shape.views).any(|view| P::is_dirty(state, ViewId(view as u8)));
        let dirty = units.iter().any(is_dirty);
        if dirty || (run.rules.program.racy && P::MODEL == Model::Release) {
            continue;
        }
        let directories: Vec<P::Directory> =
            (0..shape.nodes).map(|node| run.world.directories[node * shape.units + unit]).collect();
        for master in P::masters(&units, &directories).iter() {
            let (has, latest) = (at(usize::from(master.0)).frame, run.world.latest[unit]);
            if has != latest {
                return Err(Broken::new(MASTER, format!("u{unit} at {master:?} has {has:?}, not {latest:?}")));
            }
        }
    }
    Ok(())
}

fn waiting_ones<P: Subject>(run: &Run<'_, P>) -> String {
    let unfinished = |(number, processor): (usize, &crate::model::Processor)| {
        let left = run.rules.program.scripts[number].len() > usize::from(processor.next);
        left.then(|| format!("p{number} {:?}", processor.doing))
    };
    run.world.processors.iter().enumerate().filter_map(unfinished).collect::<Vec<_>>().join(", ")
}

/// 128 bits of a state: two states of one search are taken for equal only by an accident of probability 2^-80.
pub(crate) fn digest(world: &impl Hash) -> u128 {
    let mut mixer = Mixer { low: 0x9e37_79b9_7f4a_7c15, high: 0xc2b2_ae3d_27d4_eb4f };
    world.hash(&mut mixer);
    u128::from(mixer.low) | u128::from(mixer.high) << 64
}

struct Mixer {
    low: u64,
    high: u64,
}

impl Mixer {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.low ^ word) * 0xa076_1d64_78bd_642f_u128;
        self.low = product as u64 ^ (product >> 64) as u64;
        self.high = (self.high.rotate_left(23) ^ word ^ self.low).wrapping_mul(0xe703_7ed1_a0b4_28db);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.low
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word) ^ (chunk.len() as u64) << 56);
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
}

/// A hasher for what is a digest already.
#[derive(Default)]
struct Ready(u64);

impl Hasher for Ready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().take(8) {
            self.0 = self.0 << 8 | u64::from(byte);
        }
    }

    fn write_u128(&mut self, word: u128) {
        self.0 = word as u64;
    }
}
