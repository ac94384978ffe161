//! One connection on its way to being proven: a state machine over a nonblocking stream.

use super::terms::{HELLO_BYTES, Hello, Token, WireError};
use finespun_types::NodeId;
use hmac::{Hmac, KeyInit, Mac};
use rustix::event::PollFlags;
use sha2::Sha256;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

const MAGIC: [u8; 4] = *b"fspW";
const VERSION: u8 = 2;
const NONCE_BYTES: usize = 32;
const PROOF_BYTES: usize = 32;
/// Magic, version, who connects, to whom, one spare byte, nonce.
const NAMED_BYTES: usize = 8 + NONCE_BYTES;
/// The same, and its seal.
const OPENING_BYTES: usize = NAMED_BYTES + PROOF_BYTES;
const HELLO_AND_PROOF_BYTES: usize = HELLO_BYTES + PROOF_BYTES;

/// What this node knows of itself.
pub(super) struct Identity<'a> {
    pub(super) me: NodeId,
    pub(super) nodes: usize,
    pub(super) token: &'a Token,
    pub(super) hello: &'a Hello,
}

/// Where a handshake has got to.
pub(super) enum Progress {
    Waiting,
    Proven(NodeId, Hello),
    /// The connection ended, or could not be made.
    Ended(io::Error),
    /// What was said is not what a node of the job says.
    Wrong,
}

/// What is read next.
#[derive(Clone, Copy)]
enum Step {
    /// Accepting: the opening.
    Opening,
    /// Accepting: hello and proof of the one who connects.
    Connector,
    /// Connecting: the acceptor's nonce.
    Challenge,
    /// Connecting: hello and proof of the acceptor.
    Acceptor,
    /// Accepting: nothing; our own hello and proof have to go out.
    Answer(Hello),
}

/// What a proof is for: a proof of the one cannot pass for one of the other.
#[derive(Clone, Copy)]
enum Role {
    Opening,
    Connecting,
    Accepting,
}

/// One connection and what has been said on it.
pub(super) struct Handshake {
    stream: TcpStream,
    step: Step,
    /// Bytes of this step received so far.
    received: Vec<u8>,
    /// Bytes still to be sent.
    unsent: Vec<u8>,
    opening: [u8; OPENING_BYTES],
    /// The acceptor's nonce.
    challenge: [u8; NONCE_BYTES],
    /// Accepting: whom the seal of the opening names.
    sealed_by: Option<NodeId>,
}

impl Handshake {
    pub(super) fn connecting(identity: &Identity<'_>, stream: TcpStream, to: NodeId) -> Result<Self, WireError> {
        let mut opening = [0; OPENING_BYTES];
        opening[..4].copy_from_slice(&MAGIC);
        opening[4..8].copy_from_slice(&[VERSION, byte_of(identity.me), byte_of(to), 0]);
        opening[8..NAMED_BYTES].copy_from_slice(&nonce()?);
        let seal = seal(identity.token, &opening).finalize().into_bytes();
        opening[NAMED_BYTES..].copy_from_slice(&seal);
        let step = Step::Challenge;
        Ok(Self { step, unsent: opening.to_vec(), opening, ..Self::accepting(stream) })
    }

    pub(super) fn accepting(stream: TcpStream) -> Self {
        Self {
            stream,
            step: Step::Opening,
            received: Vec::new(),
            unsent: Vec::new(),
            opening: [0; OPENING_BYTES],
            challenge: [0; NONCE_BYTES],
            sealed_by: None,
        }
    }

    /// Accepting: the node of the job that has sealed the opening; none for a stranger.
    pub(super) fn sealed_by(&self) -> Option<NodeId> {
        self.sealed_by
    }

    /// Connecting: has the acceptor said anything yet?
    pub(super) fn is_answered(&self) -> bool {
        !matches!(self.step, Step::Challenge)
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn interest(&self) -> PollFlags {
        if self.unsent.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
    }

    pub(super) fn into_socket(self) -> OwnedFd {
        self.stream.into()
    }

    /// Goes as far as the stream allows.
    pub(super) fn advance(&mut self, identity: &Identity<'_>) -> Result<Progress, WireError> {
        loop {
            match self.transfer() {
                Ok(()) => {}
                Err(error) if is_for_later(&error) => return Ok(Progress::Waiting),
                Err(error) => return Ok(Progress::Ended(error)),
            }
            let progress = self.on_received(identity)?;
            self.received.clear();
            match progress {
                Progress::Waiting => {}
                Progress::Proven(..) | Progress::Ended(_) | Progress::Wrong => return Ok(progress),
            }
        }
    }

    /// Sends what is to be sent, then receives the whole of this step and no byte more.
    fn transfer(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let sent = self.stream.write(&self.unsent)?;
            self.unsent.drain(..sent);
        }
        let whole = match self.step {
            Step::Opening => OPENING_BYTES,
            Step::Challenge => NONCE_BYTES,
            Step::Connector | Step::Acceptor => HELLO_AND_PROOF_BYTES,
            Step::Answer(_) => 0,
        };
        while self.received.len() < whole {
            let mut bytes = [0; HELLO_AND_PROOF_BYTES];
            match self.stream.read(&mut bytes[..whole - self.received.len()])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => self.received.extend_from_slice(&bytes[..got]),
            }
        }
        Ok(())
    }

    fn on_received(&mut self, identity: &Identity<'_>) -> Result<Progress, WireError> {
        match self.step {
            Step::Opening => {
                self.opening.copy_from_slice(&self.received);
                if !self.is_for(identity) {
                    return Ok(Progress::Wrong);
                }
                let is_sealed = seal(identity.token, &self.opening).verify_slice(&self.opening[NAMED_BYTES..]).is_ok();
                self.sealed_by = is_sealed.then_some(NodeId(self.opening[5].into()));
                self.challenge = nonce()?;
                self.unsent.extend_from_slice(&self.challenge);
                self.step = Step::Connector;
            }
            Step::Challenge => {
                self.challenge.copy_from_slice(&self.received);
                self.prove(Role::Connecting, identity);
                self.step = Step::Acceptor;
            }
            Step::Connector => {
                let Some(hello) = self.proven_hello(Role::Connecting, identity) else {
                    return Ok(Progress::Wrong);
                };
                self.prove(Role::Accepting, identity);
                self.step = Step::Answer(hello);
            }
            Step::Answer(hello) => return Ok(Progress::Proven(NodeId(self.opening[5].into()), hello)),
            Step::Acceptor => {
                let hello = self.proven_hello(Role::Accepting, identity);
                return Ok(
                    hello.map_or(Progress::Wrong, |hello| Progress::Proven(NodeId(self.opening[6].into()), hello))
                );
            }
        }
        Ok(Progress::Waiting)
    }

    /// Is the opening one from a node that connects to us?
    fn is_for(&self, identity: &Identity<'_>) -> bool {
        let [version, from, to, spare] = [4, 5, 6, 7].map(|at| self.opening[at]);
        let is_higher = from > byte_of(identity.me) && usize::from(from) < identity.nodes;
        self.opening[..4] == MAGIC && version == VERSION && is_higher && to == byte_of(identity.me) && spare == 0
    }

    fn prove(&mut self, role: Role, identity: &Identity<'_>) {
        let proof = self.mac(role, identity.token, identity.hello).finalize().into_bytes();
        self.unsent.extend_from_slice(identity.hello);
        self.unsent.extend_from_slice(&proof);
    }

    /// The hello received, if the proof that came with it is right.
    fn proven_hello(&self, role: Role, identity: &Identity<'_>) -> Option<Hello> {
        let (hello, proof) = self.received.split_first_chunk::<HELLO_BYTES>()?;
        self.mac(role, identity.token, hello).verify_slice(proof).ok()?;
        Some(*hello)
    }

    /// Everything a proof covers; all parts have fixed lengths, so no two conversations give the same bytes.
    fn mac(&self, role: Role, token: &Token, hello: &Hello) -> Hmac<Sha256> {
        keyed(token, role, &[&self.opening, &self.challenge, hello])
    }
}

/// What shows that whoever opens a connection has the token, before a nonce of ours has been answered.
fn seal(token: &Token, opening: &[u8; OPENING_BYTES]) -> Hmac<Sha256> {
    keyed(token, Role::Opening, &[&opening[..NAMED_BYTES]])
}

fn keyed(token: &Token, role: Role, parts: &[&[u8]]) -> Hmac<Sha256> {
    let label: &[u8; 10] = match role {
        Role::Opening => b"opening   ",
        Role::Connecting => b"connecting",
        Role::Accepting => b"accepting ",
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(token).expect("HMAC takes a key of any length");
    mac.update(label);
    parts.iter().for_each(|part| mac.update(part));
    mac
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn nonce() -> Result<[u8; NONCE_BYTES], WireError> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|_| WireError::NoRandomness)?;
    Ok(nonce)
}
/// A node in an opening. A live job has at most [`NODES_MAX`](finespun_types::NODES_MAX).
const fn byte_of(node: NodeId) -> u8 {
    node.0 as u8
}
