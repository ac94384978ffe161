//! Messages between the nodes of one machine, through memory that the processes of all nodes map.
//!
//! ```text
//! send    --> queue out of the peer, in the sender's part (under its send lock)
//! flush   --> what is queued may be taken; a doorbell wakes the peer if one of its threads sleeps here
//! poll    --> queue --copy--> buffer in, in the receiver's part (under the receive lock) --> handler, in order
//! wait    --> asleep in poll(2) on the node's own doorbell
//! ```
//!
//! A part is what a [`Mesh`](crate::Mesh) of that node has, at one place for all nodes. There is no connection: a node that ends is
//! not noticed here.

use crate::queue::{In, Malformed};
use crate::shared::{self, Header, Shared};
use crate::{ALL, Announced, AttachError, MESSAGE_BYTES_MAX, Messages, SendError, Sleep, Wait, nesting};
use finespun_sys::{calls, fence};
use finespun_types::{NODES_MAX, NodeId, NodeSet, Set};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use std::time::{Duration, Instant};

/// Passes over the queue of one peer in one poll: then the others have their turn.
const PASSES_PER_POLL: usize = 8;
/// How long a wait sleeps at most while another process receives all that there is: that one may leave before it has seen the last.
const PAUSE: Duration = Duration::from_millis(1);

/// What wakes a node's sleeping threads: an event counter of the kernel.
///
/// # Errors
/// The kernel's.
pub fn doorbell() -> io::Result<OwnedFd> {
    finespun_sys::descriptors::aside(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// The node's side of a loopback.
pub struct Loopback<F> {
    me: NodeId,
    /// The memory, by node.
    parts: Vec<Shared>,
    /// By node.
    doorbells: Vec<F>,
}

/// What there is to be received.
enum Input {
    Nothing,
    /// Something, and other processes receive all of it.
    Held,
    Free,
}

impl<F: AsFd + Send + Sync> Loopback<F> {
    /// The bytes of memory that a loopback of `nodes` nodes needs. Most of it stays untouched.
    #[must_use]
    pub const fn bytes(nodes: usize) -> usize {
        nodes * shared::bytes(nodes)
    }

    /// Joins the loopback in the memory, or begins it if the memory is fresh (all zeroes). `doorbells` are those of [`doorbell`], by
    /// node, the same in all processes.
    ///
    /// # Errors
    /// If memory and nodes do not fit together.
    ///
    /// # Safety
    /// `memory` must stay mapped, readable and writable, for `len` bytes as long as the loopback lives, and must be used by nothing
    /// but loopbacks attached to it.
    #[allow(unsafe_code)]
    pub unsafe fn attach(memory: *mut u8, len: usize, me: NodeId, doorbells: Vec<F>) -> Result<Self, AttachError> {
        let nodes = doorbells.len();
        if nodes > NODES_MAX || usize::from(me.0) >= nodes {
            return Err(AttachError::WrongSockets);
        }
        let (needed, part) = (Self::bytes(nodes), shared::bytes(nodes));
        if len < needed {
            return Err(AttachError::TooSmall { needed, given: len });
        }
        let attach = |node: usize| {
            // SAFETY: the part lies in the memory, checked above, and what `Shared::attach` asks of the caller is what this
            // function asks of its own.
            unsafe { Shared::attach(memory.add(node * part), part, NodeId::of(node), nodes) }
        };
        Ok(Self { me, parts: (0..nodes).map(attach).collect::<Result<_, _>>()?, doorbells })
    }

    fn part(&self, node: NodeId) -> &Shared {
        &self.parts[usize::from(node.0)]
    }

    fn mine(&self) -> &Shared {
        self.part(self.me)
    }

    fn header(&self) -> &Header {
        self.mine().header()
    }

    fn peers(&self) -> NodeSet {
        Set(u64::MAX >> (64 - self.parts.len())).without(self.me)
    }

    /// Wakes the peer's threads that sleep. Its counter is full only if nothing has looked for a very long time, and then says enough.
    fn ring(&self, peer: NodeId) {
        // Either we see a sleeper, or it sees what was released: both have a fence between their store and their look.
        fence::full();
        if self.part(peer).header().sleepers.load(SeqCst) > 0 {
            calls::one();
            let _ = rustix::io::write(&self.doorbells[usize::from(peer.0)], &1_u64.to_ne_bytes());
        }
    }

    fn receive(&self, peer: NodeId, inbox: &mut In<'_>, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let mut handled = 0;
        for _ in 0..PASSES_PER_POLL {
            let taken = {
                let mut out = self.part(peer).lock_out(self.me);
                let (from, to) = (out.released(), inbox.room());
                let taken = from.len().min(to.len());
                to[..taken].copy_from_slice(&from[..taken]);
                out.take(taken);
                taken
            };
            if taken == 0 {
                break;
            }
            inbox.filled(taken);
            loop {
                match inbox.next() {
                    Ok(Some(message)) => handler(peer, message),
                    Ok(None) => break,
                    Err(Malformed) => {
                        self.header().gone.fetch_or(NodeSet::only(peer).0, AcqRel);
                        return handled;
                    }
                }
                handled += 1;
            }
        }
        handled
    }

    fn input(&self) -> Input {
        let (mut has_some, peers) = (false, self.peers().minus(self.gone()));
        for peer in peers.iter().filter(|&peer| self.part(peer).link(self.me).out.released() > 0) {
            if !self.mine().link(peer).r#in.lock.is_held() {
                return Input::Free;
            }
            has_some = true;
        }
        if has_some { Input::Held } else { Input::Nothing }
    }

    /// Until the doorbell rings or `also` is readable, which is the answer.
    fn sleep(&self, timeout: Option<Duration>, also: Option<BorrowedFd<'_>>) -> bool {
        let doorbell = self.doorbells[usize::from(self.me.0)].as_fd();
        let watched = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [watched(doorbell), watched(also.unwrap_or(doorbell))];
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        calls::one();
        // The only error there can be is that a signal came.
        let ready = rustix::event::poll(&mut fds, timeout.as_ref()).unwrap_or(0);
        if ready > 0 && !fds[0].revents().is_empty() {
            calls::one();
            // Another thread may have taken it meanwhile.
            let _ = rustix::io::read(doorbell, &mut [0; 8]);
        }
        ready > 0 && also.is_some() && !fds[1].revents().is_empty()
    }
}

impl<F: AsFd + Send + Sync> Messages for Loopback<F> {
    fn send(&self, to: NodeId, parts: &[&[u8]]) -> Result<(), SendError> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        assert!(bytes <= MESSAGE_BYTES_MAX, "a message of {bytes} bytes");
        assert!(self.peers().contains(to), "a peer is another node of the loopback");
        let is_taken = {
            let mut out = self.mine().lock_out(to);
            let has_room = out.has_room(bytes);
            if has_room {
                out.append(parts, bytes);
                self.header().pending.fetch_or(NodeSet::only(to).0, AcqRel);
            }
            has_room
        };
        if is_taken {
            return Ok(());
        }
        self.flush_to(NodeSet::only(to));
        Err(SendError::Full)
    }

    fn flush_to(&self, peers: NodeSet) {
        let pending: NodeSet = Set(self.header().pending.load(Acquire));
        for peer in pending.intersect(peers).iter() {
            {
                let out = self.mine().lock_out(peer);
                out.release();
                self.header().pending.fetch_and(!NodeSet::only(peer).0, AcqRel);
            }
            self.ring(peer);
        }
    }

    fn poll_from(&self, peers: NodeSet, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let _here = nesting::enter();
        let mut handled = 0;
        for peer in self.peers().intersect(peers).minus(self.gone()).iter() {
            if self.part(peer).link(self.me).out.released() == 0 {
                continue;
            }
            if let Some(mut inbox) = self.mine().try_lock_in(peer) {
                handled += self.receive(peer, &mut inbox, handler);
            }
        }
        handled
    }

    fn wait(&self, timeout: Option<Duration>, also: Option<BorrowedFd<'_>>) -> Wait {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            self.flush_to(ALL);
            if let Some(peer) = self.take_gone() {
                return Wait::PeerGone(peer);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            self.header().sleepers.fetch_add(1, SeqCst);
            fence::full();
            let wait = match self.input() {
                Input::Free => Some(Wait::Ready),
                Input::Held => self.sleep(left.into_iter().chain([PAUSE]).min(), also).then_some(Wait::Also),
                Input::Nothing => self.sleep(left, also).then_some(Wait::Also),
            };
            self.header().sleepers.fetch_sub(1, SeqCst);
            if let Some(wait) = wait {
                return wait;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Wait::TimedOut;
            }
        }
    }

    fn waiter<'a>(&'a self, also: BorrowedFd<'a>) -> io::Result<Box<dyn Sleep + 'a>> {
        Ok(Box::new(Waiter { loopback: self, also }))
    }

    fn pending(&self) -> usize {
        self.peers().iter().map(|peer| self.mine().link(peer).out.length()).sum()
    }

    fn gone(&self) -> NodeSet {
        Set(self.header().gone.load(Acquire))
    }

    fn take_gone(&self) -> Option<NodeId> {
        self.header().take_gone()
    }

    /// Event counters raise no signal.
    fn announced(&self) -> Option<&dyn Announced> {
        None
    }
}

struct Waiter<'a, F> {
    loopback: &'a Loopback<F>,
    also: BorrowedFd<'a>,
}

impl<F: AsFd + Send + Sync> Sleep for Waiter<'_, F> {
    fn sleep(&self) -> Wait {
        self.loopback.wait(None, Some(self.also))
    }
}
