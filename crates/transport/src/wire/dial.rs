//! Connecting to one node, as often as it takes.
//!
//! A full backlog shows as silence: the kernel of the acceptor drops what asks for a place, and the kernel of the connector asks
//! again after ever longer pauses. The acceptor's kernel may also forget a connection that the connector takes for made. So an
//! attempt that is not answered is given up and made anew; an acceptor that comes late finds the last one. An attempt that ends
//! before it was answered was dropped, most often to make room, and is repeated. One that ends after it was answered was refused.

use super::handshake::{Handshake, Identity, Progress};
use super::terms::{Hello, WireError};
use finespun_types::NodeId;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long the first attempt waits for an answer; each that follows waits twice as long, up to the last figure. They are long
/// beside a process's delays on a busy machine, and short beside the time that all nodes have to find each other.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(4);
/// The pause after the first attempt that ended by itself; twice as long after each, up to the last figure.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The way to one node.
pub(super) struct Dial {
    node: NodeId,
    port: u16,
    /// None during a pause.
    attempt: Option<Handshake>,
    /// When the attempt, or the pause, is over.
    until: Instant,
    patience: Duration,
    pause: Duration,
}

impl Dial {
    pub(super) fn start(identity: &Identity<'_>, node: NodeId, port: u16) -> Result<Self, WireError> {
        let mut dial = Self { node, port, attempt: None, until: Instant::now(), patience: PATIENCE, pause: PAUSE };
        dial.attempt(identity)?;
        Ok(dial)
    }

    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    pub(super) fn handshake(&self) -> Option<&Handshake> {
        self.attempt.as_ref()
    }

    /// When the next attempt is due; never, once this one is answered.
    pub(super) fn next_event(&self) -> Option<Instant> {
        (!self.is_answered()).then_some(self.until)
    }

    fn attempt(&mut self, identity: &Identity<'_>) -> Result<(), WireError> {
        let stream = connect(self.port).map_err(|cause| self.unreachable(cause))?;
        self.attempt = Some(Handshake::connecting(identity, stream, self.node)?);
        self.until = Instant::now() + self.patience;
        self.patience = (2 * self.patience).min(PATIENCE_MAX);
        Ok(())
    }

    fn unreachable(&self, cause: io::Error) -> WireError {
        WireError::Unreachable { node: self.node, cause }
    }

    /// Goes as far as it can; the connection once it is proven.
    pub(super) fn step(&mut self, identity: &Identity<'_>) -> Result<Option<(Hello, OwnedFd)>, WireError> {
        let progress = match &mut self.attempt {
            Some(handshake) => handshake.advance(identity)?,
            None => Progress::Waiting,
        };
        match progress {
            Progress::Proven(_, hello) => Ok(self.attempt.take().map(|handshake| (hello, handshake.into_socket()))),
            Progress::Wrong => Err(WireError::Unproven { node: self.node }),
            Progress::Ended(_) if self.is_answered() => Err(WireError::Unproven { node: self.node }),
            Progress::Ended(cause) if is_of_attempt(&cause) => {
                self.attempt = None;
                self.until = Instant::now() + self.pause;
                self.pause = (2 * self.pause).min(PAUSE_MAX);
                Ok(None)
            }
            Progress::Ended(cause) => Err(self.unreachable(cause)),
            Progress::Waiting => {
                if !self.is_answered() && Instant::now() >= self.until {
                    self.attempt(identity)?;
                }
                Ok(None)
            }
        }
    }

    fn is_answered(&self) -> bool {
        self.attempt.as_ref().is_some_and(Handshake::is_answered)
    }
}

/// Begins to connect; what comes of it shows when the stream is used.
fn connect(port: u16) -> io::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Did this attempt fail, where another may not? That no process listens is for ever: all nodes listened before any connected.
fn is_of_attempt(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | TimedOut | UnexpectedEof)
}
