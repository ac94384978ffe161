//! One node's connections to all others: sending, receiving, waiting.

use crate::queue::{In, Out};
use crate::room::watch_for_room;
use crate::shared::{self, Shared};
use crate::{ALL, AttachError, LossCause, MESSAGE_BYTES_MAX, SendError, Traffic, nesting};
use finespun_sys::calls;
use finespun_types::{NODES_MAX, NodeId, NodeSet, Set};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// What one system call is given at most: the send lock is held during the call, and others want to append.
const WRITE_BYTES_MAX: usize = 256 << 10;
/// Reads of one peer in one poll: then the others have their turn.
const READS_PER_POLL: usize = 8;
/// Up to so many peers, trying each costs less than asking first which have something.
const PEERS_TRIED: usize = 4;

/// The node's side of the connections to all other nodes: descriptors of this process, state in shared memory.
///
/// Any number of threads and processes of the node may use it at the same time. A process must not end while it
/// is inside a call (it would leave a lock taken): when one is killed, the node is at its end.
pub struct Mesh {
    me: NodeId,
    /// By node; none to the node itself.
    pub(crate) sockets: Vec<Option<OwnedFd>>,
    pub(crate) shared: Shared,
    /// Readable when a socket that had been full has room again, whichever process had filled it: without it a
    /// process asleep would not hear that the bytes a busy one left behind can go.
    pub(crate) room: OwnedFd,
}

impl Mesh {
    /// The bytes of shared memory that a mesh of `nodes` nodes needs. Most of it stays untouched.
    #[must_use]
    pub const fn bytes(nodes: usize) -> usize {
        shared::bytes(nodes)
    }

    /// Joins the mesh in the node's shared memory, or begins it if the memory is fresh (all zeroes).
    ///
    /// `sockets[n]` is a connected stream to node `n`, as from [`crate::wire::connect_mesh`] or inherited.
    ///
    /// # Errors
    /// If memory or sockets do not fit together.
    ///
    /// # Safety
    /// `memory` must stay mapped, readable and writable, for `len` bytes as long as the mesh lives, and must be
    /// used by nothing but meshes, of this node, attached to it.
    #[allow(unsafe_code)]
    pub unsafe fn attach(
        memory: *mut u8,
        len: usize,
        me: NodeId,
        nodes: usize,
        sockets: Vec<Option<OwnedFd>>,
    ) -> Result<Self, AttachError> {
        let fits = |(node, socket): (usize, &Option<OwnedFd>)| socket.is_some() == (node != usize::from(me.0));
        let is_node = usize::from(me.0) < nodes && nodes <= NODES_MAX;
        if !is_node || sockets.len() != nodes || !sockets.iter().enumerate().all(fits) {
            return Err(AttachError::WrongSockets);
        }
        let room = watch_for_room(&sockets).map_err(AttachError::Kernel)?;
        // SAFETY: what `Shared::attach` asks of the caller is what this function asks of its own.
        let shared = unsafe { Shared::attach(memory, len, me, nodes) }?;
        Ok(Self { me, sockets, shared, room })
    }

    /// The node whose mesh this is.
    #[must_use]
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// Appends one message, the parts joined, to the queue of `to`. Nothing leaves before [`Mesh::flush`], unless
    /// the queue is full. May be called from a handler.
    ///
    /// # Errors
    /// [`SendError`]; the message has then not been taken, not even in part.
    ///
    /// # Panics
    /// If the message is longer than [`MESSAGE_BYTES_MAX`], or `to` is no other node.
    pub fn send(&self, to: NodeId, parts: &[&[u8]]) -> Result<(), SendError> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        assert!(bytes <= MESSAGE_BYTES_MAX, "a message of {bytes} bytes");
        let socket = self.socket(to);
        let mut out = self.shared.lock_out(to);
        if !out.has_room(bytes) {
            while self.push(to, socket, &mut out) {}
        }
        if out.state.is_closed() {
            return Err(SendError::Closed);
        }
        if !out.has_room(bytes) {
            return Err(SendError::Full);
        }
        if out.state.length() == 0 {
            self.shared.header().pending.fetch_or(NodeSet::only(to).0, AcqRel);
        }
        out.append(parts, bytes);
        Ok(())
    }

    /// Hands what is queued to the kernel, as far as it takes it. May be called from a handler.
    pub fn flush(&self) {
        self.flush_to(ALL);
    }

    pub(crate) fn flush_to(&self, peers: NodeSet) {
        for peer in self.pending_peers().intersect(peers).iter() {
            let socket = self.socket(peer);
            while self.push(peer, socket, &mut self.shared.lock_out(peer)) {}
        }
    }

    /// Gives the kernel one piece of the queue; true if it took it all and there is more.
    fn push(&self, peer: NodeId, socket: BorrowedFd<'_>, out: &mut Out<'_>) -> bool {
        let front = out.front();
        let piece = &front[..front.len().min(WRITE_BYTES_MAX)];
        if piece.is_empty() {
            return false;
        }
        calls::one();
        match rustix::net::send(socket, piece, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(taken) => out.take(taken),
            Err(Errno::INTR) => return true,
            Err(Errno::AGAIN) => return false,
            // The receiving side meets the end of the connection too, after what had come before; it reports.
            Err(_) => out.close(),
        }
        // A short write is followed by another try: only a refusal makes the kernel tell when there is room.
        let has_more = out.state.length() > 0;
        if !has_more {
            self.shared.header().pending.fetch_and(!NodeSet::only(peer).0, AcqRel);
        }
        has_more
    }

    /// Receives what is there, from every peer that no other process is receiving from at this moment, and
    /// hands it over, message by message; returns how many.
    ///
    /// The handler may send and flush; it must not poll. A lost peer is not a message: see [`Mesh::take_gone`].
    pub fn poll(&self, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.poll_from(ALL, handler)
    }

    pub(crate) fn poll_from(&self, peers: NodeSet, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let _here = nesting::enter();
        let alive = self.peers_alive().intersect(peers);
        let peers = if alive.len() > PEERS_TRIED { self.readable(alive) } else { alive };
        let mut handled = 0;
        for peer in peers.iter() {
            if let Some(mut inbox) = self.shared.try_lock_in(peer) {
                handled += self.receive(peer, &mut inbox, handler);
            }
        }
        handled
    }

    fn receive(&self, peer: NodeId, inbox: &mut In<'_>, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let socket = self.socket(peer);
        let mut handled = 0;
        for _ in 0..READS_PER_POLL {
            // Another process may have met the end since this one looked.
            if inbox.state.cause.load(Relaxed) != 0 {
                break;
            }
            let room = inbox.room();
            let asked = room.len();
            calls::one();
            let got = match rustix::net::recv(socket, room, RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.lose(peer, inbox, LossCause::Closed);
                    break;
                }
                Ok((got, _)) => got,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.lose(peer, inbox, LossCause::Broken);
                    break;
                }
            };
            inbox.filled(got);
            handled += self.deliver(peer, inbox, handler);
            if got < asked {
                break;
            }
        }
        handled
    }

    fn deliver(&self, peer: NodeId, inbox: &mut In<'_>, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let mut handled = 0;
        loop {
            match inbox.next() {
                Ok(Some(message)) => handler(peer, message),
                Ok(None) => return handled,
                Err(_) => {
                    self.lose(peer, inbox, LossCause::Malformed);
                    return handled;
                }
            }
            handled += 1;
        }
    }

    /// No message will come from the peer, and none can be sent. Under its receive lock, so it happens once.
    fn lose(&self, peer: NodeId, inbox: &In<'_>, cause: LossCause) {
        inbox.state.cause.store(cause as u32 + 1, Relaxed);
        let header = self.shared.header();
        let bit = NodeSet::only(peer).0;
        {
            let mut out = self.shared.lock_out(peer);
            out.close();
            header.pending.fetch_and(!bit, AcqRel);
        }
        // Whatever the cause, the other side shall meet an end as well. An error says that it already has.
        let _ = rustix::net::shutdown(self.socket(peer), Shutdown::Both);
        header.gone.fetch_or(bit, AcqRel);
    }

    /// Bytes queued and not yet handed to the kernel, as of a moment ago.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending_peers().iter().map(|peer| self.shared.link(peer).out.length()).sum()
    }

    /// The peers that are lost, for every process of the node to see.
    #[must_use]
    pub fn gone(&self) -> NodeSet {
        Set(self.shared.header().gone.load(Acquire))
    }

    /// A lost peer of which nothing in the node has been told: each is returned once.
    #[must_use]
    pub fn take_gone(&self) -> Option<NodeId> {
        self.shared.header().take_gone()
    }

    /// Why the peer is lost; `None` while it is not.
    #[must_use]
    pub fn loss(&self, peer: NodeId) -> Option<LossCause> {
        if !self.gone().contains(peer) {
            return None;
        }
        let causes = [LossCause::Closed, LossCause::Broken, LossCause::Malformed];
        let cause = self.shared.link(peer).r#in.cause.load(Relaxed);
        causes.into_iter().find(|&known| known as u32 + 1 == cause)
    }

    /// Says goodbye: what has been flushed still arrives, then every peer sees this node as gone, although its
    /// processes may live on. Nothing more can be sent.
    pub fn leave(&self) {
        self.flush();
        for peer in self.peers_alive().iter() {
            let mut out = self.shared.lock_out(peer);
            out.close();
            self.shared.header().pending.fetch_and(!NodeSet::only(peer).0, AcqRel);
            // An error says that the peer has ended already.
            let _ = rustix::net::shutdown(self.socket(peer), Shutdown::Write);
        }
    }

    /// What has passed between this node and one other.
    #[must_use]
    pub fn traffic(&self, peer: NodeId) -> Traffic {
        let link = self.shared.link(peer);
        Traffic {
            messages_sent: link.out.messages.load(Relaxed),
            bytes_sent: link.out.bytes.load(Relaxed),
            writes: link.out.writes.load(Relaxed),
            messages_received: link.r#in.messages.load(Relaxed),
            bytes_received: link.r#in.bytes.load(Relaxed),
            reads: link.r#in.reads.load(Relaxed),
        }
    }

    /// What has passed between this node and all others.
    #[must_use]
    pub fn traffic_total(&self) -> Traffic {
        self.peers().iter().fold(Traffic::default(), |sum, peer| sum.plus(self.traffic(peer)))
    }

    pub(crate) fn pending_peers(&self) -> NodeSet {
        Set(self.shared.header().pending.load(Acquire))
    }

    fn peers(&self) -> NodeSet {
        let nodes = self.sockets.len();
        Set(u64::MAX >> (64 - nodes)).without(self.me)
    }

    pub(crate) fn peers_alive(&self) -> NodeSet {
        Set(self.peers().0 & !self.gone().0)
    }

    pub(crate) fn socket(&self, peer: NodeId) -> BorrowedFd<'_> {
        let socket = self.sockets.get(usize::from(peer.0)).and_then(Option::as_ref);
        socket.expect("a peer is another node of the mesh").as_fd()
    }
}
