//! Messages between nodes: over TCP ([`Mesh`]), or through memory that all nodes map ([`Loopback`]).
//!
//! A node is several processes (its service process and those of the program) that share one memory, the node
//! segment, and inherit the same connected sockets, one to each other node. Any of them may send, receive and
//! handle messages at any time: who waits, polls. So everything a connection needs (queue out, reassembly
//! buffer, locks, counters) lies in the shared memory, without pointers, and a process holds only descriptors.
//!
//! ```text
//! send    --> queue out of the peer (shared, under its send lock)
//! flush   --> queue out --send(2)--> socket, as far as the kernel takes it
//! poll    --> socket --recv(2)--> buffer in (shared, under the peer's receive lock) --> handler, in order
//! wait    --> asleep in poll(2) until there is something to receive or room to send; a Waiter in epoll_wait(2)
//! ```
//!
//! What may be relied on, per pair of nodes: every message arrives exactly once, whole, in the order of the
//! sends, and its handler has ended before the next message's begins, whichever process runs it. Nothing is
//! promised between different pairs. A lost peer is reported once, after the last message that came from it.
//!
//! The transport moves bytes and knows no protocol. The runtime uses it by the trait [`Messages`] alone; [`Delay`] is a
//! transport around a transport.

#![deny(unsafe_code)]

mod delay;
mod loopback;
mod mesh;
mod nesting;
mod outcome;
mod queue;
mod room;
mod shared;
mod sockets;
mod wait;
mod waiter;
pub mod wire;

pub use delay::Delay;
pub use loopback::{Loopback, doorbell};
pub use mesh::Mesh;
pub use outcome::{AttachError, LossCause, SendError, Traffic, Wait};

use finespun_types::{NodeId, NodeSet, Set};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The longest message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// All nodes that there can be.
pub const ALL: NodeSet = Set(u64::MAX);

/// What the engine asks of a transport that carries messages. Nothing here blocks but [`Messages::wait`].
///
/// Any number of threads and processes of the node may call it at the same time.
pub trait Messages: Send + Sync {
    /// Appends one message, the parts joined, to the queue of `to`. Nothing leaves before a flush, unless the queue is full. May be
    /// called from a handler.
    ///
    /// # Errors
    /// [`SendError`]; the message has then not been taken, not even in part.
    fn send(&self, to: NodeId, parts: &[&[u8]]) -> Result<(), SendError>;

    /// Lets go what is queued for these nodes, as far as it is taken. May be called from a handler.
    fn flush_to(&self, peers: NodeSet);

    /// Receives what is there from these nodes and handles it; how many messages that were. The handler must not poll.
    fn poll_from(&self, peers: NodeSet, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize;

    /// Flushes, then sleeps until there is something to do, or until `timeout` has passed (`None`: for ever), or
    /// until the descriptor `also` is readable.
    fn wait(&self, timeout: Option<Duration>, also: Option<BorrowedFd<'_>>) -> Wait;

    /// For a thread that sleeps often: what [`Messages::wait`] does without a limit of time, with the same `also` each time.
    ///
    /// # Errors
    /// The kernel's, if it has no room for one more descriptor.
    fn waiter<'a>(&'a self, also: BorrowedFd<'a>) -> io::Result<Box<dyn Sleep + 'a>>;

    /// Bytes queued and not yet taken.
    fn pending(&self) -> usize;

    /// The nodes that are lost: no message will come from them, none can be sent.
    fn gone(&self) -> NodeSet;

    /// A lost node of which nothing in this node has been told: each is returned once.
    fn take_gone(&self) -> Option<NodeId>;

    /// The same transport, if the kernel can announce its input by a signal.
    fn announced(&self) -> Option<&dyn Announced>;

    /// Lets go what is queued.
    fn flush(&self) {
        self.flush_to(ALL);
    }

    /// Receives what is there and handles it; how many messages that were.
    fn poll(&self, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.poll_from(ALL, handler)
    }
}

/// Asleep again and again: see [`Messages::waiter`]. For one thread.
pub trait Sleep: Sync {
    /// As [`Messages::wait`].
    fn sleep(&self) -> Wait;
}

/// A transport whose input the kernel can announce by SIGIO.
pub trait Announced {
    /// Its connections.
    fn connections(&self) -> Vec<BorrowedFd<'_>>;
    /// Is there something to be received that no process has yet?
    fn has_input(&self) -> bool;
    /// Readable if a connection that was full has room again: then [`Announced::take_room`].
    fn room(&self) -> BorrowedFd<'_>;
    /// Uses the room that there is.
    fn take_room(&self);
}
