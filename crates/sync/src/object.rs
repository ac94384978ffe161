//! The shape of a machine: what each kind of object has in common with the others.

use finespun_types::ProcessorId;

use crate::error::Wrong;
use crate::event::Kind;

/// What a row of a machine has the table do. The table knows the queue, the row only its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nobody is concerned.
    Nothing,
    /// `who` goes on at once.
    Grant(ProcessorId, u32),
    /// `who` waits at the end of the queue; the number is what it waits for (flags).
    Wait(ProcessorId, u32),
    /// The head of the queue goes on.
    GrantFirst,
    /// The whole queue goes on, oldest first.
    GrantAll,
    /// The whole queue goes on, oldest first, and then this one, which never waited.
    GrantAllAnd(ProcessorId),
    /// Those go on, oldest first, that wait for this value or less.
    GrantReached(u32),
    /// The first so many of the queue go on, oldest first.
    GrantSome(u32),
    /// This one goes on at once, and waits no longer if it did: the value says whether.
    Leave(ProcessorId),
}

/// One kind of object: its states, which fit in two words, and its table.
pub(crate) trait Object: Copy {
    /// Its kind.
    const KIND: Kind;
    /// Its part of [`Event`](crate::event::Event).
    type Event: Copy;

    /// The state that `words` stand for. Zeros are the state of an object that was never used.
    fn from_words(words: [u32; 2]) -> Self;
    /// The words that stand for the state.
    fn to_words(self) -> [u32; 2];
    /// One row per (state, event), given the head of the queue: the next state, and what is to be done.
    fn on(self, event: Self::Event, first: Option<ProcessorId>) -> Result<(Self, Step), Wrong>;
}
