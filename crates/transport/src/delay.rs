//! A transport around a transport that lets things happen late and in another order, by a seed, so that tests meet more
//! interleavings.

use crate::{ALL, Announced, Messages, SendError, Sleep, Wait};
use finespun_types::{NodeId, NodeSet, Set};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// After so many flushes or polls that held something back, one goes through whole: late, but never for ever.
const HELD_BACK_MAX: u64 = 6;

/// What a thread has held back that then sleeps for an answer goes when the node's service looks again.
const HELD_BACK_FOR: Duration = Duration::from_micros(100);

/// Of each flush and each poll it holds back some nodes, about half, and it flushes about an eighth of the sends at once. So
/// messages of different pairs of nodes overtake each other; those of one pair never do.
///
/// The seed fixes the sequence of decisions; in one thread, with a given traffic, the run is the same each time.
pub struct Delay<T> {
    inner: T,
    random: AtomicU64,
    flushes_held: AtomicU64,
    polls_held: AtomicU64,
}

impl<T: Messages> Delay<T> {
    /// Wraps `inner`.
    pub fn new(inner: T, seed: u64) -> Self {
        Self { inner, random: AtomicU64::new(seed), flushes_held: AtomicU64::new(0), polls_held: AtomicU64::new(0) }
    }

    /// The transport inside.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// SplitMix64: one addition moves the state, so threads may share it.
    fn draw(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.random.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// The nodes whose turn it is.
    fn some(&self, held: &AtomicU64) -> NodeSet {
        if held.fetch_add(1, Relaxed) < HELD_BACK_MAX {
            return Set(self.draw());
        }
        held.store(0, Relaxed);
        ALL
    }
}

impl<T: Messages> Messages for Delay<T> {
    fn send(&self, to: NodeId, parts: &[&[u8]]) -> Result<(), SendError> {
        let sent = self.inner.send(to, parts);
        if self.draw() & 7 == 0 {
            self.inner.flush();
        }
        sent
    }

    fn flush_to(&self, peers: NodeSet) {
        self.inner.flush_to(peers.intersect(self.some(&self.flushes_held)));
    }

    fn poll_from(&self, peers: NodeSet, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.inner.poll_from(peers.intersect(self.some(&self.polls_held)), handler)
    }

    /// Nothing is held back here: a thread that sleeps has nothing else to do.
    fn wait(&self, timeout: Option<Duration>, also: Option<BorrowedFd<'_>>) -> Wait {
        self.inner.wait(timeout, also)
    }

    fn waiter<'a>(&'a self, also: BorrowedFd<'a>) -> io::Result<Box<dyn Sleep + 'a>> {
        Ok(Box::new(Late { inner: &self.inner, also }))
    }

    fn pending(&self) -> usize {
        self.inner.pending()
    }

    fn gone(&self) -> NodeSet {
        self.inner.gone()
    }

    fn take_gone(&self) -> Option<NodeId> {
        self.inner.take_gone()
    }

    /// Input that is held back is announced no second time.
    fn announced(&self) -> Option<&dyn Announced> {
        None
    }
}

/// Sleeps for a moment: another thread of the node may have held something back and sleep.
struct Late<'a, T> {
    inner: &'a T,
    also: BorrowedFd<'a>,
}

impl<T: Messages> Sleep for Late<'_, T> {
    fn sleep(&self) -> Wait {
        self.inner.wait(Some(HELD_BACK_FOR), Some(self.also))
    }
}
