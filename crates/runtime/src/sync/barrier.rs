//! The barrier of all processors of the job: collected inside each node first, then between nodes
//! [Cashmere05 §2.3.1.1, Strings §2.6]; and the barriers of processes at collective allocations and at the end.
//!
//! The last processor of a node to arrive stands for the node at the barrier's manager; the others wait for the
//! round to change in their own node's memory. Where all nodes' memory is reached, arrivals are counted in one word at the
//! manager, the very last changes the round in all nodes, and who stands for a node waits like the others: else it would have to
//! be woken before it could wake. With `--barrier flat` each arrives at the manager by itself.
//!
//! A barrier with a count of the program's own (`fsp_barrier_wait`) is always flat: nobody knows how many of a node will come,
//! not even where the count is the number of all processors, for threads that the program made itself may be among those
//! who come; who collected would wait for a processor that never arrives.
//!
//! The end of an SPMD program is an arrival at the barrier of all too, but with another count: a processor that ends while
//! others wait there, or the other way round, is a disagreement that the manager sees at once (E041). Inside a node, where
//! the manager sees nothing before the last has arrived, `ending` shows it.

use std::sync::atomic::Ordering;

use finespun_errors::Code;
use finespun_job::switches::Barrier;
use finespun_sync::Event;
use finespun_sys::signals::not_let_in;
use finespun_types::{Counter, NodeId, ViewId};

use crate::consistency;
use crate::messages::wait;
use crate::node::carriers::{ALL, TOGETHER};
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::meter;
use crate::sync::objects;
use crate::sys::asleep;

/// Arrives for `weight` processors of one process and waits, without release and acquire.
pub fn arrive(cluster: &Cluster, slot: usize, weight: u32) -> Result<(), Failure> {
    if cluster.job.switches.barrier == Barrier::Flat {
        let count = cluster.shape.processors() as u32;
        arrive_at_all(cluster, slot, count, weight, others_ended)?;
        return collect(cluster, slot, weight);
    }
    let node = cluster.mine().node();
    let round = node.barrier_round.load(Ordering::Acquire);
    let each = cluster.shape.processors_per_node() as u32;
    if node.barrier_arrived.fetch_add(weight, Ordering::SeqCst) + weight < each {
        // A process that ended after this round went on is none of our business.
        if node.ending.load(Ordering::SeqCst) > 0 && node.barrier_round.load(Ordering::SeqCst) == round {
            return Err(others_ended());
        }
        wait::until_changed_for(cluster, &node.barrier_round, round, &node.barrier_sleepers, asleep::ROUND);
        return Ok(());
    }
    node.barrier_arrived.store(0, Ordering::SeqCst);
    let count = cluster.shape.processors() as u32;
    if is_reached_by_all(cluster) {
        return arrive_directly(cluster, round, each);
    }
    arrive_at_all(cluster, slot, count, each, others_ended)?;
    collect(cluster, slot, each)?;
    open(cluster, cluster.me);
    Ok(())
}

/// Does the engine of consistency forget something now that all have met here? It says what it does next; we meet in between, for
/// `weight` processors of this node. No signal handler of the program runs meanwhile.
fn collect(cluster: &Cluster, slot: usize, weight: u32) -> Result<(), Failure> {
    let Some(mut collection) = consistency::collection(cluster, weight) else { return Ok(()) };
    not_let_in(|| {
        while let Some(barrier) = collection.next(cluster) {
            let (count, who) = (cluster.shape.processors() as u32, cluster.processor_at(slot));
            objects::call(cluster, slot, Event::Arrive { barrier, count, who, weight })?;
        }
        Ok(())
    })
}

/// Do all run on the memory of all, and need no table's grant to tell them what others know?
fn is_reached_by_all(cluster: &Cluster) -> bool {
    cluster.reach.runs_tables_of_all() && !cluster.engine.tells_managers()
}

/// Arrivals for a round in the low half of [`crate::sys::segment::Node::all_arrived`], at the end of the program in the high half. In
/// one word, so that of two who disagree one sees the other.
const AT_END: u32 = 32;

/// Arrives for the whole node, whose round this is, and waits. As the table's barrier with the count of all, but with one word
/// instead of the table's seven cache lines; and the very last opens all nodes.
fn arrive_directly(cluster: &Cluster, round: u32, each: u32) -> Result<(), Failure> {
    let manager = cluster.manager_of(ALL).node;
    let count_message = |node: NodeId| {
        if node != manager {
            meter::count(cluster, Counter::SyncMessages, 1);
        }
    };
    let (all, each) = (cluster.shape.processors() as u64, u64::from(each));
    let arrived = &cluster.at(manager).node().all_arrived;
    let now = arrived.fetch_add(each, Ordering::SeqCst) + each;
    if now > all {
        arrived.fetch_sub(each, Ordering::SeqCst);
        return Err(others_ended());
    }
    count_message(cluster.me);
    if now < all {
        let node = cluster.mine().node();
        wait::until_changed_for(cluster, &node.barrier_round, round, &node.barrier_sleepers, asleep::ROUND);
        return Ok(());
    }
    // Nobody comes for the next round before this one is open.
    arrived.fetch_sub(all, Ordering::SeqCst);
    for node in (0..cluster.shape.nodes).map(NodeId::of).filter(|node| *node != cluster.me) {
        count_message(node);
        open(cluster, node);
    }
    count_message(cluster.me);
    open(cluster, cluster.me);
    Ok(())
}

/// Lets a node's processors go.
fn open(cluster: &Cluster, node: NodeId) {
    let node = cluster.at(node).node();
    node.barrier_round.fetch_add(1, Ordering::SeqCst);
    wait::wake(cluster, &node.barrier_round, &node.barrier_sleepers);
}

/// Arrives for a whole process at a collective allocation.
pub fn arrive_together(cluster: &Cluster, slot: usize) -> Result<(), Failure> {
    let count = (cluster.shape.nodes * cluster.shape.views) as u32;
    let who = cluster.processor_at(slot);
    objects::call(cluster, slot, Event::Arrive { barrier: TOGETHER, count, who, weight: 1 })?;
    Ok(())
}

/// Arrives for a whole process at the end of an SPMD program.
pub fn arrive_at_end(cluster: &Cluster, slot: usize) -> Result<(), Failure> {
    let node = cluster.mine().node();
    node.ending.fetch_add(1, Ordering::SeqCst);
    if node.barrier_arrived.load(Ordering::SeqCst) > 0 {
        return Err(ended_early());
    }
    let is_first = cluster.me == NodeId(0) && cluster.my_view() == ViewId(0);
    let weight = cluster.shape.threads as u32 + u32::from(is_first);
    if is_reached_by_all(cluster) {
        let arrived = &cluster.at(cluster.manager_of(ALL).node).node().all_arrived;
        if arrived.fetch_add(u64::from(weight) << AT_END, Ordering::SeqCst) as u32 > 0 {
            return Err(ended_early());
        }
    }
    // One more than there are processors, so that the end and the barrier of all never meet.
    arrive_at_all(cluster, slot, cluster.shape.processors() as u32 + 1, weight, ended_early)
}

fn arrive_at_all(
    cluster: &Cluster,
    slot: usize,
    count: u32,
    weight: u32,
    ended: fn() -> Failure,
) -> Result<(), Failure> {
    let who = cluster.processor_at(slot);
    let arrived = objects::call(cluster, slot, Event::Arrive { barrier: ALL, count, who, weight });
    arrived.map(|_| ()).map_err(|failure| disagreement(failure, ended))
}

/// Who disagree about the count are those whose program has ended and those whose program has not.
fn disagreement(failure: Failure, ended: fn() -> Failure) -> Failure {
    if failure.code == Code::BarrierCount { ended() } else { failure }
}

/// At the barrier of all, met by the end of a process.
fn others_ended() -> Failure {
    Failure::new(Code::Left, "this processor waits at fsp_barrier_all for others whose program has ended")
}

/// At the end of a process, met by the barrier of all.
fn ended_early() -> Failure {
    Failure::new(Code::Left, "the program ended here while other processors wait at fsp_barrier_all")
}
