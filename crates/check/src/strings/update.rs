//! `strings-rc` in the checker.

use finespun_protocol::page::{Contents, Message, NODE, Place, Time};
use finespun_protocol::strings::update::invariants::{self, Whole};
use finespun_protocol::strings::update::{Action, Directory, Event, Impossible, Mode, Msg, Step, StringsRc, Unit};
use finespun_types::{Access, NodeId, NodeSet, ViewId};

use super::{Counted, counted, forget_times};
use crate::driver::{Form, Grain, ROW};
use crate::explore::{ENDS, LISTS, RIGHTS};
use crate::model::{Copy, Processor};
use crate::processor::LOAD;
use crate::seeded::Seeded;
use crate::subject::{Model, Quirk, Sabotage, Subject};

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
        valid.fold(NodeSet::EMPTY, |set, (node, _)| set.with(NodeId::of(node)))
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
    /// The page to a new sharer has stores that the home has not released.
    UnreleasedStoresShown,
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
            Self::UnreleasedStoresShown => actions.iter_mut().for_each(|action| {
                if let Action::Send { msg: Msg::Page { .. }, contents, .. } = action {
                    *contents = Contents::Frame;
                }
            }),
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
                    return Step::of(|out| {
                        unit.on(place, Event::Recv { from, msg: Msg::FlushAck { updates: 0 } }, out)
                    });
                }
                // The acknowledgements that nobody awaits are dropped.
                Event::Recv { msg: Msg::UpdateAck, .. } => return Step::of(|out| Ok(out.done(&[]))),
                Event::Recv { .. } | Event::ReadFault { .. } | Event::WriteFault { .. } => {}
                Event::Flush { .. } | Event::NothingChanged | Event::Invalidate { .. } => {}
            }
        }
        Step::of(|out| unit.on(place, event, out))
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
        let answer = Step::of(|out| directory.on(home, from, msg, out));
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
const PUT_BACK: &str = "a word is put back before the release, while a third node fetches";
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
    seeded(Bug::UnreleasedStoresShown, PUT_BACK, Form::Dms, Grain::Event, LOAD),
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
    counted("any of four critical sections, three nodes, one unit", [32_581, 77_418, 19_297, 55_060]),
    counted("two locks move the two words of a unit, three nodes, first touch", [7_578, 18_986, 4_094, 13_084]),
    counted("false sharing and locks, two processors a node, two units", [9_209, 36_476, 6_016, 28_620]),
    counted("false sharing, two processors a node fault and release at once", [4_532, 12_548, 3_396, 10_372]),
    counted("two units, any order, two processors a node", [33_053, 81_732, 22_307, 75_641]),
    counted("producers and consumers over barriers, two processors a node, two units", [9_062, 27_138, 6_453, 22_531]),
    counted("producer and consumers over barriers, three nodes, the home is another", [1_593, 3_716, 799, 2_473]),
    counted("exclusive mode is broken while two processors write", [1_228, 2_559, 857, 2_191]),
    counted("exclusive mode at the home is broken", [679, 1_611, 489, 1_310]),
    counted("upgrades race: readers of one unit become writers", [244, 543, 145, 429]),
    counted("an acquire while dirty: locks in locks", [1_432, 3_847, 798, 2_680]),
    counted("an acquire while dirty, beside a writer of the same node", [2_140, 5_243, 1_567, 4_429]),
    counted("two releases of a node at once: a flush is skipped", [757, 2_218, 467, 1_684]),
    counted("flags: a chain of three nodes through two units", [225, 556, 115, 484]),
    counted("a view of two threads: one releases while the other stores", [1_595, 3_907, 1_067, 2_972]),
    counted("a view of two threads: one acquires while the other faults", [3_999, 10_125, 2_927, 8_316]),
    counted("two views of two threads on one node release and store", [1_705, 3_798, 1_176, 3_171]),
    counted("a sharer that misses flushes is left alone and wants to upgrade", [6_563, 24_800, 1_800, 9_740]),
    counted("a word is put back before the release, while a third node fetches", [601, 2_288, 293, 1_420]),
    counted("any of two critical sections, one unit, two processors a node", [88_202, 264_571, 64_184, 215_610]),
    counted("a writer keeps its right, away from home", [416, 1_168, 272, 940]),
    counted("a writer keeps its right at home, two sharers", [5_585, 21_482, 2_936, 11_305]),
    counted("two views of the home write, and keep their rights or not", [2_699, 9_169, 2_318, 6_870]),
    counted("two views away from home write, and keep their rights or not", [4_360, 13_127, 2_766, 10_547]),
    counted("a view of two threads keeps its right while the other thread stores", [3_447, 10_584, 2_006, 7_785]),
    counted("signals at a barrier: a handler stores beside another writer of its node", [3_118, 8_144, 1_593, 5_440]),
    counted("signals at a barrier: a handler stores beside another writer at home, rights are kept or not", [1_920, 6_411, 1_646, 4_832]),
    counted("signals while threads wait for locks and flags: handlers store on two nodes", [5_242, 12_376, 3_901, 10_642]),
];
