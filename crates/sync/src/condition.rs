//! Condition variables after Mesa: a signal is a hint, the waiter locks again and tests again.
//!
//! ```text
//!   waiter                manager of c      manager of m            signaller
//!      | --- Enqueue(c) ----> |                 |                       |
//!      | <-- done ----------- |                 |                       |
//!      | release              |                 |                       |
//!      | --- Unlock(m) ------------------------>| ------ Grant -------> | acquire, change what m guards
//!      |                      | <------------------------- Signal(c) -- |
//!      | <-- Grant ---------- |                 |                       | release
//!      | --- Lock(m) -------------------------->| <----- Unlock(m) ---- |
//!      | <------------------------- Grant ----- |                       |
//!      | acquire, test again
//! ```
//!
//! Condition and mutex may have different managers, so "give up the mutex and wait" cannot be one step. The waiter
//! therefore queues *before* it unlocks, and unlocks only when it knows to be queued: whoever then holds the mutex
//! finds it in the queue. The other order, or an unlock sent without waiting for "done", loses wake-ups; the tests
//! show both. A signal may thus reach a waiter that has not unlocked yet: its grant is kept until it looks.
//!
//! A waiter whose time is up asks to *leave*. Either it was still in the queue, and no signal was spent on it; or a
//! signal had come first, and then it has been woken, and must not say that its time was up: the signal would be lost.
//!
//! The condition itself carries no data, so neither event needs a release or an acquire; those of the mutex do it.

use finespun_types::ProcessorId;

use crate::Wrong;
use crate::event::Kind;
use crate::object::{Object, Step};

/// A condition has no state but its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition;

/// What processors ask of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `Event::Enqueue`
    Enqueue(ProcessorId),
    /// `Event::Signal`
    Signal,
    /// `Event::Broadcast`
    Broadcast,
    /// `Event::Leave`
    Leave(ProcessorId),
}

impl Object for Condition {
    const KIND: Kind = Kind::Condition;
    type Event = Event;

    fn from_words(_: [u32; 2]) -> Self {
        Self
    }

    fn to_words(self) -> [u32; 2] {
        [0, 0]
    }

    #[rustfmt::skip]
    fn on(self, event: Event, first: Option<ProcessorId>) -> Result<(Self, Step), Wrong> {
        use Event::{Broadcast, Enqueue, Leave, Signal};

        Ok(match (event, first) {
            (Enqueue(who),       _)       => (self, Step::Wait(who, 0)),
            (Leave(who),         _)       => (self, Step::Leave(who)),
            (Signal,             Some(_)) => (self, Step::GrantFirst),
            (Broadcast,          Some(_)) => (self, Step::GrantAll),
            (Signal | Broadcast, None)    => (self, Step::Nothing), // not remembered
        })
    }
}
