//! A node: its copies, what it knows, and the log of intervals.

use finespun_engine::lazy::{self, Want};
use finespun_protocol::tmk::{Action, Knowledge, Seen, Unit};
use finespun_types::{Access, NodeId};

use crate::bugs::Bug;
use crate::memory::{Diff, Lock, Page, WORDS};

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
#[derive(Debug)]
pub enum Letter {
    AskDiffs(u32, u32),
    Diffs(Vec<Kept>),
    AskBase,
    Base(Page, Vec<u32>),
    NoBase(NodeId, u32),
}

/// A node's copy of a unit, with the lock that covers it.
pub struct Copy {
    pub unit: Unit,
    pub writers: Vec<Seen>,
    pub frame: Page,
    twin: Page,
    pub access: Access,
    /// Oldest first.
    pub diffs: Vec<Kept>,
    pub came: Vec<Kept>,
    pub lock: Lock,
}

pub struct Node {
    pub me: NodeId,
    pub seen: Vec<u32>,
    pub granted: Vec<u32>,
    pub known: Vec<u32>,
    told: Vec<u32>,
    clock: u32,
    /// By writer: the intervals that are not collected.
    pub log: Vec<Vec<Interval>>,
    pub dirty: Vec<usize>,
    /// By unit.
    pub copies: Vec<Copy>,
    pub releasing: Lock,
    pub acquiring: Lock,
    /// What the last barrier of all has brought, with the collection that was wished for.
    pub at_barrier: Vec<u32>,
    /// Up to here intervals are collected.
    pub collected: Vec<u32>,
    pub collections: u32,
    /// Processors in a collection.
    pub collecting: usize,
}

impl Node {
    pub fn new(me: usize, nodes: usize) -> Self {
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
            copies: Vec::new(),
            releasing: Lock::default(),
            acquiring: Lock::default(),
            at_barrier: vec![0; nodes + 1],
            collected: zero(),
            collections: 0,
            collecting: 0,
        }
    }

    /// One more unit.
    pub fn grow(&mut self) {
        self.copies.push(Copy {
            unit: Unit::default(),
            writers: vec![Seen::default(); self.seen.len()],
            frame: [0; WORDS],
            twin: [0; WORDS],
            access: Access::None,
            diffs: Vec::new(),
            came: Vec::new(),
            lock: Lock::default(),
        });
    }

    pub fn knowledge(&mut self) -> Knowledge<'_> {
        let Self { me, seen, granted, known, told, clock, .. } = self;
        Knowledge { me: *me, seen, granted, known, told, clock }
    }

    /// The intervals that a message with this time must carry.
    pub fn news(&mut self, to: usize, time: &[u32]) -> Vec<(usize, Interval)> {
        let (to, mut news) = (NodeId::of(to), Vec::new());
        for writer in 0..self.seen.len() {
            let (after, upto) = self.knowledge().news(to, time, writer);
            let within = |interval: &&Interval| interval.index > after && interval.index <= upto;
            news.extend(self.log[writer].iter().filter(within).map(|interval| (writer, interval.clone())));
        }
        self.knowledge().sent(to, time);
        news
    }

    /// A message with a time and intervals came. Those known already are left out. Does the node know all that the time says?
    pub fn hear(&mut self, from: usize, time: &[u32], news: Vec<(usize, Interval)>) -> bool {
        for (writer, interval) in news {
            if interval.index > self.known[writer] {
                self.known[writer] = interval.index;
                self.log[writer].push(interval);
            }
        }
        let is_told = self.known.iter().zip(time).all(|(known, told)| known >= told);
        self.knowledge().heard(NodeId::of(from), time);
        is_told
    }
}

impl Copy {
    /// Performs an action that concerns no more than the copy: what is to be sent, and where. `page` came with the event.
    pub fn act(
        &mut self,
        me: NodeId,
        action: Action,
        page: Option<Page>,
        bug: Option<Bug>,
    ) -> Result<Vec<(usize, Letter)>, String> {
        let to = |node: NodeId| usize::from(node.0);
        match action {
            Action::AskBase(node) => return Ok(vec![(to(node), Letter::AskBase)]),
            Action::AskDiffs => {
                let ask = |Want { writer, after, upto }| (to(writer), Letter::AskDiffs(after, upto));
                return Ok(lazy::wants(&self.writers).map(ask).collect());
            }
            Action::SendDiffs { to: node, after, upto } => {
                let diffs = self.kept(Want { writer: me, after, upto }, bug == Some(Bug::AnswerGoesOn));
                let diffs = diffs.ok_or_else(|| format!("{me:?} has no diffs {after}..={upto}"))?;
                return Ok(vec![(to(node), Letter::Diffs(diffs))]);
            }
            Action::SendBase { to: node, twin } => {
                let applied = self.writers.iter().map(|seen| seen.applied).collect();
                let page = if twin && bug != Some(Bug::BaseFromFrame) { self.twin } else { self.frame };
                return Ok(vec![(to(node), Letter::Base(page, applied))]);
            }
            Action::SendNoBase { to: node, last, stamp } => return Ok(vec![(to(node), Letter::NoBase(last, stamp))]),
            Action::MakeDiff { index, stamp, refresh } => {
                self.diffs.push(Kept { from: me, index, stamp, diff: Diff::of(&self.frame, &self.twin) });
                if refresh && bug != Some(Bug::DiffNotRefreshed) {
                    self.twin = self.frame;
                }
            }
            Action::MakeTwin => self.twin = self.frame,
            Action::Install => self.frame = page.ok_or_else(|| "no page came".to_owned())?,
            Action::Apply { twin } => self.apply(twin && bug != Some(Bug::DiffMissesTwin), bug),
            Action::Protect(access) => self.access = access,
            // The job does these; a twin that is dropped is not read again.
            Action::DropTwin | Action::ListDirty | Action::Wake => {}
        }
        Ok(Vec::new())
    }

    /// The node's own diffs that are wanted, if it has them.
    fn kept(&self, want: Want, goes_on: bool) -> Option<Vec<Kept>> {
        let parts: Vec<Kept> = self.diffs.iter().filter(|kept| want.is_part(kept.index)).copied().collect();
        let last = parts.iter().position(|kept| want.reaches(kept.index))?;
        let end = if goes_on { parts.len() } else { last + 1 };
        Some(parts[..end].to_vec())
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
