//! `csm-2l`: Cashmere's two-level protocol [Cashmere05 §2.1], home-based and moderately lazy release consistency.
//!
//! Two levels: inside a node the hardware keeps the frame coherent, and all views of the node share it; between nodes
//! this protocol does, and only there does it cost anything. Three roles:
//!
//! * every node runs one [`Unit`] for each unit: the node's copy, and what its views may do with it (`requester.rs`);
//! * the unit's home also runs one [`Directory`]: the sharing set, or the exclusive owner (`home.rs`). The home's frame
//!   is the master copy, so the home needs neither fetches nor diffs, and a twin only to see whether
//!   a view that kept its right has written;
//! * where the address does not fix the home, the unit's manager runs one [`Homes`] entry: first touch (`home.rs`).
//!
//! Acquire and release, the steps around these tables, are in `sync.rs`; what must always hold, in `invariants.rs`.
//!
//! ```text
//!  requester                       home                      owner               other sharers
//!     | -- Fetch -------------------> |                         |                        |
//!     |                               | -- Break -------------> |  exclusive: snapshot becomes its twin, its
//!     |                               | <- BreakReply(page) --- |  writers' dirty lists get the unit
//!     | <- Grant(page) -------------- |                         |                        |
//!     |                               |                         |                        |
//!     | -- Upgrade -----------------> |   only sharer? then exclusive mode               |
//!     | <- UpgradeReply ------------- |                         |                        |
//!     |                               |                         |                        |
//!     | -- Flush(diff) -------------> |   at a release          |                        |
//!     | <- FlushAck(sharing set) ---- |                         |                        |
//!     | -- Notice ---------------------------------------------------------------------> |  listed; obeyed at
//!     | <- NoticeAck ------------------------------------------------------------------- |  the next acquire
//!     | -- Leave -------------------> |   after the last view dropped its mapping        |
//! ```
//!
//! **Two forms, one table.** In the form `None` an action `Send` is a message, and nodes answer when they get to it.
//! In the form `DMS` the sender runs the receiver's table itself, on the receiver's memory: directory, diffs and
//! notices are written directly, as the paper's remote writes do [Cashmere05 §2.3.1.1], and acknowledgements cost
//! nothing because they are returns. Locks are taken from requester to home to owner. A notice, and its acknowledgement,
//! go between equals: the driver puts each aside until it holds no lock, for two releasers that notify each other would
//! block each other (the checker's `AckUnderLock`).
//!
//! **Channel assumption**: messages from one node to another arrive in the order sent, none is lost. Direct execution
//! keeps it by running a handler under the unit's lock (ARCHITECTURE.md, "Locks"). The checker shows what breaks without.
//!
//! **Where we differ from the paper**, and why:
//!
//! * The owner of an exclusive unit keeps its write mappings when another node asks. The paper downgrades the processor
//!   that answers; here anyone may answer on the node's behalf, for nobody can change another process's mapping. So
//!   *all* the node's writers get the paper's no-longer-exclusive notice: the unit enters their dirty lists.
//! * The directory remembers which sharers are [`Directory::stale`]. A node whose copy misses another's flush must not
//!   become exclusive by an upgrade, for its frame would then be taken for the master.
//! * A write to a unit that others share asks nobody: the node knows from its last answer that it is not alone, and
//!   away from home that hint can only be too pessimistic. The home's own copy hears when the last other sharer leaves, and then
//!   asks once, which costs no message.
//! * A view may keep its right to write from one release to the next ([`Event::Flush`]): the twin is then refreshed with what
//!   the diff tells, and the next store costs no fault. The paper's page faults anew in every interval.
//! * The home is asked for a sharing set by a message of the node to itself, so that home and others run the same rows.

pub mod broadcast;
mod home;
pub mod invariants;
pub mod migration;
mod requester;
pub mod sync;
pub mod variants;

pub use home::{Directory, Homes, Phase};
pub use requester::{Mode, Unit};

use finespun_types::{Access, NodeId, NodeSet, ViewId};

use crate::page::{self, Ahead, Class, Message, Protocol, Role};
pub use crate::page::{Contents, Outcome, Place, Time};

/// What happens to a node's copy.
pub type Event = page::Event<Msg>;
/// What a table asks its driver to do.
pub type Action = page::Action<Msg>;
/// A short list of them.
pub type Actions = page::Actions<Msg>;
/// A table's answer.
pub type Step = page::Step<Msg>;

/// Messages between the roles. What a message carries beside these words (a page, a diff) the driver attaches; see
/// [`Contents`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Msg {
    /// requester -> manager: who is home? If nobody yet, I am: first touch.
    AskHome,
    /// manager -> requester: this node is.
    HomeIs(NodeId),
    /// requester -> home: the page, please; `write`: and exclusive mode if nobody else has it.
    Fetch {
        /// Wants exclusive mode if it is to be had.
        write: bool,
    },
    /// home -> requester: the page.
    Grant {
        /// In exclusive mode.
        exclusive: bool,
        /// No other node is in the sharing set now.
        alone: bool,
    },
    /// requester -> home: I have a copy; may I have exclusive mode?
    Upgrade,
    /// home -> requester: you have it, or not.
    UpgradeReply {
        /// In exclusive mode now.
        granted: bool,
    },
    /// home -> owner: leave exclusive mode, send the page.
    Break,
    /// owner -> home: the page; the owner is a sharer now.
    BreakReply,
    /// requester -> home: a diff of a release (from the home to itself: nothing, its frame is the master).
    Flush,
    /// home -> requester: applied; these nodes have copies.
    FlushAck(NodeSet),
    /// requester -> home: no view of my node maps the unit any more.
    Leave,
    /// home -> its own copy: the last other sharer has left. Somebody may have come since.
    LeftAlone,
    /// releaser -> sharer: a write notice; I wrote this unit.
    Notice,
    /// sharer -> releaser: listed.
    NoticeAck,
}

impl Message for Msg {
    fn role(self) -> Role {
        match self {
            Self::AskHome => Role::Manager,
            Self::Fetch { .. } | Self::Upgrade | Self::BreakReply | Self::Flush | Self::Leave => Role::Home,
            Self::HomeIs(_) | Self::Grant { .. } | Self::UpgradeReply { .. } | Self::Break => Role::Copy,
            Self::FlushAck(_) | Self::LeftAlone | Self::Notice | Self::NoticeAck => Role::Copy,
        }
    }

    fn class(self) -> Class {
        match self {
            Self::Fetch { .. } | Self::Grant { .. } | Self::Break | Self::BreakReply => Class::Data,
            Self::Flush | Self::FlushAck(_) => Class::Data,
            Self::AskHome | Self::HomeIs(_) | Self::Upgrade | Self::UpgradeReply { .. } => Class::Metadata,
            Self::Leave | Self::LeftAlone | Self::Notice | Self::NoticeAck => Class::Metadata,
        }
    }

    fn is_between_equals(self) -> bool {
        matches!(self, Self::Notice | Self::NoticeAck)
    }
}

/// The family's tables, for drivers that run any protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cashmere {}

impl Protocol for Cashmere {
    type Msg = Msg;
    type Unit = Unit;
    type Directory = Directory;
    type Manager = Homes;
    type Impossible = Impossible;
    const KEEPS: bool = true;
    const READS_AHEAD: bool = true;

    fn on_unit(unit: &mut Unit, place: Place, now: Time, event: Event) -> Result<Step, Impossible> {
        unit.on(place, now, event)
    }

    fn on_directory(directory: &mut Directory, home: NodeId, from: NodeId, msg: Msg) -> Result<Step, Impossible> {
        directory.on(home, from, msg)
    }

    fn on_manager(homes: &mut Homes, from: NodeId, msg: Msg) -> Result<Step, Impossible> {
        homes.on(from, msg)
    }

    fn home(unit: &Unit) -> Option<NodeId> {
        unit.home()
    }

    fn managed_home(manager: &Self::Manager) -> Option<NodeId> {
        manager.home()
    }

    fn access(unit: &Unit, view: ViewId) -> Access {
        page::access(unit.mapped, unit.writers, view)
    }

    fn ahead(unit: &Unit, place: Place, view: ViewId) -> Ahead {
        unit.ahead(place, view)
    }

    fn is_read(directory: &Directory) -> bool {
        directory.owner().is_none() && !directory.sharers.is_empty()
    }

    fn is_exclusive(directory: &Directory) -> bool {
        directory.phase == Phase::Owned
    }
}

/// The table has no row for what happened: a bug of ours, never bad input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// At a node's copy.
    Unit {
        /// The copy's state before.
        mode: Mode,
        /// What happened.
        event: Event,
    },
    /// At the home.
    Directory {
        /// The directory entry's state before.
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
