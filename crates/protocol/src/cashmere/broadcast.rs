//! `csm-adb`: adaptive broadcast of widely read pages [Cashmere05 §2.3.3], around the tables of the other variants.
//!
//! A page that several nodes ask for is written once into a *broadcast buffer*, which all nodes can read; who needs it
//! from then on takes it from there. The home decides, by what it has seen of requests ([`Readers`]): several at the same
//! time, several in one of its intervals (a release of the home's node begins the next one), or two or more in the
//! interval before.
//!
//! ```text
//!  requester                       home
//!     | == Fetch ===================> |  widely read: the frame goes to a buffer
//!     | <= Announced ================ |  no page in it
//!     | -- Look --------------------> |
//!     | <- Buffered(page) ----------- |  in the sharing set first, then the page, copied from the buffer
//!
//!     | -- Look --------------------> |  a fault, while a buffer seems to hold the page: no message at all
//!     | <- Buffered(page) ----------- |
//!
//!     | -- Look --------------------> |  the buffer was dropped meanwhile
//!     | <- NoBuffer ----------------- |
//!     | == Fetch ===================> |  and if the home had announced a buffer to it: the page comes by message now
//!     | <= Grant(page) ============== |
//!
//!     ==  a message, handled by the home's engine      --  direct access: the requester runs the home's row itself
//! ```
//!
//! **A buffer is as new as the home's frame** as far as anybody may know. It is dropped when the home's directory hears of
//! a change: at a flush, before its diff is applied and before the notices go out, and when the unit becomes exclusive. The
//! home's own stores do not pass the directory; what a buffer lacks of them was not released yet, and at the home's release
//! its flush drops the buffer too.
//!
//! **Who takes the page is a sharer before it reads**: the row that hands it out runs under the unit's lock at the home,
//! as the grant of a page does, so that a flush in between sends it a notice. And nobody looks while a flush of its own
//! is under way: the flush is a message, the look would overtake it, and the page would undo the store.

use finespun_types::{Access, NodeId, NodeSet, ViewId};
use zerocopy::{FromZeros, Immutable};

use super::{Cashmere, Directory, Homes, Mode, Msg as Plain, Phase, Unit};
use crate::catalogue::catalogue;
use crate::page::{Actions, Ahead, Buffers, Contents, Event, Outcome, Place, Protocol, Time, send, send_with};

type Action = crate::page::Action<Msg>;

catalogue! {
    /// The messages: those of the other variants, and four about buffers.
    pub enum Msg: Plain(Plain) {
        /// requester -> home: the page from the buffer, if one holds it. The driver attaches it.
        32 Look => Home, Metadata, wants buffer;
        /// home -> requester: here it is, and you are a sharer.
        33 Buffered {
            /// No other node is in the sharing set now.
            alone: bool,
        } => Copy, Metadata, counts BroadcastHits;
        /// home -> requester: no buffer holds it.
        34 NoBuffer => Copy, Metadata;
        /// home -> requester: look into the buffer. It answers a request for data, and must not overtake the answer to an
        /// earlier one.
        35 Announced => Copy, Data;
    }
}

/// What the home remembers of requests for a unit, to tell whether it is widely read. All-zero: none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Readers {
    /// The nodes that asked in `interval`; one that asks twice is one reader.
    pub asked: NodeSet,
    /// The nodes that asked in the interval before.
    pub asked_before: NodeSet,
    /// The nodes that were told of a buffer and have not taken the page from it.
    pub announced: NodeSet,
    /// The home's interval of the last request.
    pub interval: u32,
}

impl Readers {
    /// A request in this interval of the home.
    pub fn note(&mut self, interval: u32, from: NodeId) {
        match interval.wrapping_sub(self.interval) {
            0 => {}
            1 => self.asked_before = core::mem::replace(&mut self.asked, NodeSet::EMPTY),
            2.. => (self.asked_before, self.asked) = (NodeSet::EMPTY, NodeSet::EMPTY),
        }
        self.interval = interval;
        self.asked = self.asked.with(from);
    }

    /// The paper's three heuristics, at a request; `at_once` requests wait for the same answer.
    #[must_use]
    pub const fn are_many(&self, at_once: usize) -> bool {
        at_once >= 2 || self.asked.len() >= 2 || self.asked_before.len() >= 2
    }
}

/// The directory entry of a unit, with its readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Entry {
    /// As in the other variants.
    pub directory: Directory,
    /// Who asked lately.
    pub readers: Readers,
}

impl Entry {
    /// The rows about buffers; all others are the directory's.
    #[rustfmt::skip]
    fn on(&mut self, buffers: Buffers, home: NodeId, from: NodeId, msg: Msg, out: &mut Actions<Msg>) -> Result<Outcome, Impossible> {
        use Msg::{Announced, Buffered, Look, NoBuffer};
        use Phase::{Breaking, Owned, Shared};
        use Plain::{BreakReply, Fetch};

        let away = from != home;
        if away && matches!(msg, Look | Msg::Plain(Fetch { .. })) {
            self.readers.note(buffers.interval, from);
        }
        Ok(match (self.directory.phase, msg) {
            (Shared,                    Look) if buffers.held       => self.hand_out(from, out),
            (Shared | Owned | Breaking, Look)                       => out.done(&[send(from, NoBuffer)]),
            (Shared,   Msg::Plain(Fetch { write })) if away && self.goes_by_buffer(buffers, from, write) => self.announce(buffers, from, out),
            (Breaking, Msg::Plain(BreakReply)) if self.is_owner(from) && self.waiting(home) > 0 && self.readers.are_many(self.waiting(home)) => self.announce_all(home, from, out),
            (Shared | Owned | Breaking, Msg::Plain(msg))            => return self.plain(buffers, home, from, msg, out),
            (Shared | Owned | Breaking, Buffered { .. } | NoBuffer | Announced)
                => return Err(Impossible::Home { phase: self.directory.phase, from, msg }),
        })
    }

    /// Not if the node can have exclusive mode, nor if it was sent to a buffer and came too late: the page comes by message
    /// then, so that nobody is sent about for ever.
    fn goes_by_buffer(&self, buffers: Buffers, from: NodeId, write: bool) -> bool {
        let alone = self.directory.sharers.without(from).is_empty();
        let exclusive = write && alone;
        !exclusive && !self.readers.announced.contains(from) && (buffers.held || self.readers.are_many(1))
    }

    fn announce(&mut self, buffers: Buffers, from: NodeId, out: &mut Actions<Msg>) -> Outcome {
        self.readers.announced = self.readers.announced.with(from);
        let tell = send(from, Msg::Announced);
        if buffers.held { out.done(&[tell]) } else { out.done(&[Action::Broadcast, tell]) }
    }

    /// The owner answered, and many wait: what all of them are sent otherwise is written once. The home's own views may
    /// wait too; they have the frame.
    fn announce_all(&mut self, home: NodeId, owner: NodeId, out: &mut Actions<Msg>) -> Outcome {
        let waiting = self.directory.end_exclusive();
        let to = waiting.without(home);
        self.readers.announced = self.readers.announced.union(to);
        if owner != home {
            out.push(Action::Install);
        }
        out.push(Action::Broadcast);
        out.push(Action::Send { to, msg: Msg::Announced, contents: Contents::Nothing });
        if waiting.contains(home) {
            self.directory.sharers = self.directory.sharers.with(home);
            let grant = Plain::Grant { exclusive: false, alone: false };
            out.push(send_with(home, Msg::Plain(grant), Contents::Frame));
        }
        Outcome::Done
    }

    /// How many other nodes wait for the owner to leave exclusive mode.
    fn waiting(&self, home: NodeId) -> usize {
        self.directory.waiting.without(home).len()
    }

    /// The page from the buffer, to a node that is a sharer from now on and misses nothing: a buffer has every flush.
    fn hand_out(&mut self, from: NodeId, out: &mut Actions<Msg>) -> Outcome {
        let Directory { sharers, stale, .. } = &mut self.directory;
        (*sharers, *stale) = (sharers.with(from), stale.without(from));
        let alone = *sharers == NodeSet::only(from);
        self.readers.announced = self.readers.announced.without(from);
        out.done(&[send_with(from, Msg::Buffered { alone }, Contents::Received)])
    }

    /// The directory's own rows. A buffer goes first if the page changes: before the answer by which others are told.
    fn plain(
        &mut self,
        buffers: Buffers,
        home: NodeId,
        from: NodeId,
        msg: Plain,
        out: &mut Actions<Msg>,
    ) -> Result<Outcome, Impossible> {
        if matches!(msg, Plain::Fetch { .. }) {
            self.readers.announced = self.readers.announced.without(from);
        }
        let mut own = Actions::new();
        let outcome = self.directory.on(home, from, msg, &mut own).map_err(Impossible::Plain)?;
        let changes = msg == Plain::Flush || self.directory.phase != Phase::Shared;
        if buffers.held && changes {
            out.push(Action::DropBuffer);
        }
        out.lift(&own, Msg::Plain);
        Ok(outcome)
    }

    fn is_owner(&self, node: NodeId) -> bool {
        self.directory.owner() == Some(node)
    }
}

/// The copy's rows about buffers; all others are the unit's.
fn on_unit(
    unit: &mut Unit,
    buffers: Buffers,
    place: Place,
    now: Time,
    event: Event<Msg>,
    out: &mut Actions<Msg>,
) -> Result<Outcome, Impossible> {
    let mode = unit.mode;
    let plain = match event {
        Event::ReadFault { view, since } => Event::ReadFault { view, since },
        Event::WriteFault { view, since } => Event::WriteFault { view, since },
        Event::Flush { view, since, .. } => Event::Flush { view, since, keep: false },
        Event::NothingChanged => Event::NothingChanged,
        Event::Invalidate { view } => Event::Invalidate { view },
        Event::Recv { from, msg: Msg::Plain(msg) } => Event::Recv { from, msg },
        // As new as a page that is granted, and it goes the same way.
        Event::Recv { from, msg: Msg::Buffered { alone } } => {
            Event::Recv { from, msg: Plain::Grant { exclusive: false, alone } }
        }
        Event::Recv { from, msg: Msg::Announced } if mode == Mode::Fetching => {
            return Ok(out.done(&[send(from, Msg::Look)]));
        }
        Event::Recv { from, msg: Msg::NoBuffer } if mode == Mode::Fetching => {
            return Ok(out.done(&[send(from, Msg::Plain(Plain::Fetch { write: false }))]));
        }
        Event::Recv { msg: Msg::Look | Msg::Announced | Msg::NoBuffer, .. } => {
            return Err(Impossible::Copy { mode, event });
        }
    };
    let mut own = Actions::new();
    let outcome = unit.on(place, now, plain, &mut own).map_err(Impossible::Plain)?;
    let looks = buffers.held && unit.flusher().is_none() && !unit.is_home(place.me);
    out.lift(&own, |msg| match msg {
        Plain::Fetch { .. } if looks => Msg::Look,
        Plain::Fetch { .. } | Plain::Grant { .. } | Plain::Upgrade | Plain::UpgradeReply { .. } | Plain::Break => {
            Msg::Plain(msg)
        }
        Plain::AskHome | Plain::HomeIs(_) | Plain::BreakReply | Plain::Flush | Plain::FlushAck(_) => Msg::Plain(msg),
        Plain::Leave | Plain::LeftAlone | Plain::Notice | Plain::NoticeAck => Msg::Plain(msg),
    });
    Ok(outcome)
}

/// The variant's tables, for drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broadcasting {}

impl Protocol for Broadcasting {
    type Msg = Msg;
    type Unit = Unit;
    type Directory = Entry;
    type Manager = Homes;
    type Impossible = Impossible;
    const READS_AHEAD: bool = true;
    const BROADCASTS: bool = true;

    fn on_unit(
        unit: &mut Unit,
        place: Place,
        now: Time,
        event: Event<Msg>,
        out: &mut Actions<Msg>,
    ) -> Result<Outcome, Impossible> {
        on_unit(unit, Buffers::default(), place, now, event, out)
    }

    fn on_directory(
        entry: &mut Entry,
        home: NodeId,
        from: NodeId,
        msg: Msg,
        out: &mut Actions<Msg>,
    ) -> Result<Outcome, Impossible> {
        entry.on(Buffers::default(), home, from, msg, out)
    }

    fn on_manager(homes: &mut Homes, from: NodeId, msg: Msg, out: &mut Actions<Msg>) -> Result<Outcome, Impossible> {
        match msg {
            Msg::Plain(msg) => {
                let mut own = Actions::new();
                let outcome = homes.on(from, msg, &mut own).map_err(Impossible::Plain)?;
                out.lift(&own, Msg::Plain);
                Ok(outcome)
            }
            Msg::Look | Msg::Buffered { .. } | Msg::NoBuffer | Msg::Announced => Err(Impossible::Manager { from, msg }),
        }
    }

    fn home(unit: &Unit) -> Option<NodeId> {
        unit.home()
    }

    fn managed_home(manager: &Self::Manager) -> Option<NodeId> {
        manager.home()
    }

    fn access(unit: &Unit, view: ViewId) -> Access {
        Cashmere::access(unit, view)
    }

    fn ahead(unit: &Unit, place: Place, view: ViewId) -> Ahead {
        unit.ahead(place, view)
    }

    fn is_read(entry: &Entry) -> bool {
        Cashmere::is_read(&entry.directory)
    }

    fn is_exclusive(entry: &Entry) -> bool {
        Cashmere::is_exclusive(&entry.directory)
    }

    fn on_unit_seeing(
        unit: &mut Unit,
        buffers: Buffers,
        place: Place,
        now: Time,
        event: Event<Msg>,
        out: &mut Actions<Msg>,
    ) -> Result<Outcome, Impossible> {
        on_unit(unit, buffers, place, now, event, out)
    }

    fn on_directory_seeing(
        entry: &mut Entry,
        buffers: Buffers,
        home: NodeId,
        from: NodeId,
        msg: Msg,
        out: &mut Actions<Msg>,
    ) -> Result<Outcome, Impossible> {
        entry.on(buffers, home, from, msg, out)
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
        /// What happened.
        event: Event<Msg>,
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
