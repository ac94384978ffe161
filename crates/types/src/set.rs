//! Small sets as one machine word.

use core::fmt;

use zerocopy::{FromZeros, Immutable};

use crate::nouns::{NodeId, ViewId};

/// A set of small numbers in one word: of nodes ([`NodeSet`]) or of views ([`ViewSet`]).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(transparent)]
pub struct Set<Word>(pub Word);

/// The nodes that hold copies of a unit, and other sets of nodes.
pub type NodeSet = Set<u64>;

/// A set of views of one node.
pub type ViewSet = Set<u32>;

macro_rules! set_of {
    ($word:ty, $member:ident) => {
        impl Set<$word> {
            /// The set with no member.
            pub const EMPTY: Self = Self(0);

            /// The set holding only `member`.
            #[must_use]
            pub const fn only(member: $member) -> Self {
                Self(1 << member.0)
            }
            /// This set and `member`.
            #[must_use]
            pub const fn with(self, member: $member) -> Self {
                Self(self.0 | 1 << member.0)
            }
            /// This set less `member`.
            #[must_use]
            pub const fn without(self, member: $member) -> Self {
                Self(self.0 & !(1 << member.0))
            }
            /// All members of either set.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
            /// Those in both.
            #[must_use]
            pub const fn intersect(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
            /// The members that `other` does not hold.
            #[must_use]
            pub const fn minus(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
            /// Does `other` hold every member?
            #[must_use]
            pub const fn is_subset(self, other: Self) -> bool {
                self.0 & !other.0 == 0
            }
            /// Does the set hold `member`?
            #[must_use]
            pub const fn contains(self, member: $member) -> bool {
                self.0 >> member.0 & 1 == 1
            }
            /// Is the set empty?
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
            /// How many members?
            #[must_use]
            pub const fn len(self) -> usize {
                self.0.count_ones() as usize
            }
            /// The members, in order.
            pub fn iter(self) -> impl Iterator<Item = $member> {
                let mut rest = self.0;
                core::iter::from_fn(move || {
                    (rest != 0).then(|| {
                        let first = rest.trailing_zeros();
                        rest &= rest - 1;
                        $member(first as _)
                    })
                })
            }
        }

        impl fmt::Debug for Set<$word> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_set().entries(self.iter()).finish()
            }
        }
    };
}

set_of!(u64, NodeId);
set_of!(u32, ViewId);

#[cfg(test)]
mod tests {
    use super::NodeSet;
    use crate::nouns::NodeId;

    #[test]
    fn members_come_in_order_and_leave_one_by_one() {
        let set = NodeSet::only(NodeId(63)).with(NodeId(0)).with(NodeId(5));
        assert!(set.iter().eq([NodeId(0), NodeId(5), NodeId(63)]));
        assert_eq!(set.without(NodeId(5)).len(), 2);
        assert!(!set.without(NodeId(5)).contains(NodeId(5)));
    }
}
