//! Fault, release and acquire of a processor: the numbered steps are the engine's; here is what they wait on.

use finespun_engine::lazy::{Acquire, Release};
use finespun_protocol::tmk::{Event, Outcome};
use finespun_types::NodeId;

use super::Lazy;
use super::news::CARRIED;
use super::node::Interval;
use crate::bugs::Bug;
use crate::job::Job;
use crate::processor::Doing;

/// A notice: unit, writer, interval and stamp.
type Notice = (usize, NodeId, u32, u32);

/// What a processor is in the middle of.
#[derive(Debug)]
pub enum Stage {
    Fault {
        unit: usize,
        writes: bool,
    },
    /// `left` is what is still to be closed.
    Release {
        release: Release,
        units: Vec<usize>,
        left: Vec<usize>,
    },
    Acquire {
        acquire: Acquire<Vec<u32>>,
        left: Vec<Notice>,
    },
    /// A collection begins.
    Begin,
    /// Units whose copies are still to be completed.
    Keep(Vec<usize>),
    /// What is still to be dropped: unit, writer and interval.
    Drop(Vec<(usize, NodeId, u32)>),
}

impl Job<'_, Lazy> {
    pub fn begin_stage(&mut self, who: usize, stage: Stage) {
        self.processors[who].doing = Doing::Consistency(stage);
        self.put(who);
    }

    pub fn go_on_with_stage(&mut self, who: usize) {
        if self.run_errand(who) {
            return;
        }
        let Doing::Consistency(stage) = &mut self.processors[who].doing else { return };
        match stage {
            Stage::Fault { unit, writes } => {
                let (unit, write) = (*unit, *writes);
                self.fault(who, unit, write);
            }
            Stage::Release { release, left, .. } => match (left.last().copied(), *release) {
                (Some(unit), release) => self.present(who, unit, release.close(), false),
                (None, release) => self.end_interval(who, release),
            },
            Stage::Acquire { acquire, left } => match left.last().copied() {
                Some((unit, from, index, stamp)) => {
                    let notice = acquire.notice(from, index, stamp);
                    self.present(who, unit, notice, false);
                }
                None => self.end_acquire(who),
            },
            Stage::Begin => self.begin_collection(who),
            Stage::Keep(left) => {
                let unit = left.last().copied();
                self.keep(who, unit);
            }
            Stage::Drop(left) => {
                let next = left.last().copied();
                self.drop_next(who, next);
            }
        }
    }

    /// All that the processor's event brought about at its node is done.
    pub fn conclude(&mut self, who: usize, outcome: Outcome) {
        // What it asked other nodes for it does itself, or the answer has come already.
        let answered = self.processors[who].woken || !self.engine.errands[who].is_empty();
        let Doing::Consistency(stage) = &mut self.processors[who].doing else {
            unreachable!("only these present events")
        };
        match (stage, outcome) {
            (Stage::Fault { .. }, Outcome::Done) => self.processors[who].doing = Doing::Nothing,
            (Stage::Keep(left), Outcome::Done) => _ = left.pop(),
            (Stage::Fault { .. } | Stage::Keep(_), Outcome::Wait) if answered => {}
            (Stage::Fault { .. } | Stage::Keep(_), Outcome::Wait) => {
                self.processors[who].sleeps = true;
                return;
            }
            (Stage::Release { left, .. }, Outcome::Done | Outcome::Wait) => _ = left.pop(),
            (Stage::Acquire { left, .. }, Outcome::Done | Outcome::Wait) => _ = left.pop(),
            (Stage::Drop(left), Outcome::Done | Outcome::Wait) => {
                let dropped = left.pop();
                self.forget_diffs(who, dropped);
            }
            (Stage::Begin, Outcome::Done | Outcome::Wait) => {}
        }
        self.put(who);
    }

    /// What a fault asks for must be all that happened before: no half of an acquire. Nor may it ask for what is just being forgotten.
    fn fault(&mut self, who: usize, unit: usize, write: bool) {
        if self.holds_faults(self.node_of(who)) {
            let processor = &mut self.processors[who];
            (processor.sleeps, processor.woken) = (true, false);
            return;
        }
        let whole = !self.has(Bug::FaultDuringAcquire);
        self.present(who, unit, Event::Fault { write }, whole);
    }

    /// The steps 1 and 2 of a release. An empty one too waits for that of another thread, which may be about stores of this one.
    pub fn begin_release(&mut self, who: usize) {
        let node = self.node_of(who);
        let hurries = self.has(Bug::EmptyReleaseHurries);
        let node = &mut self.engine.nodes[node];
        if hurries && node.dirty.is_empty() {
            return self.end_part(who);
        }
        if !node.releasing.is_free_or_queues(who) || !node.acquiring.is_free_or_queues(who) {
            return;
        }
        let units = std::mem::take(&mut node.dirty);
        if units.is_empty() {
            return self.end_part(who);
        }
        node.releasing.take(who);
        node.acquiring.take(who);
        let release = Release::begin(&node.knowledge());
        self.note(|| format!("p{who} ends an interval: {release:?}, {units:?}"));
        if self.has(Bug::ToldTooEarly) {
            let node = self.node_of(who);
            self.log(node, release, &units);
        }
        self.begin_stage(who, Stage::Release { release, left: units.clone(), units });
    }

    /// The interval goes into the log, then its index may be told.
    fn end_interval(&mut self, who: usize, release: Release) {
        let node = self.node_of(who);
        let Doing::Consistency(Stage::Release { units, .. }) = &mut self.processors[who].doing else { return };
        let units = std::mem::take(units);
        if !self.has(Bug::ToldTooEarly) {
            self.log(node, release, &units);
        }
        let node = &mut self.engine.nodes[node];
        let mut waiting = node.releasing.give_back();
        waiting.extend(node.acquiring.give_back());
        self.put_all(waiting);
        self.end_part(who);
    }

    fn log(&mut self, node: usize, release: Release, units: &[usize]) {
        let Release { index, stamp } = release;
        let at = &mut self.engine.nodes[node];
        at.log[node].push(Interval { index, stamp, units: units.to_vec() });
        release.end(&mut at.knowledge());
    }

    /// Step 1 of an acquire.
    pub fn begin_acquire(&mut self, who: usize) {
        let node = &mut self.engine.nodes[self.program.shape.node_of(who)];
        if !node.acquiring.is_free_or_queues(who) {
            return;
        }
        node.acquiring.take(who);
        let acquire = Acquire::begin(node.seen.clone(), node.granted.clone());
        let left = if self.has(Bug::NoticesIgnored) { Vec::new() } else { self.notices(who, &acquire) };
        self.note(|| format!("p{who} acquires: {acquire:?}, {left:?}"));
        self.begin_stage(who, Stage::Acquire { acquire, left });
    }

    /// The notices of an acquire, the first last.
    fn notices(&mut self, who: usize, acquire: &Acquire<Vec<u32>>) -> Vec<Notice> {
        let (node, mut notices) = (self.node_of(who), Vec::new());
        for writer in (0..self.program.shape.nodes).map(NodeId::of) {
            for index in acquire.intervals_of(writer) {
                match self.interval(node, writer, index) {
                    Some(Interval { stamp, units, .. }) => {
                        notices.extend(units.iter().map(|unit| (*unit, writer, index, *stamp)));
                    }
                    None => self.fail(CARRIED, format!("n{node} lacks interval {index} of {writer:?}")),
                }
            }
        }
        notices.reverse();
        notices
    }

    /// An interval as a node reads it: in its writer's log, if that is reached.
    pub fn interval(&self, node: usize, writer: NodeId, index: u32) -> Option<&Interval> {
        let writer = usize::from(writer.0);
        let log = &self.engine.nodes[if self.direct() { writer } else { node }].log[writer];
        log.iter().find(|interval| interval.index == index)
    }

    fn end_acquire(&mut self, who: usize) {
        let node = &mut self.engine.nodes[self.program.shape.node_of(who)];
        if let Doing::Consistency(Stage::Acquire { acquire, .. }) = &self.processors[who].doing {
            acquire.end(&mut node.knowledge());
        }
        let waiting = node.acquiring.give_back();
        self.put_all(waiting);
        if self.engine.collections[who].is_some() {
            return self.begin_keeping(who);
        }
        if let Some(passed_on) = self.processors[who].granted.take() {
            self.oracle.acquire(who, &passed_on);
        }
        self.end_part(who);
    }
}
