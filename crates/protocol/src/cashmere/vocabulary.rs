//! The words of the family: its messages, the states of its roles, and what its tables say.

use finespun_types::{NodeId, NodeSet};
use zerocopy::{FromZeros, Immutable};

use crate::catalogue::catalogue;
use crate::page;

/// What happens to a node's copy.
pub type Event = page::Event<Msg>;
/// What a table asks its driver to do.
pub type Action = page::Action<Msg>;
/// A short list of them.
pub type Actions = page::Actions<Msg>;
/// A table's answer.
pub type Step = page::Step<Msg>;

catalogue! {
    /// Messages between the roles. What a message carries beside these words (a page, a diff) the driver attaches; see
    /// [`Contents`](crate::page::Contents).
    pub enum Msg {
        /// requester -> manager: who is home? If nobody yet, I am: first touch.
        1 AskHome => Manager, Metadata;
        /// manager -> requester: this node is.
        2 HomeIs(home: NodeId) => Copy, Metadata;
        /// requester -> home: the page, please; `write`: and exclusive mode if nobody else has it.
        3 Fetch {
            /// Wants exclusive mode if it is to be had.
            write: bool,
        } => Home, Data;
        /// home -> requester: the page.
        4 Grant {
            /// In exclusive mode.
            exclusive: bool,
            /// No other node is in the sharing set now.
            alone: bool,
        } => Copy, Data;
        /// requester -> home: I have a copy; may I have exclusive mode?
        5 Upgrade => Home, Metadata;
        /// home -> requester: you have it, or not.
        6 UpgradeReply {
            /// In exclusive mode now.
            granted: bool,
        } => Copy, Metadata;
        /// home -> owner: leave exclusive mode, send the page.
        7 Break => Copy, Data, counts ExclusiveBreaks;
        /// owner -> home: the page; the owner is a sharer now.
        8 BreakReply => Home, Data;
        /// requester -> home: a diff of a release (from the home to itself: nothing, its frame is the master).
        9 Flush => Home, Data;
        /// home -> requester: applied; these nodes have copies.
        10 FlushAck(sharers: NodeSet) => Copy, Data;
        /// requester -> home: no view of my node maps the unit any more.
        11 Leave => Home, Metadata;
        /// home -> its own copy: the last other sharer has left. Somebody may have come since.
        14 LeftAlone => Copy, Metadata;
        /// releaser -> sharer: a write notice; I wrote this unit.
        12 Notice => Copy, Metadata, between equals, counts WriteNotices;
        /// sharer -> releaser: listed.
        13 NoticeAck => Copy, Metadata, between equals;
    }
}

/// What the node has of a unit. Stable states are adjectives and nouns; in the others an answer is awaited, and only
/// the form `None` ever shows them to a second view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(u8)]
pub enum Mode {
    /// No view of the node ever touched it; the home may be unknown.
    #[default]
    Untouched,
    /// The manager was asked for the home.
    AskingHome,
    /// Not in the sharing set; no view has a mapping.
    NoCopy,
    /// The home was asked for the page. An older copy may still be mapped.
    Fetching,
    /// In the sharing set. The copy may be out of date: see [`Unit::is_current`](super::Unit::is_current).
    Shared,
    /// As `Shared`, and the home was asked for exclusive mode.
    Upgrading,
    /// The only copy: no twin, no diff, no write notice until somebody asks.
    Exclusive,
}

/// What a directory entry stands at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(u8)]
pub enum Phase {
    /// The home's frame is the master copy; the sharing set may be empty.
    #[default]
    Shared,
    /// The owner alone has a copy, in exclusive mode; the home's frame is stale unless the owner is the home.
    Owned,
    /// The owner was asked to leave exclusive mode; requesters wait.
    Breaking,
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
