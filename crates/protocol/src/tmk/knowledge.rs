//! What a node knows of the intervals of all nodes: vector times.

use finespun_types::NodeId;

/// Is everything in `what` also in `time`?
#[must_use]
pub fn covers(time: &[u32], what: &[u32]) -> bool {
    time.iter().zip(what).all(|(have, want)| have >= want)
}

/// Adds to `time` what `other` knows.
pub fn raise(time: &mut [u32], other: &[u32]) {
    for (mine, theirs) in time.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

/// A node's knowledge. Each slice has one word per node: the last interval of that node, counted from 1. The driver keeps
/// the words, and the intervals themselves, and lets one thread at a time in here.
///
/// `seen` is within `granted`, which is within `known`; all only grow.
#[derive(Debug)]
pub struct Knowledge<'a> {
    /// Whose.
    pub me: NodeId,
    /// The intervals that this node's processors have acquired: their notices are obeyed.
    pub seen: &'a mut [u32],
    /// Those that a grant has brought: obeyed at the next acquire.
    pub granted: &'a mut [u32],
    /// Those in the node's log. As a manager a node also keeps what concerns only others.
    pub known: &'a mut [u32],
    /// By node, a whole time each: what that node knows at least, once all that was sent to it has arrived.
    pub told: &'a mut [u32],
    /// The highest stamp of all intervals seen.
    pub clock: &'a mut u32,
}

impl Knowledge<'_> {
    /// The index and stamp of the interval that ends now. To be recorded, then [`Self::ended`]; no acquire of the node in between,
    /// else another thread could obey a notice, store, and have the store counted as older than what it follows.
    #[must_use]
    pub fn ending(&self) -> (u32, u32) {
        (self.seen[usize::from(self.me.0)] + 1, *self.clock + 1)
    }

    /// That interval is in the log, and its units know it.
    pub fn ended(&mut self, (index, stamp): (u32, u32)) {
        *self.clock = (*self.clock).max(stamp);
        for time in [&mut *self.seen, &mut *self.granted, &mut *self.known] {
            time[usize::from(self.me.0)] = index;
        }
    }

    /// The intervals of `writer` that a message to `to` must carry, so that it may say `time`: after the first, up to the second.
    /// Then [`Self::sent`].
    #[must_use]
    pub fn news(&self, to: NodeId, time: &[u32], writer: usize) -> (u32, u32) {
        let told = self.told[usize::from(to.0) * self.seen.len() + writer];
        (told.min(time[writer]), time[writer])
    }

    /// A message with `time` and its news is on its way. Under the same lock as the sending, so that no later message
    /// overtakes it.
    pub fn sent(&mut self, to: NodeId, time: &[u32]) {
        let nodes = self.seen.len();
        raise(&mut self.told[usize::from(to.0) * nodes..][..nodes], time);
    }

    /// A message with `time` came, and its news are in the log.
    pub fn heard(&mut self, from: NodeId, time: &[u32]) {
        raise(self.known, time);
        self.sent(from, time);
    }

    /// A grant brought `time`.
    pub fn grant(&mut self, time: &[u32]) {
        raise(self.granted, time);
    }

    /// Everything up to `time`, with the highest stamp in it, is obeyed.
    pub fn acquired(&mut self, time: &[u32], stamp: u32) {
        raise(self.seen, time);
        *self.clock = (*self.clock).max(stamp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_once_is_not_told_again() {
        let (mut seen, mut granted, mut known, mut told, mut clock) = ([0; 2], [0; 2], [0; 2], [0; 4], 0);
        let mut mine = Knowledge {
            me: NodeId(0),
            seen: &mut seen,
            granted: &mut granted,
            known: &mut known,
            told: &mut told,
            clock: &mut clock,
        };
        for _ in 0..2 {
            mine.ended(mine.ending());
        }
        assert_eq!(mine.ending(), (3, 3));
        assert_eq!(mine.news(NodeId(1), &[2, 0], 0), (0, 2));
        mine.sent(NodeId(1), &[2, 0]);
        assert_eq!(mine.news(NodeId(1), &[2, 0], 0), (2, 2));
        mine.heard(NodeId(1), &[2, 5]);
        assert_eq!(mine.news(NodeId(1), &[2, 5], 1), (5, 5));
        mine.acquired(&[2, 5], 9);
        assert_eq!(mine.ending(), (3, 10));
        assert!(covers(mine.known, &[2, 5]) && !covers(mine.seen, &[3, 0]));
    }
}
