//! Asleep again and again, as a node's service is: the kernel is told once what to watch.
//!
//! [`Mesh::wait`] hands all descriptors to poll(2) each time, which puts the thread into the queue of each and takes it out again:
//! 0.5 us of a round trip of 6. Here an epoll descriptor keeps them, and a sleep watches that alone. Whatever is not the
//! ordinary case, a queue that the kernel did not take, a peer that another process receives from, is left to [`Mesh::wait`].

use crate::room::forget_room;
use crate::{Mesh, Sleep, Wait};
use finespun_sys::calls;
use finespun_types::NodeId;
use rustix::event::epoll;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What an event is about: a node's number, or one of these.
const ROOM: u64 = 1 << 32;
const ALSO: u64 = ROOM + 1;

/// Events taken at once; those left over come with the next sleep.
const EVENTS: usize = 16;

/// A mesh, and what its process watches beside it. For one thread at a time.
pub(crate) struct Waiter<'a> {
    mesh: &'a Mesh,
    also: BorrowedFd<'a>,
    watched: OwnedFd,
}

impl<'a> Waiter<'a> {
    /// # Errors
    /// The kernel's, if it has no room for one more epoll descriptor.
    pub(crate) fn new(mesh: &'a Mesh, also: BorrowedFd<'a>) -> Result<Self, Errno> {
        let watched = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watch = |descriptor: BorrowedFd<'_>, about| {
            epoll::add(&watched, descriptor, epoll::EventData::new_u64(about), epoll::EventFlags::IN)
        };
        watch(mesh.room.as_fd(), ROOM)?;
        watch(also, ALSO)?;
        for peer in mesh.peers_alive().iter() {
            watch(mesh.socket(peer), u64::from(peer.0))?;
        }
        Ok(Self { mesh, also, watched })
    }
}

impl Sleep for Waiter<'_> {
    /// Flushes, then sleeps until a message may be there or a full queue has room, the other descriptor is readable or
    /// a peer is lost.
    fn sleep(&self) -> Wait {
        loop {
            self.mesh.flush();
            if let Some(peer) = self.mesh.take_gone() {
                return Wait::PeerGone(peer);
            }
            if !self.mesh.pending_peers().is_empty() {
                return self.mesh.wait(None, Some(self.also));
            }
            if let Some(wait) = self.sleep_once() {
                return wait;
            }
        }
    }
}

impl Waiter<'_> {
    /// One sleep; `None` if it ended for nothing.
    fn sleep_once(&self) -> Option<Wait> {
        let nothing = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [nothing; EVENTS];
        calls::one();
        // The only error there can be is that a signal came.
        let count = epoll::wait(&self.watched, &mut events, None).unwrap_or(0);
        let (mut is_ready, mut is_held) = (false, false);
        for event in &events[..count] {
            match event.data.u64() {
                ALSO => return Some(Wait::Also),
                ROOM => forget_room(&self.mesh.room),
                node => {
                    let peer = NodeId::of(node as usize);
                    if self.mesh.gone().contains(peer) {
                        // Its end would be told for ever. An error says that it is forgotten already.
                        let _ = epoll::delete(&self.watched, self.mesh.socket(peer));
                    } else if self.mesh.is_received_from(peer) {
                        is_held = true;
                    } else {
                        is_ready = true;
                    }
                }
            }
        }
        match (is_ready, is_held) {
            (true, _) => Some(Wait::Ready),
            // Somebody else is receiving all that there is: looked at again, after a moment or without those peers.
            (false, true) => Some(self.mesh.wait(None, Some(self.also))),
            (false, false) => None,
        }
    }
}
