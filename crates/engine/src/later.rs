//! Messages put aside until their transaction holds no lock.

use core::hash::{Hash, Hasher};

use finespun_types::{NodeId, NodeSet};

use crate::limits::LATER_MAX;

/// One message, from each of some nodes to each of others. One of the two sets has one member.
#[derive(Clone, Copy, Debug)]
struct Aside<M, L> {
    from: NodeSet,
    to: NodeSet,
    msg: M,
    payload: Option<L>,
}

/// A message put aside, as it is handled: from, to, its words, what goes with it.
pub(crate) type Taken<M, L> = (NodeId, NodeId, M, Option<L>);

impl<M: Copy, L: Copy> Aside<M, L> {
    fn first(&self) -> Option<Taken<M, L>> {
        Some((self.from.iter().next()?, self.to.iter().next()?, self.msg, self.payload))
    }

    /// What is left behind the first; true if anything is.
    fn drop_first(&mut self) -> bool {
        let sets = if self.to.len() > 1 { &mut self.to } else { &mut self.from };
        *sets = without_first(*sets);
        !sets.is_empty()
    }
}

fn without_first(set: NodeSet) -> NodeSet {
    set.iter().next().map_or(NodeSet::EMPTY, |first| set.without(first))
}

/// They, in order.
#[derive(Clone, Debug)]
pub(crate) struct Later<M, L> {
    /// A ring. Made when the first comes: most transactions put nothing aside.
    list: Option<[Option<Aside<M, L>>; LATER_MAX]>,
    first: u8,
    len: u8,
}

impl<M: Copy + Eq, L: Copy> Later<M, L> {
    pub(crate) const fn new() -> Self {
        Self { list: None, first: 0, len: 0 }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn in_order(&self) -> impl Iterator<Item = &Aside<M, L>> {
        let list = self.list.as_ref();
        (0..self.len).filter_map(move |at| list?[usize::from(self.first + at) % LATER_MAX].as_ref())
    }

    /// Puts a message aside; false if there is no place. Bare answers in the same words to the same node are one: there may be one from
    /// every node.
    #[cold]
    #[must_use]
    pub(crate) fn put(&mut self, from: NodeId, to: NodeSet, msg: M, payload: Option<L>) -> bool {
        debug_assert!(!to.is_empty() && !to.contains(from), "what a node sends to itself is not put aside");
        let joins = |there: &&mut Aside<M, L>| {
            let bare = there.payload.is_none() && payload.is_none();
            bare && there.msg == msg && there.to == to && to.len() == 1
        };
        let list = self.list.get_or_insert_with(|| core::array::from_fn(|_| None));
        if let Some(there) = list.iter_mut().flatten().find(joins) {
            there.from = there.from.with(from);
            return true;
        }
        if usize::from(self.len) == LATER_MAX {
            return false;
        }
        let at = usize::from(self.first + self.len) % LATER_MAX;
        list[at] = Some(Aside { from: NodeSet::only(from), to, msg, payload });
        self.len += 1;
        true
    }

    /// The next one.
    pub(crate) fn peek(&self) -> Option<Taken<M, L>> {
        self.list.as_ref()?[usize::from(self.first)].as_ref()?.first()
    }

    /// Takes it.
    pub(crate) fn next(&mut self) -> Option<Taken<M, L>> {
        let next = self.peek()?;
        let place = &mut self.list.as_mut()?[usize::from(self.first)];
        if !place.as_mut().is_some_and(Aside::drop_first) {
            *place = None;
            self.first = (self.first + 1) % LATER_MAX as u8;
            self.len -= 1;
        }
        Some(next)
    }
}

/// Each message for itself: how they are kept makes no difference.
impl<M: Copy + Eq + Hash, L: Copy + Hash> Hash for Later<M, L> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for aside in self.in_order() {
            for from in aside.from.iter() {
                for to in aside.to.iter() {
                    (from, to, aside.msg, aside.payload).hash(state);
                }
            }
        }
        u8::MAX.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;
    use std::vec::Vec;

    use super::*;

    const NODE: fn(u16) -> NodeId = NodeId;

    fn set(nodes: &[u16]) -> NodeSet {
        nodes.iter().fold(NodeSet::EMPTY, |set, &node| set.with(NODE(node)))
    }

    fn drained(mut later: Later<char, u8>) -> Vec<(u16, u16, char, Option<u8>)> {
        std::iter::from_fn(|| later.next().map(|(from, to, msg, payload)| (from.0, to.0, msg, payload))).collect()
    }

    fn hash(later: &Later<char, u8>) -> u64 {
        let mut hasher = DefaultHasher::new();
        later.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn messages_come_in_the_order_in_which_they_were_put_aside() {
        let mut later = Later::new();
        assert!(later.put(NODE(0), set(&[1, 2]), 'a', Some(9)));
        assert!(later.put(NODE(1), set(&[0]), 'b', None));
        assert_eq!(drained(later), [(0, 1, 'a', Some(9)), (0, 2, 'a', Some(9)), (1, 0, 'b', None)]);
    }

    #[test]
    fn answers_from_every_node_of_the_largest_job_take_one_place() {
        let mut later = Later::new();
        assert!((1..64).all(|from| later.put(NODE(from), set(&[0]), 'a', None)));
        assert_eq!(later.len, 1);
        let expected: Vec<_> = (1..64).map(|from| (from, 0, 'a', None)).collect();
        assert_eq!(drained(later), expected);
    }

    #[test]
    fn the_same_words_with_other_contents_stay_apart() {
        let mut later = Later::new();
        for payload in [Some(1), Some(2), None] {
            assert!(later.put(NODE(1), set(&[0]), 'u', payload));
        }
        assert_eq!(drained(later), [(1, 0, 'u', Some(1)), (1, 0, 'u', Some(2)), (1, 0, 'u', None)]);
    }

    #[test]
    fn places_are_used_again_and_a_full_list_says_so() {
        let mut later = Later::new();
        let put = |later: &mut Later<char, u8>, msg: u8| later.put(NODE(0), set(&[1]), char::from(msg), Some(0));
        for round in 0..4 * LATER_MAX as u8 {
            assert!(put(&mut later, b'a' + round));
            assert!(later.next().is_some_and(|(_, _, msg, _)| msg == char::from(b'a' + round)));
        }
        assert!((0..LATER_MAX as u8).all(|msg| put(&mut later, msg)));
        assert!(!put(&mut later, b'z'));
    }

    #[test]
    fn what_is_left_to_do_is_hashed_and_not_how_it_is_kept() {
        let (mut joined, mut fresh) = (Later::new(), Later::new());
        assert!(joined.put(NODE(3), set(&[1, 2]), 'a', None) && joined.next().is_some());
        assert!(fresh.put(NODE(3), set(&[2]), 'a', None));
        assert_eq!(hash(&joined), hash(&fresh));
        assert!(joined.next().is_some());
        assert_eq!(hash(&joined), hash(&Later::new()));
        assert_ne!(hash(&fresh), hash(&joined));
    }
}
