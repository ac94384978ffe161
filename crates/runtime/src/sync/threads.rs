//! Threads of the program on any processor: brings events to the machine in `finespun_sync::threads`, at node 0, and commands to
//! the processors that serve.

use std::sync::atomic::Ordering;

use finespun_engine::homes::KEEPER;
use finespun_engine::objects::run_threads;
use finespun_sync::threads::{Event, Handle};
use finespun_types::{Bucket, NodeId, ProcessorId};

use crate::consistency;
use crate::consistency::along;
use crate::messages::wait;
use crate::messages::wire::Request;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::{meter, misuse};
use crate::sync::keepers::Live;
use crate::sync::{commands, requests};
use crate::sys::asleep;

/// Says that a processor runs the program's main, for good.
pub fn begin_main(cluster: &Cluster, slot: usize) -> Result<(), Failure> {
    tell(cluster, slot, Event::Begin { who: cluster.processor_at(slot) })
}

/// Creates a thread; `None` when no processor, or not the one asked for, is idle. The caller has released.
pub fn create(
    cluster: &Cluster,
    slot: usize,
    on: Option<ProcessorId>,
    function: u64,
    argument: u64,
) -> Result<Option<Handle>, Failure> {
    let by = cluster.processor_at(slot);
    let (handle, _) = ask(cluster, slot, Event::Create { on, by, function, argument })?;
    Ok((handle != 0).then_some(Handle(handle)))
}

/// Creates a thread on an idle processor, near a node or by turns, or beside others; `None` when every place is taken.
/// The caller has released.
pub fn spawn(
    cluster: &Cluster,
    slot: usize,
    near: Option<u32>,
    function: u64,
    argument: u64,
) -> Result<Option<Handle>, Failure> {
    let by = cluster.processor_at(slot);
    let (handle, _) = ask(cluster, slot, Event::Spawn { near, by, function, argument })?;
    Ok((handle != 0).then_some(Handle(handle)))
}

/// Nobody will join the thread.
pub fn detach(cluster: &Cluster, slot: usize, thread: Handle) -> Result<(), Failure> {
    ask(cluster, slot, Event::Detach { thread, by: cluster.processor_at(slot) }).map(|_| ())
}

/// Waits until no thread runs. The caller then acquires.
pub fn await_quiet(cluster: &Cluster, slot: usize) -> Result<(), Failure> {
    let by = cluster.processor_at(slot);
    meter::timed(cluster, Bucket::BarrierWait, || ask(cluster, slot, Event::Quiet { by }))?;
    Ok(())
}

/// Does no thread run beside main, which asks, and can none be started but by main?
pub fn is_main_alone(cluster: &Cluster) -> bool {
    let has_guests = cluster.mine().node().guests.load(Ordering::Relaxed) != 0;
    !has_guests && cluster.at(KEEPER).with_threads(|threads| threads.running()) == 0
}

/// The thread on this slot has ended; it has released.
pub fn finished(cluster: &Cluster, slot: usize, result: u64) -> Result<(), Failure> {
    tell(cluster, slot, Event::Finished { who: cluster.processor_at(slot), result })
}

/// Waits for the end of a thread: its result. The caller then acquires.
pub fn join(cluster: &Cluster, slot: usize, thread: Handle) -> Result<u64, Failure> {
    let by = cluster.processor_at(slot);
    meter::timed(cluster, Bucket::BarrierWait, || Ok(ask(cluster, slot, Event::Join { thread, by })?.0))
}

/// Serves commands in the calling thread, the processor of `slot`, until the job ends.
pub fn serve_commands(cluster: &Cluster, slot_index: usize, run: impl Fn(u64, u64) -> u64) {
    let slot = cluster.slot(slot_index);
    loop {
        meter::timed(cluster, Bucket::BarrierWait, || {
            wait::until_changed_for(cluster, &slot.command, commands::NOTHING, &slot.command_sleepers, asleep::WORK);
        });
        if slot.command.load(Ordering::Acquire) == commands::END {
            return;
        }
        consistency::acquire(cluster);
        let result = run(slot.function.load(Ordering::Relaxed), slot.argument.load(Ordering::Relaxed));
        consistency::release(cluster);
        commands::taken(slot);
        if let Err(failure) = finished(cluster, slot_index, result) {
            misuse::end_job(misuse::place(cluster), &failure);
        }
        cluster.flush_messages();
    }
}

/// Tells every serving processor of the job to end.
pub fn stop_all(cluster: &Cluster) {
    for node in 0..cluster.shape.nodes {
        let node = NodeId::of(node);
        if cluster.reach.runs_tables_of(node) {
            commands::end(cluster, node, 0..cluster.shape.processors_per_node());
        } else {
            along::send_request(cluster, node, Request::Stop);
        }
    }
    cluster.flush_messages();
}

/// Tells the serving threads of this process to end.
pub fn stop_own(cluster: &Cluster) {
    let first = usize::from(cluster.my_view().0) * cluster.shape.threads;
    commands::end(cluster, cluster.me, first..first + cluster.shape.threads);
}

/// The request to end arrived here.
pub fn stop_here(cluster: &Cluster) {
    commands::end(cluster, cluster.me, 0..cluster.shape.processors_per_node());
}

/// An event that came by a message.
pub fn serve(cluster: &Cluster, who: ProcessorId, event: Event) {
    if let Err(failure) = run_threads(&mut Live::of(cluster), event) {
        match event {
            Event::Create { .. }
            | Event::Join { .. }
            | Event::Spawn { .. }
            | Event::Detach { .. }
            | Event::Quiet { .. } => requests::answer(cluster, who, Err(failure)),
            Event::Begin { .. } | Event::Finished { .. } => misuse::end_job(misuse::place(cluster), &failure),
        }
    }
}

/// An event that is answered.
fn ask(cluster: &Cluster, slot_index: usize, event: Event) -> Result<(u64, u64), Failure> {
    let (slot, who) = (cluster.slot(slot_index), cluster.processor_at(slot_index));
    if !cluster.reach.runs_tables_of(KEEPER) {
        return requests::ask(cluster, slot, KEEPER, Request::Thread { who, event });
    }
    requests::expect_answer(slot);
    along::released_by_thread(cluster, KEEPER, event);
    run_threads(&mut Live::of(cluster), event)?;
    requests::await_answer(cluster, slot, asleep::THREADS)
}

/// An event that is not.
fn tell(cluster: &Cluster, slot_index: usize, event: Event) -> Result<(), Failure> {
    if cluster.reach.runs_tables_of(KEEPER) {
        along::released_by_thread(cluster, KEEPER, event);
        return run_threads(&mut Live::of(cluster), event);
    }
    let who = cluster.processor_at(slot_index);
    along::send_request(cluster, KEEPER, Request::Thread { who, event });
    cluster.flush_messages();
    Ok(())
}
