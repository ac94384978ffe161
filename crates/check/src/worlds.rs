//! The worlds that are explored completely, by what they are about. The counts of states are pinned: a change of the
//! protocol, meant or not, shows as another number.

use crate::cashmere::{broadcast, migration};
use crate::driver::{Form, Grain, Rules};
use crate::program::Program;
use crate::subject::Subject;

/// A program and how many states it has.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// What it is about.
    pub name: &'static str,
    /// The program.
    pub text: &'static str,
    /// States in the form `None`, by event and by action, then likewise in the forms `MS` and `DMS`.
    pub states: [usize; 6],
}

/// The forms and grains, in the order of [`World::states`].
pub const WAYS: [(Form, Grain); 6] = [
    (Form::None, Grain::Event),
    (Form::None, Grain::Action),
    (Form::Ms, Grain::Event),
    (Form::Ms, Grain::Action),
    (Form::Dms, Grain::Event),
    (Form::Dms, Grain::Action),
];

/// The world of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static World> {
    WORLDS.iter().chain(broadcast::WORLDS).chain(migration::WORLDS).find(|world| world.name == name)
}

impl World {
    /// Its rules, in one form and grain.
    ///
    /// # Errors
    /// The line of the program that cannot be read.
    pub fn rules<P: Subject>(&self, form: Form, grain: Grain) -> Result<Rules<P>, String> {
        Ok(Rules { program: Program::parse(self.text)?, form, grain, bug: None })
    }
}

/// All of them.
pub const WORLDS: &[World] = &[
    World {
        name: "a lock moves a word between two nodes",
        text: "nodes 2 views 1 units 1
            n0: lock a; load u0.0; store u0.0; unlock a; lock a; load u0.0; unlock a
            n1: lock a; load u0.0; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a",
        states: [175, 283, 165, 281, 139, 268],
    },
    World {
        name: "any of four critical sections, three nodes, one unit",
        text: "nodes 3 views 1 units 1
            home u0 n0
            n0: { lock a; load u0.0; store u0.0; unlock a | lock b; store u0.1; unlock b }; { lock b; load u0.1; unlock b | lock a; load u0.0; unlock a }
            n1: { lock a; load u0.0; store u0.0; unlock a | lock b; store u0.1; unlock b }; { lock b; load u0.1; unlock b | lock a; load u0.0; unlock a }
            n2: { lock a; store u0.0; unlock a | lock b; load u0.1; store u0.1; unlock b }",
        states: [140_603, 292_388, 127_031, 271_214, 87_591, 221_131],
    },
    World {
        name: "two locks move the two words of a unit, three nodes, first touch",
        text: "nodes 3 views 1 units 1
            n0: lock a; store u0.0; unlock a; lock a; load u0.0; unlock a
            n1: lock b; store u0.1; unlock b; lock a; load u0.0; unlock a
            n2: lock a; load u0.0; store u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        states: [39_351, 82_865, 32_563, 74_237, 21_321, 59_076],
    },
    World {
        name: "false sharing and locks, two processors a node, two units",
        text: "nodes 2 views 2 units 2
            home u0 n1
            n0.v0: lock a; store u0.0; unlock a; lock a; load u0.0; unlock a
            n0.v1: store u0.1; lock b; store u1.0; unlock b
            n1.v0: lock a; load u0.0; store u0.0; unlock a
            n1.v1: lock b; load u1.0; store u1.0; unlock b",
        states: [22_549, 74_411, 22_123, 76_371, 12_032, 56_120],
    },
    World {
        name: "false sharing, two processors a node fault and release at once",
        text: "nodes 2 views 2 units 1
            home u0 n1
            n0.v0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v1: lock b; store u0.1; unlock b
            n1.v0: lock a; load u0.0; store u0.0; unlock a
            n1.v1: lock b; load u0.1; store u0.1; unlock b",
        states: [14_142, 33_380, 14_929, 35_269, 8_959, 26_564],
    },
    World {
        name: "two units, any order, two processors a node",
        text: "nodes 2 views 2 units 2
            n0.v0: { lock a; store u0.0; unlock a | lock b; store u1.0; unlock b }
            n0.v1: { lock a; load u0.0; unlock a | lock b; store u1.0; unlock b }
            n1.v0: { lock a; load u0.0; store u0.0; unlock a | lock b; load u1.0; unlock b }
            n1.v1: { lock b; load u1.0; store u1.0; unlock b | lock a; store u0.0; unlock a }",
        states: [34_235, 83_262, 28_551, 82_864, 23_234, 78_362],
    },
    World {
        name: "producers and consumers over barriers, two processors a node, two units",
        text: "nodes 2 views 2 units 2
            home u1 n0
            n0.v0: store u0.0; barrier; load u1.1; barrier; store u0.0
            n0.v1: store u0.1; barrier; load u1.0; barrier; load u1.1
            n1.v0: store u1.0; barrier; load u0.1; barrier; load u1.1
            n1.v1: store u1.1; barrier; load u0.0; barrier; store u0.1",
        states: [53_012, 174_143, 58_688, 190_444, 35_254, 135_392],
    },
    World {
        name: "producer and consumers over barriers, three nodes, the home is another",
        text: "nodes 3 views 1 units 1
            home u0 n2
            n0: store u0.0; barrier; load u0.1; barrier; store u0.0; store u0.0; barrier; load u0.1
            n1: store u0.1; barrier; load u0.0; barrier; store u0.1; barrier; load u0.0
            n2: barrier; load u0.1; barrier; barrier; load u0.0; load u0.1",
        states: [7_253, 15_863, 6_247, 15_205, 4_126, 12_553],
    },
    World {
        name: "exclusive mode is broken while two processors write",
        text: "nodes 2 views 2 units 1
            home u0 n1
            n0.v0: lock a; store u0.0; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v1: lock b; store u0.1; store u0.1; unlock b
            n1.v0: lock a; load u0.0; unlock a; lock b; load u0.1; unlock b",
        states: [2_579, 5_256, 2_579, 5_256, 1_511, 4_048],
    },
    World {
        name: "exclusive mode at the home is broken",
        text: "nodes 3 views 1 units 1
            home u0 n0
            n0: store u0.0; store u0.0; lock a; store u0.1; unlock a; store u0.0; lock a; load u0.1; unlock a
            n1: lock a; load u0.1; store u0.1; unlock a
            n2: lock a; load u0.1; unlock a",
        states: [2_310, 4_226, 2_067, 3_874, 1_714, 3_517],
    },
    World {
        name: "upgrades race: readers of one unit become writers",
        text: "nodes 3 views 1 units 1
            home u0 n2
            n0: load u0.0; store u0.0; lock a; load u0.1; store u0.1; unlock a; load u0.0
            n1: lock a; load u0.1; store u0.1; unlock a; lock a; load u0.1; unlock a",
        states: [698, 1_543, 618, 1_520, 423, 1_226],
    },
    World {
        name: "an acquire while dirty: locks in locks",
        text: "nodes 3 views 1 units 1
            home u0 n2
            n0: lock a; store u0.0; lock b; load u0.1; store u0.1; unlock b; load u0.0; store u0.0; unlock a
            n1: lock b; load u0.1; store u0.1; unlock b; lock a; load u0.0; unlock a
            n2: lock a; load u0.0; store u0.0; unlock a",
        states: [2_952, 7_227, 2_659, 6_675, 1_821, 5_499],
    },
    World {
        name: "an acquire while dirty, beside a writer of the same node",
        text: "nodes 2 views 2 units 1
            home u0 n1
            n0.v0: lock a; store u0.0; lock b; unlock b; load u0.0; store u0.0; unlock a
            n0.v1: lock b; store u0.1; unlock b; lock b; load u0.1; store u0.1; unlock b
            n1.v0: lock b; load u0.1; store u0.1; unlock b; lock a; load u0.0; unlock a",
        states: [4_419, 9_456, 4_468, 9_604, 2_748, 7_507],
    },
    World {
        name: "two releases of a node at once: a flush is skipped",
        text: "nodes 3 views 2 units 1
            home u0 n1
            n0.v0: store u0.0; set a; await b
            n0.v1: store u0.1; set b; await a
            n1.v0: await a; load u0.0; await b; load u0.1
            n2.v0: await a; load u0.0; await b; load u0.1",
        states: [1_477, 3_944, 1_421, 3_904, 828, 2_735],
    },
    World {
        name: "a word is put back before the release, while a third node fetches",
        text: "nodes 3 views 1 units 1
            home u0 n0
            n0: store u0.0 = 1; store u0.0 = 0; set a
            n1: load u0.1; await a; load u0.0
            n2: load u0.1",
        states: [2_477, 7_715, 2_438, 7_854, 1_248, 4_426],
    },
    World {
        name: "flags: a chain of three nodes through two units",
        text: "nodes 3 views 1 units 2
            home u0 n2
            n0: store u0.0; set a; await b; load u0.1; load u1.0
            n1: store u1.0; await a; load u0.0; store u0.1; set b
            n2: await b; load u0.0; load u0.1; load u1.0",
        states: [280, 682, 224, 673, 140, 589],
    },
    World {
        name: "a view of two threads: one releases while the other stores",
        text: "nodes 2 views 1 threads 2 units 1
            home u0 n1
            n0.v0.t0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v0.t1: lock b; store u0.1; store u0.1; unlock b
            n1.v0.t0: lock a; load u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        states: [2_734, 6_291, 2_717, 6_367, 1_668, 4_643],
    },
    World {
        name: "a view of two threads: one acquires while the other faults",
        text: "nodes 2 views 2 threads 2 units 1
            home u0 n1
            n0.v0.t0: lock b; unlock b; lock b; load u0.0; unlock b
            n0.v0.t1: lock a; load u0.1; store u0.1; unlock a
            n0.v1.t0: lock b; store u0.0; unlock b
            n1.v0.t0: lock a; store u0.1; unlock a; lock a; store u0.1; unlock a",
        states: [13_178, 29_830, 13_757, 31_556, 8_887, 24_618],
    },
    World {
        name: "two views of two threads on one node release and store",
        text: "nodes 2 views 2 threads 2 units 1
            home u0 n1
            n0.v0.t0: lock a; store u0.0; unlock a
            n0.v0.t1: lock b; store u0.1; unlock b
            n0.v1.t0: lock a; load u0.0; store u0.0; unlock a
            n1.v0.t0: lock b; load u0.1; unlock b; lock a; load u0.0; unlock a",
        states: [3_462, 7_443, 3_417, 7_421, 2_217, 5_731],
    },
    World {
        name: "a sharer that misses flushes is left alone and wants to upgrade",
        text: "nodes 4 views 1 units 1
            home u0 n3
            n0: load u0.2; store u0.2
            n1: lock b; store u0.0; unlock b; lock a; unlock a; lock c; load u0.1; unlock c
            n2: lock c; store u0.1; unlock c; lock a; unlock a",
        states: [38_449, 112_261, 23_265, 79_457, 14_250, 59_385],
    },
    World {
        name: "any of two critical sections, one unit, two processors a node",
        text: "nodes 2 views 2 units 1
            n0.v0: { lock a; store u0.0; unlock a | lock b; load u0.1; unlock b }
            n0.v1: { lock a; store u0.0; unlock a | lock b; store u0.1; unlock b }
            n1.v0: { lock a; load u0.0; unlock a | lock b; store u0.1; unlock b }; lock a; load u0.0; unlock a
            n1.v1: store u0.2; lock b; load u0.1; unlock b",
        states: [291_881, 789_253, 298_527, 813_948, 173_696, 585_738],
    },
    World {
        name: "a writer keeps its right, away from home",
        text: "nodes 2 views 1 units 1
            keeps
            home u0 n1
            n0: store u0.0; set a; store u0.0; barrier; store u0.0; lock a; load u0.1; unlock a
            n1: load u0.1; await a; lock a; store u0.1; unlock a; barrier; load u0.1",
        states: [690, 1_843, 670, 1_829, 445, 1_542],
    },
    World {
        name: "a writer keeps its right at home, two sharers",
        text: "nodes 3 views 1 units 1
            keeps
            home u0 n0
            n0: store u0.0; barrier; load u0.1; store u0.0; barrier; barrier
            n1: load u0.2; barrier; barrier; load u0.0; barrier
            n2: store u0.1; barrier; barrier; load u0.0; barrier",
        states: [83_283, 199_491, 44_339, 137_517, 32_004, 110_144],
    },
    World {
        name: "two views of the home write, and keep their rights or not",
        text: "nodes 2 views 2 units 1
            keeps
            home u0 n0
            n0.v0: lock a; store u0.0; unlock a; lock a; store u0.0; unlock a
            n0.v1: lock b; store u0.1; unlock b
            n1.v0: load u0.2; lock a; load u0.0; unlock a; lock b; load u0.1; unlock b",
        states: [21_642, 59_853, 23_713, 71_749, 17_388, 52_178],
    },
    World {
        name: "two views away from home write, and keep their rights or not",
        text: "nodes 2 views 2 units 1
            keeps
            home u0 n1
            n0.v0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v1: lock b; store u0.1; unlock b
            n1.v0: load u0.2; lock a; load u0.0; store u0.0; unlock a; lock b; load u0.1; unlock b",
        states: [17_384, 47_215, 17_706, 47_999, 8_415, 32_406],
    },
    World {
        name: "a view of two threads keeps its right while the other thread stores",
        text: "nodes 2 views 1 threads 2 units 1
            keeps
            home u0 n1
            n0.v0.t0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v0.t1: lock b; store u0.1; store u0.1; unlock b
            n1.v0.t0: load u0.2; lock a; load u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        states: [7_693, 22_235, 7_663, 22_413, 4_074, 15_252],
    },
    World {
        name: "a view of two threads at home keeps its right while the other thread stores",
        text: "nodes 2 views 1 threads 2 units 1
            keeps
            home u0 n0
            n0.v0.t0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v0.t1: lock b; store u0.1; store u0.1; unlock b
            n1.v0.t0: load u0.2; lock a; load u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        states: [18_331, 52_262, 19_540, 60_487, 13_638, 44_408],
    },
];
