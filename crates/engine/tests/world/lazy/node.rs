//! A node: its copies, what it knows, and the log of intervals.

use finespun_engine::lazy::{self, Want};
use finespun_protocol::tmk::{Action, Event, Impossible, Knowledge, Outcome, Seen, Unit};
use finespun_types::{Access, NodeId};

use super::Bug;
use crate::memory::{Diff, Page, WORDS};

/// A writer has what it is asked for.
pub const KEPT: &str = "a collection drops nothing that is still needed";

/// A diff as its writer keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub from: NodeId,
    pub index: u32,
    pub stamp: u32,
    pub diff: Diff,
}

/// An interval in a log.
#[derive(Clone, Debug)]
pub struct Interval {
    pub index: u32,
    pub stamp: u32,
    pub units: Vec<usize>,
}

/// A message about a unit.
#[derive(Clone, Debug)]
pub enum Letter {
    AskDiffs(u32, u32),
    Diffs(Vec<Kept>),
    AskBase,
    Base(Page, Vec<u32>),
    NoBase(NodeId, u32),
}

#[derive(Clone, Debug)]
pub struct Copy {
    pub unit: Unit,
    pub writers: Vec<Seen>,
    pub frame: Page,
    twin: Page,
    pub access: Access,
    pub diffs: Vec<Kept>,
    pub came: Vec<Kept>,
}

/// What came of an event.
pub struct Presented {
    pub outcome: Outcome,
    pub letters: Vec<(usize, Letter)>,
    pub wakes: bool,
}

pub struct Node {
    me: NodeId,
    pub seen: Vec<u32>,
    pub granted: Vec<u32>,
    pub known: Vec<u32>,
    told: Vec<u32>,
    clock: u32,
    /// By writer.
    pub log: Vec<Vec<Interval>>,
    pub dirty: Vec<usize>,
    pub copies: Vec<Copy>,
}

impl Node {
    pub fn new(me: usize, nodes: usize, units: usize) -> Self {
        let page = [0; WORDS];
        let copy = Copy {
            unit: Unit::default(),
            writers: vec![Seen::default(); nodes],
            frame: page,
            twin: page,
            access: Access::None,
            diffs: Vec::new(),
            came: Vec::new(),
        };
        let zero = || vec![0; nodes];
        Self {
            me: NodeId::of(me),
            seen: zero(),
            granted: zero(),
            known: zero(),
            told: vec![0; nodes * nodes],
            clock: 0,
            log: vec![Vec::new(); nodes],
            dirty: Vec::new(),
            copies: vec![copy; units],
        }
    }

    pub fn knowledge(&mut self) -> Knowledge<'_> {
        let Self { me, seen, granted, known, told, clock, .. } = self;
        Knowledge { me: *me, seen, granted, known, told, clock }
    }

    /// Runs the copy's table and performs what it says.
    pub fn present(
        &mut self,
        unit: usize,
        event: Event<'_>,
        page: Option<Page>,
        bug: Option<Bug>,
    ) -> Result<Presented, Result<Impossible, String>> {
        let copy = &mut self.copies[unit];
        let step = copy.unit.on(self.me, &mut copy.writers, event).map_err(Ok)?;
        let mut presented = Presented { outcome: step.outcome, letters: Vec::new(), wakes: false };
        for &action in step.actions.as_slice() {
            match action {
                Action::ListDirty => self.dirty.push(unit),
                Action::Wake => presented.wakes = true,
                Action::Install => copy.frame = page.ok_or_else(|| Err("no page came".to_owned()))?,
                Action::AskBase(_)
                | Action::AskDiffs
                | Action::SendDiffs { .. }
                | Action::SendBase { .. }
                | Action::SendNoBase { .. }
                | Action::MakeDiff { .. }
                | Action::MakeTwin
                | Action::DropTwin
                | Action::Apply { .. }
                | Action::Protect(_) => presented.letters.extend(copy.act(self.me, action, bug).map_err(Err)?),
            }
        }
        Ok(presented)
    }

    /// The intervals that a message with this time must carry.
    pub fn news(&mut self, to: usize, time: &[u32]) -> Vec<(usize, Interval)> {
        let (to, mut news) = (NodeId::of(to), Vec::new());
        for writer in 0..time.len() {
            let (after, upto) = self.knowledge().news(to, time, writer);
            let within = |interval: &&Interval| interval.index > after && interval.index <= upto;
            news.extend(self.log[writer].iter().filter(within).map(|interval| (writer, interval.clone())));
        }
        self.knowledge().sent(to, time);
        news
    }

    /// A message with a time and intervals came.
    pub fn hear(&mut self, from: usize, time: &[u32], news: Vec<(usize, Interval)>) {
        for (writer, interval) in news {
            if interval.index > self.known[writer] {
                self.known[writer] = interval.index;
                self.log[writer].push(interval);
            }
        }
        self.knowledge().heard(NodeId::of(from), time);
    }

    /// The notices of an acquire up to this time: unit, writer, index and stamp.
    pub fn notices(&self, upto: &[u32]) -> Vec<(usize, NodeId, u32, u32)> {
        let mut notices = Vec::new();
        for (writer, intervals) in lazy::unobeyed(&self.seen, upto) {
            let log = &self.log[usize::from(writer.0)];
            for Interval { index, stamp, units } in log.iter().filter(|logged| intervals.contains(&logged.index)) {
                notices.extend(units.iter().map(|unit| (*unit, writer, *index, *stamp)));
            }
        }
        notices
    }

    /// What is collected up to this time: unit, writer and index.
    pub fn collected(&self, upto: &[u32]) -> Vec<(usize, NodeId, u32)> {
        let mut all = Vec::new();
        for (writer, (log, upto)) in self.log.iter().zip(upto).enumerate() {
            for Interval { index, units, .. } in log.iter().filter(|interval| interval.index <= *upto) {
                all.extend(units.iter().map(|unit| (*unit, NodeId::of(writer), *index)));
            }
        }
        all
    }
}

impl Copy {
    fn act(&mut self, me: NodeId, action: Action, bug: Option<Bug>) -> Result<Vec<(usize, Letter)>, String> {
        let to = |node: NodeId| usize::from(node.0);
        match action {
            Action::AskBase(node) => return Ok(vec![(to(node), Letter::AskBase)]),
            Action::AskDiffs => {
                let ask = |Want { writer, after, upto }| (to(writer), Letter::AskDiffs(after, upto));
                return Ok(lazy::wants(&self.writers).map(ask).collect());
            }
            Action::SendDiffs { to: node, after, upto } => {
                let want = Want { writer: me, after, upto };
                let parts = || self.diffs.iter().filter(|kept| want.is_part(kept.index));
                let last = parts().position(|kept| want.reaches(kept.index));
                let last = last.ok_or_else(|| format!("{me:?} has no diffs {after}..={upto}"))?;
                return Ok(vec![(to(node), Letter::Diffs(parts().take(last + 1).copied().collect()))]);
            }
            Action::SendBase { to: node, twin } => {
                let applied = self.writers.iter().map(|seen| seen.applied).collect();
                return Ok(vec![(to(node), Letter::Base(if twin { self.twin } else { self.frame }, applied))]);
            }
            Action::SendNoBase { to: node, last, stamp } => return Ok(vec![(to(node), Letter::NoBase(last, stamp))]),
            Action::MakeDiff { index, stamp, refresh } => {
                self.diffs.push(Kept { from: me, index, stamp, diff: Diff::of(&self.frame, &self.twin) });
                if refresh {
                    self.twin = self.frame;
                }
            }
            Action::MakeTwin => self.twin = self.frame,
            Action::Apply { twin } => self.apply(twin, bug),
            Action::Protect(access) => self.access = access,
            // The node does these; a twin that is dropped is not read again.
            Action::DropTwin | Action::Install | Action::ListDirty | Action::Wake => {}
        }
        Ok(Vec::new())
    }

    fn apply(&mut self, twin: bool, bug: Option<Bug>) {
        let mut came = std::mem::take(&mut self.came);
        came.sort_by_key(|kept| lazy::order(kept.stamp, kept.from, kept.index));
        if bug == Some(Bug::DiffsReversed) {
            came.reverse();
        }
        for Kept { diff, .. } in came {
            diff.apply(&mut self.frame);
            if twin {
                diff.apply(&mut self.twin);
            }
        }
    }
}
