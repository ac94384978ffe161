//! A node's copy of one unit, and what the node's views may do with it.

use finespun_types::{Access, NodeId, NodeIndex, ViewId, ViewSet};
use zerocopy::{FromZeros, Immutable};

use super::vocabulary::{Action, Actions, Event, Impossible, Mode, Msg};
use crate::page::{Contents, NODE, Outcome, Place, send, send_with};

/// A node's copy of one unit. Plain data; all-zero is a unit nobody has touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Unit {
    /// Views with a mapping.
    pub mapped: ViewSet,
    /// Views with a writable mapping.
    pub writers: ViewSet,
    /// What the node has.
    pub mode: Mode,
    /// The home plus one; 0: not known.
    home_plus_one: NodeIndex,
    /// On the node's dirty list, or taken from it by a release that has not come to it; there is a twin.
    pub dirty: bool,
    /// The node is the home, and nobody else has a copy: no twin, nothing to send.
    pub alone: bool,
    /// A flush is under way.
    pub flushing: bool,
    /// The home has acknowledged it.
    pub told: bool,
    /// It left its view the right to write.
    pub keeping: bool,
    /// Acknowledgements of sharers that are to come, less those that came: they may come before the home's.
    pub acks_due: i8,
}

impl Unit {
    /// The home, if known.
    #[must_use]
    pub fn home(&self) -> Option<NodeId> {
        self.home_plus_one.checked_sub(1).map(NodeId)
    }

    /// One row per (mode, event); a row that needs more calls a named function.
    ///
    /// # Errors
    /// [`Impossible`] when the pair cannot occur.
    #[rustfmt::skip]
    pub fn on(&mut self, place: Place, event: Event, out: &mut Actions) -> Result<Outcome, Impossible> {
        use crate::page::Event::{Flush, Invalidate, NothingChanged, ReadFault, Recv, WriteFault};
        use Mode::{AskingHome, Fetching, NoCopy, Untouched, Valid};
        use Msg::{AskHome, Fetch, FlushAck, HomeIs, NotAlone, Page, Update, UpdateAck};

        Ok(match (self.mode, event) {
            // Faults.
            (Untouched,             ReadFault { .. } | WriteFault { .. }) => self.find_home(place, out),
            (NoCopy,                ReadFault { .. } | WriteFault { .. }) => self.fetch(out),
            (AskingHome | Fetching, ReadFault { .. } | WriteFault { .. }) => out.wait(&[]),
            (Valid,                 ReadFault { view, .. })               => self.map_read(view, out),
            (Valid,                 WriteFault { view, .. })              => self.write(view, out),

            // Release. One flush of a unit at a time, so that acknowledgements are told apart.
            (Valid, Flush { .. })    if self.flushing => out.wait(&[]),
            (Valid, Flush { view, keep, .. }) if self.dirty => self.flush(view, keep, out),
            (Valid, NothingChanged)  if self.flushing => self.nothing_changed(out),

            // The home's answers.
            (AskingHome, Recv { msg: HomeIs(home), .. }) => { self.set_home(home); out.done(&[Action::Wake]) }
            (Fetching,   Recv { msg: Page { alone }, .. }) => self.arrived(place, alone, out),
            (Valid,      Recv { msg: NotAlone, .. }) if self.alone => self.not_alone(out),
            (Valid,      Recv { msg: FlushAck { updates }, .. }) if self.flushing && !self.told => self.told(updates, out),
            (Valid,      Recv { msg: UpdateAck, .. })    if self.flushing => self.acked(-1, out),

            // Another node's release. The home sends it behind the page, never before it.
            (Valid,      Recv { msg: Update { releaser }, .. }) => out.done(&[Action::ApplyUpdate, send(releaser, UpdateAck)]),

            // Everything else, spelled out.
            (Untouched | AskingHome | NoCopy | Fetching, Flush { .. } | NothingChanged)
            | (Valid, Flush { .. } | NothingChanged)                       // not on the list; no flush is under way
            | (Untouched | AskingHome | NoCopy | Fetching | Valid, Invalidate { .. }) // no copy is ever invalidated
            | (Untouched | NoCopy | Fetching | Valid, Recv { msg: HomeIs(_), .. })
            | (Untouched | AskingHome | NoCopy | Valid, Recv { msg: Page { .. }, .. })
            | (Untouched | AskingHome | NoCopy | Fetching | Valid, Recv { msg: NotAlone, .. })
            | (Untouched | AskingHome | NoCopy | Fetching, Recv { msg: FlushAck { .. } | UpdateAck | Update { .. }, .. })
            | (Valid, Recv { msg: FlushAck { .. } | UpdateAck, .. })       // no flush is under way
            | (Untouched | AskingHome | NoCopy | Fetching | Valid, Recv { msg: AskHome | Fetch | Msg::Flush, .. }) // the home's
                => return Err(Impossible::Copy { mode: self.mode, event }),
        })
    }

    /// Whom to ask for the page: the address may say, else the manager does.
    fn find_home(&mut self, place: Place, out: &mut Actions) -> Outcome {
        if let Some(home) = place.fixed_home {
            self.set_home(home);
            return self.fetch(out);
        }
        self.mode = Mode::AskingHome;
        out.wait(&[send(place.manager, Msg::AskHome)])
    }

    fn set_home(&mut self, home: NodeId) {
        self.home_plus_one = home.0 + 1;
        self.mode = Mode::NoCopy;
    }

    /// The home, in modes that have one.
    fn known_home(&self) -> NodeId {
        self.home().expect("every mode but Untouched and AskingHome follows set_home")
    }

    fn fetch(&mut self, out: &mut Actions) -> Outcome {
        self.mode = Mode::Fetching;
        out.wait(&[send(self.known_home(), Msg::Fetch)])
    }

    fn arrived(&mut self, place: Place, alone: bool, out: &mut Actions) -> Outcome {
        self.mode = Mode::Valid;
        self.alone = alone;
        if self.known_home() == place.me {
            out.done(&[Action::Wake])
        } else {
            out.done(&[Action::Install, Action::Wake])
        }
    }

    fn map_read(&mut self, view: ViewId, out: &mut Actions) -> Outcome {
        // A view that may write already keeps that right: the fault was spurious, or the mapping was lost.
        let access = if self.writers.contains(view) { Access::Write } else { Access::Read };
        self.mapped = self.mapped.with(view);
        out.done(&[Action::Protect { view, access }])
    }

    /// Another node gets a copy: what the home's views may write is dirty from now on. The list before the twin: a store that misses the
    /// twin is made by a view whose next release finds the unit on the list.
    fn not_alone(&mut self, out: &mut Actions) -> Outcome {
        self.alone = false;
        if self.writers.is_empty() {
            return out.done(&[]);
        }
        self.dirty = true;
        out.done(&[Action::ListDirty(ViewSet::only(NODE)), Action::MakeTwin])
    }

    /// The twin before the right to write: it must not have this view's stores. The home too needs one, for the sharers.
    fn write(&mut self, view: ViewId, out: &mut Actions) -> Outcome {
        self.mapped = self.mapped.with(view);
        self.writers = self.writers.with(view);
        let right = Action::Protect { view, access: Access::Write };
        if self.dirty || self.alone {
            return out.done(&[right]);
        }
        self.dirty = true;
        out.done(&[Action::MakeTwin, Action::ListDirty(ViewSet::only(NODE)), right])
    }

    /// One unit of a release: rights first, so that the view's later stores fault and make a new twin; then the diff. For
    /// views that go on writing, others or this one if it keeps its right, the unit stays on the list.
    fn flush(&mut self, view: ViewId, keep: bool, out: &mut Actions) -> Outcome {
        self.keeping = keep && self.writers.contains(view);
        if self.keeping {
            out.push(Action::RightKept);
        } else if self.writers.contains(view) {
            self.writers = self.writers.without(view);
            out.push(Action::Protect { view, access: Access::Read });
        }
        self.dirty = !self.writers.is_empty();
        if self.dirty {
            out.push(Action::ListDirty(ViewSet::only(NODE)));
        }
        self.flushing = true;
        let diff = Contents::Diff { refresh: self.dirty };
        out.push(send_with(self.known_home(), Msg::Flush, diff));
        Outcome::Begun
    }

    fn told(&mut self, updates: u8, out: &mut Actions) -> Outcome {
        self.told = true;
        self.acked(updates as i8, out)
    }

    /// Acknowledgements are announced, or one came.
    fn acked(&mut self, change: i8, out: &mut Actions) -> Outcome {
        self.acks_due += change;
        if self.told && self.acks_due == 0 { self.flush_done(out) } else { out.done(&[]) }
    }

    fn nothing_changed(&mut self, out: &mut Actions) -> Outcome {
        let kept = self.keeping;
        let outcome = self.flush_done(out);
        if kept {
            out.push(Action::KeptInVain);
        }
        outcome
    }

    fn flush_done(&mut self, out: &mut Actions) -> Outcome {
        (self.flushing, self.told, self.keeping) = (false, false, false);
        out.done(&[Action::FlushDone(NODE), Action::Wake])
    }
}
