//! `strings-sc` in the checker.

use finespun_protocol::page::{Contents, Message, Place, Time};
use finespun_protocol::strings::invalidate::invariants::{self, Whole};
use finespun_protocol::strings::invalidate::{
    Action, Directory, Event, Impossible, Leaving, Mode, Msg, Phase, Step, StringsSc, Unit,
};
use finespun_types::{Access, NodeId, NodeSet, ViewId};

use super::{Counted, counted, forget_times};
use crate::driver::{Form, Grain, ROW};
use crate::explore::{ENDS, RIGHTS};
use crate::model::{Copy, Processor};
use crate::processor::LOAD;
use crate::seeded::Seeded;
use crate::subject::{Model, Quirk, Sabotage, Subject};

impl Subject for StringsSc {
    type Bug = Bug;

    const MODEL: Model = Model::Sequential;
    const KIND: &'static str = "sequential";

    fn message(other: NodeId, msg: Msg) -> String {
        match msg {
            Msg::Fetch { write: true } => format!("Fetch({other:?} write)"),
            Msg::Fetch { write: false } => format!("Fetch({other:?})"),
            Msg::Grant { write: true, .. } => format!("Grant({other:?} write)"),
            Msg::Grant { write: false, .. } => format!("Grant({other:?})"),
            Msg::Recall { write: true } => format!("Recall({other:?} write)"),
            Msg::Recall { write: false } => format!("Recall({other:?})"),
            Msg::HomeIs(home) => format!("HomeIs({other:?} {home:?})"),
            Msg::AskHome | Msg::Invalidate | Msg::InvalidateAck | Msg::RecallReply => format!("{msg:?}({other:?})"),
        }
    }

    fn state(unit: &Unit) -> String {
        match unit.leaving {
            Leaving::Nothing => format!("{:?}", unit.mode),
            Leaving::Writing | Leaving::Everything => format!("{:?} leaving {:?}", unit.mode, unit.leaving),
        }
    }

    fn entry(directory: &Directory) -> String {
        format!("{:?} {:?}", directory.phase, directory.sharers)
    }

    fn check(units: &[Unit], directory: &Directory, in_flight: bool) -> Result<(), &'static str> {
        invariants::check(&Whole { units, directory, in_flight })
    }

    fn make_canonical(_copies: &mut [Copy<Unit>], processors: &mut [Processor]) {
        forget_times(processors);
    }

    fn is_dirty(_unit: &Unit, _view: ViewId) -> bool {
        false
    }

    fn is_noticed(unit: &Unit, view: ViewId) -> bool {
        unit.revoked.contains(view)
    }

    fn has_twin(_unit: &Unit) -> bool {
        false
    }

    fn master(_copies: &[Unit], directory: &Directory) -> Option<NodeId> {
        directory.owner()
    }

    /// Whoever has a copy has everything.
    fn masters(copies: &[Unit], _directories: &[Directory]) -> NodeSet {
        let valid = |unit: &Unit| matches!(unit.mode, Mode::Shared | Mode::Upgrading | Mode::Owned);
        let those = copies.iter().enumerate().filter(|(_, unit)| valid(unit));
        those.fold(NodeSet::EMPTY, |set, (node, _)| set.with(NodeId::of(node)))
    }
}

/// One wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A reader acknowledges before its mappings are gone.
    AckBeforeRevoking,
    /// The owner's page goes out before its writers have lost the right to write.
    PageBeforeRevoking,
    /// The home grants the right to write at the first of several acknowledgements.
    GrantAtFirstAck,
    /// The home grants the right to write and leaves the readers their copies.
    ReadersNotInvalidated,
    /// The owner that is asked for a copy to read keeps its right to write.
    DowngradeKeepsRight,
    /// The home does not install the owner's page.
    PageNotInstalled,
    /// The home forgets who waits while it serves another.
    RequestForgotten,
    /// A node that is about to give up its copy maps it for one more view.
    MappedWhileLeaving,
    /// A copy is held for views that no answer will serve.
    HeldForNobody,
    /// Waiting processors are not woken.
    NoWake,
    /// A request to the home is executed under the requester's lock.
    RequestUnderLock,
    /// What a driver of any protocol could do wrong.
    Driver(Quirk),
}

impl Sabotage<StringsSc> for Bug {
    fn quirk(self) -> Option<Quirk> {
        if let Self::Driver(quirk) = self { Some(quirk) } else { None }
    }

    fn alter(self, event: Event, actions: &mut Vec<Action>) {
        let at_revoke = matches!(event, Event::Invalidate { .. });
        let acks = |action: &Action| matches!(action, Action::Send { msg: Msg::InvalidateAck, .. });
        match self {
            Self::AckBeforeRevoking if at_revoke => actions.retain(|action| !acks(action)),
            Self::AckBeforeRevoking => {
                if let Event::Recv { from: home, msg: Msg::Invalidate } = event
                    && !actions.iter().any(acks)
                {
                    let to = NodeSet::only(home);
                    actions.push(Action::Send { to, msg: Msg::InvalidateAck, contents: Contents::Nothing });
                }
            }
            Self::PageBeforeRevoking if at_revoke => actions.reverse(),
            Self::DowngradeKeepsRight if at_revoke => {
                actions.retain(|action| !matches!(action, Action::Protect { access: Access::Read, .. }));
            }
            Self::PageNotInstalled if matches!(event, Event::Recv { msg: Msg::RecallReply, .. }) => {
                actions.retain(|action| *action != Action::Install);
            }
            Self::NoWake => actions.retain(|action| *action != Action::Wake),
            Self::DowngradeKeepsRight | Self::PageNotInstalled | Self::PageBeforeRevoking => {}
            Self::GrantAtFirstAck | Self::ReadersNotInvalidated | Self::RequestForgotten => {}
            Self::MappedWhileLeaving | Self::HeldForNobody | Self::RequestUnderLock | Self::Driver(_) => {}
        }
    }

    fn on_unit(self, unit: &mut Unit, place: Place, _now: Time, event: Event) -> Result<Step, Impossible> {
        let faults = matches!(event, Event::ReadFault { .. } | Event::WriteFault { .. });
        let asked = matches!(event, Event::Recv { msg: Msg::Recall { .. } | Msg::Invalidate, .. });
        let leaving = unit.leaving;
        if self == Self::MappedWhileLeaving && faults {
            unit.leaving = Leaving::Nothing;
        }
        if self == Self::HeldForNobody && asked {
            unit.awaited = unit.awaited.with(ViewId(0));
        }
        let answer = Step::of(|out| unit.on(place, event, out));
        if self == Self::MappedWhileLeaving && faults {
            unit.leaving = leaving;
        }
        answer
    }

    fn on_directory(self, directory: &mut Directory, home: NodeId, from: NodeId, msg: Msg) -> Result<Step, Impossible> {
        let busy = matches!(directory.phase, Phase::Invalidating | Phase::Recalling);
        match (self, msg) {
            (Self::GrantAtFirstAck, Msg::InvalidateAck) => directory.sharers = NodeSet::only(from),
            (Self::ReadersNotInvalidated, Msg::Fetch { write: true }) if directory.phase == Phase::Shared => {
                let all = directory.sharers;
                directory.sharers = all.minus(all.without(from));
            }
            (Self::RequestForgotten, Msg::Fetch { .. }) if busy => return Step::of(|out| Ok(out.done(&[]))),
            _ => {}
        }
        Step::of(|out| directory.on(home, from, msg, out))
    }

    fn is_between_equals(self, msg: Msg) -> bool {
        msg.is_between_equals() && self != Self::RequestUnderLock
    }
}

const LOCK: &str = "a lock moves a word between two nodes";
const LOCKS: &str = "two locks move the two words of a unit, three nodes, first touch";
const SHARING: &str = "false sharing and locks, two processors a node, two units";

/// Every bug, and what catches it.
#[rustfmt::skip]
pub const SEEDED: &[Seeded<StringsSc>] = &[
    seeded(Bug::AckBeforeRevoking,     LOCK,    Form::None, Grain::Event,  "whoever maps the unit is in the sharing set"),
    seeded(Bug::PageBeforeRevoking,    LOCKS,   Form::None, Grain::Action, LOAD),
    seeded(Bug::GrantAtFirstAck,       LOCKS,   Form::None, Grain::Event,  ROW),
    seeded(Bug::ReadersNotInvalidated, LOCK,    Form::Dms,  Grain::Event,  "whoever maps the unit is in the sharing set"),
    seeded(Bug::DowngradeKeepsRight,   LOCK,    Form::Dms,  Grain::Event,  RIGHTS),
    seeded(Bug::PageNotInstalled,      LOCK,    Form::Dms,  Grain::Event,  LOAD),
    seeded(Bug::RequestForgotten,      LOCKS,   Form::None, Grain::Event,  "who waits, waits at the home: no request is forgotten"),
    seeded(Bug::MappedWhileLeaving,    SHARING, Form::None, Grain::Event,  "a view that may write has a mapping, at the owner"),
    seeded(Bug::HeldForNobody,         LOCK,    Form::None, Grain::Event,  ENDS),
    seeded(Bug::NoWake,                LOCK,    Form::None, Grain::Event,  ENDS),
    seeded(Bug::RequestUnderLock,      LOCKS,   Form::Dms,  Grain::Action, ENDS),
    seeded(Bug::Driver(Quirk::UnorderedChannels), LOCKS, Form::None, Grain::Event, ROW),
];

const fn seeded(bug: Bug, world: &'static str, form: Form, grain: Grain, sentence: &'static str) -> Seeded<StringsSc> {
    Seeded { bug, world, form, grain, sentence }
}

const fn racing(world: &'static str, text: &'static str, states: [usize; 4]) -> Counted {
    Counted { world, text: Some(text), states }
}

/// The worlds, with their states. In those that race a load must return the last store all the same.
#[rustfmt::skip]
pub const COUNTED: &[Counted] = &[
    racing("races: two nodes store and load two words of two units", "nodes 2 views 1 units 2
        racy
        n0: store u0.0; load u1.0; store u1.1; load u0.1
        n1: store u1.0; load u0.0; store u0.1; load u1.1", [2_404, 6_966, 1_647, 6_789]),
    racing("races: three nodes store one word, the home is one of them", "nodes 3 views 1 units 1
        racy
        home u0 n0
        n0: store u0.0; load u0.0
        n1: store u0.0; load u0.0
        n2: load u0.0; store u0.0", [7_676, 22_213, 6_083, 22_533]),
    racing("races: two processors a node store and load one word", "nodes 2 views 2 units 1
        racy
        home u0 n0
        n0.v0: store u0.0; load u0.0
        n0.v1: load u0.0; store u0.0
        n1.v0: store u0.0; load u0.0
        n1.v1: load u0.0", [20_039, 52_625, 18_326, 55_854]),
    racing("races: threads of one view, one reads and one writes", "nodes 2 views 1 threads 2 units 1
        racy
        n0.v0.t0: load u0.0; load u0.0
        n0.v0.t1: store u0.0; store u0.0
        n1.v0.t0: store u0.0; load u0.0
        n1.v0.t1: load u0.0", [23_338, 65_820, 20_037, 67_629]),
    counted("a lock moves a word between two nodes", [185, 301, 163, 296]),
    counted("any of four critical sections, three nodes, one unit", [69_187, 148_198, 57_818, 150_562]),
    counted("two locks move the two words of a unit, three nodes, first touch", [15_222, 32_947, 11_851, 32_468]),
    counted("false sharing and locks, two processors a node, two units", [14_083, 46_897, 11_688, 48_532]),
    counted("false sharing, two processors a node fault and release at once", [7_936, 16_892, 7_064, 17_451]),
    counted("two units, any order, two processors a node", [33_417, 79_335, 25_853, 77_021]),
    counted("producers and consumers over barriers, two processors a node, two units", [11_346, 34_778, 9_802, 37_747]),
    counted("producer and consumers over barriers, three nodes, the home is another", [3_093, 6_593, 2_441, 6_796]),
    counted("exclusive mode is broken while two processors write", [2_449, 4_420, 2_266, 4_662]),
    counted("exclusive mode at the home is broken", [3_255, 7_121, 2_538, 6_360]),
    counted("upgrades race: readers of one unit become writers", [730, 1_265, 554, 1_378]),
    counted("an acquire while dirty: locks in locks", [2_716, 5_581, 2_126, 5_900]),
    counted("an acquire while dirty, beside a writer of the same node", [3_761, 7_346, 3_422, 7_659]),
    counted("two releases of a node at once: a flush is skipped", [2_404, 6_111, 1_890, 5_980]),
    counted("flags: a chain of three nodes through two units", [308, 742, 199, 665]),
    counted("a view of two threads: one releases while the other stores", [2_316, 4_494, 2_023, 4_541]),
    counted("a view of two threads: one acquires while the other faults", [5_239, 10_033, 4_675, 10_125]),
    counted("two views of two threads on one node release and store", [2_843, 5_264, 2_607, 5_495]),
    counted("a sharer that misses flushes is left alone and wants to upgrade", [19_726, 40_333, 14_590, 49_142]),
    counted("signals at a barrier: a handler stores beside another writer of its node", [8_650, 15_879, 7_199, 19_987]),
    counted("signals while threads wait for locks and flags: handlers store on two nodes", [20_196, 42_404, 18_390, 45_157]),
];
