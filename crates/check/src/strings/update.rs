//! `strings-rc` in the checker.

use finespun_protocol::page::{Message, NODE, Place, Time};
use finespun_protocol::strings::update::invariants::{self, Whole};
use finespun_protocol::strings::update::{Action, Directory, Event, Impossible, Mode, Msg, Step, StringsRc, Unit};
use finespun_types::{Access, NodeId, NodeSet, ViewId};

use super::{Counted, counted, forget_times};
use crate::driver::{Form, Grain, ROW};
use crate::explore::{ENDS, LISTS, RIGHTS};
use crate::processor::LOAD;
use crate::seeded::Seeded;
use crate::subject::{Model, Quirk, Sabotage, Subject};
use crate::world::{Copy, Processor};

impl Subject for StringsRc {
    type Bug = Bug;

    const MODEL: Model = Model::Release;
    const KIND: &'static str = "update";

    fn message(other: NodeId, msg: Msg) -> String {
        match msg {
            Msg::HomeIs(home) => format!("HomeIs({other:?} {home:?})"),
            Msg::FlushAck { updates } => format!("FlushAck({other:?} {updates} updates)"),
            Msg::Update { releaser } => format!("Update({other:?} of {releaser:?})"),
            Msg::Page { alone: true } => format!("Page({other:?} alone)"),
            Msg::Page { alone: false } => format!("Page({other:?})"),
            Msg::AskHome | Msg::Fetch | Msg::NotAlone | Msg::Flush | Msg::UpdateAck => format!("{msg:?}({other:?})"),
        }
    }

    fn state(unit: &Unit) -> String {
        let flushing = if unit.flushing { " flushing" } else { "" };
        format!("{:?}{flushing}", unit.mode)
    }

    fn entry(directory: &Directory) -> String {
        format!("{:?}", directory.sharers)
    }

    fn check(units: &[Unit], directory: &Directory, in_flight: bool) -> Result<(), &'static str> {
        invariants::check(&Whole { units, directory, in_flight })
    }

    fn make_canonical(_copies: &mut [Copy<Unit>], processors: &mut [Processor]) {
        forget_times(processors);
    }

    fn is_dirty(unit: &Unit, view: ViewId) -> bool {
        view == NODE && unit.dirty
    }

    fn is_noticed(_unit: &Unit, _view: ViewId) -> bool {
        false
    }

    fn has_twin(unit: &Unit) -> bool {
        unit.dirty
    }

    fn master(copies: &[Unit], _directory: &Directory) -> Option<NodeId> {
        copies.iter().find_map(Unit::home)
    }

    /// Every copy has everything.
    fn masters(copies: &[Unit], _directories: &[Directory]) -> NodeSet {
        let valid = copies.iter().enumerate().filter(|(_, unit)| unit.mode == Mode::Valid);
        valid.fold(NodeSet::EMPTY, |set, (node, _)| set.with(NodeId(node as u8)))
    }
}

/// One wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A store makes no twin.
    NoTwin,
    /// A write fault: the right to write comes before the twin.
    RightBeforeTwin,
    /// A flush leaves the view its right to write.
    FlushKeepsRight,
    /// A flush takes the unit off the list though another view goes on writing.
    FlushForgetsOthers,
    /// A requester does not get into the sharing set.
    RequesterNotListed,
    /// The home forgets to pass the diff on to one sharer, and does not count it.
    SharerForgotten,
    /// The home does not pass on what its own views wrote.
    HomeKeepsItsDiff,
    /// The releaser goes on when the home has answered.
    AcksNotAwaited,
    /// The diff is sent on and not applied at the home.
    HomeNotUpdated,
    /// The home is not told that another node gets a copy.
    HomeNotTold,
    /// Waiting processors are not woken.
    NoWake,
    /// A sharer runs its table for an update while the home's lock is held.
    UpdateUnderLock,
    /// What a driver of any protocol could do wrong.
    Driver(Quirk),
}

impl Sabotage<StringsRc> for Bug {
    fn quirk(self) -> Option<Quirk> {
        if let Self::Driver(quirk) = self { Some(quirk) } else { None }
    }

    fn alter(self, event: Event, actions: &mut Vec<Action>) {
        let at_flush = matches!(event, Event::Flush { .. });
        let at_home = matches!(event, Event::Recv { msg: Msg::Flush, .. });
        match self {
            Self::NoTwin => actions.retain(|action| *action != Action::MakeTwin),
            Self::RightBeforeTwin => {
                if let Some(place) =
                    actions.iter().position(|action| matches!(action, Action::Protect { access: Access::Write, .. }))
                {
                    actions[..=place].rotate_right(1);
                }
            }
            Self::FlushKeepsRight if at_flush => actions.retain(|action| !matches!(action, Action::Protect { .. })),
            Self::FlushForgetsOthers if at_flush => actions.retain(|action| !matches!(action, Action::ListDirty(_))),
            Self::HomeNotUpdated if at_home => actions.retain(|action| *action != Action::ApplyUpdate),
            Self::HomeNotTold => actions.retain(|action| !matches!(action, Action::Send { msg: Msg::NotAlone, .. })),
            Self::NoWake => actions.retain(|action| *action != Action::Wake),
            Self::FlushKeepsRight | Self::FlushForgetsOthers | Self::HomeNotUpdated | Self::RequesterNotListed => {}
            Self::SharerForgotten | Self::HomeKeepsItsDiff | Self::AcksNotAwaited | Self::UpdateUnderLock => {}
            Self::Driver(_) => {}
        }
    }

    fn on_unit(self, unit: &mut Unit, place: Place, _now: Time, event: Event) -> Result<Step, Impossible> {
        if self == Self::AcksNotAwaited {
            match event {
                Event::Recv { from, msg: Msg::FlushAck { .. } } => {
                    return unit.on(place, Event::Recv { from, msg: Msg::FlushAck { updates: 0 } });
                }
                // The acknowledgements that nobody awaits are dropped.
                Event::Recv { msg: Msg::UpdateAck, .. } => return Ok(Step::done(&[])),
                Event::Recv { .. } | Event::ReadFault { .. } | Event::WriteFault { .. } => {}
                Event::Flush { .. } | Event::NothingChanged | Event::Invalidate { .. } => {}
            }
        }
        unit.on(place, event)
    }

    fn on_directory(self, directory: &mut Directory, home: NodeId, from: NodeId, msg: Msg) -> Result<Step, Impossible> {
        let sharers = directory.sharers;
        match (self, msg) {
            (Self::SharerForgotten, Msg::Flush) => {
                let forgotten = sharers.without(from).without(home).iter().last();
                directory.sharers = forgotten.map_or(sharers, |node| sharers.without(node));
            }
            (Self::HomeKeepsItsDiff, Msg::Flush) if from == home => directory.sharers = NodeSet::only(home),
            _ => {}
        }
        let answer = directory.on(home, from, msg);
        match (self, msg) {
            (Self::RequesterNotListed, Msg::Fetch) if from != home => directory.sharers = sharers,
            (Self::SharerForgotten | Self::HomeKeepsItsDiff, Msg::Flush) => directory.sharers = sharers,
            _ => {}
        }
        answer
    }

    fn is_between_equals(self, msg: Msg) -> bool {
        msg.is_between_equals() && self != Self::UpdateUnderLock
    }
}

const LOCK: &str = "a lock moves a word between two nodes";
const LOCKS: &str = "two locks move the two words of a unit, three nodes, first touch";
const SHARING: &str = "false sharing, two processors a node fault and release at once";
const THREADS: &str = "a view of two threads: one releases while the other stores";

/// Every bug, and what catches it.
#[rustfmt::skip]
pub const SEEDED: &[Seeded<StringsRc>] = &[
    seeded(Bug::NoTwin,             LOCKS,   Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::RightBeforeTwin,    THREADS, Form::Dms,  Grain::Action, LOAD),
    seeded(Bug::FlushKeepsRight,    LOCK,    Form::Dms,  Grain::Event,  RIGHTS),
    seeded(Bug::FlushForgetsOthers, SHARING, Form::Dms,  Grain::Event,  LISTS),
    seeded(Bug::RequesterNotListed, LOCK,    Form::None, Grain::Event,  "whoever has a copy is in the sharing set"),
    seeded(Bug::SharerForgotten,    LOCK,    Form::None, Grain::Event,  LOAD),
    seeded(Bug::HomeKeepsItsDiff,   LOCK,    Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::AcksNotAwaited,     LOCK,    Form::None, Grain::Event,  LOAD),
    seeded(Bug::HomeNotUpdated,     LOCK,    Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::HomeNotTold,        LOCK,    Form::None, Grain::Event,  "a copy that is alone is the only one, and clean"),
    seeded(Bug::NoWake,             LOCK,    Form::None, Grain::Event,  ENDS),
    seeded(Bug::UpdateUnderLock,    SHARING, Form::Dms,  Grain::Action, ENDS),
    seeded(Bug::Driver(Quirk::UnorderedChannels),         LOCKS,   Form::None, Grain::Event,  ROW),
    seeded(Bug::Driver(Quirk::ReleaseTooEarly),           LOCK,    Form::None, Grain::Event,  LOAD),
    seeded(Bug::Driver(Quirk::UpdateMissesTwin),          SHARING, Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::Driver(Quirk::TwinNotRefreshed),          SHARING, Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::Driver(Quirk::TwinRefreshedBySecondRead), SHARING, Form::Dms,  Grain::Action, LOAD),
];

const fn seeded(bug: Bug, world: &'static str, form: Form, grain: Grain, sentence: &'static str) -> Seeded<StringsRc> {
    Seeded { bug, world, form, grain, sentence }
}

/// The worlds, with their states.
#[rustfmt::skip]
pub const COUNTED: &[Counted] = &[
    counted("a lock moves a word between two nodes", [153, 249, 125, 234]),
    counted("any of four critical sections, three nodes, one unit", [34_221, 89_834, 20_101, 61_262]),
    counted("two locks move the two words of a unit, three nodes, first touch", [8_043, 22_767, 4_312, 14_972]),
    counted("false sharing and locks, two processors a node, two units", [9_209, 38_361, 6_016, 29_844]),
    counted("false sharing, two processors a node fault and release at once", [4_532, 13_442, 3_396, 11_073]),
    counted("two units, any order, two processors a node", [33_053, 81_732, 22_307, 75_641]),
    counted("producers and consumers over barriers, two processors a node, two units", [9_062, 27_138, 6_453, 22_531]),
    counted("producer and consumers over barriers, three nodes, the home is another", [1_593, 3_716, 799, 2_473]),
    counted("exclusive mode is broken while two processors write", [1_228, 2_559, 857, 2_191]),
    counted("exclusive mode at the home is broken", [824, 2_364, 598, 1_908]),
    counted("upgrades race: readers of one unit become writers", [244, 543, 145, 429]),
    counted("an acquire while dirty: locks in locks", [1_510, 4_327, 838, 2_938]),
    counted("an acquire while dirty, beside a writer of the same node", [2_140, 5_297, 1_567, 4_470]),
    counted("two releases of a node at once: a flush is skipped", [757, 2_218, 467, 1_684]),
    counted("flags: a chain of three nodes through two units", [225, 556, 115, 484]),
    counted("a view of two threads: one releases while the other stores", [1_595, 4_123, 1_067, 3_137]),
    counted("a view of two threads: one acquires while the other faults", [3_999, 10_985, 2_927, 8_974]),
    counted("two views of two threads on one node release and store", [1_705, 3_798, 1_176, 3_171]),
    counted("a sharer that misses flushes is left alone and wants to upgrade", [6_563, 24_800, 1_800, 9_740]),
    counted("any of two critical sections, one unit, two processors a node", [88_202, 317_301, 64_184, 256_663]),
];
