//! Seeded bugs: what a driver or a table could get wrong. The tables carry no switches; the checker's driver alters
//! what goes into them and what comes out. Each bug must be caught, or the checker proves nothing.

use finespun_protocol::cashmere::{Action, Contents, Directory, Event, Mode, Msg, Time, Unit};
use finespun_types::{NodeId, NodeSet};

/// One wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// A store to a shared unit makes no twin.
    NoTwin,
    /// The home applies a diff only after the sharers were notified.
    NoticeBeforeFlush,
    /// An incoming page overwrites the frame, local stores included: no two-way diff.
    NoTwoWayDiff,
    /// The home grants an upgrade to a sharer that misses a flush.
    UpgradeOfStaleCopy,
    /// The home grants an upgrade though there are other sharers.
    UpgradeAmongSharers,
    /// A copy counts as updated when the page arrives, not when it was asked for.
    UpdatedAtArrival,
    /// A write notice does not set its timestamp: the copy seems current.
    NoticeWithoutTime,
    /// A flush does not wait for the fetch under way.
    FlushDuringFetch,
    /// Leaving exclusive mode: the twin is made before the writers' dirty lists have the unit.
    TwinBeforeDirtyList,
    /// Leaving exclusive mode: the writers' dirty lists do not get the unit.
    NoLongerExclusiveLost,
    /// A write fault: the right to write comes before the twin.
    RightBeforeTwin,
    /// A write notice is acknowledged and not listed.
    NoticeNotListed,
    /// A flush leaves the twin as it was while other views go on writing.
    TwinNotRefreshed,
    /// A flush refreshes the twin by reading the frame once more.
    TwinRefreshedBySecondRead,
    /// A flush leaves the view its right to write.
    FlushKeepsRight,
    /// The home is not told that a node dropped its copy.
    LeaveLost,
    /// Messages between two nodes overtake each other.
    UnorderedChannels,
    /// A release tells others before its flushes are done.
    ReleaseTooEarly,
    /// An acquire goes on without obeying its notices.
    AcquireWithoutNotices,
    /// A flush is skipped though the view has other threads that may have stored since.
    SkipWithThreads,
    /// Waiting processors are not woken.
    NoWake,
    /// A notice is acknowledged while the lock of the notified copy is held.
    AckUnderLock,
}

impl Bug {
    /// The actions as this bug would have them, of a handler at `unit` for `event`.
    pub(crate) fn alter(self, event: Option<Event>, actions: &mut Vec<Action>) {
        let at_break = matches!(event, Some(Event::Recv { msg: Msg::Break, .. }));
        let at_flush = matches!(event, Some(Event::Flush { .. }));
        let at_fault = matches!(event, Some(Event::WriteFault { .. }));
        match self {
            Self::NoTwin => actions.retain(|action| *action != Action::MakeTwin),
            Self::NoTwoWayDiff => {
                for action in actions.iter_mut().filter(|action| **action == Action::Merge) {
                    *action = Action::Install;
                }
            }
            Self::TwinBeforeDirtyList if at_break => bring_forward(actions, |action| *action == Action::MakeTwin),
            Self::NoLongerExclusiveLost if at_break => actions.retain(|action| !matches!(action, Action::ListDirty(_))),
            Self::RightBeforeTwin if at_fault => {
                bring_forward(actions, |action| matches!(action, Action::Protect { .. }));
            }
            Self::NoticeNotListed => actions.retain(|action| !matches!(action, Action::ListNotice(_))),
            Self::FlushKeepsRight if at_flush => actions.retain(|action| !matches!(action, Action::Protect { .. })),
            Self::LeaveLost => actions.retain(|action| !matches!(action, Action::Send { msg: Msg::Leave, .. })),
            Self::NoWake => actions.retain(|action| *action != Action::Wake),
            Self::TwinBeforeDirtyList
            | Self::NoLongerExclusiveLost
            | Self::RightBeforeTwin
            | Self::FlushKeepsRight
            | Self::NoticeBeforeFlush
            | Self::UpgradeOfStaleCopy
            | Self::UpgradeAmongSharers
            | Self::UpdatedAtArrival
            | Self::NoticeWithoutTime
            | Self::FlushDuringFetch
            | Self::TwinNotRefreshed
            | Self::TwinRefreshedBySecondRead
            | Self::UnorderedChannels
            | Self::ReleaseTooEarly
            | Self::AcquireWithoutNotices
            | Self::SkipWithThreads
            | Self::AckUnderLock => {}
        }
    }

    /// Before the unit's table runs. Returns the mode to put back afterwards, if the bug changed it.
    pub(crate) fn before_unit(self, unit: &mut Unit, now: Time, event: Event) -> Option<Mode> {
        if self == Self::UpdatedAtArrival && matches!(event, Event::Recv { msg: Msg::Grant { .. }, .. }) {
            unit.asked = now;
        }
        let too_early = matches!(event, Event::Flush { .. }) && unit.mode == Mode::Fetching;
        (self == Self::FlushDuringFetch && too_early).then(|| std::mem::replace(&mut unit.mode, Mode::Shared))
    }

    /// After the unit's table ran.
    pub(crate) fn after_unit(self, unit: &mut Unit, before: Time, event: Event) {
        if self == Self::NoticeWithoutTime && matches!(event, Event::Recv { msg: Msg::Notice, .. }) {
            unit.noticed_at = before;
        }
    }

    /// Before the home's table runs.
    pub(crate) fn before_home(self, directory: &mut Directory, from: NodeId, msg: Msg) {
        if self == Self::UpgradeOfStaleCopy {
            directory.stale = NodeSet::EMPTY;
        }
        if self == Self::UpgradeAmongSharers && msg == Msg::Upgrade {
            directory.sharers = NodeSet::only(from);
        }
    }

    /// What a flush that refreshes the twin does with it.
    pub(crate) fn refresh(self, contents: Contents) -> bool {
        matches!(contents, Contents::Diff { refresh: true })
            && !matches!(self, Self::TwinNotRefreshed | Self::TwinRefreshedBySecondRead)
    }
}

/// Moves the first such action to the front.
fn bring_forward(actions: &mut [Action], is_it: impl Fn(&Action) -> bool) {
    if let Some(place) = actions.iter().position(is_it) {
        actions[..=place].rotate_right(1);
    }
}
