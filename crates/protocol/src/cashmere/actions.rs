//! What a table asks its driver to do. Each action is the runtime's unit of work, the simulator's unit of price and
//! the reports' unit of counting.

use finespun_types::{Access, NodeId, NodeSet, ViewId, ViewSet};

use super::Msg;

/// What the driver attaches to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contents {
    /// The words of the message alone.
    Nothing,
    /// The node's frame. To the node itself nothing: its frame is already there.
    Frame,
    /// The node's twin, made just before: a snapshot that the frame's writers cannot change any more.
    Twin,
    /// The diff of the frame against the twin. With `refresh` the twin becomes what was sent, for views that go on
    /// writing; without it the twin is dropped. Empty: nothing is sent, and [`super::Event::NothingChanged`] comes next.
    Diff {
        /// Keep the twin, refreshed.
        refresh: bool,
    },
}

/// What the driver must do, in the order given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Send `msg` to each of `to`.
    Send {
        /// The receivers.
        to: NodeSet,
        /// The message.
        msg: Msg,
        /// What goes with it.
        contents: Contents,
    },
    /// Copy the page that came with the message over the frame.
    Install,
    /// Two-way diff: write the bytes in which the page that came differs from the twin to both frame and twin
    /// [Cashmere05 §2.1].
    Merge,
    /// Apply the diff that came with the message to the frame.
    ApplyDiff,
    /// Copy the frame to a new twin.
    MakeTwin,
    /// Forget the twin: every view has flushed.
    DropTwin,
    /// Change what a view may do.
    Protect {
        /// Whose mapping. Always the view that runs the event: nobody can change another's.
        view: ViewId,
        /// Its rights from now on.
        access: Access,
    },
    /// Put the unit on these views' dirty lists.
    ListDirty(ViewSet),
    /// Put the unit on these views' lists of write notices.
    ListNotice(ViewSet),
    /// The flush that this view began is complete: all sharers have the notice.
    FlushDone(ViewId),
    /// Let the node's waiting processors look again.
    Wake,
    /// Nothing to do; the timestamps saved a fetch. Counted.
    FetchSkipped,
    /// Nothing to do; the timestamps saved a flush. Counted.
    FlushSkipped,
    /// Nothing to do; the unit went into exclusive mode. Counted.
    EnteredExclusive,
}

/// At most this many actions answer one event.
const ACTIONS_MAX: usize = 6;

/// A short list of actions, without allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions {
    list: [Action; ACTIONS_MAX],
    len: u8,
}

impl Actions {
    /// No action.
    pub const NONE: Self = Self { list: [Action::Wake; ACTIONS_MAX], len: 0 };

    /// These actions, in order.
    #[must_use]
    pub fn of(actions: &[Action]) -> Self {
        let mut all = Self::NONE;
        for &action in actions {
            all.push(action);
        }
        all
    }

    /// Adds one at the end.
    pub fn push(&mut self, action: Action) {
        self.list[usize::from(self.len)] = action;
        self.len += 1;
    }

    /// The actions, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Action] {
        &self.list[..usize::from(self.len)]
    }
}

/// Where the presenter of an event stands after the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Finished: a fault may be retried by the hardware, a flush needs no more from its view (its completion is
    /// announced by [`Action::FlushDone`] if one began).
    Done,
    /// A flush began and is under way; [`Action::FlushDone`] tells the end.
    Begun,
    /// Present the same event again when the node was woken, or at once if the actions already brought the answer.
    Wait,
}

/// A table's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// For the presenter of the event.
    pub outcome: Outcome,
    /// For the driver.
    pub actions: Actions,
}

impl Step {
    pub(super) fn done(actions: &[Action]) -> Self {
        Self { outcome: Outcome::Done, actions: Actions::of(actions) }
    }

    pub(super) fn wait(actions: &[Action]) -> Self {
        Self { outcome: Outcome::Wait, actions: Actions::of(actions) }
    }
}

/// The words of `msg` to one node.
pub(super) const fn send(to: NodeId, msg: Msg) -> Action {
    Action::Send { to: NodeSet::only(to), msg, contents: Contents::Nothing }
}

/// `msg` to one node, with `contents`.
pub(super) const fn send_with(to: NodeId, msg: Msg, contents: Contents) -> Action {
    Action::Send { to: NodeSet::only(to), msg, contents }
}
