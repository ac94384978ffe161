//! The home side: the directory entry of one unit; and the manager's entry, where first touch decides the home.

use finespun_types::{NodeId, NodeIndex, NodeSet};
use zerocopy::{FromZeros, Immutable};

use super::vocabulary::{Action, Actions, Impossible, Msg, Phase};
use crate::page::{Contents, Outcome, send, send_with};

/// The directory entry of one unit, at its home. All-zero: nobody has touched it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Directory {
    /// The nodes that have copies.
    pub sharers: NodeSet,
    /// The sharers whose copies miss a flush that the master has.
    pub stale: NodeSet,
    /// The nodes that wait for the owner to leave exclusive mode.
    pub waiting: NodeSet,
    /// The entry's state; the owner is then the only sharer.
    pub phase: Phase,
}

impl Directory {
    /// One row per (phase, message). `home` is the node this entry stands at.
    ///
    /// # Errors
    /// [`Impossible`] when the pair cannot occur.
    #[rustfmt::skip]
    pub fn on(&mut self, home: NodeId, from: NodeId, msg: Msg, out: &mut Actions) -> Result<Outcome, Impossible> {
        use Msg::{AskHome, Break, BreakReply, Fetch, Flush, FlushAck, Grant, HomeIs, Leave, LeftAlone, Notice, NoticeAck, Upgrade, UpgradeReply};
        use Phase::{Breaking, Owned, Shared};

        let sharer = self.sharers.contains(from);
        Ok(match (self.phase, msg) {
            (Shared,   Fetch { write })           => self.grant(from, write, out),
            (Owned,    Fetch { .. }) if !sharer   => self.break_exclusive(from, out),
            (Breaking, Fetch { .. }) if !sharer   => { self.waiting = self.waiting.with(from); out.done(&[]) }
            (Breaking, BreakReply) if sharer      => self.grant_waiting(home, from, out),

            (Shared,   Upgrade) if sharer         => self.upgrade(from, out),

            // Apply before the answer reads the sharing set: whoever fetches in between gets the diff or the notice.
            (Shared,   Flush) if sharer           => self.flush(home, from, out),
            (Shared,   Leave) if sharer           => self.leave(home, from, out),

            // The owner has everything already; others cannot be sharers beside it; and what only requesters get.
            (Owned | Breaking, Fetch { .. } | Upgrade | Flush | Leave)
            | (Shared, Upgrade | Flush | Leave) | (Shared | Owned | Breaking, BreakReply)
            | (Shared | Owned | Breaking, AskHome | HomeIs(_) | Grant { .. } | UpgradeReply { .. } | Break | FlushAck(_) | LeftAlone | Notice | NoticeAck)
                => return Err(Impossible::Directory { phase: self.phase, from, msg }),
        })
    }

    /// The page to one requester, which is a sharer from now on: before it is read, so that a flush in between
    /// sends it a notice. Where the home has a twin the twin: a store in the frame alone may be put back before its release, which
    /// then tells nobody.
    fn grant(&mut self, from: NodeId, write: bool, out: &mut Actions) -> Outcome {
        self.sharers = self.sharers.with(from);
        self.stale = self.stale.without(from);
        let alone = self.sharers == NodeSet::only(from);
        let exclusive = write && alone;
        if exclusive {
            self.phase = Phase::Owned;
        }
        out.done(&[send_with(from, Msg::Grant { exclusive, alone }, Contents::Released)])
    }

    /// Exclusive mode without the page: only for the only sharer, and only if its copy misses nothing.
    fn upgrade(&mut self, from: NodeId, out: &mut Actions) -> Outcome {
        let granted = self.sharers == NodeSet::only(from) && !self.stale.contains(from);
        if granted {
            self.phase = Phase::Owned;
        }
        out.done(&[send(from, Msg::UpgradeReply { granted })])
    }

    fn break_exclusive(&mut self, from: NodeId, out: &mut Actions) -> Outcome {
        self.phase = Phase::Breaking;
        self.waiting = NodeSet::only(from);
        out.done(&[Action::Send { to: self.sharers, msg: Msg::Break, contents: Contents::Nothing }])
    }

    /// The owner answered: all who waited get the page, as sharers beside the old owner.
    fn grant_waiting(&mut self, home: NodeId, owner: NodeId, out: &mut Actions) -> Outcome {
        let to = self.end_exclusive();
        self.sharers = self.sharers.union(to);
        let msg = Msg::Grant { exclusive: false, alone: false };
        let grants = Action::Send { to, msg, contents: Contents::Released };
        if owner == home { out.done(&[grants]) } else { out.done(&[Action::Install, grants]) }
    }

    /// The owner is a sharer now; returns who waited for that.
    pub(super) fn end_exclusive(&mut self) -> NodeSet {
        self.phase = Phase::Shared;
        core::mem::replace(&mut self.waiting, NodeSet::EMPTY)
    }

    fn flush(&mut self, home: NodeId, from: NodeId, out: &mut Actions) -> Outcome {
        self.stale = self.stale.union(self.sharers.without(from)).without(home);
        let ack = send(from, Msg::FlushAck(self.sharers));
        // To the home's twin, too, if it has one: it must not take the change for its own and tell everybody again.
        if from == home { out.done(&[ack]) } else { out.done(&[Action::ApplyUpdate, ack]) }
    }

    /// The home's copy never leaves; if it is the last one, its next store may have exclusive mode.
    fn leave(&mut self, home: NodeId, from: NodeId, out: &mut Actions) -> Outcome {
        self.sharers = self.sharers.without(from);
        self.stale = self.stale.without(from);
        if self.sharers == NodeSet::only(home) { out.done(&[send(home, Msg::LeftAlone)]) } else { out.done(&[]) }
    }

    /// The owner, in exclusive mode or being asked to leave it.
    #[must_use]
    pub fn owner(&self) -> Option<NodeId> {
        match self.phase {
            Phase::Shared => None,
            Phase::Owned | Phase::Breaking => self.sharers.iter().next(),
        }
    }
}

/// The manager's entry of one unit: who is home, decided by first touch [Cashmere05 §2.3.1.1]. All-zero: nobody yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(transparent)]
pub struct Homes(NodeIndex);

impl Homes {
    /// One row: the first node that asks becomes home.
    ///
    /// # Errors
    /// [`Impossible`] for what is not asked of a manager.
    #[rustfmt::skip]
    pub fn on(&mut self, from: NodeId, msg: Msg, out: &mut Actions) -> Result<Outcome, Impossible> {
        use Msg::{AskHome, Break, BreakReply, Fetch, Flush, FlushAck, Grant, HomeIs, Leave, LeftAlone, Notice, NoticeAck, Upgrade, UpgradeReply};
        match msg {
            AskHome => Ok(out.done(&[send(from, HomeIs(self.decide(from)))])),
            HomeIs(_) | Fetch { .. } | Grant { .. } | Upgrade | UpgradeReply { .. } | Break | BreakReply | Flush | FlushAck(_) | Leave | LeftAlone | Notice | NoticeAck
                => Err(Impossible::Manager { from, msg }),
        }
    }

    /// The home; `first` if nobody was before.
    pub fn decide(&mut self, first: NodeId) -> NodeId {
        if self.0 == 0 {
            self.0 = first.0 + 1;
        }
        NodeId(self.0 - 1)
    }

    /// The home, if decided.
    #[must_use]
    pub fn home(self) -> Option<NodeId> {
        self.0.checked_sub(1).map(NodeId)
    }
}
