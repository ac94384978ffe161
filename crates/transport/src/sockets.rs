//! A mesh as what carries messages: the trait over its own calls.

use crate::room::forget_room;
use crate::waiter::Waiter;
use crate::{Announced, Mesh, Messages, SendError, Sleep, Wait};
use finespun_types::{NodeId, NodeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

impl Messages for Mesh {
    fn send(&self, to: NodeId, parts: &[&[u8]]) -> Result<(), SendError> {
        self.send(to, parts)
    }
    fn flush_to(&self, peers: NodeSet) {
        self.flush_to(peers);
    }
    fn poll_from(&self, peers: NodeSet, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.poll_from(peers, handler)
    }
    fn wait(&self, timeout: Option<Duration>, also: Option<BorrowedFd<'_>>) -> Wait {
        self.wait(timeout, also)
    }
    fn waiter<'a>(&'a self, also: BorrowedFd<'a>) -> io::Result<Box<dyn Sleep + 'a>> {
        Ok(Box::new(Waiter::new(self, also)?))
    }
    fn pending(&self) -> usize {
        self.pending()
    }
    fn gone(&self) -> NodeSet {
        self.gone()
    }
    fn take_gone(&self) -> Option<NodeId> {
        self.take_gone()
    }
    fn announced(&self) -> Option<&dyn Announced> {
        Some(self)
    }
}

impl Announced for Mesh {
    fn connections(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.iter().flatten().map(AsFd::as_fd).collect()
    }
    fn has_input(&self) -> bool {
        !self.readable(self.peers_alive()).is_empty()
    }
    fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }
    fn take_room(&self) {
        forget_room(&self.room);
        self.flush();
    }
}
