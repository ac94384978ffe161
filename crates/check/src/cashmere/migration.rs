//! Home migration in the checker: its sentences, and what could go wrong with it.

use finespun_protocol::cashmere::migration::invariants::{self, LEADS_HOME};
use finespun_protocol::cashmere::migration::{Copied, Entry, Impossible, Migrating, Msg};
use finespun_protocol::cashmere::{Msg as Plain, Place, Time};
use finespun_protocol::page::Contents::Nothing;
use finespun_protocol::page::{Action, Actions, Event, Step};
use finespun_types::{NodeId, NodeSet, ViewId, ViewSet};

use super::{message, times};
use crate::driver::{Form, Grain, ROW};
use crate::explore::ENDS;
use crate::model::{Copy, Processor};
use crate::processor::LOAD;
use crate::seeded::Seeded;
use crate::subject::{Model, Quirk, Sabotage, Subject};
use crate::worlds::migration::{MOVED_TWICE, ON_ITS_WAY, ROUND, THERE_AND_BACK};

impl Subject for Migrating {
    type Bug = Bug;

    const MODEL: Model = Model::Release;

    fn message(other: NodeId, msg: Msg) -> String {
        match msg {
            Msg::Plain(msg) => message(other, msg),
            Msg::Migrate | Msg::Stay => format!("{msg:?}({other:?})"),
            Msg::Yield { to } => format!("Yield(to {to:?})"),
            Msg::Yielded { to, leaves } => format!("Yielded(to {to:?}{})", if leaves { ", leaving" } else { "" }),
            Msg::Migrated { sharers } => format!("Migrated({other:?} {sharers:?})"),
            Msg::Adopt { sharers } => format!("Adopt({sharers:?})"),
            Msg::FetchFor { of, write } => {
                format!("FetchFor({other:?} of {of:?}{})", if write { " write" } else { "" })
            }
            Msg::FlushFor { of } => format!("FlushFor({other:?} of {of:?})"),
        }
    }

    fn state(copied: &Copied) -> String {
        let mode = if copied.asking { "Asking".to_owned() } else { format!("{:?}", copied.unit.mode) };
        let home = copied.unit.home().map_or(String::new(), |home| format!(" home {home:?}"));
        format!("{mode}{home}")
    }

    fn has_twin(copied: &Copied) -> bool {
        copied.unit.has_twin
    }

    fn entry(entry: &Entry) -> String {
        match entry.moved_to() {
            Some(to) => format!("moved to {to:?}"),
            None => format!("{:?} {:?}", entry.directory.phase, entry.directory.sharers),
        }
    }

    fn check(copies: &[Copied], entry: &Entry, in_flight: bool) -> Result<(), &'static str> {
        invariants::check(copies, &[*entry], in_flight)
    }

    fn make_canonical(copies: &mut [Copy<Copied>], processors: &mut [Processor]) {
        times::make_canonical(copies, |copied| &mut copied.unit, processors);
    }

    fn is_dirty(copied: &Copied, view: ViewId) -> bool {
        copied.unit.dirty.contains(view)
    }

    fn is_noticed(copied: &Copied, view: ViewId) -> bool {
        copied.unit.noticed.contains(view)
    }

    fn master(copies: &[Copied], entry: &Entry) -> Option<NodeId> {
        entry.directory.owner().or_else(|| copies.iter().find_map(|copied| copied.unit.home()))
    }

    fn check_all(copies: &[Copied], entries: &[Entry], in_flight: bool) -> Result<(), &'static str> {
        invariants::check(copies, entries, in_flight)
    }

    fn master_of_all(copies: &[Copied], entries: &[Entry]) -> Option<NodeId> {
        let home = invariants::home(copies, entries)?;
        entries[usize::from(home.0)].directory.owner().or(Some(home))
    }
}

/// One wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The home gives itself away while its views write.
    MovesWhileHomeWrites,
    /// The home goes to a sharer whose copy misses a flush.
    MovesToStaleCopy,
    /// The sharing set does not move with the home.
    SharersLost,
    /// The old home's entry answers as before.
    OldHomeStaysHome,
    /// A former home answers a late flush itself; the diff is lost.
    LateFlushDropped,
    /// A former home passes a late fetch on as its own.
    LateFetchForItself,
    /// A node does not learn from the answer to its flush where the home is, and sends no notice to the old one.
    NoticesByOldHint,
    /// A fetch goes out while the node's own flush is under way.
    FetchDuringFlush,
    /// An old home that still maps the page leaves the sharing set.
    OldHomeForgotten,
    /// Who asked for the home is not woken by the answer.
    NoWake,
    /// What a driver of any protocol could do wrong.
    Driver(Quirk),
}

impl Sabotage<Migrating> for Bug {
    fn quirk(self) -> Option<Quirk> {
        match self {
            Self::Driver(quirk) => Some(quirk),
            Self::MovesWhileHomeWrites
            | Self::MovesToStaleCopy
            | Self::SharersLost
            | Self::OldHomeStaysHome
            | Self::LateFlushDropped
            | Self::LateFetchForItself
            | Self::NoticesByOldHint
            | Self::FetchDuringFlush
            | Self::OldHomeForgotten
            | Self::NoWake => None,
        }
    }

    fn alter(self, event: Event<Msg>, actions: &mut Vec<Action<Msg>>) {
        let answered = matches!(event, Event::Recv { msg: Msg::Migrated { .. } | Msg::Stay, .. });
        if self == Self::NoWake && answered {
            actions.retain(|action| *action != Action::Wake);
        }
        for action in actions {
            let Action::Send { to, msg, .. } = action else { continue };
            match (self, &mut *msg) {
                (Self::SharersLost, Msg::Migrated { sharers }) => *sharers = *to,
                (Self::OldHomeForgotten, Msg::Yielded { leaves, .. }) => *leaves = true,
                _ => {}
            }
        }
    }

    fn on_unit(self, copied: &mut Copied, place: Place, now: Time, event: Event<Msg>) -> Result<Step<Msg>, Impossible> {
        let plain = match (self, event) {
            (Self::MovesWhileHomeWrites, Event::Recv { msg: Msg::Yield { .. }, .. }) => {
                let (writers, dirty) = (copied.unit.writers, copied.unit.dirty);
                (copied.unit.writers, copied.unit.dirty) = (ViewSet::EMPTY, ViewSet::EMPTY);
                let answer = Step::of(|out| copied.on(place, now, event, out));
                (copied.unit.writers, copied.unit.dirty) = (writers, dirty);
                return answer;
            }
            (Self::NoticesByOldHint, Event::Recv { from, msg: Msg::Plain(msg @ Plain::FlushAck(_)) }) => {
                Event::Recv { from, msg }
            }
            (Self::FetchDuringFlush, Event::ReadFault { view, since }) if copied.unit.flusher().is_some() => {
                Event::ReadFault { view, since }
            }
            (Self::FetchDuringFlush, Event::WriteFault { view, since }) if copied.unit.flusher().is_some() => {
                Event::WriteFault { view, since }
            }
            _ => return Step::of(|out| copied.on(place, now, event, out)),
        };
        Step::of(|out| {
            let mut own = Actions::new();
            let outcome = copied.unit.on(place, now, plain, &mut own).map_err(Impossible::Plain)?;
            out.lift(&own, Msg::Plain);
            Ok(outcome)
        })
    }

    fn on_directory(self, entry: &mut Entry, home: NodeId, from: NodeId, msg: Msg) -> Result<Step<Msg>, Impossible> {
        let before = *entry;
        match (self, msg, entry.moved_to()) {
            (Self::MovesToStaleCopy, Msg::Migrate, None) => entry.directory.stale = NodeSet::EMPTY,
            (Self::LateFlushDropped, Msg::Plain(Plain::Flush), Some(_)) => {
                let ack = Msg::Plain(Plain::FlushAck(NodeSet::only(from)));
                return Step::of(|out| {
                    Ok(out.done(&[Action::Send { to: NodeSet::only(from), msg: ack, contents: Nothing }]))
                });
            }
            (Self::LateFetchForItself, Msg::Plain(Plain::Fetch { .. }), Some(_)) => {
                return Step::of(|out| entry.on(home, home, msg, out));
            }
            _ => {}
        }
        let answer = Step::of(|out| entry.on(home, from, msg, out));
        if self == Self::OldHomeStaysHome && matches!(msg, Msg::Yielded { .. }) {
            *entry = before;
        }
        answer
    }
}

const SHARERS: &str = "the sharing set holds every node with a mapping or with something to flush";
const LOCK: &str = "a lock moves a word between two nodes";
const THREE: &str = "two locks move the two words of a unit, three nodes, first touch";
const SHARING: &str = "false sharing, two processors a node fault and release at once";
const LEFT_ALONE: &str = "a sharer that misses flushes is left alone and wants to upgrade";
const BARRIERS: &str = "producer and consumers over barriers, three nodes, the home is another";
const GUESSES_OF_THREE: &str = "guesses by three nodes, first touch: manager, home and reader are different";

/// The protocols that run these tables, and the form of each.
pub const NAMED: [(&str, Form); 2] = [("csm-ms-mg", Form::Ms), ("csm-none-mg", Form::None)];

/// The forms it runs in: with direct data the new home's frame would have to be where all nodes look for it.
pub const FORMS: [Form; 2] = [Form::None, Form::Ms];

/// The worlds that are explored, and their states: in the form `None` by event and by action, then likewise in `MS`.
#[rustfmt::skip]
pub const PINNED: &[(&str, [usize; 4])] = &[
    ("the home goes round three writers, and back", [3_599, 5_627, 2_735, 4_993]),
    ("flushes are on their way while the home moves", [27_117, 49_992, 17_440, 40_148]),
    ("a flush and a fetch of one node while the home moves away and back", [7_505, 20_052, 5_211, 17_203]),
    ("a lock moves a word between two nodes", [185, 300, 163, 298]),
    ("two locks move the two words of a unit, three nodes, first touch", [207_743, 409_151, 174_395, 374_437]),
    ("false sharing and locks, two processors a node, two units", [33_772, 106_113, 29_700, 107_146]),
    ("false sharing, two processors a node fault and release at once", [32_914, 76_972, 33_284, 82_263]),
    ("two units, any order, two processors a node", [38_499, 94_680, 29_869, 94_192]),
    ("producers and consumers over barriers, two processors a node, two units", [25_857, 92_727, 23_127, 84_811]),
    ("producer and consumers over barriers, three nodes, the home is another", [33_734, 67_723, 21_682, 52_204]),
    ("exclusive mode is broken while two processors write", [4_436, 9_121, 5_330, 11_294]),
    ("exclusive mode at the home is broken", [3_368, 6_437, 2_788, 5_712]),
    ("upgrades race: readers of one unit become writers", [1_294, 2_632, 999, 2_746]),
    ("an acquire while dirty: locks in locks", [7_445, 16_876, 5_709, 14_782]),
    ("an acquire while dirty, beside a writer of the same node", [8_336, 17_656, 8_196, 18_310]),
    ("two releases of a node at once: a flush is skipped", [1_477, 3_944, 1_421, 3_904]),
    ("flags: a chain of three nodes through two units", [332, 794, 267, 782]),
    ("a view of two threads: one releases while the other stores", [8_211, 19_142, 8_344, 21_236]),
    ("a view of two threads: one acquires while the other faults", [25_940, 57_960, 26_899, 63_532]),
    ("two views of two threads on one node release and store", [5_770, 12_256, 6_194, 13_742]),
    ("a sharer that misses flushes is left alone and wants to upgrade", [200_147, 528_540, 116_677, 423_065]),
    ("guesses at a page whose home has moved twice", [2_011, 4_556, 3_065, 9_356]),
    ("any guess at any time, a lock moves a word between two nodes", [4_308, 9_405, 3_495, 8_120]),
    ("guesses that take nothing from anybody, a lock moves a word between two nodes", [467, 865, 1_325, 3_230]),
    ("guesses by three nodes, first touch: manager, home and reader are different", [28_362, 65_179, 48_889, 150_544]),
    ("a view of two threads: one guesses while the other acquires", [47_284, 105_527, 50_829, 117_459]),
    ("a stream: a fault brings the next unit along, over barriers", [29_479, 96_313, 18_670, 68_489]),
    ("a page is fetched anew while another view of the node writes it", [33_768, 81_881, 33_110, 88_930]),
    ("any write fault without a store, a lock moves a word between two nodes", [5_411, 13_401, 4_489, 13_807]),
    ("write faults without a store, two views of a node, the writer at home keeps its right", [78_859, 229_307, 82_893, 260_748]),
    ("signals at a barrier: a handler stores beside another writer at home, rights are kept or not", [6_221, 16_035, 9_411, 24_335]),
    ("signals while threads wait for locks and flags: handlers store on two nodes", [17_762, 38_119, 16_550, 39_594]),
];

/// Every bug, and what catches it.
#[rustfmt::skip]
pub const SEEDED: &[Seeded<Migrating>] = &[
    seeded(Bug::MovesWhileHomeWrites, SHARING,    Form::None, Grain::Event, "a copy away from home has a twin exactly while a view is dirty"),
    seeded(Bug::MovesToStaleCopy,     LEFT_ALONE, Form::None, Grain::Event, LOAD),
    seeded(Bug::SharersLost,          BARRIERS,   Form::Ms,   Grain::Event, SHARERS),
    seeded(Bug::OldHomeStaysHome,     BARRIERS,   Form::None, Grain::Event, LEADS_HOME),
    seeded(Bug::LateFlushDropped,     ON_ITS_WAY, Form::None, Grain::Event, LOAD),
    seeded(Bug::LateFlushDropped,     ON_ITS_WAY, Form::Ms,   Grain::Event, LOAD),
    seeded(Bug::LateFetchForItself,   ROUND,      Form::None, Grain::Event, ROW),
    seeded(Bug::NoticesByOldHint,     THREE,      Form::None, Grain::Event, LOAD),
    seeded(Bug::FetchDuringFlush,     THERE_AND_BACK,    Form::None, Grain::Event, LOAD),
    seeded(Bug::OldHomeForgotten,     LOCK,       Form::None, Grain::Event, SHARERS),
    seeded(Bug::NoWake,               LOCK,       Form::None, Grain::Event, ENDS),
    seeded(Bug::Driver(Quirk::ManagerOverHome), GUESSES_OF_THREE, Form::Ms, Grain::Action, ENDS),
    seeded(Bug::Driver(Quirk::LooksWhereHomeWas), MOVED_TWICE, Form::Ms, Grain::Action, ENDS),
    seeded(Bug::Driver(Quirk::UnorderedChannels), BARRIERS, Form::None, Grain::Event, ROW),
];

const fn seeded(bug: Bug, world: &'static str, form: Form, grain: Grain, sentence: &'static str) -> Seeded<Migrating> {
    Seeded { bug, world, form, grain, sentence }
}
