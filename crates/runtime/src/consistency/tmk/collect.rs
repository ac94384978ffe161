//! Forgetting: intervals, diffs and twins that nobody needs any more, when all processors are at a barrier and some node asks
//! for room.
//!
//! ```text
//!   the barrier itself, whose grant carries the wish
//!   Keep     each unit's last writer fetches what its copy lacks
//!   meet     all copies that others will count on are complete
//!   Collect  everybody drops what lacks something, then forgets
//!   meet     nobody asks for a copy that is just being dropped
//! ```
//!
//! What threads of the program's own do meanwhile is later than the barrier's time, and is not forgotten. A signal handler of the program does
//! not run meanwhile: its fault could ask a node for diffs that this node forgets just then (the checker's `HandlerInCollection`).

use std::sync::atomic::Ordering;

use finespun_engine::lazy::Collection as Step;
use finespun_protocol::tmk::Event;
use finespun_types::{Counter, NodeId, UnitId};

use super::asks::until_done;
use super::copy::{Hands, With, present};
use super::news::Time;
use super::steps::{acquire, log_of};
use crate::consistency::mappings::Change;
use crate::node::carriers;
use crate::node::cluster::Cluster;
use crate::node::meter;
use crate::sys::tmk::Store;

/// A collection, of one processor or of all of a node that it stands for.
pub struct Collection {
    upto: Time,
    wish: u32,
    next: Option<Step>,
}

impl Collection {
    /// The collection that the last barrier of all wished for, unless it is done.
    pub fn wished(cluster: &Cluster) -> Option<Self> {
        let upto = Time::of(cluster.mine().known().at_barrier());
        let wish = upto.words()[cluster.shape.nodes];
        let is_due = wish > cluster.mine().tmk().collections.load(Ordering::Relaxed);
        is_due.then_some(Self { upto, wish, next: Some(Step::Keep) })
    }

    /// Does what is next. Then all meet at the barrier that it names; after the last one it is over.
    pub fn next(&mut self, cluster: &Cluster) -> Option<u64> {
        let step = self.next?;
        self.next = step.next();
        match step {
            Step::Keep => {
                acquire(cluster);
                for_each_unit(cluster, &self.upto, |unit| until_done(cluster, unit, Event::Keep));
                Some(carriers::KEPT)
            }
            Step::Drop => {
                for_each_unit(cluster, &self.upto, |unit| drop_collected(cluster, unit, &self.upto));
                // With several processors of a node in here all have dropped before the first forgets the log they read.
                Some(carriers::COLLECTED)
            }
            Step::Forget => {
                forget(cluster, &self.upto, self.wish);
                meter::count(cluster, Counter::Collections, 1);
                None
            }
        }
    }
}

/// Every unit written in an interval that is about to be forgotten.
fn for_each_unit(cluster: &Cluster, upto: &Time, mut body: impl FnMut(UnitId)) {
    let oldest = Time::of(cluster.mine().known().collected());
    for writer in 0..cluster.shape.nodes {
        let node = NodeId(writer as u8);
        for index in oldest.words()[writer] + 1..=upto.words()[writer] {
            log_of(cluster, node)
                .interval(node, index)
                .flat_map(|record| record.units().collect::<Vec<_>>())
                .for_each(&mut body);
        }
    }
}

fn drop_collected(cluster: &Cluster, unit: UnitId, upto: &Time) {
    let upto = &upto.words()[..cluster.shape.nodes];
    let hands = &mut Hands::of(With::Nothing, Change::Shrink);
    present(cluster, cluster.me, unit, Event::Collect { upto }, hands);
    let node = cluster.mine();
    let mut locked = node.lock(unit);
    let (copy, _) = locked.tmk();
    let mut count = 0;
    while copy.oldest > 0 {
        let (head, _) = node.diff(Store::Kept, copy.oldest);
        if head.index > upto[usize::from(cluster.me.0)] {
            head.before.store(0, Ordering::Relaxed);
            break;
        }
        copy.oldest = head.next.load(Ordering::Relaxed);
        count += 1;
    }
    if copy.oldest == 0 {
        copy.youngest = 0;
    }
    drop(locked);
    node.forget_diffs(Store::Kept, count);
}

fn forget(cluster: &Cluster, upto: &Time, wish: u32) {
    let node = cluster.mine();
    let mut known = node.known();
    for writer in 0..cluster.shape.nodes {
        let last = known.knowledge(cluster.me).known[writer];
        known.forget(NodeId(writer as u8), upto.words()[writer], last);
    }
    known.collected().copy_from_slice(upto.words());
    node.tmk().collections.store(wish, Ordering::Relaxed);
}
