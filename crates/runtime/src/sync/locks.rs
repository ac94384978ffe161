//! Mutexes whose ownership migrates: brings events to this node's table, and messages to the other nodes' [Strings §2.6].
//!
//! A processor's event is for the table of its own node, always mapped. What the table sends goes to the nodes concerned: where
//! their memory is mapped the caller runs their tables too, one after the other, with no lock held in between; else as messages.
//! No order between them is needed (`finespun_sync::migratory`).

use std::ops::Range;

use finespun_engine::objects::run_mutex;
use finespun_job::switches::Locks;
use finespun_sync::migratory::{Event, Message};
use finespun_types::ProcessorId;

use crate::consistency::units;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::misuse;
use crate::sync::keepers::Live;
use crate::sync::requests;

/// Do mutexes of this job migrate?
#[inline]
pub fn migrate(cluster: &Cluster) -> bool {
    cluster.job.switches.locks == Locks::Migratory
}

/// Waits until the processor holds the mutex.
pub fn lock(cluster: &Cluster, slot: usize, mutex: u64) -> Result<(), Failure> {
    ask(cluster, slot, mutex, Event::Lock(cluster.processor_at(slot)))?;
    Ok(())
}

/// Does the processor hold it now?
pub fn try_lock(cluster: &Cluster, slot: usize, mutex: u64) -> Result<bool, Failure> {
    Ok(ask(cluster, slot, mutex, Event::TryLock(cluster.processor_at(slot)))? == 1)
}

/// Gives it up. The caller has released.
pub fn unlock(cluster: &Cluster, slot: usize, mutex: u64) -> Result<(), Failure> {
    run(cluster, mutex, &Event::Unlock(cluster.processor_at(slot)))?;
    Ok(())
}

/// Gives it up without a release, to one of `heirs`; false if none of them is next, and then the caller still has it.
pub fn hand_over(cluster: &Cluster, slot: usize, mutex: u64, heirs: Range<u32>) -> Result<bool, Failure> {
    run(cluster, mutex, &Event::HandOver { who: cluster.processor_at(slot), to: heirs })
}

/// A message came.
pub fn receive(cluster: &Cluster, mutex: u64, message: Message) {
    if let Err(failure) = run(cluster, mutex, &Event::Receive(message)) {
        misuse::end_job(misuse::place(cluster), &failure);
    }
}

fn ask(cluster: &Cluster, slot_index: usize, mutex: u64, event: Event) -> Result<u64, Failure> {
    let slot = cluster.slot(slot_index);
    requests::expect_answer(slot);
    let granted = run(cluster, mutex, &event)?;
    if !granted {
        cluster.flush_messages();
    }
    Ok(requests::await_answer(cluster, slot, mutex)?.0)
}

/// Runs the table of this node, then does what it says. Was anybody granted?
fn run(cluster: &Cluster, mutex: u64, event: &Event) -> Result<bool, Failure> {
    run_mutex(&mut Live::of(cluster), cluster.me, mutex, event)
}

/// Processors in whose name a later release flushes also what this processor wrote, so that a mutex may pass between them
/// without one. By the protocol: whose stores one release covers, those of a view or those of the node.
///
/// *Of a view*, as with Cashmere, whose dirty lists are the views'. Sound because the protocol knows views, not threads: that the
/// view's thread A wrote, handed the mutex to its thread B, and B went on is the same to every table as if one thread had done
/// both. Whoever gets the mutex outside of the view gets it by an unlock, which comes after a release of the view; and
/// whoever is told something by A in another way, by a barrier or a flag, is told after A's own release. The mutex itself
/// orders the two threads' accesses to the one mapping. Another view of the node would not do: its release takes its own list.
///
/// *Of the node*, as with Strings, whose dirty list is the node's and whose acquire does nothing: the same with "node" for "view",
/// and the views see each other's stores in the one frame.
pub fn heirs(cluster: &Cluster) -> Range<u32> {
    let shape = &cluster.shape;
    let (first, count) = if units::releases_whole_node(cluster) {
        (0, shape.processors_per_node())
    } else {
        (usize::from(cluster.my_view().0) * shape.threads, shape.threads)
    };
    let first = cluster.processor_at(first);
    first.0..first.0 + count as u32
}

/// Is there anybody among them but the processor itself?
pub fn may_defer(cluster: &Cluster, slot: usize, heirs: &Range<u32>) -> bool {
    let ProcessorId(who) = cluster.processor_at(slot);
    heirs.len() > usize::from(heirs.contains(&who))
}
