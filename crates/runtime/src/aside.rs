//! Messages put aside until the nest that sends them holds no lock.

use finespun_types::{NodeId, NodeSet};

use crate::nest::Attached;
use crate::sys::frames::Page;

/// What a message put aside carries.
pub enum Kept {
    Nothing,
    /// A page that nobody changes before the message is executed: its node has given up the right to.
    Page(Page),
    /// A diff. Only releases put such aside, never faults: this allocates.
    Diff(Box<[u8]>),
}

impl Kept {
    fn of(attached: Attached<'_>) -> Self {
        match attached {
            Attached::Nothing => Self::Nothing,
            Attached::Page(page) | Attached::Buffered(page) => Self::Page(page),
            Attached::Diff(diff) => Self::Diff(diff.into()),
        }
    }

    /// To be given to the receiver's table.
    pub const fn attached(&self) -> Attached<'_> {
        match self {
            Self::Nothing => Attached::Nothing,
            Self::Page(page) => Attached::Page(*page),
            Self::Diff(diff) => Attached::Diff(diff),
        }
    }
}

/// One message, from each of some nodes to each of others.
pub struct Aside<M> {
    pub from: NodeSet,
    pub to: NodeSet,
    pub msg: M,
    pub kept: Kept,
}

/// At most so many different messages are put aside at once: a nest sends few kinds, each to a set of nodes.
const ASIDE_MAX: usize = 6;

/// The messages put aside, in order.
pub struct Later<M> {
    /// None were, as in most nests, which then need not make the list.
    list: Option<[Option<Aside<M>>; ASIDE_MAX]>,
}

impl<M: Copy + Eq> Later<M> {
    /// None.
    pub const fn new() -> Self {
        Self { list: None }
    }

    fn list(&mut self) -> &mut [Option<Aside<M>>; ASIDE_MAX] {
        self.list.get_or_insert_default()
    }

    /// Puts a message aside. The same words from or to one more node join what is there.
    pub fn put(&mut self, from: NodeId, to: NodeId, msg: M, attached: Attached<'_>) {
        for aside in self.list().iter_mut().flatten().filter(|aside| aside.msg == msg) {
            if aside.from == NodeSet::only(from) {
                // What is sent to several nodes carries the same.
                aside.to = aside.to.with(to);
                return;
            }
            if aside.to == NodeSet::only(to) && matches!(attached, Attached::Nothing) {
                aside.from = aside.from.with(from);
                return;
            }
        }
        self.push(Aside { from: NodeSet::only(from), to: NodeSet::only(to), msg, kept: Kept::of(attached) });
    }

    fn push(&mut self, aside: Aside<M>) {
        let free = self.list().iter_mut().find(|place| place.is_none());
        *free.expect("a nest puts few messages aside") = Some(aside);
    }

    /// Takes the first one.
    pub fn next(&mut self) -> Option<Aside<M>> {
        let list = self.list.as_mut()?;
        let first = list[0].take()?;
        list.rotate_left(1);
        Some(first)
    }

    /// Adds what another nest put aside. Answers in the same words to the same node join: there may be one from every node.
    pub fn append(&mut self, other: &mut Self) {
        for aside in other.list.iter_mut().flatten().map_while(Option::take) {
            let joins = |there: &&mut Aside<M>| {
                let bare = matches!((&there.kept, &aside.kept), (Kept::Nothing, Kept::Nothing));
                bare && there.msg == aside.msg && there.to == aside.to
            };
            match self.list().iter_mut().flatten().find(joins) {
                Some(there) => there.from = there.from.union(aside.from),
                None => self.push(aside),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(mut later: Later<u8>) -> Vec<(NodeSet, NodeSet, u8)> {
        std::iter::from_fn(|| later.next().map(|aside| (aside.from, aside.to, aside.msg))).collect()
    }

    #[test]
    fn the_same_words_to_several_nodes_are_one_message_and_the_order_is_kept() {
        let (mut later, node) = (Later::new(), NodeId);
        later.put(node(0), node(1), 7, Attached::Nothing);
        later.put(node(0), node(2), 7, Attached::Nothing);
        later.put(node(1), node(0), 8, Attached::Nothing);
        later.put(node(2), node(0), 8, Attached::Nothing);
        let only = NodeSet::only;
        let (both, zero) = (only(node(1)).with(node(2)), only(node(0)));
        assert_eq!(drained(later), [(zero, both, 7), (both, zero, 8)]);
    }

    #[test]
    fn answers_from_every_node_of_the_largest_job_are_one_message() {
        let mut all = Later::new();
        for from in 1..64 {
            let mut one = Later::new();
            one.put(NodeId(from), NodeId(0), 3, Attached::Nothing);
            all.append(&mut one);
        }
        let expected = (1..64).fold(NodeSet::EMPTY, |set, node| set.with(NodeId(node)));
        assert_eq!(drained(all), [(expected, NodeSet::only(NodeId(0)), 3)]);
    }

    #[test]
    fn what_another_nest_put_aside_comes_behind() {
        let (mut first, mut second) = (Later::new(), Later::new());
        first.put(NodeId(0), NodeId(1), 1, Attached::Nothing);
        second.put(NodeId(1), NodeId(2), 2, Attached::Diff(&[5]));
        first.append(&mut second);
        assert!(first.next().is_some_and(|aside| aside.msg == 1));
        assert!(first.next().is_some_and(|aside| matches!(aside.kept.attached(), Attached::Diff([5]))));
        assert!(first.next().is_none());
    }
}
