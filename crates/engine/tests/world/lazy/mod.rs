//! The lazy engine: `tmk`, with the engine's `lazy`. A node is one process of several threads, which share its copy of each unit.
//!
//! ```text
//!   node     copies, times, the log of intervals
//!   handler  an event of a copy: one action after the other, under the lock of the unit at its node
//!   steps    fault, release, acquire
//!   collect  the steps of a collection
//!   news     what goes along with requests and answers
//! ```
//!
//! Where nodes are reached directly, the processor that faults runs the handlers of the writers itself, one after the other.

mod collect;
mod handler;
mod news;
mod node;
mod steps;

use std::collections::{BTreeMap, VecDeque};

use finespun_protocol::tmk::invariants::{self, Whole, check_times};
use finespun_protocol::tmk::{Outcome, Seen, Unit};
use finespun_types::{Access, PAGE_BYTES};

use crate::clock::Task;
use crate::engine::Engine;
use crate::job::Job;
use crate::memory::Page;
use crate::objects::Request;
use crate::program::{Op, Shape};
use collect::Collecting;
use handler::{Errand, Handler};
use news::Told;
use node::{Letter, Node};
use steps::Stage;

pub use handler::NEEDED;
pub use news::CARRIED;

pub struct Lazy {
    nodes: Vec<Node>,
    /// By task: what it runs.
    handlers: Vec<Option<Handler>>,
    /// By task: the handlers of other nodes that it runs next.
    errands: Vec<VecDeque<Errand>>,
    /// By manager and place: what the releasers of a carrier knew.
    times: BTreeMap<(usize, u64), Vec<u32>>,
    /// By processor.
    collections: Vec<Option<Collecting>>,
}

impl Engine for Lazy {
    const SEQUENTIAL: bool = false;
    // No home decides the order of two diffs that nothing orders.
    const ORDERS_RACES: bool = false;
    const TELLS_MANAGERS: bool = true;
    const HANDS_OVER_IN_NODE: bool = false;

    type Stage = Stage;
    type Outcome = Outcome;
    type Letter = Letter;
    type Along = Option<Told>;

    fn new(shape: Shape) -> Self {
        let tasks = shape.processors() + shape.nodes * shape.nodes;
        Self {
            nodes: (0..shape.nodes).map(|me| Node::new(me, shape.nodes)).collect(),
            handlers: (0..tasks).map(|_| None).collect(),
            errands: (0..tasks).map(|_| VecDeque::new()).collect(),
            times: BTreeMap::new(),
            collections: (0..shape.processors()).map(|_| None).collect(),
        }
    }

    fn grow(&mut self) {
        self.nodes.iter_mut().for_each(Node::grow);
    }

    fn page(&mut self, node: usize, unit: usize) -> &mut Page {
        &mut self.nodes[node].copies[unit].frame
    }

    fn bytes(letter: &Letter) -> usize {
        match letter {
            Letter::AskDiffs(..) | Letter::AskBase | Letter::NoBase(..) => 0,
            Letter::Diffs(diffs) => diffs.iter().map(|kept| kept.diff.bytes()).sum(),
            Letter::Base(_, applied) => PAGE_BYTES + size_of_val(applied.as_slice()),
        }
    }

    fn bytes_along(along: &Self::Along) -> usize {
        along.as_ref().map_or(0, Told::bytes)
    }

    fn more_tasks(_shape: Shape) -> usize {
        0
    }

    fn go_on_with_more(_job: &mut Job<'_, Self>, _task: Task) {}

    fn step(job: &mut Job<'_, Self>, task: Task) -> bool {
        job.act_next(task)
    }

    fn access(job: &mut Job<'_, Self>, who: usize, unit: usize) -> Access {
        let node = job.node_of(who);
        job.engine.nodes[node].copies[unit].access
    }

    fn begin_fault(job: &mut Job<'_, Self>, who: usize, unit: usize, writes: bool) {
        job.begin_stage(who, Stage::Fault { unit, writes });
    }

    fn begin_release(job: &mut Job<'_, Self>, who: usize) {
        job.begin_release(who);
    }

    fn begin_acquire(job: &mut Job<'_, Self>, who: usize, _op: Option<Op>) {
        job.begin_acquire(who);
    }

    fn go_on(job: &mut Job<'_, Self>, who: usize) {
        job.go_on_with_stage(who);
    }

    fn conclude(job: &mut Job<'_, Self>, who: usize, outcome: Outcome) {
        job.conclude(who, outcome);
    }

    fn met(job: &mut Job<'_, Self>, who: usize, op: Option<Op>) -> bool {
        matches!(op, Some(Op::Meet(_))) && job.collects_now(who)
    }

    fn may_receive(job: &mut Job<'_, Self>, task: Task, to: usize, unit: usize) -> bool {
        job.may_lock(task, to, unit)
    }

    fn receive(job: &mut Job<'_, Self>, task: Task, (from, to): (usize, usize), unit: usize, letter: Letter) {
        job.handle(task, Errand { from, to, unit, letter });
    }

    fn asks(job: &mut Job<'_, Self>, who: usize, manager: usize, request: &Request) -> Self::Along {
        job.tell_manager(who, manager, request)
    }

    fn asked(job: &mut Job<'_, Self>, who: usize, manager: usize, request: &Request, along: Self::Along) {
        if let Some(told) = along {
            job.keep_told(who, manager, request, told);
        }
    }

    fn grants(job: &mut Job<'_, Self>, manager: usize, who: usize, about: Option<u64>) -> Self::Along {
        about.map(|about| job.tell_acquirer(manager, who, about))
    }

    fn granted(job: &mut Job<'_, Self>, manager: usize, who: usize, along: Self::Along) {
        if let Some(told) = along {
            job.take_grant(manager, who, told);
        }
    }

    fn check(&self, unit: usize, in_flight: bool) -> Result<(), &'static str> {
        let units: Vec<Unit> = self.nodes.iter().map(|node| node.copies[unit].unit).collect();
        let writers: Vec<Seen> = self.nodes.iter().flat_map(|node| node.copies[unit].writers.iter().copied()).collect();
        // An interval that is just ending is known to its own node first.
        let ending = |node: &Node| u32::from(node.releasing.is_held());
        let seen_by = |node: &Node| node.seen.iter().map(|time| time + ending(node)).collect::<Vec<_>>();
        let seen: Vec<u32> = self.nodes.iter().flat_map(seen_by).collect();
        invariants::check(&Whole { units: &units, writers: &writers, seen: &seen, in_flight })?;
        // A node that is reached is asked for its log, and need not be known.
        self.nodes.iter().try_for_each(|node| check_times(&node.seen, &node.seen, &node.granted, &node.granted))
    }

    fn is_at_rest(&self) -> bool {
        let held = |node: &Node| {
            let copies = node.copies.iter().any(|copy| copy.lock.is_held());
            copies || node.releasing.is_held() || node.acquiring.is_held() || node.collecting > 0
        };
        let over = self.handlers.iter().all(Option::is_none) && self.errands.iter().all(VecDeque::is_empty);
        over && self.collections.iter().all(Option::is_none) && !self.nodes.iter().any(held)
    }
}
