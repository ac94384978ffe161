//! Forgetting: intervals, diffs and twins that nobody needs any more, when all processors are at a barrier and some node asks
//! for room.
//!
//! ```text
//!   the barrier itself, whose grant carries the wish
//!   Keep     each unit's last writer fetches what its copy lacks; so does a node that has written it later than the barrier
//!   meet     all copies that others will count on are complete
//!   Collect  every node drops what lacks something of that
//!   meet     no node asks for a copy that is just being dropped; then each forgets
//! ```
//!
//! Threads of the program's own that are not at the barrier go on. The intervals that they end are later than the barrier's time, and are not
//! forgotten. But what they ask for may be: so a node's faults wait ([`super::asks`]) from the time when the last of its processors
//! begins to collect until all nodes have dropped what lacks something. What was asked for before is awaited by `Keep`. Until the last one
//! begins, a signal handler of the program may run in it, whose fault the others must not hold. In one that collects no handler runs,
//! for its fault would wait for itself.

use std::sync::atomic::Ordering;

use finespun_engine::lazy::Collection as Step;
use finespun_protocol::tmk::Event;
use finespun_types::{Counter, NodeId, UnitId};

use super::asks::until_done;
use super::copy::{Hands, VIEW, With, present};
use super::news::Time;
use super::steps::{acquire, log_of};
use crate::consistency::mappings::Change;
use crate::messages::wait;
use crate::node::carriers;
use crate::node::cluster::Cluster;
use crate::node::meter;
use crate::sys::tmk::Store;

/// A collection, of one processor or of all of a node that it stands for.
pub struct Collection {
    upto: Time,
    wish: u32,
    weight: u32,
    next: Option<Step>,
}

impl Collection {
    /// The collection that the last barrier of all wished for, unless it is done.
    pub fn wished(cluster: &Cluster, weight: u32) -> Option<Self> {
        let upto = Time::of(cluster.mine().known().at_barrier());
        let wish = upto.words()[cluster.shape.nodes];
        let is_due = wish > cluster.mine().tmk().collections.load(Ordering::Relaxed);
        is_due.then_some(Self { upto, wish, weight, next: Some(Step::Keep) })
    }

    /// Does what is next. Then all meet at the barrier that it names; after the last one it is over.
    pub fn next(&mut self, cluster: &Cluster) -> Option<u64> {
        let step = self.next?;
        self.next = step.next();
        match step {
            Step::Keep => {
                begin(cluster, self.weight);
                acquire(cluster);
                let upto = &self.upto.words()[..cluster.shape.nodes];
                for_each_unit(cluster, &self.upto, |unit, _| until_done(cluster, unit, Event::Keep { upto }));
                Some(carriers::KEPT)
            }
            Step::Drop => {
                for_each_unit(cluster, &self.upto, |unit, interval| {
                    drop_collected(cluster, unit, interval, &self.upto)
                });
                // With several processors of a node in here all have dropped before the first forgets the log they read.
                Some(carriers::COLLECTED)
            }
            Step::Forget => {
                forget(cluster, &self.upto, self.wish);
                cluster.mine().tmk().collecting.fetch_sub(self.weight, Ordering::SeqCst);
                wait::wake_views(cluster, cluster.me);
                meter::count(cluster, Counter::Collections, 1);
                None
            }
        }
    }
}

/// No fault is presented meanwhile: one that was is seen by `Keep`.
fn begin(cluster: &Cluster, weight: u32) {
    let _no_fault = cluster.mine().view(VIEW).acquiring.guard();
    cluster.mine().tmk().collecting.fetch_add(weight, Ordering::SeqCst);
}

/// Every unit written in an interval that is about to be forgotten, with the interval and its writer.
fn for_each_unit(cluster: &Cluster, upto: &Time, mut body: impl FnMut(UnitId, (NodeId, u32))) {
    let oldest = Time::of(cluster.mine().known().collected());
    for writer in 0..cluster.shape.nodes {
        let node = NodeId::of(writer);
        for index in oldest.words()[writer] + 1..=upto.words()[writer] {
            log_of(cluster, node)
                .interval(node, index)
                .flat_map(|record| record.units().collect::<Vec<_>>())
                .for_each(|unit| body(unit, (node, index)));
        }
    }
}

fn drop_collected(cluster: &Cluster, unit: UnitId, (from, index): (NodeId, u32), upto: &Time) {
    let upto = &upto.words()[..cluster.shape.nodes];
    let hands = &mut Hands::of(With::Nothing, Change::Shrink);
    present(cluster, cluster.me, unit, Event::Collect { from, index, upto }, hands);
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
        known.forget(NodeId::of(writer), upto.words()[writer], last);
    }
    known.collected().copy_from_slice(upto.words());
    node.tmk().collections.store(wish, Ordering::Relaxed);
}
