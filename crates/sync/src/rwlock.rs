//! A lock for several readers or one writer.
//!
//! ```text
//!   reader p                  manager of the lock                writer q
//!      | --- Read(p) ------------>  | one reader                      |
//!      | <-- Grant ---------------  |                                 |
//!      | acquire, read              | <------------------ Write(q) -- |   q waits for p
//!      | release                    |                                 |
//!      | --- Unlock(p) ---------->  | -------------------- Grant ---> | acquire, write
//! ```
//!
//! First come, first served, so that nobody starves: a reader that comes while a writer waits, waits behind it; what leaves
//! lets in the writer at the head of the queue, or all the readers that stand there. One exception: a processor that
//! is a reader already is let in past waiting writers, for they wait for it; programs do lock for reading twice. The lock
//! does not remember who reads, so the processor itself says that it does (`again`).
//!
//! It is a table of its own, not built of a mutex and conditions: that would take the count of readers, in memory that a
//! page protocol moves, through every lock and unlock. A reader releases when it unlocks, though it may have written
//! nothing under this lock: what it wrote before, the next writer is to see.

use finespun_types::ProcessorId;

use crate::Wrong;
use crate::object::Step;

/// What a waiting reader waits for, as the queue remembers it.
pub(crate) const READER: u32 = 0;
/// The same of a writer.
pub(crate) const WRITER: u32 = 1;

/// Who has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rwlock {
    /// Nobody, and nobody waits.
    Free,
    /// So many readers. Others may wait.
    Shared(u32),
    /// This writer. Others may wait.
    Exclusive(ProcessorId),
}

/// What processors ask of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `Event::ReadLock`
    Read { who: ProcessorId, again: bool },
    /// `Event::TryReadLock`
    TryRead { who: ProcessorId, again: bool },
    /// `Event::WriteLock`
    Write(ProcessorId),
    /// `Event::TryWriteLock`
    TryWrite(ProcessorId),
    /// `Event::RwUnlock`
    Unlock(ProcessorId),
}

/// The head of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Who has waited longest.
    pub first: Option<ProcessorId>,
    /// How many readers stand there before the first writer.
    pub readers: u32,
}

impl Rwlock {
    pub(crate) fn from_words([writer, readers]: [u32; 2]) -> Self {
        match (writer.checked_sub(1), readers) {
            (Some(writer), _) => Self::Exclusive(ProcessorId(writer)),
            (None, 0) => Self::Free,
            (None, readers) => Self::Shared(readers),
        }
    }

    pub(crate) const fn to_words(self) -> [u32; 2] {
        match self {
            Self::Free => [0, 0],
            Self::Shared(readers) => [0, readers],
            Self::Exclusive(writer) => [writer.0 + 1, 0],
        }
    }

    /// One row per (state, event).
    #[rustfmt::skip]
    pub(crate) fn on(self, event: Event, line: Line) -> Result<(Self, Step), Wrong> {
        use Event::{Read, TryRead, TryWrite, Unlock, Write};
        use Rwlock::{Exclusive, Free, Shared};
        debug_assert!(self != Free || line == Line::default(), "nobody waits for a free lock");
        let may_share = |again| again || line.first.is_none();

        Ok(match (self, event) {
            (Free, Read { who, .. })      => (Shared(1), Step::Grant(who, 0)),
            (Free, TryRead { who, .. })   => (Shared(1), Step::Grant(who, 1)),
            (Free, Write(who))            => (Exclusive(who), Step::Grant(who, 0)),
            (Free, TryWrite(who))         => (Exclusive(who), Step::Grant(who, 1)),
            (Free, Unlock(_))             => return Err(Wrong::NotHeld),

            (Shared(n), Read { who, again })    if may_share(again) => (Shared(n + 1), Step::Grant(who, 0)),
            (Shared(n), TryRead { who, again }) if may_share(again) => (Shared(n + 1), Step::Grant(who, 1)),
            (Shared(_), Read { who, .. })    => (self, Step::Wait(who, READER)),
            (Shared(_), TryRead { who, .. }) => (self, Step::Grant(who, 0)),
            (Shared(_), Write(who))          => (self, Step::Wait(who, WRITER)),
            (Shared(_), TryWrite(who))       => (self, Step::Grant(who, 0)),
            (Shared(1), Unlock(_))           => Self::next_in(line),
            (Shared(n), Unlock(_))           => (Shared(n - 1), Step::Nothing),

            (Exclusive(writer), Read { who, .. } | Write(who)) if who == writer => return Err(Wrong::Relock),
            (Exclusive(_), Read { who, .. })    => (self, Step::Wait(who, READER)),
            (Exclusive(_), Write(who))          => (self, Step::Wait(who, WRITER)),
            (Exclusive(_), TryRead { who, .. } | TryWrite(who)) => (self, Step::Grant(who, 0)),
            (Exclusive(writer), Unlock(who)) if who != writer => return Err(Wrong::NotOwner { owner: writer }),
            (Exclusive(_), Unlock(_))           => Self::next_in(line),
        })
    }

    /// Nobody is left inside.
    const fn next_in(line: Line) -> (Self, Step) {
        match (line.first, line.readers) {
            (None, _) => (Self::Free, Step::Nothing),
            (Some(writer), 0) => (Self::Exclusive(writer), Step::GrantFirst),
            (Some(_), readers) => (Self::Shared(readers), Step::GrantSome(readers)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: ProcessorId = ProcessorId(0);
    const Q: ProcessorId = ProcessorId(1);

    #[test]
    fn every_state_survives_its_two_words() {
        for state in [Rwlock::Free, Rwlock::Shared(3), Rwlock::Exclusive(P), Rwlock::Exclusive(Q)] {
            assert_eq!(Rwlock::from_words(state.to_words()), state);
        }
    }

    #[test]
    fn a_new_reader_waits_behind_a_writer_and_an_old_one_does_not() {
        let line = Line { first: Some(Q), readers: 0 };
        let read = |again| Rwlock::Shared(1).on(Event::Read { who: P, again }, line);
        assert_eq!(read(false), Ok((Rwlock::Shared(1), Step::Wait(P, READER))));
        assert_eq!(read(true), Ok((Rwlock::Shared(2), Step::Grant(P, 0))));
    }
}
