//! The barrier of all processors of the job: collected inside each node first, then between nodes
//! [Cashmere05 §2.3.1.1, Strings §2.6].
//!
//! The last processor of a node to arrive stands for the node at the barrier's manager; the others wait for the
//! round to change in their own node's memory.

use std::sync::atomic::Ordering;

use finespun_sync::Event;

use crate::cluster::Cluster;
use crate::misuse::Failure;
use crate::{objects, wait};

/// The address that stands for this barrier: in no heap.
const ALL: u64 = 8;
/// The same for the barrier of processes at the end of an SPMD program.
pub const END: u64 = 16;
/// The same for the barrier of processes at a collective allocation.
pub const TOGETHER: u64 = 24;

/// Arrives and waits, without release and acquire.
pub fn arrive(cluster: &Cluster, slot: usize) -> Result<(), Failure> {
    let node = cluster.mine().node();
    let round = node.barrier_round.load(Ordering::Acquire);
    let each = cluster.shape.processors_per_node() as u32;
    if node.barrier_arrived.fetch_add(1, Ordering::AcqRel) + 1 < each {
        wait::until_changed(cluster, &node.barrier_round, round, &node.barrier_sleepers);
        return Ok(());
    }
    node.barrier_arrived.store(0, Ordering::Relaxed);
    if cluster.shape.nodes > 1 {
        let (count, who) = (cluster.shape.processors() as u32, cluster.processor_at(slot));
        objects::call(cluster, slot, Event::Arrive { barrier: ALL, count, who, weight: each })?;
    }
    node.barrier_round.fetch_add(1, Ordering::SeqCst);
    wait::wake(&node.barrier_round, &node.barrier_sleepers);
    Ok(())
}

/// Arrives for a whole process at one of the barriers of processes.
pub fn arrive_process(cluster: &Cluster, slot: usize, barrier: u64) -> Result<(), Failure> {
    let count = (cluster.shape.nodes * cluster.shape.views) as u32;
    let who = cluster.processor_at(slot);
    objects::call(cluster, slot, Event::Arrive { barrier, count, who, weight: 1 })?;
    Ok(())
}
