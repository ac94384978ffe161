//! Taking connections: nodes of the job, and strangers.

use super::handshake::{Handshake, Identity, Progress};
use super::terms::{Connected, WireError};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Connections of strangers kept at a time.
const STRANGERS_MAX: usize = 64;
/// How long a stranger may take to prove that it is none.
const STRANGER_TIME: Duration = Duration::from_secs(5);
/// Taken in one go: then those that are here already have their turn.
const AT_ONCE: usize = 64;

/// The listener, and what it has accepted.
pub(super) struct Acceptor {
    listener: TcpListener,
    /// Connections whose opening is sealed, at most one for each node.
    nodes: VecDeque<Unproven>,
    /// The others, oldest first.
    strangers: VecDeque<Unproven>,
}

struct Unproven {
    handshake: Handshake,
    /// When it is dropped, if it is a stranger's.
    until: Instant,
}

impl Acceptor {
    pub(super) fn new(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, nodes: VecDeque::new(), strangers: VecDeque::new() })
    }

    pub(super) fn listener(&self) -> &TcpListener {
        &self.listener
    }

    pub(super) fn unproven(&self) -> impl Iterator<Item = &Handshake> {
        self.nodes.iter().chain(&self.strangers).map(|unproven| &unproven.handshake)
    }

    /// When the oldest stranger is to be dropped.
    pub(super) fn next_event(&self) -> Option<Instant> {
        self.strangers.front().map(|oldest| oldest.until)
    }

    /// Lets everything go on that can.
    pub(super) fn step(&mut self, identity: &Identity<'_>, connected: &mut Connected) -> Result<(), WireError> {
        for _ in 0..self.nodes.len() {
            let Some(unproven) = self.nodes.pop_front() else { break };
            self.advance(unproven, identity, connected)?;
        }
        for _ in 0..self.strangers.len() {
            let Some(unproven) = self.strangers.pop_front() else { break };
            self.advance(unproven, identity, connected)?;
        }
        while self.next_event().is_some_and(|until| until <= Instant::now()) {
            self.drop_oldest(connected);
        }
        self.accept(identity, connected)
    }

    fn accept(&mut self, identity: &Identity<'_>, connected: &mut Connected) -> Result<(), WireError> {
        for _ in 0..AT_ONCE {
            match self.listener.accept() {
                // A stream that cannot be prepared has ended already: its handshake will say so.
                Ok((stream, _)) => match prepare(&stream) {
                    Ok(()) => {
                        let until = Instant::now() + STRANGER_TIME;
                        self.advance(Unproven { handshake: Handshake::accepting(stream), until }, identity, connected)?;
                    }
                    Err(_) => connected.refused += 1,
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_of_one_connection(&error) => {}
                // A stranger's descriptor is room for another.
                Err(error) if is_for_want_of_descriptors(&error) && !self.strangers.is_empty() => {
                    self.drop_oldest(connected);
                }
                Err(error) => return Err(WireError::Listen(error)),
            }
            if self.strangers.len() > STRANGERS_MAX {
                self.drop_oldest(connected);
            }
        }
        Ok(())
    }

    /// Lets one go on, and puts it where it belongs.
    fn advance(
        &mut self,
        mut unproven: Unproven,
        identity: &Identity<'_>,
        connected: &mut Connected,
    ) -> Result<(), WireError> {
        let handshake = &mut unproven.handshake;
        match handshake.advance(identity)? {
            Progress::Waiting => match handshake.sealed_by() {
                // A node connects again only when it has given up the connection before.
                Some(node) => {
                    self.nodes.retain(|other| other.handshake.sealed_by() != Some(node));
                    self.nodes.push_back(unproven);
                }
                None => self.strangers.push_back(unproven),
            },
            // A node comes in once; a second proof of the same node is somebody's mistake.
            Progress::Proven(node, _) if connected.has(node) => connected.refused += 1,
            Progress::Proven(node, hello) => connected.admit(node, hello, unproven.handshake.into_socket()),
            // A node has given up an attempt.
            Progress::Ended(_) if handshake.sealed_by().is_some() => {}
            Progress::Ended(_) | Progress::Wrong => connected.refused += 1,
        }
        Ok(())
    }

    fn drop_oldest(&mut self, connected: &mut Connected) {
        if self.strangers.pop_front().is_some() {
            connected.refused += 1;
        }
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

fn is_for_want_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
