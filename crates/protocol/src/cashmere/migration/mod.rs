//! `csm-ms-mg` and `csm-none-mg`: home migration [Cashmere05 §2.3.2], around the tables of the other variants.
//!
//! A node that writes a page away from its home pays a twin and a diff for each interval; at the home it pays neither. So
//! the home goes to a writer: a node with a current copy that is about to write asks for it, and gets it if no view of
//! the home is writing. What moves is the sharing set; the page is there already, fetched like any other.
//!
//! ```text
//!  requester, about to write         home
//!     | -- Migrate -----------------> |  nobody writes here, and the requester's copy misses no flush:
//!     | <- Migrated(sharing set) -- |  the entry points to the requester from now on
//!     |                               |  else:
//!     | <- Stay --------------------- |  the requester makes a twin and goes on as in the other variants
//!
//!  another node              former home               home
//!     | -- Fetch --------------> | -- FetchFor ----------> |
//!     | <- Grant(page) --------------------------------- - |  the answer's sender is the home: asked directly next time
//!     | -- Flush(diff) --------> | -- FlushFor(diff) ----> |  no diff is lost
//!     | <- FlushAck(sharing set) ------------------------- |
//!     | -- Upgrade, Migrate ---> |  refused: a question that may be asked again, at the home
//!     | -- Leave --------------> |  dropped: see below
//! ```
//!
//! **Who knows the home.** The manager, and the address, know the first one. Each former home points to the one it gave the
//! home to; a node remembers who answered it last. So every request reaches a node that is or was home, and following
//! the pointers ends: each leads to a node that was home later. A message passed on arrives behind `Migrated`, on the
//! same channel: who gets one is home, or was and points on. The manager is not told: only a node's first touch asks
//! it, and one message passed on then costs less than one message for each move.
//!
//! **When the entry may move.** Only in the phase `Shared`, where nobody waits; and only to a sharer that is not `stale`: its frame
//! then is the master copy, as after an upgrade. The home must not be writing: no view may write, none has unflushed
//! stores, no flush is under way, and no store waits for which the home was just fetched, or two writers would pass it to
//! and fro without ever storing. The old home stays a sharer, current as of now, if any of its views maps the page.
//!
//! **What must not overtake.** Requests of one node take the same way only while its hint is the same, so it has one
//! question out at a time: no fetch while a flush of its own is under way, for its page would undo the store. `Leave` has
//! no answer, so nobody knows when it has arrived; passed on, it could come after the page that its sender fetched next,
//! and that copy would miss its notices. A former home drops it. The sender stays in the sharing set without a copy,
//! gets notices for nothing, and is a true sharer again with its next fetch.
//!
//! **No cycle of locks** where metadata is direct: a question goes from a node to its hint, two locks, and hints lead to
//! later homes, never in a circle; what is passed on is data and goes by message.
//!
//! **The hint that the home is writing**: a node asks only if nothing speaks against it since the home's last answer: a
//! refusal, or a notice from the home. Where metadata is direct the question is itself the look at the home's state.

pub mod invariants;

use finespun_types::{Access, NodeId, NodeIndex, NodeSet, ViewId};
use zerocopy::{FromZeros, Immutable};

use super::{Cashmere, Directory, Homes, Mode, Msg as Plain, Phase, Unit};
use crate::catalogue::catalogue;
use crate::page::{Action, Actions, Ahead, Contents, Event, Outcome, Place, Protocol, Time, send, send_with};

catalogue! {
    /// The messages: those of the other variants, and what moves a home.
    pub enum Msg: Plain(Plain) {
        /// requester -> home: I am about to write; may I be home?
        32 Migrate => Home, Metadata;
        /// home's entry -> home's copy: may the home go to this node?
        33 Yield {
            /// Who asked.
            to: NodeId,
        } => Copy, Metadata;
        /// home's copy -> home's entry: nobody writes here, it may.
        34 Yielded {
            /// Who asked.
            to: NodeId,
            /// No view maps the unit here: this node is no sharer from now on.
            leaves: bool,
        } => Home, Metadata;
        /// home -> requester: you are home now.
        35 Migrated {
            /// See [`Directory::sharers`].
            sharers: NodeSet,
        } => Copy, Metadata;
        /// new home's copy -> new home's entry: these are the sharers.
        36 Adopt {
            /// See [`Directory::sharers`].
            sharers: NodeSet,
        } => Home, Metadata;
        /// home -> requester: you are not.
        37 Stay => Copy, Metadata;
        /// former home -> home: this node sent me a `Fetch`.
        38 FetchFor {
            /// Who gets the answer.
            of: NodeId,
            /// As in `Fetch`.
            write: bool,
        } => Home, Data;
        /// former home -> home: this node sent me a `Flush`, with the diff.
        39 FlushFor {
            /// Who gets the answer.
            of: NodeId,
        } => Home, Data;
    }
}

/// A node's copy of a unit, with what it knows of the home. All-zero: a unit nobody has touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Copied {
    /// As in the other variants; its home is a hint: whoever answered last. While the node asks for the home, the mode is
    /// `Upgrading`: that question and an upgrade are alike in all but what is granted.
    pub unit: Unit,
    /// The question under way is `Migrate`.
    pub asking: bool,
    /// The home was fetched for a store that is still to come.
    pub about_to_write: bool,
    /// The home seems to be writing.
    pub home_writes: bool,
}

impl Copied {
    /// The rows of home migration; all others are the unit's.
    ///
    /// # Errors
    /// [`Impossible`] when the pair cannot occur.
    pub fn on(
        &mut self,
        place: Place,
        now: Time,
        event: Event<Msg>,
        out: &mut Actions<Msg>,
    ) -> Result<Outcome, Impossible> {
        let plain = match event {
            Event::WriteFault { view, .. } if self.asks_for_home(place, view) => return Ok(self.ask(out)),
            Event::ReadFault { view, .. } | Event::WriteFault { view, .. } if self.must_flush_first(place, view) => {
                return Ok(out.wait(&[]));
            }
            Event::ReadFault { view, since } => Event::ReadFault { view, since },
            Event::WriteFault { view, since } => Event::WriteFault { view, since },
            Event::Flush { view, since, .. } => Event::Flush { view, since, keep: false },
            Event::NothingChanged => Event::NothingChanged,
            Event::Invalidate { view } => Event::Invalidate { view },
            Event::Recv { from, msg: Msg::Plain(msg) } => {
                self.hear(from, msg);
                Event::Recv { from, msg }
            }
            Event::Recv { from, msg } => return self.on_move(place, now, from, msg, out),
        };
        let mut own = Actions::new();
        let outcome = self.unit.on(place, now, plain, &mut own).map_err(Impossible::Plain)?;
        out.lift(&own, Msg::Plain);
        if matches!(event, Event::WriteFault { .. }) && outcome == Outcome::Done {
            self.about_to_write = false;
        }
        Ok(outcome)
    }

    #[rustfmt::skip]
    fn on_move(&mut self, place: Place, now: Time, from: NodeId, msg: Msg, out: &mut Actions<Msg>) -> Result<Outcome, Impossible> {
        use Mode::{AskingHome, Exclusive, Fetching, NoCopy, Shared, Untouched, Upgrading};
        use Msg::{Adopt, FetchFor, FlushFor, Migrate, Migrated, Stay, Yield, Yielded};

        Ok(match (self.unit.mode, msg) {
            (Shared,             Yield { to }) if !self.is_writing() => self.give_home(place, now, to, out),
            // The home by its address that never touched the unit.
            (Untouched | NoCopy, Yield { to })                       => self.give_home(place, now, to, out),
            // It writes, or is about to.
            (Shared | AskingHome, Yield { to })                      => out.done(&[send(to, Stay)]),

            (Upgrading, Migrated { sharers }) if self.asking  => self.take_home(place, now, sharers, out),
            (Upgrading, Stay) if self.asking                         => self.go_without(now, out),

            // At home, the copy needs no answer from elsewhere; an owner's home does not move; and what only homes get.
            (Fetching | Upgrading | Exclusive, Yield { .. })
            | (Untouched | AskingHome | NoCopy | Fetching | Shared | Upgrading | Exclusive, Migrated { .. } | Stay)
            | (Untouched | AskingHome | NoCopy | Fetching | Shared | Upgrading | Exclusive,
               Msg::Plain(_) | Migrate | Yielded { .. } | Adopt { .. } | FetchFor { .. } | FlushFor { .. })
                => return Err(Impossible::Copy { mode: self.unit.mode, from, msg }),
        })
    }

    /// Is the home to be asked for, at this store? Where the unit's own table would make a twin: a current copy, no writer
    /// yet, others share it; and nothing says that the home writes.
    fn asks_for_home(&self, place: Place, view: ViewId) -> bool {
        let unit = &self.unit;
        let makes_twin = unit.mode == Mode::Shared && unit.dirty.is_empty() && unit.serves(place, view);
        let away = !unit.is_home(place.me) && !unit.alone && unit.flusher().is_none();
        makes_twin && away && !self.home_writes
    }

    fn ask(&mut self, out: &mut Actions<Msg>) -> Outcome {
        self.asking = true;
        self.unit.mode = Mode::Upgrading;
        out.wait(&[send(self.unit.known_home(), Msg::Migrate)])
    }

    /// A fetch must not overtake the node's own flush: the hint may change between them, and the way with it.
    fn must_flush_first(&self, place: Place, view: ViewId) -> bool {
        self.unit.mode == Mode::Shared && self.unit.flusher().is_some() && !self.unit.serves(place, view)
    }

    /// What a message tells of the home: these answers come from no other node.
    fn hear(&mut self, from: NodeId, msg: Plain) {
        match msg {
            Plain::Grant { .. } | Plain::FlushAck(_) => {
                self.unit.move_home(from);
                self.home_writes = false;
            }
            Plain::Notice => self.home_writes |= self.unit.home() == Some(from),
            Plain::AskHome | Plain::HomeIs(_) | Plain::Fetch { .. } | Plain::Upgrade | Plain::UpgradeReply { .. } => {}
            Plain::Break | Plain::BreakReply | Plain::Flush | Plain::Leave | Plain::LeftAlone | Plain::NoticeAck => {}
        }
    }

    fn is_writing(&self) -> bool {
        let Unit { writers, dirty, .. } = self.unit;
        !writers.is_empty() || !dirty.is_empty() || self.unit.flusher().is_some() || self.about_to_write
    }

    /// At the home: from now on a node like others, with a copy that has everything.
    fn give_home(&mut self, place: Place, now: Time, to: NodeId, out: &mut Actions<Msg>) -> Outcome {
        let unit = &mut self.unit;
        unit.move_home(to);
        unit.updated = now;
        (unit.alone, unit.left_alone) = (false, false);
        self.home_writes = true;
        let leaves = unit.mode != Mode::Shared || (unit.mapped.is_empty() && unit.fetched_for.is_empty());
        if leaves {
            unit.mode = Mode::NoCopy;
        }
        out.done(&[send(place.me, Msg::Yielded { to, leaves })])
    }

    /// The frame is the master copy now: it misses nothing, the old home says.
    fn take_home(&mut self, place: Place, now: Time, sharers: NodeSet, out: &mut Actions<Msg>) -> Outcome {
        self.asking = false;
        self.about_to_write = true;
        self.unit.mode = Mode::Shared;
        self.unit.move_home(place.me);
        self.unit.updated = now;
        out.done(&[send(place.me, Msg::Adopt { sharers }), Action::HomeMoved, Action::Wake])
    }

    fn go_without(&mut self, now: Time, out: &mut Actions<Msg>) -> Outcome {
        self.asking = false;
        self.home_writes = true;
        let mut own = Actions::new();
        let outcome = self.unit.upgraded(now, false, &mut own);
        out.push(Action::HomeKept);
        out.lift(&own, Msg::Plain);
        outcome
    }
}

/// The directory entry of a unit, at each node that is or was its home. All-zero: nobody has touched it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Entry {
    /// As in the other variants; empty while the home is elsewhere.
    pub directory: Directory,
    /// Where this node gave the home to, plus one; 0: it is home, or never was.
    moved_to_plus_one: NodeIndex,
}

impl Entry {
    /// Where this node gave the home to, if it did.
    #[must_use]
    pub fn moved_to(&self) -> Option<NodeId> {
        self.moved_to_plus_one.checked_sub(1).map(NodeId)
    }

    /// The rows of home migration; all others are the directory's.
    ///
    /// # Errors
    /// [`Impossible`] when the pair cannot occur.
    pub fn on(&mut self, home: NodeId, from: NodeId, msg: Msg, out: &mut Actions<Msg>) -> Result<Outcome, Impossible> {
        match (self.moved_to(), msg) {
            (None, Msg::Plain(msg)) => {
                let mut own = Actions::new();
                let outcome = self.directory.on(home, from, msg, &mut own).map_err(Impossible::Plain)?;
                out.lift(&own, Msg::Plain);
                Ok(outcome)
            }
            (Some(to), Msg::Plain(msg)) => self.pass_on(to, from, msg, out),
            (None | Some(_), Msg::FetchFor { of, write }) => self.on(home, of, Msg::Plain(Plain::Fetch { write }), out),
            (None | Some(_), Msg::FlushFor { of }) => self.on(home, of, Msg::Plain(Plain::Flush), out),
            (None, Msg::Migrate) if self.may_go_to(from) => Ok(out.done(&[send(home, Msg::Yield { to: from })])),
            (None | Some(_), Msg::Migrate) => Ok(out.done(&[send(from, Msg::Stay)])),
            (None, Msg::Yielded { to, leaves }) => Ok(self.go_to(home, to, leaves, out)),
            (None | Some(_), Msg::Adopt { sharers }) => {
                // As after the flush that is to come, for which the home has moved: all others miss it.
                let stale = sharers.without(home);
                *self = Self { directory: Directory { sharers, stale, ..Directory::default() }, moved_to_plus_one: 0 };
                Ok(out.done(&[]))
            }
            (Some(_), Msg::Yielded { .. }) | (None | Some(_), Msg::Yield { .. } | Msg::Migrated { .. } | Msg::Stay) => {
                Err(Impossible::Home { phase: self.directory.phase, from, msg })
            }
        }
    }

    /// At a former home.
    fn pass_on(&self, to: NodeId, from: NodeId, msg: Plain, out: &mut Actions<Msg>) -> Result<Outcome, Impossible> {
        Ok(match msg {
            Plain::Fetch { write } => out.done(&[send(to, Msg::FetchFor { of: from, write })]),
            Plain::Flush => out.done(&[send_with(to, Msg::FlushFor { of: from }, Contents::Received)]),
            Plain::Upgrade => out.done(&[send(from, Msg::Plain(Plain::UpgradeReply { granted: false }))]),
            Plain::Leave => out.done(&[]),
            // The home does not move while an owner is to answer; and what only copies and managers get.
            Plain::BreakReply
            | Plain::AskHome
            | Plain::HomeIs(_)
            | Plain::Grant { .. }
            | Plain::UpgradeReply { .. }
            | Plain::Break
            | Plain::FlushAck(_)
            | Plain::LeftAlone
            | Plain::Notice
            | Plain::NoticeAck => {
                return Err(Impossible::Home { phase: self.directory.phase, from, msg: Msg::Plain(msg) });
            }
        })
    }

    /// Would its frame do as the master copy, and does nobody wait here?
    fn may_go_to(&self, node: NodeId) -> bool {
        let Directory { sharers, stale, phase, .. } = self.directory;
        phase == Phase::Shared && sharers.contains(node) && !stale.contains(node)
    }

    fn go_to(&mut self, home: NodeId, to: NodeId, leaves: bool, out: &mut Actions<Msg>) -> Outcome {
        let Directory { sharers, .. } = core::mem::take(&mut self.directory);
        let sharers = if leaves { sharers.without(home) } else { sharers };
        self.moved_to_plus_one = to.0 + 1;
        out.done(&[send(to, Msg::Migrated { sharers })])
    }
}

/// The variant's tables, for drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Migrating {}

impl Protocol for Migrating {
    type Msg = Msg;
    type Unit = Copied;
    type Directory = Entry;
    type Manager = Homes;
    type Impossible = Impossible;
    const READS_AHEAD: bool = true;

    fn on_unit(
        copied: &mut Copied,
        place: Place,
        now: Time,
        event: Event<Msg>,
        out: &mut Actions<Msg>,
    ) -> Result<Outcome, Impossible> {
        copied.on(place, now, event, out)
    }

    fn on_directory(
        entry: &mut Entry,
        home: NodeId,
        from: NodeId,
        msg: Msg,
        out: &mut Actions<Msg>,
    ) -> Result<Outcome, Impossible> {
        entry.on(home, from, msg, out)
    }

    fn on_manager(homes: &mut Homes, from: NodeId, msg: Msg, out: &mut Actions<Msg>) -> Result<Outcome, Impossible> {
        match msg {
            Msg::Plain(msg) => {
                let mut own = Actions::new();
                let outcome = homes.on(from, msg, &mut own).map_err(Impossible::Plain)?;
                out.lift(&own, Msg::Plain);
                Ok(outcome)
            }
            Msg::Migrate
            | Msg::Yield { .. }
            | Msg::Yielded { .. }
            | Msg::Migrated { .. }
            | Msg::Adopt { .. }
            | Msg::Stay
            | Msg::FetchFor { .. }
            | Msg::FlushFor { .. } => Err(Impossible::Manager { from, msg }),
        }
    }

    fn home(copied: &Copied) -> Option<NodeId> {
        copied.unit.home()
    }

    fn managed_home(manager: &Self::Manager) -> Option<NodeId> {
        manager.home()
    }

    fn access(copied: &Copied, view: ViewId) -> Access {
        Cashmere::access(&copied.unit, view)
    }

    fn ahead(copied: &Copied, place: Place, view: ViewId) -> Ahead {
        copied.unit.ahead(place, view)
    }

    fn is_read(entry: &Entry) -> bool {
        entry.moved_to().is_none() && Cashmere::is_read(&entry.directory)
    }

    fn is_exclusive(entry: &Entry) -> bool {
        entry.moved_to().is_none() && Cashmere::is_exclusive(&entry.directory)
    }
}

/// The tables have no row for what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// In a table of the other variants.
    Plain(super::Impossible),
    /// At a node's copy.
    Copy {
        /// The copy's state.
        mode: Mode,
        /// Who sent.
        from: NodeId,
        /// What arrived.
        msg: Msg,
    },
    /// At the home.
    Home {
        /// The directory entry's state.
        phase: Phase,
        /// Who sent.
        from: NodeId,
        /// What arrived.
        msg: Msg,
    },
    /// At the manager, which is only asked for the home.
    Manager {
        /// Who sent.
        from: NodeId,
        /// What arrived.
        msg: Msg,
    },
}
