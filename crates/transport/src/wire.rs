//! Connecting the nodes of a job, and nobody else.
//!
//! Node `c` connects to every node `a` with a smaller number. Both know the job's token and prove it without
//! saying it:
//!
//! ```text
//! c -> a   opening:   magic, version, c, a, nonce of c, HMAC(token, "opening", what stands before)
//! a -> c   challenge: nonce of a
//! c -> a   hello of c, HMAC(token, "connecting", opening, nonce of a, hello of c)
//! a -> c   hello of a, HMAC(token, "accepting",  opening, nonce of a, hello of a)
//! ```
//!
//! Both nonces are fresh, so a recorded proof is worth nothing; it names both nodes and the direction, so it
//! cannot be sent back or used elsewhere; and the acceptor says nothing of the job to a stranger. The bytes that
//! follow are neither encrypted nor authenticated: the network must be trusted to keep a connection what it was.
//!
//! The HMAC of the opening lets nobody in, for it can be recorded and said again. It tells nodes of the job from strangers at
//! once: a connection with it is never dropped to make room.
//!
//! All connections make progress together, in one thread and asleep in `poll(2)`. What strangers can take is bounded:
//! - in number and memory: 64 connections of less than a kilobyte; with more, the oldest is dropped;
//! - in time: a stranger is dropped after 5 seconds. It is read before it is judged, so a node that has connected to an
//!   acceptor that comes late is known by what it has said meanwhile;
//! - in places before the acceptor: the kernel keeps 4096 connections for it. A node for which there was no place, or
//!   that was dropped before it was answered, connects again until the deadline (`dial`).
//!
//! Strangers who were dropped are counted.

mod accept;
mod dial;
mod handshake;
mod terms;

pub use terms::{Connected, HELLO_BYTES, Hello, Token, WireError};

use crate::wire::accept::Acceptor;
use crate::wire::dial::Dial;
use crate::wire::handshake::Identity;
use finespun_types::{NODES_MAX, NodeId};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 4096;

/// Opens a port of this machine for the other nodes to connect to; the loopback interface only.
///
/// # Errors
/// What the system said.
pub fn listen() -> Result<(TcpListener, u16), WireError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(WireError::Listen)?;
    // The standard library asks for fewer places.
    rustix::net::listen(&listener, BACKLOG).map_err(|error| WireError::Listen(error.into()))?;
    let port = listener.local_addr().map_err(WireError::Listen)?.port();
    Ok((listener, port))
}

/// Connects node `me` to every other node of the job: node `n` listens at `ports[n]` of this machine.
///
/// # Errors
/// [`WireError`]; all connections are then closed.
pub fn connect_mesh(
    me: NodeId,
    listener: TcpListener,
    ports: &[u16],
    token: &Token,
    hello: &Hello,
    deadline: Instant,
) -> Result<Connected, WireError> {
    if ports.len() > NODES_MAX || usize::from(me.0) >= ports.len() {
        return Err(WireError::Listen(io::Error::from(io::ErrorKind::InvalidInput)));
    }
    let identity = Identity { me, nodes: ports.len(), token, hello };
    let mut gathering = Gathering::new(&identity, listener, ports)?;
    while !gathering.is_complete() {
        let now = Instant::now();
        if now >= deadline {
            return Err(gathering.missing());
        }
        let next = gathering.next_event().map_or(deadline, |event| event.min(deadline));
        gathering.sleep(next.saturating_duration_since(now));
        gathering.step(&identity)?;
    }
    Ok(gathering.connected)
}

/// The connections so far, and those that still have to prove themselves.
struct Gathering {
    connected: Connected,
    me: NodeId,
    /// To the nodes with smaller numbers; without those that are connected.
    dials: Vec<Dial>,
    acceptor: Acceptor,
}

impl Gathering {
    fn new(identity: &Identity<'_>, listener: TcpListener, ports: &[u16]) -> Result<Self, WireError> {
        let none = || (0..identity.nodes).map(|_| None);
        let connected = Connected { sockets: none().collect(), hellos: vec![None; identity.nodes], refused: 0 };
        let lower = (0..identity.me.0).map(NodeId).zip(ports);
        let dials = lower.map(|(node, &port)| Dial::start(identity, node, port)).collect::<Result<_, _>>()?;
        Ok(Self { connected, me: identity.me, dials, acceptor: Acceptor::new(listener).map_err(WireError::Listen)? })
    }

    fn absent(&self) -> impl Iterator<Item = NodeId> {
        let nodes = (0..self.connected.sockets.len()).map(NodeId::of);
        nodes.filter(|&node| node != self.me && self.connected.sockets[usize::from(node.0)].is_none())
    }

    fn is_complete(&self) -> bool {
        self.absent().next().is_none()
    }

    fn missing(&self) -> WireError {
        WireError::Missing { nodes: self.absent().collect(), refused: self.connected.refused }
    }

    /// When something is to be done though nothing has arrived.
    fn next_event(&self) -> Option<Instant> {
        self.dials.iter().filter_map(Dial::next_event).chain(self.acceptor.next_event()).min()
    }

    fn sleep(&self, left: Duration) {
        let mut watched = vec![PollFd::new(self.acceptor.listener(), PollFlags::IN)];
        let unproven = self.dials.iter().filter_map(Dial::handshake).chain(self.acceptor.unproven());
        watched.extend(unproven.map(|handshake| PollFd::new(handshake.stream(), handshake.interest())));
        let left =
            Timespec { tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: left.subsec_nanos().into() };
        // Interrupted or refused, the caller tries everything and looks at the clock.
        let _: Result<usize, Errno> = rustix::event::poll(&mut watched, Some(&left));
    }

    /// Lets everything go on that can.
    fn step(&mut self, identity: &Identity<'_>) -> Result<(), WireError> {
        let connected = &mut self.connected;
        self.acceptor.step(identity, connected)?;
        for at in (0..self.dials.len()).rev() {
            if let Some((hello, socket)) = self.dials[at].step(identity)? {
                let node = self.dials.swap_remove(at).node();
                connected.admit(node, hello, socket);
            }
        }
        Ok(())
    }
}
