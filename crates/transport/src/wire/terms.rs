//! What nodes tell each other while they connect, and what comes of it.

use finespun_types::NodeId;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

/// The job's secret.
pub type Token = [u8; 32];
/// What two nodes tell each other of themselves once both have proven the token; the caller compares.
pub type Hello = [u8; HELLO_BYTES];
/// Bytes of a [`Hello`].
pub const HELLO_BYTES: usize = 64;

/// A node's connections, proven by both sides.
#[derive(Debug)]
pub struct Connected {
    /// By node; none to the node itself.
    pub sockets: Vec<Option<OwnedFd>>,
    /// What the nodes said of themselves, by node.
    pub hellos: Vec<Option<Hello>>,
    /// Connections that were dropped because they proved nothing.
    pub refused: u64,
}

/// Why a node is not connected to all others.
#[derive(Debug)]
pub enum WireError {
    /// The listener, or the list of ports, does not work for this node.
    Listen(io::Error),
    /// There is no randomness for a nonce.
    NoRandomness,
    /// A node does not answer at its port.
    Unreachable {
        /// The node.
        node: NodeId,
        /// What connecting said.
        cause: io::Error,
    },
    /// What answers at a node's port does not prove the job's token, or does not believe ours.
    Unproven {
        /// The node.
        node: NodeId,
    },
    /// The deadline passed.
    Missing {
        /// Nodes not connected by then.
        nodes: Vec<NodeId>,
        /// Connections dropped by then because they proved nothing.
        refused: u64,
    },
}

impl Connected {
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.sockets[usize::from(node.0)].is_some()
    }

    pub(super) fn admit(&mut self, node: NodeId, hello: Hello, socket: OwnedFd) {
        self.sockets[usize::from(node.0)] = Some(socket);
        self.hellos[usize::from(node.0)] = Some(hello);
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(cause) => write!(f, "the node cannot take connections: {cause}"),
            Self::NoRandomness => write!(f, "the system gives no random bytes"),
            Self::Unreachable { node, cause } => write!(f, "{node:?} does not answer: {cause}"),
            Self::Unproven { node } => write!(f, "what answers for {node:?} does not share the job's token"),
            Self::Missing { nodes, refused } => {
                write!(f, "not connected in time: {nodes:?}; {refused} connections without proof were dropped")
            }
        }
    }
}

impl std::error::Error for WireError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen(cause) | Self::Unreachable { cause, .. } => Some(cause),
            Self::NoRandomness | Self::Unproven { .. } | Self::Missing { .. } => None,
        }
    }
}
