//! What the calls of a mesh come back with.

use finespun_types::{NODES_MAX, NodeId};
use rustix::io::Errno;
use std::fmt;

/// Why memory and sockets do not make a mesh.
#[derive(Debug)]
pub enum AttachError {
    /// The memory is shorter than [`Mesh::bytes`](crate::Mesh::bytes).
    TooSmall {
        /// What is needed.
        needed: usize,
        /// What was given.
        given: usize,
    },
    /// The memory does not begin at a multiple of 128.
    Misaligned,
    /// The memory holds the mesh of another node, of another size or layout, or something else.
    OtherMesh,
    /// There must be a socket for each other node, none for the node itself, and at most `NODES_MAX` nodes.
    WrongSockets,
    /// The kernel refused to watch the sockets.
    Kernel(Errno),
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The peer does not keep up and its queue is full. Handle what comes from it, then try again.
    Full,
    /// The peer takes nothing any more.
    Closed,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// There may be messages, or room for more: poll.
    Ready,
    /// The descriptor that was watched beside the sockets is readable.
    Also,
    /// The time is over.
    TimedOut,
    /// The peer is lost. Reported to one caller of the node; [`Mesh::gone`](crate::Mesh::gone) tells all.
    PeerGone(NodeId),
}

/// Why a peer counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// It closed the connection: all its processes have ended, or it said goodbye.
    Closed,
    /// The connection broke.
    Broken,
    /// It sent what no peer of ours sends.
    Malformed,
}

/// What has passed between this node and one other, or all others; bytes include the lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages accepted by `send`.
    pub messages_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// System calls that took bytes.
    pub writes: u64,
    /// Messages handled.
    pub messages_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// System calls that brought bytes.
    pub reads: u64,
}

impl Traffic {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            messages_sent: self.messages_sent + other.messages_sent,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            writes: self.writes + other.writes,
            messages_received: self.messages_received + other.messages_received,
            bytes_received: self.bytes_received + other.bytes_received,
            reads: self.reads + other.reads,
        }
    }
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { needed, given } => write!(f, "a mesh needs {needed} bytes of memory, not {given}"),
            Self::Misaligned => write!(f, "a mesh's memory must begin at a multiple of 128"),
            Self::OtherMesh => write!(f, "the memory holds the mesh of another node, or another layout"),
            Self::WrongSockets => {
                write!(f, "a mesh needs one socket for each other node, and at most {NODES_MAX} nodes")
            }
            Self::Kernel(errno) => write!(f, "the sockets cannot be watched: {errno}"),
        }
    }
}

impl std::error::Error for AttachError {}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "the peer's queue is full"),
            Self::Closed => write!(f, "the peer takes nothing any more"),
        }
    }
}

impl std::error::Error for SendError {}
