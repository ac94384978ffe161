//! The worlds that are explored completely. The counts of states are pinned.

use super::driver::{Form, Rules};
use crate::driver::Grain;
use crate::program::Program;

/// A program and how many states it has.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// What it is about.
    pub name: &'static str,
    /// The program.
    pub text: &'static str,
    /// Every barrier collects.
    pub collects: bool,
    /// States by [`WAYS`].
    pub states: [usize; 3],
}

/// The forms and grains, in the order of [`World::states`].
pub const WAYS: [(Form, Grain); 3] =
    [(Form::Messages, Grain::Event), (Form::Messages, Grain::Action), (Form::Direct, Grain::Event)];

/// The world of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static World> {
    WORLDS.iter().find(|world| world.name == name)
}

impl World {
    /// Its rules, in one form and grain.
    ///
    /// # Errors
    /// The line of the program that cannot be read.
    pub fn rules(&self, form: Form, grain: Grain) -> Result<Rules, String> {
        Ok(Rules { program: Program::parse(self.text)?, form, grain, collects: self.collects, bug: None })
    }
}

pub(super) const LOCK: &str = "a lock moves a word between two nodes";
pub(super) const CHAIN: &str = "a chain of writers: two diffs of one word in the order of their stamps";
pub(super) const BESIDE: &str = "a diff comes while the open interval writes beside it";
pub(super) const TWO_UNITS: &str = "two units under two locks";
pub(super) const REWRITTEN: &str = "a diff is asked for while the next interval writes the unit";
pub(super) const TAKEN_BACK: &str = "a page is asked for while a store is taken back";
pub(super) const COLLECT: &str = "barriers collect: several writers, a late reader, writers again";
pub(super) const EARLY: &str = "a page brings an interval that is noticed later, among the node's own";
pub(super) const MIXED: &str =
    "a view of two threads: one ends an interval while the other acquires and stores beside it";
pub(super) const THREADS: &str = "a view of two threads: one releases while the other stores";
pub(super) const HALF: &str =
    "a view of two threads: one faults when half of the other's notices are obeyed, two writers' of one word";

pub(super) const OUTSIDE: &str = "barriers collect: a thread outside them loads";
pub(super) const OUTSIDE_WRITES: &str = "barriers collect: a thread outside them writes what another one loads";
pub(super) const OUTSIDE_LATER: &str =
    "barriers collect: a thread outside them brings a notice of what is not collected";
pub(super) const OUTSIDE_TWICE: &str =
    "barriers collect: a thread outside them writes a unit whose diff is owed, and another node loads it";
pub(super) const BESIDE_HANDLER: &str = "barriers collect: a handler runs in one thread of a view, the other collects";
pub(super) const COLLECTED_HANDLER: &str =
    "signals at a barrier that collects: a handler stores beside a writer of another node";

/// A signal comes at one of three barriers, or while a lock is waited for.
const SIGNALS: &str = "nodes 2 views 1 units 1
            signals 1
            n0 handler: load u0.0; store u0.0
            n0: store u0.0; barrier; load u0.0; barrier; load u0.0; lock a; load u0.2; unlock a; load u0.0; barrier
            n1: store u0.1; barrier; store u0.1; barrier; lock a; store u0.2; unlock a; barrier; load u0.1";

/// All of them.
pub const WORLDS: &[World] = &[
    World {
        name: LOCK,
        text: "nodes 2 views 1 units 1
            n0: lock a; load u0.0; store u0.0; unlock a; lock a; load u0.0; unlock a
            n1: lock a; load u0.0; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a",
        collects: false,
        states: [361, 567, 252],
    },
    World {
        name: CHAIN,
        text: "nodes 3 views 1 units 1
            n0: load u0.1; store u0.0; set a; await c; load u0.0
            n1: await a; load u0.0; store u0.0; store u0.1; set b
            n2: load u0.2; await b; load u0.0; load u0.1; store u0.0; set c",
        collects: false,
        states: [267, 590, 201],
    },
    World {
        name: "two intervals of one writer, another writer in between",
        text: "nodes 3 views 1 units 1
            n0: lock a; store u0.0; unlock a; store u0.1; set b
            n1: lock a; load u0.0; store u0.0; unlock a; set a
            n2: load u0.2; await b; load u0.1; await a; load u0.0; lock a; load u0.0; unlock a",
        collects: false,
        states: [1_900, 4_754, 1_127],
    },
    World {
        name: "an acquire while dirty: locks in locks",
        text: "nodes 3 views 1 units 1
            n0: store u0.1; lock a; load u0.0; unlock a; set b
            n1: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a; set a
            n2: load u0.2; await a; await b; load u0.0; load u0.1",
        collects: false,
        states: [1_972, 4_211, 902],
    },
    World {
        name: BESIDE,
        text: "nodes 3 views 1 units 1
            n0: store u0.0; set a; store u0.0; set b
            n1: store u0.1; await a; store u0.1; set c
            n2: load u0.2; await b; await c; load u0.0; load u0.1",
        collects: false,
        states: [1_160, 3_253, 682],
    },
    World {
        name: "a diff comes while an interval is owed",
        text: "nodes 3 views 1 units 2
            n0: store u0.0; set a; store u0.0; set b
            n1: lock d; store u1.0; unlock d; lock d; store u1.0; unlock d; store u0.1; set c; await a; load u0.1; set d
            n2: load u0.2; await b; await d; load u0.0; load u0.1",
        collects: false,
        states: [4_264, 11_297, 1_493],
    },
    World {
        name: REWRITTEN,
        text: "nodes 3 views 1 units 1
            n0: load u0.2; await a; load u0.0; store u0.0; set c
            n1: store u0.0; set a; store u0.1; set b
            n2: load u0.2; await b; await c; load u0.0; load u0.1",
        collects: false,
        states: [1_190, 3_298, 808],
    },
    World {
        name: TAKEN_BACK,
        text: "nodes 3 views 1 units 1
            n0: store u0.0 = 1; set a; await d; store u0.1 = 2; store u0.1 = 0; set b
            n1: await a; load u0.0; await b; load u0.1
            n2: await a; load u0.0; set d",
        collects: false,
        states: [721, 1_588, 275],
    },
    World {
        name: "false sharing over barriers: three writers of one unit",
        text: "nodes 3 views 1 units 1
            n0: store u0.0; barrier; load u0.2; store u0.0; barrier; load u0.1
            n1: store u0.1; barrier; store u0.1; barrier; load u0.0
            n2: store u0.2; barrier; load u0.2; barrier; load u0.0; load u0.1",
        collects: false,
        states: [13_293, 89_587, 2_477],
    },
    World {
        name: COLLECT,
        text: "nodes 3 views 1 units 1
            n0: store u0.0; barrier; load u0.2; store u0.0; barrier; load u0.1
            n1: store u0.1; barrier; store u0.1; barrier; load u0.0; lock a; load u0.2; store u0.2; unlock a
            n2: barrier; barrier; load u0.0; load u0.1; lock a; load u0.2; unlock a",
        collects: true,
        states: [8_449, 20_781, 4_100],
    },
    World {
        name: "barriers collect: two units, one owed and never asked for",
        text: "nodes 2 views 1 units 2
            n0: store u0.0; store u1.0; barrier; store u1.0; barrier; load u0.0; store u1.0; barrier; load u1.1
            n1: store u1.1; barrier; load u0.0; barrier; store u0.1; barrier; load u1.0",
        collects: true,
        states: [675, 1_475, 481],
    },
    World {
        name: "two locks move the two words of a unit, three nodes",
        text: "nodes 3 views 1 units 1
            n0: lock a; store u0.0; unlock a; lock b; load u0.1; unlock b
            n1: lock b; load u0.1; store u0.1; unlock b; lock a; load u0.0; store u0.0; unlock a
            n2: lock a; load u0.0; store u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        collects: false,
        states: [21_778, 61_425, 7_944],
    },
    World {
        name: "any of two critical sections, two nodes, one unit",
        text: "nodes 2 views 1 units 1
            n0: { lock a; store u0.0; unlock a | lock b; load u0.1; unlock b }; { lock a; load u0.0; unlock a | lock b; store u0.1; unlock b }
            n1: { lock a; load u0.0; store u0.0; unlock a | lock b; store u0.1; unlock b }; store u0.2; { lock a; store u0.0; unlock a | lock b; load u0.1; unlock b }",
        collects: false,
        states: [7_485, 12_548, 4_394],
    },
    World {
        name: TWO_UNITS,
        text: "nodes 2 views 1 units 2
            n0: lock a; store u0.0; store u1.1; unlock a; lock b; load u1.0; store u0.1; unlock b
            n1: lock b; store u1.0; load u0.1; unlock b; lock a; load u0.0; load u1.1; unlock a",
        collects: false,
        states: [727, 1_709, 432],
    },
    World {
        name: "flags: a chain of three nodes through two units",
        text: "nodes 3 views 1 units 2
            n0: store u0.0; set a; await b; load u0.1; load u1.0
            n1: store u1.0; await a; load u0.0; store u0.1; set b
            n2: await b; load u0.0; load u0.1; load u1.0",
        collects: false,
        states: [518, 1_479, 283],
    },
    World {
        name: THREADS,
        text: "nodes 2 views 1 threads 2 units 1
            n0.v0.t0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v0.t1: lock b; store u0.1; store u0.1; unlock b
            n1.v0.t0: lock a; load u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        collects: false,
        states: [9_408, 18_215, 6_038],
    },
    World {
        name: EARLY,
        text: "nodes 4 views 1 units 2
            n0: await b; load u0.2; store u0.1; set c; await a; load u0.0; store u0.0; set d
            n1: lock a; store u1.0; unlock a; lock a; store u1.0; unlock a; store u0.0; set a
            n2: store u0.2; set b; await a; load u0.2
            n3: await b; load u0.2; await d; load u0.0; load u0.1",
        collects: false,
        states: [44_675, 152_793, 9_423],
    },
    World {
        name: MIXED,
        text: "nodes 3 views 1 threads 2 units 2
            n0.v0.t0: store u0.1; set b
            n0.v0.t1: await a; load u0.0; store u0.0; set c
            n1.v0.t0: lock d; store u1.0; unlock d; store u0.0; set a
            n2.v0.t0: load u0.2; await b; load u0.1; await c; load u0.0",
        collects: false,
        states: [4_999, 14_464, 1_919],
    },
    World {
        name: "a view of two threads: one acquires while the other faults",
        text: "nodes 2 views 1 threads 2 units 1
            n0.v0.t0: lock b; load u0.0; unlock b; lock b; load u0.0; unlock b
            n0.v0.t1: store u0.1; store u0.1; lock a; store u0.2; unlock a
            n1.v0.t0: lock b; store u0.0; unlock b; lock a; load u0.2; unlock a",
        collects: false,
        states: [23_302, 45_172, 10_739],
    },
    World {
        name: HALF,
        text: "nodes 3 views 1 threads 2 units 1
            n0.v0.t0: await b; load u0.0
            n0.v0.t1: load u0.1; load u0.1
            n1.v0.t0: await a; load u0.0; store u0.0; set b
            n2.v0.t0: store u0.0; set a",
        collects: false,
        states: [441, 1_168, 220],
    },
    World {
        name: "signals at a barrier: a handler stores beside a writer of another node",
        text: SIGNALS,
        collects: false,
        states: [3_292, 6_552, 1_987],
    },
    World {
        name: OUTSIDE,
        text: "nodes 2 views 1 threads 2 units 1
            n0.v0.t0: store u0.0; barrier; load u0.2
            n0.v0.t1: load u0.1; load u0.1
            n1.v0.t0: store u0.2; barrier; load u0.0",
        collects: true,
        states: [846, 2_104, 546],
    },
    World {
        name: OUTSIDE_WRITES,
        text: "nodes 2 views 1 threads 2 units 1
            n0.v0.t0: barrier
            n0.v0.t1: store u0.1; set a
            n1.v0.t0: store u0.0; barrier
            n1.v0.t1: await a; load u0.1",
        collects: true,
        states: [25_505, 60_059, 11_992],
    },
    World {
        name: OUTSIDE_LATER,
        text: "nodes 2 views 1 threads 2 units 2
            n0.v0.t0: barrier
            n0.v0.t1: store u0.2; await b
            n1.v0.t0: store u1.0; barrier
            n1.v0.t1: store u0.1; set b",
        collects: true,
        states: [107_799, 305_258, 54_090],
    },
    World {
        name: OUTSIDE_TWICE,
        text: "nodes 2 views 1 threads 2 units 1
            n0.v0.t0: barrier
            n0.v0.t1: store u0.0; set a; store u0.1
            n1.v0.t0: barrier
            n1.v0.t1: await a; load u0.0",
        collects: true,
        states: [25_017, 53_472, 12_842],
    },
    World {
        name: BESIDE_HANDLER,
        text: "nodes 2 views 1 threads 2 units 1
            signals 1
            n0.v0.t1 handler: load u0.0; store u0.0
            n0.v0.t0: barrier
            n0.v0.t1: barrier
            n1.v0.t0: store u0.1; barrier",
        collects: true,
        states: [5_217, 13_278, 2_871],
    },
    World {
        name: COLLECTED_HANDLER,
        text: SIGNALS,
        collects: true,
        states: [3_903, 7_065, 2_575],
    },
];
