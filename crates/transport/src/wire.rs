//! Connecting the nodes of a job, and nobody else.
//!
//! Node `c` connects to every node `a` with a smaller number. Both know the job's token and prove it without
//! saying it:
//!
//! ```text
//! c -> a   opening:   magic, version, c, a, nonce of c
//! a -> c   challenge: nonce of a
//! c -> a   hello of c, HMAC(token, "connecting", opening, nonce of a, hello of c)
//! a -> c   hello of a, HMAC(token, "accepting",  opening, nonce of a, hello of a)
//! ```
//!
//! Both nonces are fresh, so a recorded proof is worth nothing; it names both nodes and the direction, so it
//! cannot be sent back or used elsewhere; and the acceptor says nothing of the job to a stranger. The bytes that
//! follow are neither encrypted nor authenticated: the network must be trusted to keep a connection what it was.
//!
//! All connections make progress together, in one thread and asleep in `poll(2)`, so a stranger who connects and
//! says nothing delays nobody. Who fails is dropped and counted.

mod handshake;

use crate::wire::handshake::{Handshake, Identity, Progress};
use finespun_types::{NODES_MAX, NodeId};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The job's secret.
pub type Token = [u8; 32];
/// What two nodes tell each other of themselves once both have proven the token; the caller compares.
pub type Hello = [u8; HELLO_BYTES];
/// Bytes of a [`Hello`].
pub const HELLO_BYTES: usize = 64;

/// Unproven connections kept at a time beyond the job's own: with more, one is dropped.
const STRANGERS_MAX: usize = 64;

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

/// Opens a port of this machine for the other nodes to connect to; the loopback interface only.
///
/// # Errors
/// What the system said.
pub fn listen() -> Result<(TcpListener, u16), WireError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(WireError::Listen)?;
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
    listener.set_nonblocking(true).map_err(WireError::Listen)?;
    let identity = Identity { me, nodes: ports.len(), token, hello };
    let mut gathering = Gathering::new(ports.len(), me);
    for (node, &port) in ports.iter().enumerate().take(usize::from(me.0)) {
        gathering.connect(&identity, NodeId(node as u8), port, deadline)?;
    }
    while !gathering.is_complete() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(gathering.missing());
        }
        gathering.step(&identity, &listener, left)?;
    }
    Ok(gathering.connected)
}

/// The connections so far, and those that still have to prove themselves.
struct Gathering {
    connected: Connected,
    me: NodeId,
    /// Oldest first.
    unproven: VecDeque<Handshake>,
}

impl Gathering {
    fn new(nodes: usize, me: NodeId) -> Self {
        let none = || (0..nodes).map(|_| None);
        let connected = Connected { sockets: none().collect(), hellos: vec![None; nodes], refused: 0 };
        Self { connected, me, unproven: VecDeque::new() }
    }

    fn absent(&self) -> impl Iterator<Item = NodeId> {
        let nodes = (0..self.connected.sockets.len()).map(|node| NodeId(node as u8));
        nodes.filter(|&node| node != self.me && self.connected.sockets[usize::from(node.0)].is_none())
    }

    fn is_complete(&self) -> bool {
        self.absent().next().is_none()
    }

    fn missing(&self) -> WireError {
        WireError::Missing { nodes: self.absent().collect(), refused: self.connected.refused }
    }

    fn connect(
        &mut self,
        identity: &Identity<'_>,
        node: NodeId,
        port: u16,
        deadline: Instant,
    ) -> Result<(), WireError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.missing());
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let unreachable = |cause| WireError::Unreachable { node, cause };
        let stream = TcpStream::connect_timeout(&address, left).map_err(unreachable)?;
        prepare(&stream).map_err(unreachable)?;
        self.unproven.push_back(Handshake::connecting(identity, stream, node)?);
        Ok(())
    }

    /// Sleeps until something can go on, then lets everything go on that can.
    fn step(&mut self, identity: &Identity<'_>, listener: &TcpListener, left: Duration) -> Result<(), WireError> {
        self.sleep(listener, left);
        self.accept(listener)?;
        for _ in 0..self.unproven.len() {
            let Some(mut handshake) = self.unproven.pop_front() else { break };
            match handshake.advance(identity)? {
                Progress::Waiting => self.unproven.push_back(handshake),
                Progress::Proven(node, hello) => self.admit(node, hello, handshake),
                Progress::Failed => match handshake.connecting_to() {
                    Some(node) => return Err(WireError::Unproven { node }),
                    None => self.connected.refused += 1,
                },
            }
        }
        Ok(())
    }

    fn sleep(&self, listener: &TcpListener, left: Duration) {
        let mut watched = vec![PollFd::new(listener, PollFlags::IN)];
        watched.extend(self.unproven.iter().map(|handshake| PollFd::new(handshake.stream(), handshake.interest())));
        let left =
            Timespec { tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: left.subsec_nanos().into() };
        // Interrupted or refused, the caller tries everything and looks at the clock.
        let _: Result<usize, Errno> = rustix::event::poll(&mut watched, Some(&left));
    }

    fn accept(&mut self, listener: &TcpListener) -> Result<(), WireError> {
        loop {
            match listener.accept() {
                // A stream that cannot be prepared has ended already: its handshake will say so.
                Ok((stream, _)) => match prepare(&stream) {
                    Ok(()) => self.unproven.push_back(Handshake::accepting(stream)),
                    Err(_) => self.connected.refused += 1,
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => return Err(WireError::Listen(error)),
            }
            if self.unproven.len() > self.connected.sockets.len() + STRANGERS_MAX {
                self.drop_a_stranger();
            }
        }
    }

    /// Makes room: whoever has been silent longest goes, else whoever has been unproven longest.
    fn drop_a_stranger(&mut self) {
        let silent = self.unproven.iter().position(Handshake::is_silent);
        let oldest = || self.unproven.iter().position(|handshake| handshake.connecting_to().is_none());
        if let Some(place) = silent.or_else(oldest) {
            self.unproven.remove(place);
            self.connected.refused += 1;
        }
    }

    /// A node comes in once; a second proof of the same node is somebody's mistake.
    fn admit(&mut self, node: NodeId, hello: Hello, handshake: Handshake) {
        let place = usize::from(node.0);
        if self.connected.sockets[place].is_some() {
            self.connected.refused += 1;
            return;
        }
        self.connected.sockets[place] = Some(handshake.into_socket());
        self.connected.hellos[place] = Some(hello);
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)
}

/// Did only the connection being accepted fail, and not the listener?
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
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
