//! Seeded bugs: what a driver or a table of `tmk` could get wrong.

use finespun_protocol::tmk::{Action, Event};

use super::driver::{CARRIED, Form, NEEDED, Rules};
use super::explore::{ENDS, RIGHTS, explore};
use super::processor::LOAD;
use super::worlds;
use crate::driver::{Grain, ROW};
use crate::explore::Violation;

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
            | Self::HandlerInCollection => {}
        }
    }
}

fn is_diff(action: &Action) -> bool {
    matches!(action, Action::MakeDiff { .. })
}

/// A bug, where it is looked for, and the sentence that must break.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    /// The bug.
    pub bug: Bug,
    /// The name of the world.
    pub world: &'static str,
    /// The grain.
    pub grain: Grain,
    /// The sentence.
    pub sentence: &'static str,
}

impl Seeded {
    /// Looks for the bug.
    ///
    /// # Errors
    /// It was not found, or broke another sentence.
    pub fn find(&self) -> Result<Violation, String> {
        let world = worlds::named(self.world).ok_or_else(|| format!("no world {}", self.world))?;
        let rules = Rules { bug: Some(self.bug), ..world.rules(Form::Messages, self.grain)? };
        let found = explore(&rules, STATES_MAX).violation;
        let violation = found.ok_or_else(|| format!("{:?} is not caught in: {}", self.bug, self.world))?;
        if violation.sentence == self.sentence {
            return Ok(violation);
        }
        Err(format!("{:?} should break `{}`, but: {violation}", self.bug, self.sentence))
    }
}

const STATES_MAX: usize = 1_000_000;

/// Every bug, and what catches it.
#[rustfmt::skip]
pub const SEEDED: &[Seeded] = &[
    seeded(Bug::AppliedOutOfOrder,     worlds::CHAIN,    Grain::Event,  LOAD),
    seeded(Bug::GrantWithoutNotices,   worlds::LOCK,     Grain::Event,  LOAD),
    seeded(Bug::AcquireWithoutNotices, worlds::LOCK,     Grain::Event,  LOAD),
    seeded(Bug::CloseKeepsRight,       worlds::LOCK,     Grain::Event,  RIGHTS),
    seeded(Bug::CollectWithoutKeep,    worlds::COLLECT,  Grain::Event,  ROW),
    seeded(Bug::TwinNotUpdated,        worlds::BESIDE,   Grain::Event,  LOAD),
    seeded(Bug::TwinNotRefreshed,      worlds::REWRITTEN, Grain::Event, LOAD),
    seeded(Bug::BaseFromFrame,         worlds::TAKEN_BACK, Grain::Event, LOAD),
    seeded(Bug::BaseBeforeDiff,        worlds::CHAIN,    Grain::Event,  NEEDED),
    seeded(Bug::UnorderedChannels,     worlds::TWO_UNITS,  Grain::Event,  CARRIED),
    seeded(Bug::NoWake,                worlds::LOCK,     Grain::Event,  ENDS),
    seeded(Bug::RightBeforeTwin,       worlds::THREADS,  Grain::Action, LOAD),
    seeded(Bug::OwnNewsOnly,           worlds::CHAIN,    Grain::Event,  super::explore::PAST),
    seeded(Bug::OwedAcrossNotice,      worlds::EARLY,    Grain::Event,  LOAD),
    seeded(Bug::AcquireDuringRelease,  worlds::MIXED,    Grain::Event,  LOAD),
    seeded(Bug::FaultDuringAcquire,    worlds::HALF,     Grain::Event,  LOAD),
    seeded(Bug::HandlerInCollection,   worlds::COLLECTED_HANDLER, Grain::Event, NEEDED),
];

const fn seeded(bug: Bug, world: &'static str, grain: Grain, sentence: &'static str) -> Seeded {
    Seeded { bug, world, grain, sentence }
}
