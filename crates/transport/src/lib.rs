//! Messages between nodes over TCP.
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
//! The transport moves bytes and knows no protocol; [`Delay`] is a transport around a transport.

#![deny(unsafe_code)]

mod delay;
mod mesh;
mod outcome;
mod queue;
mod room;
mod shared;
mod wait;
mod waiter;
pub mod wire;

pub use delay::Delay;
pub use mesh::Mesh;
pub use outcome::{AttachError, LossCause, SendError, Traffic, Wait};
pub use waiter::Waiter;

use finespun_types::{NodeId, NodeSet};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The longest message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// What the engine asks of a transport that carries messages. Nothing here blocks but [`Messages::wait`].
pub trait Messages {
    /// Appends one message, the parts joined, to the queue of `to`. Nothing leaves before [`Messages::flush`].
    fn send(&self, to: NodeId, parts: &[&[u8]]) -> Result<(), SendError>;
    /// Hands what is queued to the kernel, as far as it takes it.
    fn flush(&self);
    /// Receives what is there and handles it; returns the number of messages handled.
    fn poll(&self, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize;
    /// Flushes, then sleeps until there is something to do, or until `timeout` has passed (`None`: for ever), or
    /// until the descriptor `also` is readable.
    fn wait(&self, timeout: Option<Duration>, also: Option<BorrowedFd<'_>>) -> Wait;
    /// Bytes queued and not yet handed to the kernel.
    fn pending(&self) -> usize;
    /// The nodes that are lost: no message will come from them, none can be sent.
    fn gone(&self) -> NodeSet;
}
