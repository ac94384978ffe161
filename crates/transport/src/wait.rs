//! Asleep until there is something to do.

use crate::room::forget_room;
use crate::{Mesh, Wait};
use finespun_sys::calls;
use finespun_types::{NODES_MAX, NodeId, NodeSet, Set};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Turns given up in a wait while another process receives everything there is, before the wait sleeps.
const YIELDS: u32 = 50;
/// How long it then sleeps before it looks again.
const PAUSE: Duration = Duration::from_millis(1);

impl Mesh {
    /// Flushes, then sleeps until a message may be there or a full queue has room, `also` is readable, a peer is
    /// lost, or `timeout` is over (`None`: never).
    ///
    /// A message that another process of the node handles does not end the wait: who sleeps here for an answer
    /// gives as `also` a descriptor that whoever handles the answer makes readable. Several descriptors can be
    /// gathered in one epoll descriptor.
    pub fn wait(&self, timeout: Option<Duration>, also: Option<BorrowedFd<'_>>) -> Wait {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut yields = 0;
        let mut busy = NodeSet::EMPTY;
        loop {
            self.flush();
            if let Some(peer) = self.take_gone() {
                return Wait::PeerGone(peer);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let pause = (!busy.is_empty()).then_some(PAUSE);
            let sleep = [left, pause].into_iter().flatten().min();
            let had_pending = !self.pending_peers().is_empty();
            match self.sleep(sleep, busy, also) {
                Woken::Room if had_pending || !self.pending_peers().is_empty() => {
                    self.flush();
                    return Wait::Ready;
                }
                // Room that nobody needs: a connection ended, or somebody else has flushed.
                Woken::Room => {}
                Woken::Also => return Wait::Also,
                Woken::Peers(ready) if ready.iter().any(|peer| !self.is_received_from(peer)) => {
                    return Wait::Ready;
                }
                // Somebody else is receiving all that there is. He may leave before he has seen the last of it,
                // so his peers cannot be forgotten; they are left out for a moment at most.
                Woken::Peers(_) if yields < YIELDS => {
                    yields += 1;
                    calls::one();
                    std::thread::yield_now();
                }
                Woken::Peers(ready) => busy = ready,
                Woken::Nothing => busy = NodeSet::EMPTY,
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Wait::TimedOut;
            }
        }
    }

    fn sleep(&self, timeout: Option<Duration>, without: NodeSet, also: Option<BorrowedFd<'_>>) -> Woken {
        let pending = self.pending_peers();
        let peers = Set(self.peers_alive().0 & !without.0);
        let mut watched = Watched::new(self.room.as_fd());
        if let Some(also) = also {
            watched.add(also, PollFlags::IN);
        }
        let first = watched.count;
        for peer in peers.iter() {
            let room = if pending.contains(peer) { PollFlags::OUT } else { PollFlags::empty() };
            watched.add(self.socket(peer), PollFlags::IN | room);
        }
        if !watched.sleep(timeout) {
            return Woken::Nothing;
        }
        if watched.is_ready(0) {
            forget_room(&self.room);
            return Woken::Room;
        }
        if also.is_some() && watched.is_ready(1) {
            return Woken::Also;
        }
        let mut ready = NodeSet::EMPTY;
        for (index, peer) in peers.iter().enumerate() {
            let events = watched.events(first + index);
            if events == PollFlags::OUT {
                return Woken::Room;
            }
            if !events.is_empty() {
                ready = ready.with(peer);
            }
        }
        Woken::Peers(ready)
    }

    /// Does a process of the node receive from this peer at this moment?
    pub(crate) fn is_received_from(&self, peer: NodeId) -> bool {
        self.shared.link(peer).r#in.lock.is_held()
    }

    /// The peers of `among` that have something to be received, or have ended.
    pub(crate) fn readable(&self, among: NodeSet) -> NodeSet {
        let mut watched = Watched::new(self.room.as_fd());
        for peer in among.iter() {
            watched.add(self.socket(peer), PollFlags::IN);
        }
        if !watched.sleep(Some(Duration::ZERO)) {
            return NodeSet::EMPTY;
        }
        let ready = among.iter().enumerate().filter(|&(index, _)| watched.is_ready(index + 1));
        ready.fold(NodeSet::EMPTY, |set, (_, peer)| set.with(peer))
    }
}

/// Why a sleep ended.
enum Woken {
    Room,
    Also,
    Peers(NodeSet),
    Nothing,
}

/// The descriptors of one sleep, on the stack: a fault handler that waits must not allocate.
struct Watched<'a> {
    descriptors: [PollFd<'a>; NODES_MAX + 2],
    count: usize,
}

impl<'a> Watched<'a> {
    fn new(first: BorrowedFd<'a>) -> Self {
        Self { descriptors: std::array::from_fn(|_| PollFd::from_borrowed_fd(first, PollFlags::IN)), count: 1 }
    }

    fn add(&mut self, descriptor: BorrowedFd<'a>, events: PollFlags) {
        self.descriptors[self.count] = PollFd::from_borrowed_fd(descriptor, events);
        self.count += 1;
    }

    /// True if something is ready; false at the end of the time, and after a signal.
    fn sleep(&mut self, timeout: Option<Duration>) -> bool {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        calls::one();
        rustix::event::poll(&mut self.descriptors[..self.count], timeout.as_ref()).is_ok_and(|ready| ready > 0)
    }

    fn events(&self, index: usize) -> PollFlags {
        self.descriptors[index].revents()
    }

    fn is_ready(&self, index: usize) -> bool {
        !self.events(index).is_empty()
    }
}
