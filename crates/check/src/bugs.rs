//! Seeded bugs: what a driver or a table could get wrong. The tables carry no switches; the checker's driver alters
//! what goes into them and what comes out. Each bug must be caught, or the checker proves nothing.

use finespun_protocol::cashmere::{Action, Contents, Directory, Event, Mode, Msg, Time, Unit};
use finespun_types::{NodeId, NodeSet};

use crate::driver::{Form, Grain, ROW, Rules};
use crate::explore::{ENDS, LISTS, RIGHTS, Violation, explore};
use crate::processor::LOAD;
use crate::worlds;

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
    /// The home breaks exclusive mode by direct execution though the page that granted it travels as a message.
    DirectBreak,
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
            | Self::AckUnderLock
            | Self::DirectBreak => {}
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

/// A bug, where it is looked for, and the sentence that must break.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    /// The bug.
    pub bug: Bug,
    /// The name of the world.
    pub world: &'static str,
    /// The form.
    pub form: Form,
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
        let rules = Rules { bug: Some(self.bug), ..world.rules(self.form, self.grain)? };
        let found = explore(&rules, STATES_MAX).violation;
        let violation = found.ok_or_else(|| format!("{:?} is not caught in: {}", self.bug, self.world))?;
        if violation.sentence == self.sentence {
            return Ok(violation);
        }
        Err(format!("{:?} should break `{}`, but: {violation}", self.bug, self.sentence))
    }
}

const STATES_MAX: usize = 1_000_000;

const LOCK: &str = "a lock moves a word between two nodes";
const THREE: &str = "two locks move the two words of a unit, three nodes, first touch";
const SHARING: &str = "false sharing, two processors a node fault and release at once";
const TWO_UNITS: &str = "false sharing and locks, two processors a node, two units";
const BREAK: &str = "exclusive mode is broken while two processors write";
const UPGRADE: &str = "upgrades race: readers of one unit become writers";
const LEFT_ALONE: &str = "a sharer that misses flushes is left alone and wants to upgrade";
const NESTED: &str = "an acquire while dirty, beside a writer of the same node";
const BARRIERS: &str = "producer and consumers over barriers, three nodes, the home is another";
const THREADS: &str = "a view of two threads: one releases while the other stores";
const TWO_VIEWS_OF_THREADS: &str = "two views of two threads on one node release and store";

/// Every bug, and what catches it.
#[rustfmt::skip]
pub const SEEDED: &[Seeded] = &[
    seeded(Bug::NoTwin,                    SHARING,   Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::NoticeBeforeFlush,         LOCK,      Form::None, Grain::Event,  LOAD),
    seeded(Bug::NoTwoWayDiff,              NESTED,    Form::None, Grain::Event,  LOAD),
    seeded(Bug::UpgradeOfStaleCopy,        LEFT_ALONE, Form::Dms, Grain::Event,  LOAD),
    seeded(Bug::UpgradeAmongSharers,       UPGRADE,   Form::Dms,  Grain::Event,  "an exclusive copy is the only one: no other node maps the unit"),
    seeded(Bug::UpdatedAtArrival,          THREE,     Form::None, Grain::Event,  LOAD),
    seeded(Bug::NoticeWithoutTime,         LOCK,      Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::FlushDuringFetch,          TWO_UNITS, Form::None, Grain::Event,  ROW),
    seeded(Bug::TwinBeforeDirtyList,       BREAK,     Form::Dms,  Grain::Action, LOAD),
    seeded(Bug::NoLongerExclusiveLost,     BREAK,     Form::Dms,  Grain::Event,  LISTS),
    seeded(Bug::RightBeforeTwin,           THREADS,   Form::Dms,  Grain::Action, LOAD),
    seeded(Bug::NoticeNotListed,           LOCK,      Form::Dms,  Grain::Event,  LISTS),
    seeded(Bug::TwinNotRefreshed,          SHARING,   Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::TwinRefreshedBySecondRead, SHARING,   Form::Dms,  Grain::Action, LOAD),
    seeded(Bug::FlushKeepsRight,           LOCK,      Form::Dms,  Grain::Event,  RIGHTS),
    seeded(Bug::LeaveLost,                 LOCK,      Form::Dms,  Grain::Event,  "the sharing set holds no node without a copy"),
    seeded(Bug::UnorderedChannels,         THREE,     Form::None, Grain::Event,  ROW),
    seeded(Bug::ReleaseTooEarly,           LOCK,      Form::None, Grain::Event,  LOAD),
    seeded(Bug::AcquireWithoutNotices,     LOCK,      Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::SkipWithThreads,           TWO_VIEWS_OF_THREADS, Form::Dms, Grain::Event, LOAD),
    seeded(Bug::NoWake,                    LOCK,      Form::None, Grain::Event,  ENDS),
    seeded(Bug::AckUnderLock,              BARRIERS,  Form::Dms,  Grain::Action, ENDS),
    seeded(Bug::AckUnderLock,              BARRIERS,  Form::Ms,   Grain::Action, ENDS),
    seeded(Bug::DirectBreak,               BREAK,     Form::Ms,   Grain::Event,  ROW),
];

const fn seeded(bug: Bug, world: &'static str, form: Form, grain: Grain, sentence: &'static str) -> Seeded {
    Seeded { bug, world, form, grain, sentence }
}
