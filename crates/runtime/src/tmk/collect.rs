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

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use finespun_protocol::tmk::Event;
use finespun_sync::Event as Sync;
use finespun_sys::signals::not_let_in;
use finespun_types::{Counter, NodeId, UnitId};

use super::news::Time;
use super::steps::{acquire, log_of};
use super::{Hands, With, present, runs, until_done};
use crate::cluster::Cluster;
use crate::mappings::Change;
use crate::misuse::Failure;
use crate::sys::tmk::Store;
use crate::{meter, objects};

/// The addresses that stand for the two meetings: in no heap.
const KEPT: u64 = 24;
const COLLECTED: u64 = 32;

/// Bytes of its own diffs with which a node wishes for a collection.
const WISH_BYTES: usize = 64 << 20;
/// The same for its log, in hundredths of its room.
const WISH_LOG: usize = 50;

/// Overrides the bytes, for tests and for programs that know better.
const ENV_BYTES: &str = "FINESPUN_TMK_COLLECT";

/// Does this node wish for a collection?
pub fn is_wished(cluster: &Cluster) -> bool {
    static BYTES: OnceLock<usize> = OnceLock::new();
    let of_environment = || std::env::var(ENV_BYTES).ok().and_then(|text| text.parse().ok());
    let bytes = *BYTES.get_or_init(|| of_environment().unwrap_or(WISH_BYTES));
    let node = cluster.mine();
    if node.kept_bytes() >= bytes.max(1) {
        return true;
    }
    let mut known = node.known();
    (0..cluster.shape.nodes).any(|writer| {
        let oldest = known.collected()[writer];
        let intervals = known.knowledge(cluster.me).known[writer].saturating_sub(oldest);
        node.log_used(NodeId(writer as u8), intervals) >= WISH_LOG
    })
}

/// After the barrier of all was passed, for `weight` processors of this node: collects, if that barrier carried a wish.
pub fn after_barrier(cluster: &Cluster, slot: usize, weight: u32) -> Result<(), Failure> {
    if !runs(cluster) {
        return Ok(());
    }
    let upto = Time::of(cluster.mine().known().at_barrier());
    let wish = upto.words()[cluster.shape.nodes];
    if wish <= cluster.mine().tmk().collections.load(Ordering::Relaxed) {
        return Ok(());
    }
    not_let_in(|| collect(cluster, slot, &upto, weight))?;
    forget(cluster, &upto, wish);
    meter::count(cluster, Counter::Collections, 1);
    Ok(())
}

fn collect(cluster: &Cluster, slot: usize, upto: &Time, weight: u32) -> Result<(), Failure> {
    acquire(cluster);
    for_each_unit(cluster, upto, |unit| until_done(cluster, unit, Event::Keep));
    meet(cluster, slot, KEPT, weight)?;
    for_each_unit(cluster, upto, |unit| drop_collected(cluster, unit, upto));
    // With several processors of a node in here all have dropped before the first forgets the log they read.
    meet(cluster, slot, COLLECTED, weight)
}

fn meet(cluster: &Cluster, slot: usize, barrier: u64, weight: u32) -> Result<(), Failure> {
    let (count, who) = (cluster.shape.processors() as u32, cluster.processor_at(slot));
    objects::call(cluster, slot, Sync::Arrive { barrier, count, who, weight })?;
    Ok(())
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
