//! The numbered steps of fault, release and acquire (`finespun_protocol::cashmere::sync`), as values that say what comes next.
//!
//! They do not wait. A driver does what they say, tells what came of it, and asks again. What a driver waits on is its own.

use finespun_protocol::cashmere::sync::release_began;
use finespun_protocol::page::{Demand, NODE, Outcome, Protocol, Time};
use finespun_types::ViewId;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Present this, of the unit that was asked about.
    Present(Demand),
    /// Wait until the node is woken, or a flush is done.
    Wait,
    /// It is over.
    Over,
}

/// A load or a store that may not go on: presented again, as often as it must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Whose.
    pub view: ViewId,
    /// A store's.
    pub writes: bool,
    /// When it was first presented.
    pub since: Time,
}

impl Fault {
    /// What it presents, each time.
    #[must_use]
    pub const fn demand(&self) -> Demand {
        let Self { view, writes, since } = *self;
        if writes { Demand::WriteFault { view, since } } else { Demand::ReadFault { view, since } }
    }

    /// What comes next. `last` is what the last presentation came to, or nothing after a wait; `answered`: its answer came already.
    #[must_use]
    pub const fn next(&self, last: Option<Outcome>, answered: bool) -> Todo {
        match last {
            Some(Outcome::Done | Outcome::Begun) => Todo::Over,
            Some(Outcome::Wait) if !answered => Todo::Wait,
            None | Some(Outcome::Wait) => Todo::Present(self.demand()),
        }
    }
}

/// A release of a view. Step 1 is its beginning, and to take the dirty list of [`Self::list`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// Whose.
    pub view: ViewId,
    /// When it began, for its flushes.
    pub since: Time,
}

impl Release {
    /// Whose dirty list, open flushes and exclusion of releases a view uses: its own, or its node's.
    #[must_use]
    pub const fn list<P: Protocol>(view: ViewId) -> ViewId {
        if P::RELEASES_NODE { NODE } else { view }
    }

    /// Step 1. `now` is a fresh tick of the node's clock.
    #[must_use]
    pub const fn begin(view: ViewId, now: Time, several_threads: bool) -> Self {
        Self { view, since: release_began(now, several_threads) }
    }

    /// Step 2, of one unit of the list. It stays on the list if that comes to [`Outcome::Wait`].
    #[must_use]
    pub const fn flush(&self, keep: bool) -> Demand {
        Demand::Flush { view: self.view, since: self.since, keep }
    }

    /// What comes next, with `left` units on the list, and `open` flushes. `ready`: one of them need not wait.
    #[must_use]
    pub const fn next(&self, left: usize, ready: bool, open: u32, keep: bool) -> Todo {
        match (left, ready) {
            (1.., true) => Todo::Present(self.flush(keep)),
            (0, _) if open == 0 => Todo::Over,
            (0 | 1.., _) => Todo::Wait,
        }
    }
}

/// An acquire of a view. Step 1 is to tick and to take the list of notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acquire {
    /// Whose.
    pub view: ViewId,
}

impl Acquire {
    /// Does an acquire obey the notices? Elsewhere a thread beside the program does, at once.
    #[must_use]
    pub const fn obeys<P: Protocol>() -> bool {
        !P::REVOKES
    }

    /// Step 2, of one unit of the list.
    #[must_use]
    pub const fn demand(&self) -> Demand {
        Demand::Invalidate { view: self.view }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: ViewId = ViewId(1);

    #[test]
    fn a_fault_is_presented_until_it_is_done() {
        let fault = Fault { view: VIEW, writes: true, since: 5 };
        let again = Todo::Present(Demand::WriteFault { view: VIEW, since: 5 });
        assert_eq!(fault.next(None, false), again);
        assert_eq!(fault.next(Some(Outcome::Wait), false), Todo::Wait);
        assert_eq!(fault.next(Some(Outcome::Wait), true), again, "the answer came before the driver could wait");
        assert_eq!(fault.next(Some(Outcome::Done), false), Todo::Over);
        let load = Fault { writes: false, ..fault };
        assert_eq!(load.demand(), Demand::ReadFault { view: VIEW, since: 5 });
    }

    #[test]
    fn a_release_flushes_what_is_ready_then_waits_for_every_flush() {
        let release = Release::begin(VIEW, 9, false);
        assert_eq!(release.next(2, true, 3, true), Todo::Present(release.flush(true)));
        assert_eq!(release.next(2, false, 0, false), Todo::Wait, "a unit waits for another flush of it");
        assert_eq!(release.next(0, false, 1, false), Todo::Wait);
        assert_eq!(release.next(0, false, 0, false), Todo::Over);
    }

    #[test]
    fn a_release_of_a_view_with_several_threads_skips_no_flush() {
        assert_eq!(Release::begin(VIEW, 9, false).since, 9);
        assert_eq!(Release::begin(VIEW, 9, true).since, Time::MAX);
    }
}
