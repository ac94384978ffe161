//! Seeded bugs: what a driver or a table could get wrong. The tables carry no switches; the checker's driver alters
//! what goes into them and what comes out. Each bug must be caught, or the checker proves nothing.

use finespun_protocol::cashmere::variants::Way;
use finespun_protocol::cashmere::{
    Action, Actions, Cashmere, Contents, Directory, Event, Impossible, Mode, Msg, Place, Step, Time, Unit,
};
use finespun_protocol::page::Message;
use finespun_types::{NodeId, NodeSet};

use crate::driver::{Form, Grain, ROW};
use crate::explore::{ENDS, LISTS, RIGHTS};
use crate::processor::LOAD;
use crate::seeded::Seeded;
use crate::subject::{Quirk, Sabotage};

/// One wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A flush leaves the view its right to write.
    FlushKeepsRight,
    /// A view that keeps its right to write is not put on its dirty list.
    KeptNotListed,
    /// The twin is made anew before the frame is compared with it.
    TwinBeforeDiff,
    /// The home grants its frame, though it has a twin: stores with it that may be put back before their release.
    GrantOfFrame,
    /// The home is not told that a node dropped its copy.
    LeaveLost,
    /// What a driver of any protocol could do wrong.
    Driver(Quirk),
    /// An acquire leaves the view the page that was fetched for it before.
    FetchedForKept,
    /// Waiting processors are not woken.
    NoWake,
    /// A notice is acknowledged while the lock of the notified copy is held.
    AckUnderLock,
    /// The home breaks exclusive mode by direct execution though the page that granted it travels as a message.
    DirectBreak,
}

impl Sabotage<Cashmere> for Bug {
    fn quirk(self) -> Option<Quirk> {
        match self {
            Self::Driver(quirk) => Some(quirk),
            Self::NoTwin
            | Self::NoticeBeforeFlush
            | Self::NoTwoWayDiff
            | Self::UpgradeOfStaleCopy
            | Self::UpgradeAmongSharers
            | Self::UpdatedAtArrival
            | Self::NoticeWithoutTime
            | Self::FlushDuringFetch
            | Self::TwinBeforeDirtyList
            | Self::NoLongerExclusiveLost
            | Self::RightBeforeTwin
            | Self::NoticeNotListed
            | Self::FlushKeepsRight
            | Self::KeptNotListed
            | Self::TwinBeforeDiff
            | Self::GrantOfFrame
            | Self::LeaveLost
            | Self::FetchedForKept
            | Self::NoWake
            | Self::AckUnderLock
            | Self::DirectBreak => None,
        }
    }

    fn alter(self, event: Event, actions: &mut Vec<Action>) {
        let at_break = matches!(event, Event::Recv { msg: Msg::Break, .. });
        let at_flush = matches!(event, Event::Flush { .. });
        let at_fault = matches!(event, Event::WriteFault { .. });
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
            Self::KeptNotListed if at_flush => actions.retain(|action| !matches!(action, Action::ListDirty(_))),
            Self::TwinBeforeDiff if at_flush => actions.insert(0, Action::MakeTwin),
            Self::LeaveLost => actions.retain(|action| !matches!(action, Action::Send { msg: Msg::Leave, .. })),
            Self::NoWake => actions.retain(|action| *action != Action::Wake),
            Self::TwinBeforeDirtyList
            | Self::NoLongerExclusiveLost
            | Self::RightBeforeTwin
            | Self::FlushKeepsRight
            | Self::KeptNotListed
            | Self::TwinBeforeDiff
            | Self::GrantOfFrame
            | Self::NoticeBeforeFlush
            | Self::UpgradeOfStaleCopy
            | Self::UpgradeAmongSharers
            | Self::UpdatedAtArrival
            | Self::NoticeWithoutTime
            | Self::FlushDuringFetch
            | Self::FetchedForKept
            | Self::Driver(_)
            | Self::AckUnderLock
            | Self::DirectBreak => {}
        }
    }

    fn on_unit(self, unit: &mut Unit, place: Place, now: Time, event: Event) -> Result<Step, Impossible> {
        if self == Self::UpdatedAtArrival && matches!(event, Event::Recv { msg: Msg::Grant { .. }, .. }) {
            unit.asked = now;
        }
        let (noticed_at, fetched_for) = (unit.noticed_at, unit.fetched_for);
        let too_early = matches!(event, Event::Flush { .. }) && unit.mode == Mode::Fetching;
        if self == Self::FlushDuringFetch && too_early {
            unit.mode = Mode::Shared;
            let answer = Step::of(|out| unit.on(place, now, event, out));
            unit.mode = Mode::Fetching;
            return answer;
        }
        let answer = Step::of(|out| unit.on(place, now, event, out));
        if self == Self::FetchedForKept && matches!(event, Event::Invalidate { .. }) {
            unit.fetched_for = fetched_for;
        }
        if self == Self::NoticeWithoutTime && matches!(event, Event::Recv { msg: Msg::Notice, .. }) {
            unit.noticed_at = noticed_at;
        }
        answer
    }

    fn on_directory(self, directory: &mut Directory, home: NodeId, from: NodeId, msg: Msg) -> Result<Step, Impossible> {
        if self == Self::UpgradeOfStaleCopy {
            directory.stale = NodeSet::EMPTY;
        }
        if self == Self::UpgradeAmongSharers && msg == Msg::Upgrade {
            directory.sharers = NodeSet::only(from);
        }
        let mut step = Step::of(|out| directory.on(home, from, msg, out))?;
        if self == Self::GrantOfFrame {
            step = with_frames(step);
        }
        Ok(step)
    }

    fn way(self, msg: Msg) -> Option<Way> {
        (self == Self::DirectBreak && msg == Msg::Break).then_some(Way::Direct)
    }

    fn is_between_equals(self, msg: Msg) -> bool {
        msg.is_between_equals() && (self != Self::AckUnderLock || msg != Msg::NoticeAck)
    }

    fn late_diff(self) -> Option<Msg> {
        (self == Self::NoticeBeforeFlush).then_some(Msg::Flush)
    }
}

/// Moves the first such action to the front.
fn bring_forward(actions: &mut [Action], is_it: impl Fn(&Action) -> bool) {
    if let Some(place) = actions.iter().position(is_it) {
        actions[..=place].rotate_right(1);
    }
}

/// The frame instead of what was released.
fn with_frames(mut step: Step) -> Step {
    let granted = core::mem::replace(&mut step.actions, Actions::new());
    for &action in granted.as_slice() {
        let grant = if let Action::Send { to, msg, contents: Contents::Released } = action {
            Action::Send { to, msg, contents: Contents::Frame }
        } else {
            action
        };
        step.actions.push(grant);
    }
    step
}

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
const KEPT: &str = "a writer keeps its right, away from home";
const KEPT_AT_HOME: &str = "a writer keeps its right at home, two sharers";
const PUT_BACK: &str = "a word is put back at home, where the right to write it was kept, while a sharer fetches";
const GUESSES: &str = "any guess at any time, a lock moves a word between two nodes";
const GUESSES_OF_THREE: &str = "guesses by three nodes, first touch: manager, home and reader are different";
const GUESSES_BESIDE: &str = "a view of two threads: one guesses while the other acquires";
const SIGNALS: &str = "signals at a barrier: a handler stores beside another writer of its node";
const WRITING: &str = "any write fault without a store, a lock moves a word between two nodes";
const TWO_VIEWS_OF_THREADS: &str = "two views of two threads on one node release and store";

/// Every bug, and what catches it.
#[rustfmt::skip]
pub const SEEDED: &[Seeded<Cashmere>] = &[
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
    seeded(Bug::Driver(Quirk::TwinNotRefreshed),          SHARING,   Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::Driver(Quirk::TwinRefreshedBySecondRead), SHARING,   Form::Dms,  Grain::Action, LOAD),
    seeded(Bug::FlushKeepsRight,           LOCK,      Form::Dms,  Grain::Event,  RIGHTS),
    seeded(Bug::KeptNotListed,             KEPT,      Form::Dms,  Grain::Event,  LISTS),
    seeded(Bug::TwinBeforeDiff,            KEPT_AT_HOME, Form::Dms, Grain::Event, LOAD),
    seeded(Bug::GrantOfFrame,              PUT_BACK,  Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::LeaveLost,                 LOCK,      Form::Dms,  Grain::Event,  "the sharing set holds no node without a copy"),
    seeded(Bug::Driver(Quirk::UnorderedChannels),         THREE,     Form::None, Grain::Event,  ROW),
    seeded(Bug::Driver(Quirk::ReleaseTooEarly),           LOCK,      Form::None, Grain::Event,  LOAD),
    seeded(Bug::Driver(Quirk::HandlerInRelease),          SIGNALS,   Form::None, Grain::Event,  LOAD),
    seeded(Bug::Driver(Quirk::HandlerInRelease),          SIGNALS,   Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::Driver(Quirk::AcquireWithoutNotices),     LOCK,      Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::Driver(Quirk::SkipWithThreads),           TWO_VIEWS_OF_THREADS, Form::Dms, Grain::Event, LOAD),
    seeded(Bug::Driver(Quirk::GuessBesideAcquire),        GUESSES_BESIDE,   Form::Dms,  Grain::Event,  RIGHTS),
    seeded(Bug::Driver(Quirk::ManagerOverHome),           GUESSES_OF_THREE, Form::Dms,  Grain::Action, ENDS),
    seeded(Bug::Driver(Quirk::RefreshNotAwaited),         GUESSES,          Form::None, Grain::Event,  RIGHTS),
    seeded(Bug::Driver(Quirk::RefusedStaysOpen),          GUESSES_OF_THREE, Form::None, Grain::Event,  RIGHTS),
    seeded(Bug::Driver(Quirk::RefreshWithoutInvalidate),  GUESSES,          Form::Dms,  Grain::Event,  LISTS),
    seeded(Bug::Driver(Quirk::OpensUnasked),              WRITING,          Form::Dms,  Grain::Event,  RIGHTS),
    seeded(Bug::FetchedForKept,            GUESSES,   Form::None, Grain::Event,  "a sharer out of date has a write notice on the list of every view that maps the unit"),
    seeded(Bug::NoWake,                    LOCK,      Form::None, Grain::Event,  ENDS),
    seeded(Bug::AckUnderLock,              BARRIERS,  Form::Dms,  Grain::Action, ENDS),
    seeded(Bug::AckUnderLock,              BARRIERS,  Form::Ms,   Grain::Action, ENDS),
    seeded(Bug::DirectBreak,               BREAK,     Form::Ms,   Grain::Event,  ROW),
];

const fn seeded(bug: Bug, world: &'static str, form: Form, grain: Grain, sentence: &'static str) -> Seeded<Cashmere> {
    Seeded { bug, world, form, grain, sentence }
}
