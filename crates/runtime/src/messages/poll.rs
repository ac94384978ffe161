//! Receiving: a process that waits, and the node's service process, handle what has arrived. What a message is for stands above
//! all that wait, in [`crate::process::dispatch`]: the cluster was told when the process joined ([`Cluster::on_message`]).

use finespun_job::switches::Server;
use finespun_sys::calls;
use finespun_sys::clock::ticks;
use finespun_transport::Messages;
use finespun_types::Counter;

use crate::messages::closing;
use crate::node::cluster::Cluster;
use crate::node::meter;

/// Handles what has arrived, if nodes send messages at all, and this process is one that handles them.
pub fn poll(cluster: &Cluster) {
    let Some(mesh) = &cluster.mesh else { return };
    let Some(_busy) = closing::enter() else { return };
    let is_service = cluster.view.is_none();
    if is_service || cluster.job.switches.server == Server::Concurrent {
        receive(cluster, &**mesh, is_service);
    }
    if mesh.pending() > 0 {
        mesh.flush();
    }
}

/// Handles what is there; how many messages that were.
pub fn receive(cluster: &Cluster, mesh: &dyn Messages, is_service: bool) -> usize {
    let began = ticks();
    let handled = mesh.poll(&mut |from, message| (cluster.on_message)(cluster, from, message));
    if handled > 0 {
        let by = if is_service { Counter::HandledByService } else { Counter::HandledByWaiters };
        meter::count(cluster, by, handled as u64);
        mesh.flush();
        meter::served(cluster, ticks().wrapping_sub(began));
    }
    handled
}

/// Bytes queued for other nodes beyond which nobody begins anything new. What is left of the queues is for answers.
const QUEUED_MAX: usize = 4 << 20;

/// Waits while much is queued for other nodes, serving what arrives: others may wait likewise for us.
pub fn await_room(cluster: &Cluster) {
    let Some(mesh) = &cluster.mesh else { return };
    while mesh.pending() > QUEUED_MAX {
        poll(cluster);
        calls::one();
        std::thread::yield_now();
    }
}
