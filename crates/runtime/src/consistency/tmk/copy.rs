//! A node's copy of a unit: runs its table, and performs the actions on memory.

use std::sync::atomic::Ordering;

use finespun_diff::DiffBuffer;
use finespun_engine::lazy::Want;
use finespun_protocol::tmk::{Action, Event, Outcome, Seen, Unit};
use finespun_types::{Access, Counter, NODES_MAX, NodeId, PAGE_BYTES, UnitId, ViewId};

use super::letters::{self, DIFF_HEADER_BYTES, DiffsLetter, Lazy, no_room};
use crate::consistency::mappings::{Change, Wanted};
use crate::messages::wait;
use crate::node::cluster::Cluster;
use crate::node::{meter, misuse};
use crate::sys::frames::{self, Page};
use crate::sys::segment::Locked;
use crate::sys::tmk::Store;

/// The node's only view.
pub const VIEW: ViewId = ViewId(0);

/// What came with an event.
#[derive(Clone, Copy)]
pub enum With<'a> {
    Nothing,
    /// A page.
    Page(Page),
    /// By writer: its first diff to apply and its last interval, in its own memory; 0: none.
    Diffs(&'a [(u32, u32)]),
}

/// What is to be done after the unit's lock was given back.
#[derive(Clone, Copy)]
pub enum Then {
    Nothing,
    /// Ask for the copy.
    AskBase(NodeId),
    /// Ask each writer for the diffs that [`Hands::writers`] names.
    AskDiffs,
    /// The asker, who runs this handler itself, finds the diffs from this one on, up to this interval.
    Diffs(u32, u32),
    /// The asker finds the page in its buffer.
    Base,
    /// The asker is told another node, and a stamp.
    NoBase(NodeId, u32),
}

/// A copy on its way from one node's memory to another's: the page, and what it has applied.
#[repr(align(64))]
pub struct Base {
    pub page: [u8; PAGE_BYTES],
    pub applied: [u32; NODES_MAX],
}

/// What a handler may use that its caller gives.
pub struct Hands<'a> {
    pub with: With<'a>,
    pub change: Change,
    /// Filled where the caller is the asker.
    pub base: Option<&'a mut Base>,
    /// Filled by the asker's own handler: its writers, of whom some are to be asked.
    pub writers: Option<&'a mut [Seen; NODES_MAX]>,
    /// Filled by the asker's own handler: is it left to the caller to open or close the page?
    pub is_wanted: bool,
}

impl<'a> Hands<'a> {
    pub const fn of(with: With<'a>, change: Change) -> Self {
        Self { with, change, base: None, writers: None, is_wanted: false }
    }

    /// Of an event that may ask writers for diffs.
    pub const fn asking(change: Change, writers: &'a mut [Seen; NODES_MAX]) -> Self {
        Self { writers: Some(writers), ..Self::of(With::Nothing, change) }
    }
}

/// What this view may do with a unit, by the books.
pub fn access(cluster: &Cluster, unit: UnitId) -> Access {
    let mut locked = cluster.mine().lock(unit);
    access_of(&locked.tmk().0.unit)
}

const fn access_of(copy: &Unit) -> Access {
    match (copy.writable, copy.mapped) {
        (true, _) => Access::Write,
        (false, true) => Access::Read,
        (false, false) => Access::None,
    }
}

/// The node that has the unit's last interval, as this node knows it: the nearest to a home that there is.
pub fn last_writer(cluster: &Cluster, unit: UnitId) -> Option<NodeId> {
    cluster.mine().lock(unit).tmk().0.unit.last()
}

/// Has a store to the unit reached this node, or has the node touched it?
pub fn has_heard_of(cluster: &Cluster, unit: UnitId) -> bool {
    cluster.mine().lock(unit).tmk().0.unit != Unit::default()
}

/// An answer for this node's copy.
pub fn take(cluster: &Cluster, unit: UnitId, event: Event<'_>, with: With<'_>) {
    present(cluster, cluster.me, unit, event, &mut Hands::of(with, Change::Shrink));
}

/// Runs the table of a node's copy and performs what it says.
pub fn present(
    cluster: &Cluster,
    node: NodeId,
    unit: UnitId,
    event: Event<'_>,
    hands: &mut Hands<'_>,
) -> (Outcome, Then) {
    let mut locked = cluster.at(node).lock(unit);
    let (copy, writers) = locked.tmk();
    let before = access_of(&copy.unit);
    let step = match copy.unit.on(node, writers, event) {
        Ok(step) => step,
        Err(impossible) => misuse::bug(cluster, unit, node, &impossible),
    };
    let wanted = Wanted::new(hands.change, before);
    let mut at = At { cluster, node, unit, locked, wanted, hands };
    let mut then = Then::Nothing;
    for &action in step.actions.as_slice() {
        let next = at.act(action);
        if !matches!(next, Then::Nothing) {
            then = next;
        }
    }
    at.hands.is_wanted = at.wanted.is_left();
    (step.outcome, then)
}

/// A unit at a node, locked.
struct At<'a, 'h, 'w> {
    cluster: &'a Cluster,
    node: NodeId,
    unit: UnitId,
    locked: Locked<'a>,
    wanted: Wanted,
    hands: &'h mut Hands<'w>,
}

impl At<'_, '_, '_> {
    fn act(&mut self, action: Action) -> Then {
        match action {
            Action::AskBase(to) => return Then::AskBase(to),
            Action::AskDiffs => return self.wants(),
            Action::SendDiffs { to, after, upto } => return self.send_diffs(to, after, upto),
            Action::SendBase { to, twin } => return self.send_base(to, twin),
            Action::SendNoBase { to, last, stamp } => {
                if self.cluster.reach.is_direct() {
                    return Then::NoBase(last, stamp);
                }
                letters::send(self.cluster, to, self.unit, Lazy::NoBase { last, stamp }, [&[], &[]]);
            }
            Action::MakeDiff { index, stamp, refresh } => self.make_diff(index, stamp, refresh),
            Action::MakeTwin => {
                meter::count(self.cluster, Counter::Twins, 1);
                let twin = self.locked.new_twin();
                frames::snapshot(self.locked.frame(), twin);
            }
            Action::DropTwin => self.locked.drop_twin(),
            Action::Install => {
                let With::Page(page) = self.hands.with else { self.malformed() };
                meter::count(self.cluster, Counter::PageTransfers, 1);
                frames::install(page, self.locked.frame());
            }
            Action::Apply { twin } => match self.hands.with {
                With::Diffs(found) => self.apply_found(found, twin),
                With::Nothing | With::Page(_) => self.apply_came(twin),
            },
            Action::Protect(access) => {
                assert!(self.node == self.cluster.me, "nobody can change another process's mapping");
                self.wanted.want(self.cluster, self.unit, access, self.locked.frame());
            }
            Action::ListDirty => self.cluster.at(self.node).list_dirty(VIEW, self.unit),
            Action::Wake => wait::wake_views(self.cluster, self.node),
        }
        Then::Nothing
    }

    fn malformed(&self) -> ! {
        misuse::malformed(self.cluster, self.unit, self.node)
    }

    fn wants(&mut self) -> Then {
        let (_, writers) = self.locked.tmk();
        if let Some(room) = &mut self.hands.writers {
            room[..writers.len()].copy_from_slice(writers);
        }
        Then::AskDiffs
    }

    fn make_diff(&mut self, index: u32, stamp: u32, refresh: bool) {
        let mut buffer = DiffBuffer::new();
        let diff = frames::diff(self.locked.frame(), self.locked.twin(), refresh, &mut buffer);
        let segment = self.cluster.at(self.node);
        let kept = segment.keep_diff(Store::Kept, self.node, index, stamp, diff);
        let number = kept.unwrap_or_else(|full| no_room(self.cluster, full));
        let (copy, _) = self.locked.tmk();
        if copy.youngest > 0 {
            segment.diff(Store::Kept, copy.youngest).0.next.store(number, Ordering::Relaxed);
            segment.diff(Store::Kept, number).0.before.store(copy.youngest, Ordering::Relaxed);
        } else {
            copy.oldest = number;
        }
        copy.youngest = number;
        meter::count(self.cluster, Counter::Diffs, 1);
        meter::count(self.cluster, Counter::DiffBytes, diff.len() as u64);
    }

    /// The first of the node's own diffs that are wanted, and the last interval of those that reach the notice.
    fn own_diffs(&mut self, want: Want) -> (u32, u32) {
        let segment = self.cluster.at(self.node);
        let index_of = |number| segment.diff(Store::Kept, number).0.index;
        let mut first = self.locked.tmk().0.youngest;
        let mut last = first;
        while first > 0 {
            let (head, _) = segment.diff(Store::Kept, first);
            if want.reaches(head.index) {
                last = first;
            }
            let before = head.before.load(Ordering::Relaxed);
            if before == 0 || !want.is_part(index_of(before)) {
                break;
            }
            first = before;
        }
        if first == 0 || !want.reaches(index_of(last)) {
            self.malformed();
        }
        (first, index_of(last))
    }

    fn send_diffs(&mut self, to: NodeId, after: u32, upto: u32) -> Then {
        let (first, last) = self.own_diffs(Want { writer: self.node, after, upto });
        if self.cluster.reach.is_direct() {
            return Then::Diffs(first, last);
        }
        let segment = self.cluster.at(self.node);
        let mut answer = DiffsLetter::new(self.cluster, to, self.unit);
        let mut next = first;
        loop {
            let (head, bytes) = segment.diff(Store::Kept, next);
            answer.add(head.index, head.stamp, bytes);
            if head.index == last {
                break;
            }
            next = head.next.load(Ordering::Relaxed);
        }
        answer.send(last);
        Then::Nothing
    }

    fn send_base(&mut self, to: NodeId, twin: bool) -> Then {
        let nodes = self.cluster.shape.nodes;
        let page = Page::at(if twin { self.locked.twin() } else { self.locked.frame() });
        let (_, writers) = self.locked.tmk();
        if let Some(base) = &mut self.hands.base {
            base.applied.iter_mut().zip(writers.iter()).for_each(|(applied, seen)| *applied = seen.applied);
            frames::install(page, base.page.as_mut_ptr());
            return Then::Base;
        }
        let mut words = [0; 4 * NODES_MAX];
        for (bytes, seen) in words.as_chunks_mut::<4>().0.iter_mut().zip(writers.iter()) {
            *bytes = seen.applied.to_le_bytes();
        }
        letters::send(self.cluster, to, self.unit, Lazy::Base, [page.bytes(), &words[..4 * nodes]]);
        Then::Nothing
    }

    /// Straight from the writers' memory: of all that are left, always the diff with the lowest stamp.
    fn apply_found(&mut self, found: &[(u32, u32)], twin: bool) {
        let mut next = [0; NODES_MAX];
        for (next, (first, _)) in next.iter_mut().zip(found) {
            *next = *first;
        }
        loop {
            let left = (0..found.len()).filter(|&writer| next[writer] > 0);
            let of = |writer: usize| self.cluster.at(NodeId::of(writer)).diff(Store::Kept, next[writer]);
            let Some(writer) = left.min_by_key(|&writer| of(writer).0.order()) else { return };
            let (head, bytes) = of(writer);
            meter::count(self.cluster, Counter::Bytes, (DIFF_HEADER_BYTES + bytes.len()) as u64);
            self.apply(bytes, twin);
            next[writer] = if head.index == found[writer].1 { 0 } else { head.next.load(Ordering::Relaxed) };
        }
    }

    /// Those that came by messages, in order already.
    fn apply_came(&mut self, twin: bool) {
        let segment = self.cluster.at(self.node);
        let mut next = std::mem::take(&mut self.locked.tmk().0.came);
        let mut count = 0;
        while next > 0 {
            let (head, bytes) = segment.diff(Store::Came, next);
            self.apply(bytes, twin);
            next = head.next.load(Ordering::Relaxed);
            count += 1;
        }
        segment.forget_diffs(Store::Came, count);
    }

    fn apply(&mut self, diff: &[u8], twin: bool) {
        meter::count(self.cluster, Counter::DiffsFetched, 1);
        let to_frame = frames::apply(diff, self.locked.frame());
        let to_twin = if twin { frames::apply(diff, self.locked.twin()) } else { Ok(()) };
        if to_frame.is_err() || to_twin.is_err() {
            self.malformed();
        }
    }
}
