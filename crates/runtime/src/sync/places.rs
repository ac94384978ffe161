//! Threads of a program that makes as many as it likes (the model of pthread programs): each runs in a thread of its own of
//! the operating system, so that its stack, its thread-local variables and its end are as such programs expect.
//!
//! ```text
//!   node 0, thread table          keeper of a view               a new thread of the process
//!      | Start(place, f, x)           |                              |
//!      | -- command in its slot, bell: wakes                         |
//!      |                              | ---- makes --------------->  | is the processor of its slot
//!      |                              | waits for the bell           | acquire, f(x), release
//!      | <------------------------------------------- Finished ----- | ends
//! ```
//!
//! A *place* is the slot of a processor, or a seat. The *keeper* of a view makes the threads of the view's places. It is
//! no processor and touches no shared memory: in a process that serves it is the main thread, and in the one that runs main
//! a thread beside it. A view whose only thread is in its only place is thus, as ever, a view with one thread.

use std::sync::atomic::{AtomicU32, Ordering};

use finespun_sys::clock::ticks;
use finespun_sys::process::thread_id;
use finespun_types::Bucket;

use crate::consistency;
use crate::messages::wait;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::{meter, runtime};
use crate::sync::commands::{self, END, RUN};
use crate::sync::threads;
use crate::sys::slot::Slot;

/// A thread that is to be made in this process.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The slot that is its place.
    pub slot: usize,
    /// The function, as it was given to the creation.
    pub function: u64,
    /// Its argument.
    pub argument: u64,
    /// The thread's handle.
    pub thread: u64,
}

/// The threads of the program in this process that may touch shared memory.
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// The program's main runs in this process.
pub fn main_runs() {
    RUNNING.fetch_add(1, Ordering::SeqCst);
}

/// Keeps this view's places until the job ends: `make` makes a thread, which calls [`begin`] and [`end`].
pub fn keep(cluster: &Cluster, make: impl Fn(Work)) {
    let view = cluster.mine().view(cluster.my_view());
    view.helpers[1].store(thread_id(), Ordering::Relaxed);
    for slot in own_processors(cluster) {
        slot.started_ticks.store(ticks(), Ordering::Relaxed);
        slot.idle_ticks.store(ticks(), Ordering::Relaxed);
    }
    loop {
        let heard = view.bell.load(Ordering::Acquire);
        for index in cluster.shape.places_of_view(usize::from(cluster.my_view().0)) {
            match cluster.slot(index).command.load(Ordering::Acquire) {
                END => return own_processors(cluster).for_each(ends),
                RUN => take(cluster, index, &make),
                _ => {}
            }
        }
        wait::until_changed(cluster, &view.bell, heard, &view.bell_sleepers);
    }
}

/// The processors of this process that run threads: all but the one that runs main.
fn own_processors(cluster: &Cluster) -> impl Iterator<Item = &Slot> {
    let first = usize::from(cluster.my_view().0) * cluster.shape.threads;
    let all = first..first + cluster.shape.threads;
    all.filter(|index| cluster.processor_at(*index).0 != 0).map(|index| cluster.slot(index))
}

fn take(cluster: &Cluster, index: usize, make: impl Fn(Work)) {
    let slot = cluster.slot(index);
    let work = Work {
        slot: index,
        function: slot.function.load(Ordering::Relaxed),
        argument: slot.argument.load(Ordering::Relaxed),
        thread: slot.thread.load(Ordering::Relaxed),
    };
    if commands::taken(slot) {
        if RUNNING.fetch_add(1, Ordering::SeqCst) > 0 {
            several_threads(cluster);
        }
        make(work);
    }
}

/// From now on nothing may be skipped at a release. One that is under way ends first, and so does an acquire: they may rely on
/// being alone.
fn several_threads(cluster: &Cluster) {
    let view = cluster.mine().view(cluster.my_view());
    let _one_release = view.releasing.guard();
    let _one_acquire = view.acquiring.guard();
    view.several_threads.store(1, Ordering::SeqCst);
}

/// The calling thread is the one that was to be made.
pub fn begin(cluster: &Cluster, work: Work) {
    meter::become_slot(work.slot);
    runtime::become_thread(work.thread);
    no_longer_idle(cluster.slot(work.slot));
    consistency::acquire(cluster);
}

/// The calling thread has come to its end. Afterwards its place is another's: it must not call the engine again.
///
/// # Errors
/// A bug of ours.
pub fn end(cluster: &Cluster, result: u64) -> Result<(), Failure> {
    let Some(index) = meter::slot_index() else { return Ok(()) };
    consistency::release(cluster);
    if index < cluster.shape.processors_per_node() {
        cluster.slot(index).idle_ticks.store(ticks(), Ordering::Relaxed);
    }
    RUNNING.fetch_sub(1, Ordering::SeqCst);
    threads::finished(cluster, index, result)?;
    cluster.flush_messages();
    Ok(())
}

fn ends(slot: &Slot) {
    no_longer_idle(slot);
    slot.ended_ticks.store(ticks(), Ordering::Relaxed);
}

/// Books the time since the processor's last thread as waiting.
fn no_longer_idle(slot: &Slot) {
    let since = slot.idle_ticks.swap(0, Ordering::Relaxed);
    if since != 0 {
        slot.spend(Bucket::BarrierWait, ticks().wrapping_sub(since));
    }
}
