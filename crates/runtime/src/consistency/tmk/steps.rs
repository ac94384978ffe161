//! The end of an interval, at a release, and the notices that an acquire obeys.
//!
//! A release tells nobody anything: the next grant of the object, or the next barrier, does ([`super::news`]).

use std::sync::atomic::Ordering;

use finespun_engine::lazy::{Acquire, Release};
use finespun_types::{Access, Bucket, Counter, NodeId, UnitId};

use super::copy::{self, Hands, VIEW, With, present};
use super::letters::no_room;
use super::news::Time;
use crate::consistency::mappings::{Change, Closing, Protecting};
use crate::node::cluster::Cluster;
use crate::node::meter;
use crate::sys::segment::Segment;

/// Release: the open interval ends, if it has written anything.
pub fn release(cluster: &Cluster) {
    meter::timed(cluster, Bucket::Flush, || end_interval(cluster));
}

fn end_interval(cluster: &Cluster) {
    let node = cluster.mine();
    let view = node.view(VIEW);
    let _one_at_a_time = view.releasing.guard();
    // No acquire in between: see `Knowledge::ending`.
    let _no_acquire = view.acquiring.guard();
    let mut taken = node.take_dirty(VIEW);
    if taken.is_empty() {
        return;
    }
    let units = taken.as_mut_slice();
    units.sort_unstable();
    let several_threads = view.several_threads.load(Ordering::Relaxed) != 0;
    let change = if several_threads { Change::Shrink } else { downgrade(cluster, units) };
    let release = Release::begin(&node.known().knowledge(cluster.me));
    for &unit in &*units {
        let hands = &mut Hands::of(With::Nothing, change);
        present(cluster, cluster.me, UnitId(unit), release.close(), hands);
    }
    let mut known = node.known();
    if let Err(full) = known.log(cluster.me, (release.index, release.stamp), units, true, false) {
        drop(known);
        no_room(cluster, full);
    }
    release.end(&mut known.knowledge(cluster.me));
}

/// Takes the view's right to write from whole runs of units at once, ahead of the table.
fn downgrade(cluster: &Cluster, units: &[u32]) -> Change {
    let mut runs = Protecting::new(cluster);
    let is_writable = |unit: &UnitId| copy::access(cluster, *unit) == Access::Write;
    units.iter().copied().map(UnitId).filter(is_writable).for_each(|unit| runs.add(unit));
    runs.end();
    Change::Shrunk
}

/// Acquire: obeys the notices of all intervals that grants have brought.
pub fn acquire(cluster: &Cluster) {
    let node = cluster.mine();
    let _one_at_a_time = node.view(VIEW).acquiring.guard();
    let mut acquire = {
        let mut known = node.known();
        let knowledge = known.knowledge(cluster.me);
        Acquire::begin(Time::of(knowledge.seen), Time::of(knowledge.granted))
    };
    if acquire.is_over() {
        return;
    }
    meter::timed(cluster, Bucket::Flush, || {
        let (mut notices, mut gone) = (0, Closing::new(cluster));
        for writer in (0..cluster.shape.nodes).map(NodeId::of) {
            for index in acquire.intervals_of(writer) {
                for record in log_of(cluster, writer).interval(writer, index) {
                    notices += u64::from(record.count);
                    if cluster.reach.is_direct() && writer != cluster.me {
                        meter::count(cluster, Counter::Bytes, record.bytes());
                    }
                    let notice = acquire.notice(writer, index, record.stamp);
                    for unit in record.units() {
                        let mut hands = Hands::of(With::Nothing, Change::Together);
                        present(cluster, cluster.me, unit, notice, &mut hands);
                        if hands.is_wanted {
                            gone.add(unit);
                        }
                    }
                }
            }
        }
        gone.close();
        meter::count(cluster, Counter::WriteNotices, notices);
        acquire.end(&mut node.known().knowledge(cluster.me));
    });
}

/// Where a node's intervals are read: in its own memory, if that is reached.
pub fn log_of(cluster: &Cluster, writer: NodeId) -> &Segment {
    if cluster.reach.is_direct() { cluster.at(writer) } else { cluster.mine() }
}
