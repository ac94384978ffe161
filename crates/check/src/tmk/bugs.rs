//! Bugs to seed: what a driver or a table of `tmk` could get wrong.

use finespun_protocol::tmk::{Action, Event, Unit};

/// One wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// Diffs are applied in another order than that of their stamps.
    AppliedOutOfOrder,
    /// A lock's grant does not bring what its releaser knew.
    GrantWithoutNotices,
    /// An acquire obeys no notices.
    AcquireWithoutNotices,
    /// An interval ends without write-protecting what it wrote.
    CloseKeepsRight,
    /// A collection forgets diffs before the last writers have theirs complete.
    CollectWithoutKeep,
    /// Incoming diffs do not go to the twin.
    TwinNotUpdated,
    /// A diff made while the open interval writes leaves the twin as it was.
    TwinNotRefreshed,
    /// A page is sent with the stores of the open interval.
    BaseFromFrame,
    /// A page is sent before the diff that is owed is made.
    BaseBeforeDiff,
    /// Messages between two nodes overtake each other.
    UnorderedChannels,
    /// Waiting threads are not woken.
    NoWake,
    /// A write fault gives the right before the twin is made.
    RightBeforeTwin,
    /// A release passes on only the node's own intervals, not those it had acquired.
    OwnNewsOnly,
    /// A thread acquires while another of the view ends an interval.
    AcquireDuringRelease,
    /// A thread asks for diffs while another of the view has obeyed some notices of an acquire, not all.
    FaultDuringAcquire,
    /// A notice leaves the diff that is owed unmade, and later stores go into it.
    OwedAcrossNotice,
    /// A signal handler of the program runs while its thread is at a meeting of a collection.
    HandlerInCollection,
    /// A thread outside the barrier faults while the others collect.
    FaultInCollection,
    /// A copy is taken to lack what is collected if it lacks something, and its writer's last collected interval is later than what it has.
    CollectByTime,
    /// Faults of a node wait as soon as one of its processors collects, though another has not come so far.
    FaultsHeldTooEarly,
    /// A collection drops a copy that lacks something, though this node has written it in an interval that is not collected.
    KeepForgetsOwn,
    /// A collection forgets what is owed, though the open interval writes and has its twin.
    OwedForgotten,
}

impl Bug {
    /// The actions as this bug would have them.
    pub(super) fn alter(self, event: Event<'_>, actions: &mut Vec<Action>) {
        match self {
            Self::CloseKeepsRight if matches!(event, Event::Close { .. }) => actions.clear(),
            Self::BaseFromFrame => {
                for action in actions {
                    if let Action::SendBase { twin, .. } = action {
                        *twin = false;
                    }
                }
            }
            Self::BaseBeforeDiff if matches!(event, Event::AskBase { .. }) => {
                actions.retain(|action| !matches!(action, Action::MakeDiff { .. }));
            }
            Self::OwedAcrossNotice if matches!(event, Event::Notice { .. }) => {
                actions.retain(|action| !is_diff(action) && *action != Action::DropTwin);
            }
            Self::NoWake => actions.retain(|action| *action != Action::Wake),
            Self::RightBeforeTwin if matches!(event, Event::Fault { .. }) => {
                let right = actions.iter().position(|action| matches!(action, Action::Protect(_)));
                if let Some(right) = right {
                    actions[..=right].rotate_right(1);
                }
            }
            Self::CloseKeepsRight
            | Self::OwedAcrossNotice
            | Self::BaseBeforeDiff
            | Self::RightBeforeTwin
            | Self::AppliedOutOfOrder
            | Self::GrantWithoutNotices
            | Self::AcquireWithoutNotices
            | Self::CollectWithoutKeep
            | Self::TwinNotUpdated
            | Self::TwinNotRefreshed
            | Self::UnorderedChannels
            | Self::OwnNewsOnly
            | Self::AcquireDuringRelease
            | Self::FaultDuringAcquire
            | Self::HandlerInCollection
            | Self::FaultInCollection
            | Self::FaultsHeldTooEarly
            | Self::CollectByTime
            | Self::KeepForgetsOwn
            | Self::OwedForgotten => {}
        }
    }
}

/// Does a collection forget an interval that is owed, and whose twin the open interval uses?
pub(super) fn is_collected(unit: &Unit, event: Event<'_>, node: usize) -> bool {
    matches!(event, Event::Collect { upto, .. } if unit.written && unit.owed <= upto[node])
}

fn is_diff(action: &Action) -> bool {
    matches!(action, Action::MakeDiff { .. })
}
