//! The node's service: the engine that answers other nodes when no processor of this node does.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use finespun_job::Job;

use crate::control::Lines;

/// The running service of a node.
pub struct Running;

/// Starts the service of `node`, on threads of its own. `sockets` has the connection to each node (transport tcp) or is
/// empty. It tells what goes wrong by sending [`finespun_job::Report`]s over `reports`: `PeerLost` when a connection closes,
/// `Failed` for anything else that must end the job.
///
/// # Errors
/// What keeps it from starting.
pub fn start(job: &Arc<Job>, node: u32, sockets: &[Option<OwnedFd>], reports: Lines) -> io::Result<Running> {
    let _ = (job, node, sockets, reports);
    Ok(Running)
}

impl Running {
    /// Ends the service: all processes of the program, on all nodes, have ended.
    pub fn stop(self) {}
}
