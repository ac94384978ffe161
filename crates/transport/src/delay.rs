//! A transport around a transport that lets things happen late, by a seed, so that tests meet more interleavings.

use crate::{Messages, SendError, Wait};
use finespun_types::{NodeId, NodeSet};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// After so many refusals in a row a flush or a poll is let through: late, but never for ever.
const HELD_BACK_MAX: u64 = 6;

/// Holds back about half of all flushes and polls, and flushes about an eighth of the sends at once.
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

    fn is_held_back(&self, held: &AtomicU64) -> bool {
        let hold = self.draw() & 1 == 0 && held.load(Relaxed) < HELD_BACK_MAX;
        if hold {
            held.fetch_add(1, Relaxed);
        } else {
            held.store(0, Relaxed);
        }
        hold
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

    fn flush(&self) {
        if !self.is_held_back(&self.flushes_held) {
            self.inner.flush();
        }
    }

    fn poll(&self, handler: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        if self.is_held_back(&self.polls_held) { 0 } else { self.inner.poll(handler) }
    }

    /// Nothing is held back here: who sleeps has said that there is nothing else to do.
    fn wait(&self, timeout: Option<Duration>, also: Option<BorrowedFd<'_>>) -> Wait {
        self.inner.wait(timeout, also)
    }

    fn pending(&self) -> usize {
        self.inner.pending()
    }

    fn gone(&self) -> NodeSet {
        self.inner.gone()
    }
}
