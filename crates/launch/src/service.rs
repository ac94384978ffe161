//! The node's service: the engine that answers other nodes when no processor of this node does.

use std::io;
use std::os::fd::OwnedFd;

use finespun_job::Job;
use finespun_runtime::service::Service;
use finespun_types::{NodeId, NodeIndex};

/// The running service of a node; nothing runs where nodes reach each other's memory.
pub struct Running(Option<Service>);

/// Starts the service of `node`, on a thread of its own. `sockets` has the connection to each node (transport tcp) or is
/// empty. It tells what goes wrong by writing [`finespun_job::Report`]s to `reports`, one JSON line each: `PeerLost` when a
/// connection closes, `Failed` for anything else that must end the job, after which it ends this process.
///
/// # Errors
/// What keeps it from starting.
pub fn start(job: &Job, node: u32, sockets: &[Option<OwnedFd>], reports: OwnedFd) -> io::Result<Running> {
    if !job.sends_messages() {
        return Ok(Running(None));
    }
    let node = NodeIndex::try_from(node).map(NodeId).map_err(io::Error::other)?;
    let duplicate = |socket: &Option<OwnedFd>| socket.as_ref().map(OwnedFd::try_clone).transpose();
    let sockets = sockets.iter().map(duplicate).collect::<io::Result<_>>()?;
    Ok(Running(Some(Service::start(job, node, sockets, reports)?)))
}

impl Running {
    /// Ends the service: all processes of the program, on all nodes, have ended.
    pub fn stop(self) {
        if let Some(service) = self.0 {
            service.stop();
        }
    }
}
