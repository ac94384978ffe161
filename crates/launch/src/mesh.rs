//! Wiring over TCP: a connected socket from each node to each other, on the loopback interface only.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use finespun_errors::Code;
use finespun_job::Job;
use finespun_sys::descriptors;
use finespun_transport::wire::{self, HELLO_BYTES, Hello, Token, WireError};
use finespun_types::{NodeId, NodeIndex};

/// How long all nodes may take to find each other. Where a node ends meanwhile, the launcher ends the job sooner.
const WIRING: Duration = Duration::from_secs(20);

/// Connects this node to all others and lets in only who proves the job's token. `exchange` tells the launcher where
/// we listen and gives back where all nodes do. The result has one descriptor for each node, none for `node` itself.
///
/// # Errors
/// The number of the error in the catalogue, and what happened.
pub fn wire_mesh(
    job: &Job,
    node: u32,
    token: &Token,
    exchange: impl FnOnce(u16) -> io::Result<Vec<u16>>,
) -> Result<Vec<Option<OwnedFd>>, (Code, String)> {
    let (listener, port) = wire::listen().map_err(|error| explain(&error))?;
    let ports = exchange(port).map_err(|error| (Code::Machine, format!("exchanging ports: {error}")))?;
    if ports.len() != job.nodes as usize {
        return Err((Code::Bug, format!("{} ports for {} nodes", ports.len(), job.nodes)));
    }
    let me = NodeId(NodeIndex::try_from(node).map_err(|_| (Code::Bug, format!("node {node}")))?);
    let hello = hello();
    let deadline = Instant::now() + WIRING;
    let connected =
        wire::connect_mesh(me, listener, &ports, token, &hello, deadline).map_err(|error| explain(&error))?;
    match connected.hellos.iter().position(|theirs| theirs.is_some_and(|theirs| theirs != hello)) {
        None => {
            let aside = |socket: Option<OwnedFd>| socket.map(descriptors::aside).transpose();
            let sockets = connected.sockets.into_iter().map(aside).collect::<io::Result<_>>();
            sockets.map_err(|error| (Code::Machine, format!("numbering the connections: {error}")))
        }
        Some(other) => Err((Code::Builds, format!("node {other} runs another version of Finespun"))),
    }
}

/// Our version: nodes of one job must speak the same language.
fn hello() -> Hello {
    let mut hello = [0; HELLO_BYTES];
    hello.iter_mut().zip(env!("CARGO_PKG_VERSION").bytes()).for_each(|(to, from)| *to = from);
    hello
}

fn explain(error: &WireError) -> (Code, String) {
    match error {
        WireError::Listen(cause) => (Code::Machine, format!("listening on the loopback interface: {cause}")),
        WireError::NoRandomness => (Code::Machine, "getrandom: no randomness".into()),
        WireError::Unreachable { node, cause } if cause.kind() == ErrorKind::ConnectionRefused => {
            (Code::Unreachable, format!("node {} no longer listens", node.0))
        }
        WireError::Unreachable { node, cause } => (Code::Machine, format!("connecting to node {}: {cause}", node.0)),
        WireError::Unproven { node } => (Code::NotAdmitted, format!("node {} did not prove the job's token", node.0)),
        WireError::Missing { nodes, refused } => {
            let names = nodes.iter().map(|node| node.0.to_string()).collect::<Vec<_>>().join(", ");
            (Code::Unreachable, format!("no connection to node {names} in {WIRING:?}; {refused} strangers refused"))
        }
    }
}
