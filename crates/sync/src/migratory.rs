//! Mutual exclusion by ownership that migrates: the mutex stays at the node that had it last [Strings §2.6].
//!
//! Three roles. The *manager* of a mutex, found by its address, knows only the *tail*: the node that asked last. The
//! *owner* is the one node that has the mutex; there it is free, or held by one of its processors. A *requester* has asked and
//! waits. The requests make a queue that stands in no single place: each node knows who comes after it.
//!
//! ```text
//!   node 1 (requester)       manager                 node 2 (tail, owner)      node 3 (requester)
//!      | --- Ask(1) ---------> | tail 2 -> 1               | held                  |
//!      |                       | --- Forward(1) ---------> | next = 1              |
//!      |                       | <------------------------------------ Ask(3) ---- |
//!      | <-- Forward(3) ------ | tail 1 -> 3               |                       |
//!      | next = 3              |                           | unlocked              |
//!      | <------------------------------------- Own ------ | elsewhere             |
//!      | held, unlocked        |                           |                       |
//!      | ------------------------------------------------------------- Own ------> |
//! ```
//!
//! What follows from it:
//!
//! - Locking again in the node that owns costs no message, whichever of its processors does; from elsewhere it costs three,
//!   the hand-off to a node that waits already costs one, and that one goes straight from holder to holder.
//! - A node has one request under way at most. Its other processors queue up behind it at home.
//! - A node has one successor at most: only the tail is told of a request, and by that stops being the tail.
//! - Processors of the owner go before other nodes, as in the paper. Theirs promises neither fairness nor progress; ours
//!   bounds it: after [`Place::local_max`] hand-overs in a row while another node waits, that node is next, and the rest
//!   of the queue asks again. Nobody starves, but the order is not that of the requests.
//! - No order of messages is needed, between any two nodes: an `Own` and the `Forward` that is for its receiver may
//!   come in either order, and no two messages of one kind for one node are ever under way.
//!
//! A mutex that nobody has used, or that came to rest at its manager, is the manager's and free: it takes no memory. Any other
//! takes an entry at its owner and one at its manager.
//!
//! **A try** asks as a lock does, and its node joins the queue of nodes whether it succeeds or not: the tail has moved. Where it
//! finds the mutex held it is refused at once, and later the mutex comes by for whoever wants it. So a try may fail while
//! the mutex is on its way to a node where nobody waits.
//!
//! **A hand-over** is an unlock without a release before it: it succeeds only if a processor in whose name the next release
//! will flush the same changes is next in line. Else nothing happens, and the caller releases and unlocks.

use core::ops::Range;

use finespun_types::{NodeId, ProcessorId, messages};

use crate::{Grant, Wrong};

/// Where an event meets a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The node whose table it is.
    pub me: NodeId,
    /// The manager of the mutex.
    pub manager: NodeId,
    /// How many hand-overs inside the node, one after the other, may go before another node that waits; 64 or more are
    /// no bound.
    pub local_max: u8,
}

/// What happens to a mutex at a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Granted when `who`, a processor of this node, holds it.
    Lock(ProcessorId),
    /// Granted at once, or when its owner has said: value 1, `who` holds it; value 0, somebody held it.
    TryLock(ProcessorId),
    /// No grant to `who`.
    Unlock(ProcessorId),
    /// As `Unlock`, if one of `to` is next; else nothing. No grant to `who`.
    HandOver {
        /// Who holds it.
        who: ProcessorId,
        /// Whose later release does what was not done before this.
        to: Range<u32>,
    },
    /// A node's message.
    Receive(Message),
}

messages! {
    /// What nodes tell each other of a mutex.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Message {
        /// To the manager: this node wants it.
        1 Ask {
            /// Which.
            node: NodeId,
            /// Its processor that only tries.
            trier: Option<ProcessorId>,
        },
        /// From the manager to the tail: this node comes after you.
        2 Forward {
            /// Which.
            node: NodeId,
            /// See `Ask`.
            trier: Option<ProcessorId>,
        },
        /// To the next in the queue of nodes: it is yours.
        3 Own {
            /// The trier that holds it from now on, where a try found it free.
            trier: Option<ProcessorId>,
        },
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// The operation of a processor is complete. Of another node's, where a try is refused.
    Grant(Grant),
    /// The message goes to a node, perhaps this one.
    Send {
        /// Which.
        to: NodeId,
        /// What.
        message: Message,
    },
}

/// A node's part in a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Another node's. At the manager, with no tail: its own, and never used.
    Elsewhere,
    /// Asked for.
    Asking,
    /// This node's, and nobody holds it.
    Free,
    /// This node's, held by this processor.
    Held(ProcessorId),
}

/// One mutex at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    /// This node's part.
    pub part: Part,
    /// The node that comes after this one.
    pub next: Option<NodeId>,
    /// Hand-overs inside the node since `next` waits.
    pub passes: u8,
    /// At the manager: the node that asked last.
    pub tail: Option<NodeId>,
}

/// What a row does to the queue of the node's own processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Nothing.
    Stays,
    /// This one waits, last.
    Joins(ProcessorId),
    /// The first goes on.
    FirstGoes,
    /// This one goes on, or is refused, without waiting.
    Answer(ProcessorId, u32),
}

/// What a row has the table do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) line: Line,
    pub(crate) send: Option<(NodeId, Message)>,
    /// A second message: the node asks again for those that still wait.
    pub(crate) ask: Option<(NodeId, Message)>,
}

/// Why a row refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The program's mistake.
    Wrong(Wrong),
    /// Ours.
    Impossible,
}

impl Step {
    const fn line(line: Line) -> Self {
        Self { line, send: None, ask: None }
    }

    const fn send(to: NodeId, message: Message) -> Self {
        Self { line: Line::Stays, send: Some((to, message)), ask: None }
    }

    const fn and_ask(self, to: NodeId, message: Message) -> Self {
        Self { ask: Some((to, message)), ..self }
    }
}

/// The bits of a node's number plus one, in the words of a lock.
const NODE: u32 = (1 << 12) - 1;
/// The most hand-overs that the words of a lock count: further ones are not told apart.
const PASSES_MAX: u8 = (1 << 6) - 1;

impl Lock {
    /// The lock that `words` stand for. Zeros are a mutex that nobody has used.
    pub(crate) fn from_words([holder, rest]: [u32; 2]) -> Self {
        let node = |at: u32| (rest >> at & NODE).checked_sub(1).map(|node| NodeId::of(node as usize));
        let part = match (holder.checked_sub(1), rest & 0b11) {
            (Some(holder), _) => Part::Held(ProcessorId(holder)),
            (None, 1) => Part::Asking,
            (None, 2) => Part::Free,
            (None, _) => Part::Elsewhere,
        };
        Self { part, next: node(8), passes: (rest >> 2) as u8 & PASSES_MAX, tail: node(20) }
    }

    /// The words that stand for the lock.
    pub(crate) fn to_words(self) -> [u32; 2] {
        let node = |node: Option<NodeId>, at: u32| node.map_or(0, |node| u32::from(node.0) + 1) << at;
        let (holder, part) = match self.part {
            Part::Elsewhere => (0, 0),
            Part::Asking => (0, 1),
            Part::Free => (0, 2),
            Part::Held(holder) => (holder.0 + 1, 0),
        };
        debug_assert!(self.passes <= PASSES_MAX, "no more hand-overs than a word has room for");
        [holder, part | u32::from(self.passes) << 2 | node(self.next, 8) | node(self.tail, 20)]
    }

    /// One row per (part, event), given the first of the node's own processors that wait.
    pub(crate) fn on(self, at: Place, event: &Event, first: Option<ProcessorId>) -> Result<(Self, Step), Refused> {
        let (next, step) = if let Event::Receive(Message::Ask { node, trier }) = *event {
            self.on_ask(at, node, trier)?
        } else if self.is_unused(at) {
            Self { part: Part::Free, tail: Some(at.me), ..self }.on_own(at, event, first)?
        } else {
            self.on_own(at, event, first)?
        };
        Ok((next.at_rest(at), step))
    }

    /// The manager's: nobody has asked yet, so the mutex is still here.
    fn is_unused(self, at: Place) -> bool {
        at.me == at.manager && self.tail.is_none()
    }

    /// Free at its manager, and nobody has asked since: as if never used.
    fn at_rest(self, at: Place) -> Self {
        match self {
            Self { part: Part::Free, next: None, tail: Some(tail), .. } if tail == at.manager && tail == at.me => {
                Self { part: Part::Elsewhere, next: None, passes: 0, tail: None }
            }
            Self { .. } => self,
        }
    }

    /// The manager's table: the request goes to the tail, and its node is the tail from now on.
    fn on_ask(self, at: Place, node: NodeId, trier: Option<ProcessorId>) -> Result<(Self, Step), Refused> {
        let asked = Self { tail: Some(node), ..self };
        match self.tail {
            None if self.part != Part::Elsewhere || node == at.me => Err(Refused::Impossible),
            None => Ok((asked, Step::send(node, Message::Own { trier }))),
            Some(tail) if tail == node => Err(Refused::Impossible), // it owns the mutex, or has asked already
            Some(tail) => Ok((asked, Step::send(tail, Message::Forward { node, trier }))),
        }
    }

    /// The table of a node's own part.
    #[rustfmt::skip]
    fn on_own(self, at: Place, event: &Event, first: Option<ProcessorId>) -> Result<(Self, Step), Refused> {
        use Event::{HandOver, Lock, Receive, TryLock, Unlock};
        use Line::{Answer, FirstGoes, Joins, Stays};
        use Message::{Ask, Forward, Own};
        use Part::{Asking, Elsewhere, Free, Held};
        debug_assert!(self.part != Free || self.next.is_none() && first.is_none(), "nobody waits for a free mutex");
        debug_assert!(self.part != Elsewhere || self.next.is_none() && first.is_none(), "who waits has asked");

        let is = |part| Self { part, ..self };
        let ask = |trier| Step::send(at.manager, Ask { node: at.me, trier });
        Ok(match (self.part, event) {
            (Elsewhere, Lock(who))    => (is(Asking), Step { line: Joins(*who), ..ask(None) }),
            (Elsewhere, TryLock(who)) => (is(Asking), ask(Some(*who))),

            (Asking, Lock(who))       => (self, Step::line(Joins(*who))),
            (Asking, TryLock(who))    => (self, Step::line(Answer(*who, 0))),

            (Free, Lock(who))         => (is(Held(*who)), Step::line(Answer(*who, 0))),
            (Free, TryLock(who))      => (is(Held(*who)), Step::line(Answer(*who, 1))),

            (Held(holder), Lock(who)) if *who == holder => return Err(Refused::Wrong(Wrong::Relock)),
            (Held(_), Lock(who))      => (self, Step::line(Joins(*who))),
            (Held(_), TryLock(who))   => (self, Step::line(Answer(*who, 0))), // by the holder too, as in POSIX

            (Elsewhere | Asking, Unlock(_) | HandOver { .. }) => return Err(Refused::Wrong(Wrong::NotHeldHere)),
            (Free, Unlock(_) | HandOver { .. })               => return Err(Refused::Wrong(Wrong::NotHeld)),
            (Held(owner), Unlock(who) | HandOver { who, .. }) if *who != owner
                                                              => return Err(Refused::Wrong(Wrong::NotOwner { owner })),
            (Held(_), Unlock(_))                              => self.unlocked(at, first),
            (Held(_), HandOver { to, .. }) => match first {
                Some(heir) if to.contains(&heir.0) && self.is_locals_turn(at) => self.handed_to(heir),
                Some(_) | None => (self, Step::line(Stays)),
            },

            (Asking | Held(_), Receive(Forward { .. })) if self.next.is_some() => return Err(Refused::Impossible),
            (Asking | Held(_), Receive(Forward { node, trier })) => {
                let refusal = trier.map_or(Stays, |trier| Answer(trier, 0));
                (Self { next: Some(*node), passes: 0, ..self }, Step::line(refusal))
            }
            (Free, Receive(Forward { node, trier })) => (is(Elsewhere), Step::send(*node, Own { trier: *trier })),
            (Elsewhere, Receive(Forward { .. }))     => return Err(Refused::Impossible),

            (Asking, Receive(Own { trier: Some(trier) })) => (is(Held(*trier)), Step::line(Answer(*trier, 1))),
            (Asking, Receive(Own { trier: None })) => match (first, self.next) {
                (Some(first), _)   => (is(Held(first)), Step::line(FirstGoes)),
                (None, Some(next)) => (self.gone(), Step::send(next, Own { trier: None })), // a try had failed here
                (None, None)       => (is(Free), Step::line(Stays)),
            },
            (Elsewhere | Free | Held(_), Receive(Own { .. })) => return Err(Refused::Impossible),
            (Elsewhere | Asking | Free | Held(_), Receive(Ask { .. })) => return Err(Refused::Impossible), // see on_ask
        })
    }

    /// Nobody else waits, or others have not waited for too many here.
    fn is_locals_turn(self, at: Place) -> bool {
        self.next.is_none() || self.passes < at.local_max
    }

    fn handed_to(self, heir: ProcessorId) -> (Self, Step) {
        let passes = if self.next.is_some() { (self.passes + 1).min(PASSES_MAX) } else { 0 };
        (Self { part: Part::Held(heir), passes, ..self }, Step::line(Line::FirstGoes))
    }

    /// Who is next: a processor of this node, the next node, or nobody.
    fn unlocked(self, at: Place, first: Option<ProcessorId>) -> (Self, Step) {
        match (first, self.next) {
            (Some(heir), _) if self.is_locals_turn(at) => self.handed_to(heir),
            (_, Some(next)) => {
                let step = Step::send(next, Message::Own { trier: None });
                match first {
                    None => (self.gone(), step),
                    // Those that still wait ask again: the node is last in the queue of nodes now.
                    Some(_) => {
                        let again = Message::Ask { node: at.me, trier: None };
                        (Self { part: Part::Asking, ..self.gone() }, step.and_ask(at.manager, again))
                    }
                }
            }
            (None, None) => (Self { part: Part::Free, passes: 0, ..self }, Step::line(Line::Stays)),
            (Some(heir), None) => self.handed_to(heir),
        }
    }

    /// The mutex has left.
    fn gone(self) -> Self {
        Self { part: Part::Elsewhere, next: None, passes: 0, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_the_wire() {
        finespun_types::catalogue::assert_codec(Message::has_number, Message::of_words, Message::words);
    }

    const ME: NodeId = NodeId(1);
    const P: ProcessorId = ProcessorId(2);
    const Q: ProcessorId = ProcessorId(3);
    const AT: Place = Place { me: ME, manager: NodeId(0), local_max: 1 };
    const MANAGER: Place = Place { me: NodeId(0), ..AT };
    const NEW: Lock = Lock { part: Part::Elsewhere, next: None, passes: 0, tail: None };

    fn next(lock: Lock, event: Event, first: Option<ProcessorId>) -> (Lock, Step) {
        lock.on(AT, &event, first).expect("a row")
    }

    #[test]
    fn every_lock_survives_its_two_words() {
        for part in [Part::Elsewhere, Part::Asking, Part::Free, Part::Held(P), Part::Held(ProcessorId(0))] {
            for node in [None, Some(NodeId(0)), Some(NodeId(63))] {
                for passes in [0, PASSES_MAX] {
                    let lock = Lock { part, next: node, passes, tail: node };
                    assert_eq!(Lock::from_words(lock.to_words()), lock);
                }
            }
        }
        assert_eq!(NEW.to_words(), [0, 0]);
    }

    #[test]
    fn locking_again_where_it_was_last_costs_no_message() {
        let (free, step) = next(Lock { part: Part::Held(P), ..NEW }, Event::Unlock(P), None);
        assert_eq!((free.part, step), (Part::Free, Step::line(Line::Stays)));
        let (held, step) = next(free, Event::Lock(Q), None);
        assert_eq!((held.part, step), (Part::Held(Q), Step::line(Line::Answer(Q, 0))));
    }

    #[test]
    fn a_second_processor_of_a_node_queues_behind_the_request_of_the_first() {
        let (asking, step) = next(NEW, Event::Lock(P), None);
        assert_eq!(step.send, Some((NodeId(0), Message::Ask { node: ME, trier: None })));
        assert_eq!(next(asking, Event::Lock(Q), Some(P)).1, Step::line(Line::Joins(Q)));
    }

    #[test]
    fn what_rests_at_its_manager_takes_no_memory() {
        let (held, _) = NEW.on(MANAGER, &Event::Lock(P), None).expect("a row");
        assert_eq!(held.tail, Some(NodeId(0)));
        let (rests, _) = held.on(MANAGER, &Event::Unlock(P), None).expect("a row");
        assert_eq!(rests, NEW);
    }

    #[test]
    fn the_manager_sends_each_request_to_the_one_before() {
        let ask = |lock: Lock, node| lock.on(MANAGER, &Event::Receive(Message::Ask { node, trier: None }), None);
        let (first, step) = ask(NEW, NodeId(2)).expect("a row");
        assert_eq!(step.send, Some((NodeId(2), Message::Own { trier: None })));
        let (_, step) = ask(first, NodeId(3)).expect("a row");
        assert_eq!(step.send, Some((NodeId(2), Message::Forward { node: NodeId(3), trier: None })));
        assert_eq!(ask(first, NodeId(2)), Err(Refused::Impossible));
    }

    #[test]
    fn another_node_waits_for_so_many_hand_overs_and_no_more() {
        let held = Lock { part: Part::Held(P), next: Some(NodeId(4)), ..NEW };
        let (passed, step) = next(held, Event::Unlock(P), Some(Q));
        assert_eq!((passed.part, passed.passes, step.line), (Part::Held(Q), 1, Line::FirstGoes));
        let (asking, step) = next(passed, Event::Unlock(Q), Some(P));
        assert_eq!(asking.part, Part::Asking);
        assert_eq!(step.send, Some((NodeId(4), Message::Own { trier: None })));
        assert_eq!(step.ask, Some((NodeId(0), Message::Ask { node: ME, trier: None })));
    }

    #[test]
    fn a_hand_over_is_only_to_those_named() {
        let held = Lock { part: Part::Held(P), ..NEW };
        let over = |to| Event::HandOver { who: P, to };
        assert_eq!(next(held, over(2..4), Some(Q)).0.part, Part::Held(Q));
        assert_eq!(next(held, over(2..3), Some(Q)), (held, Step::line(Line::Stays)));
        assert_eq!(next(held, over(2..4), None), (held, Step::line(Line::Stays)));
    }

    #[test]
    fn an_unlock_by_another_is_refused_wherever_the_mutex_is() {
        let refused = |part, who| Lock { part, ..NEW }.on(AT, &Event::Unlock(who), None);
        assert_eq!(refused(Part::Held(P), Q), Err(Refused::Wrong(Wrong::NotOwner { owner: P })));
        assert_eq!(refused(Part::Free, Q), Err(Refused::Wrong(Wrong::NotHeld)));
        assert_eq!(refused(Part::Elsewhere, Q), Err(Refused::Wrong(Wrong::NotHeldHere)));
        assert_eq!(refused(Part::Asking, Q), Err(Refused::Wrong(Wrong::NotHeldHere)));
        let relock = Lock { part: Part::Held(P), ..NEW }.on(AT, &Event::Lock(P), None);
        assert_eq!(relock, Err(Refused::Wrong(Wrong::Relock)));
    }
}
