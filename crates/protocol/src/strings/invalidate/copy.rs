//! A node's copy of one unit, and what the node's views may do with it.

use finespun_types::{Access, NodeId, NodeIndex, ViewId, ViewSet};
use zerocopy::{FromZeros, Immutable};

use super::vocabulary::{Action, Actions, Event, Impossible, Leaving, Mode, Msg};
use crate::page::{Contents, Outcome, Place, send, send_with};

/// A node's copy of one unit. Plain data; all-zero is a unit nobody has touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Unit {
    /// Views with a mapping.
    pub mapped: ViewSet,
    /// Views with a writable mapping.
    pub writers: ViewSet,
    /// Views whose faults the answer to the request under way will serve, or the one that came: until then the copy stays.
    pub awaited: ViewSet,
    /// Views whose communication threads are to take the mapping away.
    pub revoked: ViewSet,
    /// What the node has.
    pub mode: Mode,
    /// What the home has asked back.
    pub leaving: Leaving,
    /// The home plus one; 0: not known.
    home_plus_one: NodeIndex,
}

impl Unit {
    /// The home, if known.
    #[must_use]
    pub fn home(&self) -> Option<NodeId> {
        self.home_plus_one.checked_sub(1).map(NodeId)
    }

    /// May this view be given the copy? Not when it is to be given up, unless it came for this view.
    fn serves(&self, view: ViewId) -> bool {
        self.leaving == Leaving::Nothing || self.awaited.contains(view)
    }

    /// One row per (mode, event); a row that needs more calls a named function.
    ///
    /// # Errors
    /// [`Impossible`] when the pair cannot occur.
    #[rustfmt::skip]
    pub fn on(&mut self, place: Place, event: Event, out: &mut Actions) -> Result<Outcome, Impossible> {
        use crate::page::Event::{Flush, NothingChanged, ReadFault, Recv, WriteFault};
        use Mode::{AskingHome, NoCopy, Owned, Reading, Shared, Untouched, Upgrading, Writing};
        use Msg::{AskHome, Fetch, Grant, HomeIs, Invalidate, InvalidateAck, Recall, RecallReply};
        type Revoke = Event;

        Ok(match (self.mode, event) {
            // Faults.
            (Untouched,  ReadFault { .. } | WriteFault { .. })   => return self.find_home(place, event, out),
            (AskingHome, ReadFault { .. } | WriteFault { .. })   => out.wait(&[]),
            (NoCopy,     ReadFault { view, .. })                 => self.ask(Reading, view, false, out),
            (NoCopy,     WriteFault { view, .. })                => self.ask(Writing, view, true, out),
            (Reading,    ReadFault { view, .. })                 => self.await_answer(view, out),
            (Reading,    WriteFault { .. })                      => out.wait(&[]), // the answer will not serve it
            (Writing,    ReadFault { view, .. } | WriteFault { view, .. }) => self.await_answer(view, out),
            (Shared,     ReadFault { view, .. })   if self.serves(view) => self.map(view, Access::Read, out),
            (Shared,     WriteFault { view, .. })  if self.leaving == Leaving::Nothing => self.ask(Upgrading, view, true, out),
            (Upgrading,  ReadFault { view, .. })   if self.leaving == Leaving::Nothing => self.map(view, Access::Read, out),
            (Upgrading,  WriteFault { view, .. })                => self.await_answer(view, out),
            // To write also for a load: the copy is the only one, and a store is likely to follow.
            (Owned,      ReadFault { view, .. } | WriteFault { view, .. }) if self.serves(view) => self.map(view, Access::Write, out),
            (Shared | Upgrading | Owned, ReadFault { .. } | WriteFault { .. }) => out.wait(&[]), // behind what the home has asked

            // The home's answers.
            (AskingHome, Recv { msg: HomeIs(home), .. })         => { self.set_home(home); out.done(&[Action::Wake]) }
            (Reading,    Recv { msg: Grant { write: false, page: true }, .. }) => self.granted(place, Shared, true, out),
            (Writing,    Recv { msg: Grant { write: true, page: true }, .. })  => self.granted(place, Owned, true, out),
            (Upgrading,  Recv { msg: Grant { write: true, page: false }, .. }) => self.granted(place, Owned, false, out),

            // The home asks. What an upgrade is waiting for comes later: nothing to hold the copy for.
            (Shared,     Recv { msg: Invalidate, .. })           => self.hold(Leaving::Everything, out),
            (Upgrading,  Recv { msg: Invalidate, .. })           => { self.leaving = Leaving::Everything; self.revoke(out) }
            (Owned,      Recv { msg: Recall { write: false }, .. }) => self.hold(Leaving::Writing, out),
            (Owned,      Recv { msg: Recall { write: true }, .. })  => self.hold(Leaving::Everything, out),

            // A communication thread takes its view's mapping away.
            (Shared | Upgrading | Owned, Revoke::Invalidate { view }) if self.revoked.contains(view) => self.revoked(view, out),

            // Everything else, spelled out.
            (Untouched | AskingHome | NoCopy | Reading | Writing | Shared | Upgrading | Owned, Flush { .. } | NothingChanged) // nothing is ever dirty
            | (Untouched | AskingHome | NoCopy | Reading | Writing | Shared | Upgrading | Owned, Revoke::Invalidate { .. })   // not listed
            | (Untouched | NoCopy | Reading | Writing | Shared | Upgrading | Owned, Recv { msg: HomeIs(_), .. })
            | (Untouched | AskingHome | NoCopy | Reading | Writing | Shared | Upgrading | Owned, Recv { msg: Grant { .. }, .. }) // not the one asked for
            | (Untouched | AskingHome | NoCopy | Reading | Writing | Owned, Recv { msg: Invalidate, .. })
            | (Untouched | AskingHome | NoCopy | Reading | Writing | Shared | Upgrading, Recv { msg: Recall { .. }, .. })
            | (Untouched | AskingHome | NoCopy | Reading | Writing | Shared | Upgrading | Owned,
               Recv { msg: AskHome | Fetch { .. } | InvalidateAck | RecallReply, .. }) // the home's
                => return Err(Impossible::Copy { mode: self.mode, leaving: self.leaving, event }),
        })
    }

    /// Whom to ask: the address may say, else the manager does.
    fn find_home(&mut self, place: Place, fault: Event, out: &mut Actions) -> Result<Outcome, Impossible> {
        if let Some(home) = place.fixed_home {
            self.set_home(home);
            return self.on(place, fault, out);
        }
        self.mode = Mode::AskingHome;
        Ok(out.wait(&[send(place.manager, Msg::AskHome)]))
    }

    fn set_home(&mut self, home: NodeId) {
        self.home_plus_one = home.0 + 1;
        self.mode = Mode::NoCopy;
    }

    /// The home, in modes that have one.
    fn known_home(&self) -> NodeId {
        self.home().expect("every mode but Untouched and AskingHome follows set_home")
    }

    fn ask(&mut self, mode: Mode, view: ViewId, write: bool, out: &mut Actions) -> Outcome {
        self.mode = mode;
        self.awaited = self.awaited.with(view);
        out.wait(&[send(self.known_home(), Msg::Fetch { write })])
    }

    fn await_answer(&mut self, view: ViewId, out: &mut Actions) -> Outcome {
        self.awaited = self.awaited.with(view);
        out.wait(&[])
    }

    fn granted(&mut self, place: Place, mode: Mode, page: bool, out: &mut Actions) -> Outcome {
        self.mode = mode;
        if page && self.known_home() != place.me {
            out.done(&[Action::Install, Action::Wake])
        } else {
            out.done(&[Action::Wake])
        }
    }

    /// Opens the page for a view. The last one it was held for: what the home has asked meanwhile can begin.
    fn map(&mut self, view: ViewId, access: Access, out: &mut Actions) -> Outcome {
        self.mapped = self.mapped.with(view);
        if access == Access::Write {
            self.writers = self.writers.with(view);
        }
        out.push(Action::Protect { view, access });
        self.awaited = self.awaited.without(view);
        if self.leaving != Leaving::Nothing && self.awaited.is_empty() { self.revoke(out) } else { Outcome::Done }
    }

    /// The home wants something back: at once, or when the views that the copy came for have it.
    fn hold(&mut self, leaving: Leaving, out: &mut Actions) -> Outcome {
        self.leaving = leaving;
        if self.awaited.is_empty() { self.revoke(out) } else { Outcome::Done }
    }

    /// Lists the unit for the communication threads of the views concerned; with none, it is done.
    fn revoke(&mut self, out: &mut Actions) -> Outcome {
        self.revoked = match self.leaving {
            Leaving::Nothing => ViewSet::EMPTY,
            Leaving::Writing => self.writers,
            Leaving::Everything => self.mapped,
        };
        if self.revoked.is_empty() {
            return self.leave(out);
        }
        out.done(&[Action::ListNotice(self.revoked)])
    }

    /// A view's mapping goes. First the mapping, then the answer: what the view stored before is in the page that goes out.
    fn revoked(&mut self, view: ViewId, out: &mut Actions) -> Outcome {
        self.revoked = self.revoked.without(view);
        self.writers = self.writers.without(view);
        let access = if self.leaving == Leaving::Writing { Access::Read } else { Access::None };
        if access == Access::None {
            self.mapped = self.mapped.without(view);
        }
        out.push(Action::Protect { view, access });
        if self.revoked.is_empty() { self.leave(out) } else { Outcome::Done }
    }

    /// The last mapping is gone: the home gets its answer. Faults that waited ask anew.
    fn leave(&mut self, out: &mut Actions) -> Outcome {
        let home = self.known_home();
        let (mode, answer) = match (self.mode, self.leaving) {
            (Mode::Owned, Leaving::Writing) => (Mode::Shared, send_with(home, Msg::RecallReply, Contents::Frame)),
            (Mode::Owned, _) => (Mode::NoCopy, send_with(home, Msg::RecallReply, Contents::Frame)),
            (Mode::Upgrading, _) => (Mode::Writing, send(home, Msg::InvalidateAck)),
            (_, _) => (Mode::NoCopy, send(home, Msg::InvalidateAck)),
        };
        self.mode = mode;
        self.leaving = Leaving::Nothing;
        out.done(&[Action::Wake, answer])
    }
}
