//! A flag: a number that only grows, and processors that wait until it has grown enough.
//!
//! ```text
//!   setter                     manager of the flag                  waiter
//!      |                              | <------- WaitFlag(2) --------- |
//!      | release                      | the flag is 0: it waits        |
//!      | --- SetFlag(1) ----------->  | still too small                |
//!      | --- SetFlag(3) ----------->  | -------- Grant(3) ---------->  | acquire
//! ```
//!
//! Cashmere's flags are written once [Cashmere05 §2.3.1.1]; a counter serves those programs (0, then 1) and pipelines
//! too, without a reset between steps. A setter is not answered. Where a program may ask whether its store has
//! arrived (set a flag, then tell another processor by another object to *read* the flag), the runtime must wait for
//! the manager before it lets the setter go on.

use finespun_types::ProcessorId;

use crate::Wrong;
use crate::event::Kind;
use crate::object::{Object, Step};

/// The flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag(u32);

/// What processors ask of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `Event::SetFlag`
    Set(u32),
    /// `Event::WaitFlag`
    Wait(ProcessorId, u32),
    /// `Event::ReadFlag`
    Read(ProcessorId),
    /// `Event::ResetFlag`
    Reset,
}

impl Object for Flag {
    const KIND: Kind = Kind::Flag;
    type Event = Event;

    fn from_words([value, _]: [u32; 2]) -> Self {
        Self(value)
    }

    fn to_words(self) -> [u32; 2] {
        [self.0, 0]
    }

    #[rustfmt::skip]
    fn on(self, event: Event, first: Option<ProcessorId>) -> Result<(Self, Step), Wrong> {
        use Event::{Read, Reset, Set, Wait};
        let now = self.0;

        Ok(match (event, first) {
            (Set(value),       _) if value > now  => (Self(value), Step::GrantReached(value)),
            (Set(_),           _)                 => (self,        Step::Nothing),
            (Wait(who, value), _) if value <= now => (self,        Step::Grant(who, now)),
            (Wait(who, value), _)                 => (self,        Step::Wait(who, value)),
            (Read(who),        _)                 => (self,        Step::Grant(who, now)),
            (Reset,            None)              => (Self(0),     Step::Nothing),
            (Reset,            Some(waiter))      => return Err(Wrong::FlagBusy { waiter }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_value_changes_nothing() {
        assert_eq!(Flag(3).on(Event::Set(2), None), Ok((Flag(3), Step::Nothing)));
        assert_eq!(Flag(3).on(Event::Set(4), None), Ok((Flag(4), Step::GrantReached(4))));
    }

    #[test]
    fn a_reset_is_refused_while_somebody_waits() {
        let waiter = ProcessorId(2);
        assert_eq!(Flag(3).on(Event::Reset, Some(waiter)), Err(Wrong::FlagBusy { waiter }));
        assert_eq!(Flag(3).on(Event::Reset, None), Ok((Flag(0), Step::Nothing)));
    }
}
