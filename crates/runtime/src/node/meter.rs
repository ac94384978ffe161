//! Counting and timing, into the slot of the processor that does the work.

use std::cell::Cell;

use finespun_sys::calls;
use finespun_sys::clock::ticks;
use finespun_types::{Bucket, Counter};

use crate::node::cluster::Cluster;
use crate::sys::slot::Slot;

thread_local! {
    /// The slot of the calling thread; none yet for a thread that the program made itself.
    static SLOT: Cell<Option<usize>> = const { Cell::new(None) };
    /// Ticks this thread has spent serving messages, to be taken off what it waited.
    static SERVED: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread is the processor of this slot from now on.
pub fn become_slot(slot: usize) {
    SLOT.set(Some(slot));
}

/// The calling thread is no processor from now on.
pub fn no_slot() {
    SLOT.set(None);
}

/// The calling thread's slot, if it has one.
#[inline]
pub fn slot_index() -> Option<usize> {
    SLOT.get()
}

/// The slot to count into: a thread without one counts for its view's first processor, and the service process into the
/// last slot, which no thread of a program gets.
pub fn slot(cluster: &Cluster) -> &Slot {
    let first = match &cluster.view {
        Some((view, _)) => usize::from(view.0) * cluster.shape.threads,
        None => cluster.mine().slots() - 1,
    };
    cluster.slot(SLOT.get().unwrap_or(first))
}

/// Counts.
pub fn count(cluster: &Cluster, counter: Counter, by: u64) {
    slot(cluster).count(counter, by);
}

/// Counts the system calls that this thread made since the last time.
#[inline]
pub fn collect_calls(cluster: &Cluster) {
    let made = calls::collect();
    if made > 0 {
        count(cluster, Counter::SystemCalls, made);
    }
}

/// Runs `body` and books its time, less what was spent serving messages inside.
pub fn timed<R>(cluster: &Cluster, bucket: Bucket, body: impl FnOnce() -> R) -> R {
    timed_in(slot(cluster), bucket, body)
}

/// The same, for a thread that knows its slot.
#[inline]
pub fn timed_in<R>(slot: &Slot, bucket: Bucket, body: impl FnOnce() -> R) -> R {
    let (began, served) = (ticks(), SERVED.get());
    let result = body();
    let spent = ticks().wrapping_sub(began);
    slot.spend(bucket, spent.saturating_sub(SERVED.get().wrapping_sub(served)));
    let made = calls::collect();
    if made > 0 {
        slot.count(Counter::SystemCalls, made);
    }
    result
}

/// Books time spent serving messages.
pub fn served(cluster: &Cluster, ticks: u64) {
    SERVED.set(SERVED.get().wrapping_add(ticks));
    slot(cluster).spend(Bucket::Service, ticks);
}
