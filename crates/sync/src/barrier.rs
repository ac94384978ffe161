//! A barrier: all arrive, then all go on. The count comes with each arrival.
//!
//! ```text
//!   processor p               manager of the barrier               processor q
//!      | release                      |                                | release
//!      | --- Arrive(p, count 2) --->  | p waits                        |
//!      |                              | <------ Arrive(q, count 2) --- |
//!      | <-- Grant(p) --------------  | ------- Grant(q) ----------->  |
//!      | acquire                      |                                | acquire
//! ```
//!
//! The last arrival empties the barrier in the same step that grants everybody, so it is usable again at once: who
//! hurries into the next round arrives at an empty barrier, and no sense flag is needed to tell the rounds apart
//! (the word that [Cashmere05 §2.3.1.1] toggles).
//!
//! One arrival may stand for several processors (its `weight`): `fsp_barrier_all` collects a node's processors first
//! and sends one message, as Cashmere does with a counter on each node and [Strings §4.6] with its summing barrier
//! (10-20 % off a barrier there). The grant then goes to the one that was sent, which wakes the others of its node.
//! A barrier with a count of the program's own cannot be collected so: nobody knows how many of a node will come.

use core::cmp::Ordering::{Equal, Greater, Less};

use finespun_types::ProcessorId;

use crate::Wrong;
use crate::event::Kind;
use crate::object::{Object, Step};

/// How full the barrier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// Nobody is in it.
    Empty,
    /// A round is under way.
    Filling {
        /// How many must arrive: what the first of the round said.
        count: u32,
        /// How many have.
        arrived: u32,
    },
}

/// A processor, or a node's, arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrive {
    /// How many must arrive.
    pub count: u32,
    /// Who waits for the grant.
    pub who: ProcessorId,
    /// How many processors arrive with it.
    pub weight: u32,
}

impl Object for Barrier {
    const KIND: Kind = Kind::Barrier;
    type Event = Arrive;

    fn from_words([count, arrived]: [u32; 2]) -> Self {
        match count {
            0 => Self::Empty,
            _ => Self::Filling { count, arrived },
        }
    }

    fn to_words(self) -> [u32; 2] {
        match self {
            Self::Empty => [0, 0],
            Self::Filling { count, arrived } => [count, arrived],
        }
    }

    #[rustfmt::skip]
    fn on(self, Arrive { count: given, who, weight }: Arrive, _: Option<ProcessorId>) -> Result<(Self, Step), Wrong> {
        use Barrier::{Empty, Filling};
        debug_assert!(weight > 0, "an arrival stands for somebody");

        let (count, before) = match self {
            Empty if given == 0                          => return Err(Wrong::CountZero),
            Empty                                        => (given, 0),
            Filling { count, .. } if count != given      => return Err(Wrong::CountMismatch { expected: count, given }),
            Filling { count, arrived }                   => (count, arrived),
        };
        let arrived = before.saturating_add(weight);
        Ok(match (self, arrived.cmp(&count)) {
            (Empty | Filling { .. }, Less)    => (Filling { count, arrived }, Step::Wait(who, 0)),
            (Empty | Filling { .. }, Equal)   => (Empty, Step::GrantAllAnd(who)),
            (Empty | Filling { .. }, Greater) => return Err(Wrong::TooManyArrived { expected: count, arrived }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(count: u32, weight: u32) -> Arrive {
        Arrive { count, who: ProcessorId(7), weight }
    }

    #[test]
    fn the_last_arrival_empties_the_barrier() {
        let full = Barrier::Filling { count: 4, arrived: 2 }.on(arrive(4, 2), None);
        assert_eq!(full, Ok((Barrier::Empty, Step::GrantAllAnd(ProcessorId(7)))));
    }

    #[test]
    fn a_wrong_count_is_refused_with_both_numbers() {
        let filling = Barrier::Filling { count: 4, arrived: 3 };
        assert_eq!(filling.on(arrive(5, 1), None), Err(Wrong::CountMismatch { expected: 4, given: 5 }));
        assert_eq!(filling.on(arrive(4, 2), None), Err(Wrong::TooManyArrived { expected: 4, arrived: 5 }));
        assert_eq!(Barrier::Empty.on(arrive(0, 1), None), Err(Wrong::CountZero));
    }
}
