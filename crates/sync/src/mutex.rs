//! Mutual exclusion, first come, first served.
//!
//! ```text
//!   processor p                manager of the mutex                processor q
//!      |                              | <----------- Lock(q) --------- |
//!      |                              | ------------ Grant(q) -------> | acquire
//!      | --- Lock(p) -------------->  | p waits                        | ... the section ...
//!      |                              |                                | release: diffs at their homes
//!      |                              | <----------- Unlock(q) ------- |         and write notices posted
//!      | <-- Grant(p) --------------  |                                |
//!      | acquire: read the notices    |                                |
//! ```
//!
//! The mutex is never free while somebody waits: an unlock hands it to the longest waiter in the same step, so that no
//! third processor can slip in between, and no waiter starves. Mutexes built from test-and-set, as in
//! [Cashmere05 §2.3.1.1], promise neither; the rush after an unlock [Heinlein98 §3.2.1] does not occur.
//!
//! The release must be complete, acknowledgements included, before `Unlock` is sent: the next holder may be granted
//! the mutex the moment it arrives, and reads its own list of write notices only once, at its acquire.

use finespun_types::ProcessorId;

use crate::Wrong;
use crate::event::Kind;
use crate::object::{Object, Step};

/// Who has the mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutex {
    /// Nobody, and nobody waits.
    Free,
    /// This processor. Others may wait.
    Held(ProcessorId),
}

/// What processors ask of a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `Event::Lock`
    Lock(ProcessorId),
    /// `Event::TryLock`
    TryLock(ProcessorId),
    /// `Event::Unlock`
    Unlock(ProcessorId),
}

impl Object for Mutex {
    const KIND: Kind = Kind::Mutex;
    type Event = Event;

    fn from_words([holder, _]: [u32; 2]) -> Self {
        holder.checked_sub(1).map_or(Self::Free, |holder| Self::Held(ProcessorId(holder)))
    }

    fn to_words(self) -> [u32; 2] {
        match self {
            Self::Free => [0, 0],
            Self::Held(holder) => [holder.0 + 1, 0],
        }
    }

    #[rustfmt::skip]
    fn on(self, event: Event, first: Option<ProcessorId>) -> Result<(Self, Step), Wrong> {
        use Event::{Lock, TryLock, Unlock};
        use Mutex::{Free, Held};
        debug_assert!(self != Free || first.is_none(), "nobody waits for a free mutex");

        Ok(match (self, event, first) {
            (Free,         Lock(who),    _) => (Held(who), Step::Grant(who, 0)),
            (Free,         TryLock(who), _) => (Held(who), Step::Grant(who, 1)),
            (Free,         Unlock(_),    _) => return Err(Wrong::NotHeld),

            (Held(holder), Lock(who),    _) if who == holder => return Err(Wrong::Relock),
            (Held(_),      Lock(who),    _) => (self, Step::Wait(who, 0)),
            (Held(_),      TryLock(who), _) => (self, Step::Grant(who, 0)), // by the holder too, as in POSIX

            (Held(holder), Unlock(who),  _) if who != holder => return Err(Wrong::NotOwner { owner: holder }),
            (Held(_),      Unlock(_),    Some(next)) => (Held(next), Step::GrantFirst),
            (Held(_),      Unlock(_),    None)       => (Free,       Step::Nothing),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: ProcessorId = ProcessorId(0);
    const Q: ProcessorId = ProcessorId(1);

    #[test]
    fn an_unlock_hands_the_mutex_to_the_longest_waiter_without_freeing_it() {
        let row = Mutex::Held(P).on(Event::Unlock(P), Some(Q));
        assert_eq!(row, Ok((Mutex::Held(Q), Step::GrantFirst)));
    }

    #[test]
    fn an_unlock_by_another_names_the_holder_and_a_second_lock_is_refused() {
        assert_eq!(Mutex::Held(P).on(Event::Unlock(Q), None), Err(Wrong::NotOwner { owner: P }));
        assert_eq!(Mutex::Held(P).on(Event::Lock(P), None), Err(Wrong::Relock));
        assert_eq!(Mutex::Free.on(Event::Unlock(P), None), Err(Wrong::NotHeld));
    }

    #[test]
    fn every_state_survives_its_two_words() {
        for state in [Mutex::Free, Mutex::Held(P), Mutex::Held(Q)] {
            assert_eq!(Mutex::from_words(state.to_words()), state);
        }
    }
}
