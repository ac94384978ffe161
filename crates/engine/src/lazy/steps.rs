//! The numbered steps of a release and an acquire under lazy release consistency, as values that say what comes next.

use core::ops::RangeInclusive;

use finespun_protocol::tmk::{Event, Knowledge};
use finespun_types::NodeId;

/// A release: the node's open interval ends, if it has written anything. One at a time, and no acquire of the node meanwhile. Step 1 is
/// to take the dirty list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The interval's.
    pub index: u32,
    /// The interval's.
    pub stamp: u32,
}

impl Release {
    /// Step 2.
    #[must_use]
    pub fn begin(knowledge: &Knowledge<'_>) -> Self {
        let (index, stamp) = knowledge.ending();
        Self { index, stamp }
    }

    /// Step 3, of each unit of the list.
    #[must_use]
    pub const fn close(&self) -> Event<'static> {
        Event::Close { index: self.index, stamp: self.stamp }
    }

    /// Step 4. The interval stands in the log. Now others may be told.
    pub fn end(self, knowledge: &mut Knowledge<'_>) {
        knowledge.ended((self.index, self.stamp));
    }
}

/// An acquire of a node: obeys the notices that grants have brought. One at a time, and no fault of the node in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acquire<T> {
    seen: T,
    granted: T,
    highest: u32,
}

impl<T: AsRef<[u32]> + PartialEq> Acquire<T> {
    /// Step 1. What the node has seen, and what was granted until now.
    pub const fn begin(seen: T, granted: T) -> Self {
        Self { seen, granted, highest: 0 }
    }

    /// Is there nothing to obey?
    pub fn is_over(&self) -> bool {
        self.seen == self.granted
    }

    /// Step 2, of each writer. Its intervals whose notices are obeyed: those that a grant has brought and no acquire has seen.
    pub fn intervals_of(&self, writer: NodeId) -> RangeInclusive<u32> {
        let writer = usize::from(writer.0);
        self.seen.as_ref()[writer] + 1..=self.granted.as_ref()[writer]
    }

    /// Step 3, of each unit of such an interval.
    pub fn notice(&mut self, from: NodeId, index: u32, stamp: u32) -> Event<'static> {
        self.highest = self.highest.max(stamp);
        Event::Notice { from, index, stamp }
    }

    /// Step 4.
    pub fn end(&self, knowledge: &mut Knowledge<'_>) {
        knowledge.acquired(self.granted.as_ref(), self.highest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that has ended four intervals of its own, and knows of six of another; the clock stands at 7.
    fn with_knowledge<R>(body: impl FnOnce(&mut Knowledge<'_>) -> R) -> (R, [u32; 2], u32) {
        let (mut seen, mut granted, mut known, mut told, mut clock) = ([4, 2], [4, 6], [4, 6], [0; 4], 7);
        let result = body(&mut Knowledge {
            me: NodeId(0),
            seen: &mut seen,
            granted: &mut granted,
            known: &mut known,
            told: &mut told,
            clock: &mut clock,
        });
        (result, seen, clock)
    }

    #[test]
    fn a_release_closes_with_the_next_interval_and_is_known_at_its_end() {
        let (release, seen, clock) = with_knowledge(|knowledge| Release::begin(knowledge));
        assert_eq!((release.close(), seen, clock), (Event::Close { index: 5, stamp: 8 }, [4, 2], 7));
        let ((), seen, clock) = with_knowledge(|knowledge| release.end(knowledge));
        assert_eq!((seen, clock), ([5, 2], 8));
    }

    #[test]
    fn an_acquire_obeys_what_was_granted_since_the_last_one() {
        let mut acquire = Acquire::begin([4, 2], [4, 6]);
        assert!(!acquire.is_over() && Acquire::begin([4, 6], [4, 6]).is_over());
        assert!(acquire.intervals_of(NodeId(0)).is_empty());
        assert_eq!(acquire.intervals_of(NodeId(1)), 3..=6);
        let from = NodeId(1);
        assert_eq!(acquire.notice(from, 3, 12), Event::Notice { from, index: 3, stamp: 12 });
        acquire.notice(from, 4, 9);
        let ((), seen, clock) = with_knowledge(|knowledge| acquire.end(knowledge));
        assert_eq!((seen, clock), ([4, 6], 12), "the highest stamp counts, whichever notice it came with");
    }
}
