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
        /// requester -> home: a copy to read, or the right to write.
        3 Fetch {
            /// The right to write.
            write: bool,
        } => Home, Data, between equals;
        /// home -> requester: you have it.
        4 Grant {
            /// You are the owner.
            write: bool,
            /// The page comes with it; else the requester has it.
            page: bool,
        } => Copy, Data;
        /// home -> reader: somebody is going to write.
        5 Invalidate => Copy, Data;
        /// reader -> home: no view of the node maps it any more.
        6 InvalidateAck => Home, Data, between equals;
        /// home -> owner: somebody is going to read, or to write.
        7 Recall {
            /// To write: keep nothing.
            write: bool,
        } => Copy, Data;
        /// owner -> home: the page; the node is a reader now, or has nothing.
        8 RecallReply => Home, Data, between equals;
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
    /// No copy.
    NoCopy,
    /// No copy; the home was asked for one to read.
    Reading,
    /// No copy; the home was asked for the right to write.
    Writing,
    /// A copy to read, beside others.
    Shared,
    /// As `Shared`, and the home was asked for the right to write.
    Upgrading,
    /// The only copy, which may be written.
    Owned,
}

/// What the node is about to give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(u8)]
pub enum Leaving {
    /// Nothing.
    #[default]
    Nothing,
    /// The right to write.
    Writing,
    /// The copy.
    Everything,
}

/// What a directory entry stands at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(u8)]
pub enum Phase {
    /// The home's frame has the last store; the sharers may read.
    #[default]
    Shared,
    /// The only sharer may write; the home's frame is stale unless it is the home.
    Owned,
    /// Sharers were told to go, for a writer.
    Invalidating,
    /// The owner was asked for the page.
    Recalling,
}

/// The table has no row for what happened: a bug of ours, never bad input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// At a node's copy.
    Copy {
        /// The copy's state before.
        mode: Mode,
        /// What it was about to give up.
        leaving: Leaving,
        /// What happened.
        event: Event,
    },
    /// At the home.
    Directory {
        /// The entry's state before.
        phase: Phase,
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
