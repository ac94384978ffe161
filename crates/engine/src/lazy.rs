//! Lazy release consistency: what every driver of the tables in [`finespun_protocol::tmk`] does alike. A fault asks the writers that its
//! copy names ([`wants`]). A writer answers with the diffs of [`Want::is_part`]. All that came are applied in one [`order`]. The steps of
//! a [`Release`] and of an [`Acquire`] are values. A [`Collection`] says what a processor does next, and where all meet in between.

mod steps;

pub use steps::{Acquire, Release};

use finespun_protocol::tmk::{Seen, Unit};
use finespun_types::NodeId;

/// Diffs that a copy lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Want {
    /// Their writer.
    pub writer: NodeId,
    /// The copy has its intervals up to this one.
    pub after: u32,
    /// The copy knows of those up to this one.
    pub upto: u32,
}

/// Whom a copy with these writers asks for diffs, and for which.
pub fn wants(writers: &[Seen]) -> impl Iterator<Item = Want> + '_ {
    let want = |(writer, seen): (usize, &Seen)| {
        Unit::lacks(seen).map(|(after, upto)| Want { writer: NodeId::of(writer), after, upto })
    };
    writers.iter().enumerate().filter_map(want)
}

impl Want {
    /// Is a kept diff of this interval part of the answer? None behind the first that [`Self::reaches`] is.
    #[must_use]
    pub const fn is_part(&self, index: u32) -> bool {
        index > self.after
    }

    /// Has the copy everything with a diff of this interval?
    #[must_use]
    pub const fn reaches(&self, index: u32) -> bool {
        index >= self.upto
    }
}

/// The order in which diffs are applied, whoever made them.
#[must_use]
pub const fn order(stamp: u32, from: NodeId, index: u32) -> (u32, NodeId, u32) {
    (stamp, from, index)
}

/// What a processor does in a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collection {
    /// It completes the copies that others will count on.
    Keep,
    /// All have. It drops what lacks something.
    Drop,
    /// All have. It forgets, and the program goes on.
    Forget,
}

impl Collection {
    /// What comes next, after a meeting of all.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Keep => Some(Self::Drop),
            Self::Drop => Some(Self::Forget),
            Self::Forget => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const fn seen(applied: u32, noticed: u32) -> Seen {
        Seen { noticed, applied, coming: 0 }
    }

    #[test]
    fn a_copy_asks_each_writer_of_what_it_has_noticed_and_not_applied() {
        let writers = [seen(2, 2), seen(1, 4), seen(0, 0), seen(5, 3), seen(0, 1)];
        let all: Vec<Want> = wants(&writers).collect();
        let want = |writer, after, upto| Want { writer: NodeId(writer), after, upto };
        assert_eq!(all, [want(1, 1, 4), want(4, 0, 1)]);
    }

    #[test]
    fn an_answer_ends_with_the_first_diff_that_reaches_the_notice() {
        let want = Want { writer: NodeId(0), after: 2, upto: 5 };
        let parts: Vec<u32> = [1, 2, 3, 6, 7].into_iter().filter(|index| want.is_part(*index)).collect();
        assert_eq!(parts, [3, 6, 7]);
        assert_eq!(parts.iter().position(|index| want.reaches(*index)), Some(1));
    }

    #[test]
    fn diffs_are_applied_by_stamp_then_by_node() {
        let mut all = [order(7, NodeId(0), 9), order(3, NodeId(2), 1), order(3, NodeId(1), 8)];
        all.sort_unstable();
        assert_eq!(all.map(|(stamp, from, _)| (stamp, from.0)), [(3, 1), (3, 2), (7, 0)]);
    }

    #[test]
    fn a_collection_keeps_then_drops_then_forgets() {
        assert_eq!(Collection::Keep.next(), Some(Collection::Drop));
        assert_eq!(Collection::Drop.next(), Some(Collection::Forget));
        assert_eq!(Collection::Forget.next(), None);
    }
}
