//! The words of the protocol: its messages, the states of its roles, and what its tables say.

use finespun_types::NodeId;
use zerocopy::{FromZeros, Immutable};

use crate::catalogue::catalogue;
use crate::page;

/// What happens to a node's copy.
pub type Event = page::Event<Msg>;
/// What a table asks its driver to do.
pub type Action = page::Action<Msg>;
/// A table's answer.
pub type Step = page::Step<Msg>;
/// Its lists of actions.
pub type Actions = page::Actions<Msg>;

catalogue! {
    /// Messages between the roles.
    pub enum Msg {
        /// requester -> manager: who is home? If nobody yet, I am: first touch.
        1 AskHome => Manager, Metadata;
        /// manager -> requester: this node is.
        2 HomeIs(home: NodeId) => Copy, Metadata;
        /// requester -> home: the page, please.
        3 Fetch => Home, Data;
        /// home -> requester: the page.
        4 Page {
            /// The requester is the home, and nobody else has a copy.
            alone: bool,
        } => Copy, Data;
        /// home -> itself: another node gets a copy.
        9 NotAlone => Copy, Data;
        /// releaser -> home: a diff.
        5 Flush => Home, Data;
        /// home -> releaser: applied, and passed on to so many sharers.
        6 FlushAck {
            /// How many acknowledgements will come.
            updates: u8,
        } => Copy, Data;
        /// home -> sharer: a diff of this releaser.
        7 Update {
            /// Whom to acknowledge.
            releaser: NodeId,
        } => Copy, Data, between equals, counts Updates;
        /// sharer -> releaser: applied.
        8 UpdateAck => Copy, Data, between equals;
    }
}

/// What the node has of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(u8)]
pub enum Mode {
    /// No view of the node ever touched it; the home may be unknown.
    #[default]
    Untouched,
    /// The manager was asked for the home.
    AskingHome,
    /// Not in the sharing set.
    NoCopy,
    /// The home was asked for the page.
    Fetching,
    /// A copy, kept up to date by the others' releases, for ever.
    Valid,
}

/// The table has no row for what happened: a bug of ours, never bad input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// At a node's copy.
    Copy {
        /// The copy's state before.
        mode: Mode,
        /// What happened.
        event: Event,
    },
    /// At the home.
    Directory {
        /// Who sent.
        from: NodeId,
        /// What arrived.
        msg: Msg,
    },
    /// At the manager.
    Manager {
        /// What arrived.
        msg: Msg,
    },
}
