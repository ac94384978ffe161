//! Adaptive broadcast in the checker: the family's sentences and one of its own, the home's intervals, seeded bugs, worlds.

use finespun_protocol::cashmere::broadcast::{Broadcasting, Entry, Impossible, Msg, Readers};
use finespun_protocol::cashmere::invariants::{self, Whole};
use finespun_protocol::cashmere::{Msg as Plain, Phase, Unit};
use finespun_protocol::page::{Action, Actions, Buffers, Event, Place, Protocol, Step, Time};
use finespun_types::{NodeId, NodeSet, ViewId};

use super::times;
use crate::driver::{Form, Grain};
use crate::model::{Copy, Processor};
use crate::processor::LOAD;
use crate::seeded::Seeded;
use crate::subject::{INTERVAL_BASE, Model, Quirk, Sabotage, Subject};
use crate::worlds::broadcast::{FLUSH, OWNER, READERS, UNITS};

impl Subject for Broadcasting {
    type Bug = Bug;

    const MODEL: Model = Model::Release;

    fn message(other: NodeId, msg: Msg) -> String {
        match msg {
            Msg::Plain(msg) => super::message(other, msg),
            Msg::Look | Msg::Buffered { .. } | Msg::NoBuffer | Msg::Announced => format!("{msg:?}({other:?})"),
        }
    }

    fn state(unit: &Unit) -> String {
        format!("{:?}", unit.mode)
    }

    fn has_twin(unit: &Unit) -> bool {
        unit.has_twin
    }

    fn entry(entry: &Entry) -> String {
        let Readers { asked, asked_before, .. } = entry.readers;
        format!("{:?} {:?} asked {asked:?} {asked_before:?}", entry.directory.phase, entry.directory.sharers)
    }

    fn check(units: &[Unit], entry: &Entry, in_flight: bool) -> Result<(), &'static str> {
        if !in_flight && !entry.readers.announced.is_empty() {
            return Err(NOBODY_SENT);
        }
        invariants::check(&Whole { units, directory: &entry.directory, in_flight })
    }

    fn check_buffered(entry: &Entry) -> Result<(), &'static str> {
        if entry.directory.phase == Phase::Shared { Ok(()) } else { Err(NO_BUFFER_OF_OWNED) }
    }

    fn make_canonical(copies: &mut [Copy<Unit>], processors: &mut [Processor]) {
        times::make_canonical(copies, |unit| unit, processors);
    }

    fn make_entry_canonical(entry: &mut Entry, interval: u32) {
        let readers = &mut entry.readers;
        let age = interval.wrapping_sub(readers.interval);
        // One reader of an earlier interval counts for nothing, and two count as many.
        let asked = many_or(readers.asked, if age == 0 { readers.asked } else { NodeSet::EMPTY });
        let asked_before = many_or(readers.asked_before, NodeSet::EMPTY);
        (readers.asked, readers.asked_before) = match age {
            0 => (asked, asked_before),
            1 => (asked, NodeSet::EMPTY),
            2.. => (NodeSet::EMPTY, NodeSet::EMPTY),
        };
        let nothing = readers.asked.is_empty() && readers.asked_before.is_empty();
        readers.interval = INTERVAL_BASE - if nothing { 2 } else { age };
    }

    fn is_dirty(unit: &Unit, view: ViewId) -> bool {
        unit.dirty.contains(view)
    }

    fn is_noticed(unit: &Unit, view: ViewId) -> bool {
        unit.noticed.contains(view)
    }

    fn master(units: &[Unit], entry: &Entry) -> Option<NodeId> {
        entry.directory.owner().or_else(|| units.iter().find_map(Unit::home))
    }
}

fn many_or(set: NodeSet, few: NodeSet) -> NodeSet {
    if set.len() >= 2 { NodeSet::only(NodeId(0)).with(NodeId(1)) } else { few }
}

/// Sentences beside the family's.
const NO_BUFFER_OF_OWNED: &str = "a unit in exclusive mode is in no broadcast buffer";
const NOBODY_SENT: &str = "nobody who was sent to a buffer is still on the way";

/// One wrong thing. What the family's tables could get wrong is seeded there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A flush leaves the buffer as it is.
    BufferKeptAtFlush,
    /// The buffer is dropped only after the write notices went out.
    BufferDroppedLate,
    /// A unit that becomes exclusive keeps its buffer.
    BufferKeptByOwner,
    /// Whoever takes the page from a buffer is not entered in the sharing set.
    TakenByNoSharer,
    /// A page from a buffer overwrites the frame, local stores included.
    TwinIgnored,
    /// A node looks into the buffer while its own flush is under way.
    LookDuringFlush,
    /// The home's own flush, which brings no diff, leaves the buffer as it is.
    HomesFlushForgotten,
    /// A node that finds no buffer does not ask the home.
    NoBufferNoFetch,
    /// What a driver of any protocol could do wrong.
    Driver(Quirk),
}

impl Sabotage<Broadcasting> for Bug {
    fn quirk(self) -> Option<Quirk> {
        match self {
            Self::Driver(quirk) => Some(quirk),
            Self::BufferKeptAtFlush
            | Self::BufferDroppedLate
            | Self::BufferKeptByOwner
            | Self::TakenByNoSharer
            | Self::TwinIgnored
            | Self::LookDuringFlush
            | Self::HomesFlushForgotten
            | Self::NoBufferNoFetch => None,
        }
    }

    fn alter(self, event: Event<Msg>, actions: &mut Vec<Action<Msg>>) {
        let buffered = matches!(event, Event::Recv { msg: Msg::Buffered { .. }, .. });
        let flush = matches!(event, Event::Recv { msg: Msg::Plain(Plain::Flush), .. });
        let forgets = match self {
            Self::BufferKeptAtFlush => flush,
            Self::HomesFlushForgotten => flush && !actions.contains(&Action::ApplyUpdate),
            Self::BufferKeptByOwner => !flush,
            Self::BufferDroppedLate | Self::TakenByNoSharer | Self::TwinIgnored => false,
            Self::LookDuringFlush | Self::NoBufferNoFetch | Self::Driver(_) => false,
        };
        if forgets {
            actions.retain(|action| *action != Action::DropBuffer);
        }
        if self == Self::TwinIgnored && buffered {
            actions.iter_mut().filter(|action| **action == Action::Merge).for_each(|action| *action = Action::Install);
        }
        if self == Self::NoBufferNoFetch && matches!(event, Event::Recv { msg: Msg::NoBuffer, .. }) {
            actions.clear();
        }
    }

    fn on_unit_seeing(
        self,
        unit: &mut Unit,
        buffers: Buffers,
        place: Place,
        now: Time,
        event: Event<Msg>,
    ) -> Result<Step<Msg>, Impossible> {
        let fault = matches!(event, Event::ReadFault { .. } | Event::WriteFault { .. });
        let step = Step::of(|out| Broadcasting::on_unit_seeing(unit, buffers, place, now, event, out))?;
        let looks = self == Self::LookDuringFlush && fault && buffers.held && unit.flusher().is_some();
        let fetch = |msg| matches!(msg, Msg::Plain(Plain::Fetch { .. }));
        let mut actions = Actions::new();
        actions.lift(&step.actions, |msg| if looks && fetch(msg) { Msg::Look } else { msg });
        Ok(Step { actions, ..step })
    }

    fn on_directory_seeing(
        self,
        entry: &mut Entry,
        buffers: Buffers,
        home: NodeId,
        from: NodeId,
        msg: Msg,
    ) -> Result<Step<Msg>, Impossible> {
        let sharers = entry.directory.sharers;
        let step = Step::of(|out| Broadcasting::on_directory_seeing(entry, buffers, home, from, msg, out));
        if self == Self::TakenByNoSharer && msg == Msg::Look {
            entry.directory.sharers = sharers;
        }
        step
    }

    fn late_drop(self) -> Option<Msg> {
        (self == Self::BufferDroppedLate).then_some(Msg::Plain(Plain::Flush))
    }
}

const LOCK: &str = "a lock moves a word between two nodes";
const THREE: &str = "two locks move the two words of a unit, three nodes, first touch";
const NESTED: &str = "an acquire while dirty: locks in locks";

/// The names it is checked under: at one level the tables are the same, in worlds whose nodes have one processor.
pub const NAMES: [&str; 2] = ["csm-adb", "csm-1l-adb"];

/// The form of the variant: data by messages, metadata direct.
pub const FORM: Form = Form::Ms;

/// The worlds and how many states each has, by event and by action, in the variant's form.
#[rustfmt::skip]
pub const PINNED: &[(&str, [usize; 2])] = &[
    (LOCK,    [155, 267]),
    (READERS, [23_142, 91_740]),
    (UNITS,   [22_566, 98_972]),
    (OWNER,   [1_191, 2_887]),
    (FLUSH,   [9_184, 22_325]),
    (THREE,   [69_376, 180_408]),
    (NESTED,  [3_850, 10_395]),
    ("any guess at any time, a lock moves a word between two nodes", [2_911, 7_776]),
    ("a view of two threads: one guesses while the other acquires", [36_697, 92_185]),
    ("a stream: a fault brings the next unit along, over barriers", [10_796, 45_768]),
    ("guesses at a page whose writer keeps its right at home", [2_771, 8_063]),
    ("any write fault without a store, a lock moves a word between two nodes", [2_795, 8_761]),
    ("write faults without a store, two views of a node, the writer at home keeps its right", [30_375, 101_147]),
    ("signals at a barrier: a handler stores beside another writer of its node", [29_232, 82_197]),
    ("signals while threads wait for locks and flags: handlers store on two nodes", [13_736, 30_929]),
];

/// Every bug, and what catches it.
#[rustfmt::skip]
pub const SEEDED: &[Seeded<Broadcasting>] = &[
    seeded(Bug::BufferKeptAtFlush,   THREE,   Grain::Event,  LOAD),
    seeded(Bug::BufferDroppedLate,   THREE,   Grain::Event,  LOAD),
    seeded(Bug::BufferKeptByOwner,   OWNER,   Grain::Event,  NO_BUFFER_OF_OWNED),
    seeded(Bug::TakenByNoSharer,     READERS, Grain::Event,  "the sharing set holds every node with a mapping or with something to flush"),
    seeded(Bug::TwinIgnored,         NESTED,  Grain::Event,  LOAD),
    seeded(Bug::LookDuringFlush,     FLUSH,   Grain::Event,  LOAD),
    seeded(Bug::HomesFlushForgotten, READERS, Grain::Event,  LOAD),
    seeded(Bug::NoBufferNoFetch,     UNITS,   Grain::Event,  NOBODY_SENT),
    seeded(Bug::Driver(Quirk::BufferOfAnyUnit), UNITS, Grain::Event, LOAD),
];

const fn seeded(bug: Bug, world: &'static str, grain: Grain, sentence: &'static str) -> Seeded<Broadcasting> {
    Seeded { bug, world, form: FORM, grain, sentence }
}
