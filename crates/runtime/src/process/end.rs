//! How a process leaves its job.

use std::sync::atomic::Ordering;

use finespun_errors::Code;
use finespun_job::Report;
use finespun_sys::clock;
use finespun_types::Counter;

use crate::consistency;
use crate::messages::closing;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::runtime::{self, Model};
use crate::node::{hooks, limits, meter, misuse};
use crate::process::{buffers, globals, stacks};
use crate::sync::{barrier, threads};
use crate::sys::process::leave as leave_process;

/// Ends the runtime: in SPMD after all processes have come here.
pub fn end() {
    let Ok(runtime) = runtime::runtime() else { return };
    let cluster = runtime.cluster;
    let slot = meter::slot_index().unwrap_or(usize::from(cluster.my_view().0) * cluster.shape.threads);
    consistency::release(cluster);
    match runtime.model {
        Model::Main | Model::Threads => {
            globals::keep_private(cluster);
            stacks::keep_private(cluster);
            threads::stop_all(cluster);
        }
        Model::Spmd => {
            threads::stop_own(cluster);
            if let Err(failure) = barrier::arrive_at_end(cluster, slot) {
                misuse::end_job(misuse::place(cluster), &failure);
            }
        }
    }
    finalize(cluster);
    buffers::closed();
}

/// Takes the shared memory away, after the end.
pub fn close_memory() {
    let Some(runtime) = runtime::ended() else { return };
    if let Some((_, mapping)) = &runtime.cluster.view {
        runtime::close();
        if let Err(error) = mapping.close() {
            let what = limits::refused("taking the shared memory away", &error);
            misuse::end_job(misuse::place(runtime.cluster), &Failure { code: Code::Machine, what });
        }
    }
}

/// A process that only served ends.
pub fn leave(cluster: &Cluster) -> ! {
    finalize(cluster);
    if cluster.view.as_ref().is_some_and(|(_, mapping)| !mapping.window().is_empty()) {
        // The variables that its exit would look at are gone, and main's own process does what is to be done.
        leave_process();
    }
    std::process::exit(0);
}

/// What each process of a job does last: it looks, sends, counts and reports for the last time.
fn finalize(cluster: &Cluster) {
    hooks::end();
    closing::close();
    cluster.flush_messages();
    end_processor(cluster);
    misuse::tell(&Report::Finalized);
    runtime::end();
}

fn end_processor(cluster: &Cluster) {
    meter::collect_calls(cluster);
    if let Some((_, mapping)) = &cluster.view {
        meter::count(cluster, Counter::CoarseInvalidations, mapping.coarse_invalidations());
    }
    let first = usize::from(cluster.my_view().0) * cluster.shape.threads;
    cluster.slot(first).ended_ticks.store(clock::ticks(), Ordering::Relaxed);
    let node = cluster.mine().node();
    node.ended_ns.fetch_max(clock::now_ns(), Ordering::Relaxed);
}
