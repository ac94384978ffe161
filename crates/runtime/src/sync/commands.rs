//! Commands to the processors that serve: run a function, end. A command stands in the slot of its processor, or of the place where a
//! thread is to be made.

use std::ops::Range;
use std::sync::atomic::Ordering;

use finespun_sync::threads::Handle;
use finespun_types::{NodeId, ProcessorId, ViewId};

use crate::messages::wait;
use crate::node::cluster::Cluster;
use crate::sys::slot::Slot;

/// There is nothing to do.
pub const NOTHING: u32 = 0;
/// Run a function.
pub const RUN: u32 = 1;
/// The job ends.
pub const END: u32 = 2;

/// A processor whose node's memory is mapped is to run a function.
pub fn run(cluster: &Cluster, who: ProcessorId, (function, argument): (u64, u64), thread: Handle) {
    let (node, index) = cluster.slot_of(who);
    let slot = cluster.at(node).slot(index);
    slot.function.store(function, Ordering::Relaxed);
    slot.argument.store(argument, Ordering::Relaxed);
    slot.thread.store(thread.0, Ordering::Relaxed);
    give(cluster, node, index, RUN);
}

/// Processors of a node whose memory is mapped are to end.
pub fn end(cluster: &Cluster, node: NodeId, slots: Range<usize>) {
    slots.for_each(|index| give(cluster, node, index, END));
}

/// Stores a command, and wakes the processor and the keeper of the place.
fn give(cluster: &Cluster, node: NodeId, index: usize, command: u32) {
    let slot = cluster.at(node).slot(index);
    slot.command.store(command, Ordering::SeqCst);
    wait::wake(cluster, &slot.command, &slot.command_sleepers);
    let view = cluster.at(node).view(ViewId(cluster.shape.view_of_place(index) as u8));
    view.bell.fetch_add(1, Ordering::SeqCst);
    wait::wake(cluster, &view.bell, &view.bell_sleepers);
}

/// The command to run was taken: false if a command to end has come over it, which stays.
pub fn taken(slot: &Slot) -> bool {
    slot.command.compare_exchange(RUN, NOTHING, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}
