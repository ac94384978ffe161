//! The worlds of all variants. The counts are those of Cashmere without the variants that have tables of their own.

use super::pinned::World;

/// Two nodes, views that guess in this way: a lock moves a word, and each node looks again.
macro_rules! lock_moves_a_word {
    ($guesses:literal) => {
        concat!(
            "nodes 2 views 1 units 1\nguesses ",
            $guesses,
            "
            n0: lock a; load u0.0; store u0.0; unlock a; lock a; load u0.0; unlock a
            n1: lock a; load u0.0; store u0.0; unlock a; lock a; load u0.0; unlock a"
        )
    };
}

/// Three nodes, views that guess in this way: two use a page first, a third reads what both have stored.
macro_rules! three_touch_first {
    ($guesses:literal) => {
        concat!(
            "nodes 3 views 1 units 1\nguesses ",
            $guesses,
            "
            n0: lock a; store u0.0; unlock a
            n1: lock b; store u0.1; unlock b
            n2: lock a; load u0.0; unlock a; lock b; load u0.1; unlock b"
        )
    };
}

/// All of them, by what they are about.
pub const WORLDS: &[World] = &[
    World {
        name: "a lock moves a word between two nodes",
        text: "nodes 2 views 1 units 1
            n0: lock a; load u0.0; store u0.0; unlock a; lock a; load u0.0; unlock a
            n1: lock a; load u0.0; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a",
        states: [163, 269, 155, 267, 131, 255],
    },
    World {
        name: "any of four critical sections, three nodes, one unit",
        text: "nodes 3 views 1 units 1
            home u0 n0
            n0: { lock a; load u0.0; store u0.0; unlock a | lock b; store u0.1; unlock b }; { lock b; load u0.1; unlock b | lock a; load u0.0; unlock a }
            n1: { lock a; load u0.0; store u0.0; unlock a | lock b; store u0.1; unlock b }; { lock b; load u0.1; unlock b | lock a; load u0.0; unlock a }
            n2: { lock a; store u0.0; unlock a | lock b; load u0.1; store u0.1; unlock b }",
        states: [123_333, 257_178, 114_585, 244_649, 79_281, 200_571],
    },
    World {
        name: "two locks move the two words of a unit, three nodes, first touch",
        text: "nodes 3 views 1 units 1
            n0: lock a; store u0.0; unlock a; lock a; load u0.0; unlock a
            n1: lock b; store u0.1; unlock b; lock a; load u0.0; unlock a
            n2: lock a; load u0.0; store u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        states: [37_726, 80_183, 32_437, 73_852, 21_025, 58_315],
    },
    World {
        name: "false sharing and locks, two processors a node, two units",
        text: "nodes 2 views 2 units 2
            home u0 n1
            n0.v0: lock a; store u0.0; unlock a; lock a; load u0.0; unlock a
            n0.v1: store u0.1; lock b; store u1.0; unlock b
            n1.v0: lock a; load u0.0; store u0.0; unlock a
            n1.v1: lock b; load u1.0; store u1.0; unlock b",
        states: [23_029, 78_101, 22_507, 79_609, 12_538, 59_270],
    },
    World {
        name: "false sharing, two processors a node fault and release at once",
        text: "nodes 2 views 2 units 1
            home u0 n1
            n0.v0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v1: lock b; store u0.1; unlock b
            n1.v0: lock a; load u0.0; store u0.0; unlock a
            n1.v1: lock b; load u0.1; store u0.1; unlock b",
        states: [16_544, 39_671, 17_274, 41_313, 10_631, 31_972],
    },
    World {
        name: "two units, any order, two processors a node",
        text: "nodes 2 views 2 units 2
            n0.v0: { lock a; store u0.0; unlock a | lock b; store u1.0; unlock b }
            n0.v1: { lock a; load u0.0; unlock a | lock b; store u1.0; unlock b }
            n1.v0: { lock a; load u0.0; store u0.0; unlock a | lock b; load u1.0; unlock b }
            n1.v1: { lock b; load u1.0; store u1.0; unlock b | lock a; store u0.0; unlock a }",
        states: [34_235, 84_994, 28_551, 84_596, 23_234, 80_114],
    },
    World {
        name: "producers and consumers over barriers, two processors a node, two units",
        text: "nodes 2 views 2 units 2
            home u1 n0
            n0.v0: store u0.0; barrier; load u1.1; barrier; store u0.0
            n0.v1: store u0.1; barrier; load u1.0; barrier; load u1.1
            n1.v0: store u1.0; barrier; load u0.1; barrier; load u1.1
            n1.v1: store u1.1; barrier; load u0.0; barrier; store u0.1",
        states: [24_921, 90_765, 22_695, 83_227, 14_611, 59_139],
    },
    World {
        name: "producer and consumers over barriers, three nodes, the home is another",
        text: "nodes 3 views 1 units 1
            home u0 n2
            n0: store u0.0; barrier; load u0.1; barrier; store u0.0; store u0.0; barrier; load u0.1
            n1: store u0.1; barrier; load u0.0; barrier; store u0.1; barrier; load u0.0
            n2: barrier; load u0.1; barrier; barrier; load u0.0; load u0.1",
        states: [9_049, 19_735, 7_851, 18_893, 5_157, 15_613],
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
        states: [2_300, 4_246, 2_089, 3_947, 1_714, 3_572],
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
        states: [2_994, 7_350, 2_696, 6_771, 1_851, 5_586],
    },
    World {
        name: "an acquire while dirty, beside a writer of the same node",
        text: "nodes 2 views 2 units 1
            home u0 n1
            n0.v0: lock a; store u0.0; lock b; unlock b; load u0.0; store u0.0; unlock a
            n0.v1: lock b; store u0.1; unlock b; lock b; load u0.1; store u0.1; unlock b
            n1.v0: lock b; load u0.1; store u0.1; unlock b; lock a; load u0.0; unlock a",
        states: [4_488, 9_637, 4_494, 9_668, 2_791, 7_615],
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
        states: [2_721, 8_441, 2_682, 8_574, 1_358, 4_884],
    },
    World {
        name: "flags: a chain of three nodes through two units",
        text: "nodes 3 views 1 units 2
            home u0 n2
            n0: store u0.0; set a; await b; load u0.1; load u1.0
            n1: store u1.0; await a; load u0.0; store u0.1; set b
            n2: await b; load u0.0; load u0.1; load u1.0",
        states: [280, 711, 224, 700, 140, 615],
    },
    World {
        name: "a view of two threads: one releases while the other stores",
        text: "nodes 2 views 1 threads 2 units 1
            home u0 n1
            n0.v0.t0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v0.t1: lock b; store u0.1; store u0.1; unlock b
            n1.v0.t0: lock a; load u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        states: [2_779, 6_574, 2_801, 6_660, 1_760, 4_877],
    },
    World {
        name: "a view of two threads: one acquires while the other faults",
        text: "nodes 2 views 2 threads 2 units 1
            home u0 n1
            n0.v0.t0: lock b; unlock b; lock b; load u0.0; unlock b
            n0.v0.t1: lock a; load u0.1; store u0.1; unlock a
            n0.v1.t0: lock b; store u0.0; unlock b
            n1.v0.t0: lock a; store u0.1; unlock a; lock a; store u0.1; unlock a",
        states: [14_596, 33_755, 15_166, 35_219, 10_038, 27_937],
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
        states: [307_389, 857_196, 310_791, 868_914, 192_194, 647_313],
    },
    World {
        name: "a writer keeps its right, away from home",
        text: "nodes 2 views 1 units 1
            keeps
            home u0 n1
            n0: store u0.0; set a; store u0.0; barrier; store u0.0; lock a; load u0.1; unlock a
            n1: load u0.1; await a; lock a; store u0.1; unlock a; barrier; load u0.1",
        states: [768, 1_975, 748, 1_955, 499, 1_656],
    },
    World {
        name: "a writer keeps its right at home, two sharers",
        text: "nodes 3 views 1 units 1
            keeps
            home u0 n0
            n0: store u0.0; barrier; load u0.1; store u0.0; barrier; barrier
            n1: load u0.2; barrier; barrier; load u0.0; barrier
            n2: store u0.1; barrier; barrier; load u0.0; barrier",
        states: [76_494, 192_820, 41_872, 132_152, 29_563, 104_836],
    },
    World {
        name: "two views of the home write, and keep their rights or not",
        text: "nodes 2 views 2 units 1
            keeps
            home u0 n0
            n0.v0: lock a; store u0.0; unlock a; lock a; store u0.0; unlock a
            n0.v1: lock b; store u0.1; unlock b
            n1.v0: load u0.2; lock a; load u0.0; unlock a; lock b; load u0.1; unlock b",
        states: [21_221, 60_458, 22_651, 68_423, 17_294, 51_825],
    },
    World {
        name: "two views away from home write, and keep their rights or not",
        text: "nodes 2 views 2 units 1
            keeps
            home u0 n1
            n0.v0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v1: lock b; store u0.1; unlock b
            n1.v0: load u0.2; lock a; load u0.0; store u0.0; unlock a; lock b; load u0.1; unlock b",
        states: [17_343, 47_038, 17_415, 47_246, 8_396, 32_116],
    },
    World {
        name: "a view of two threads keeps its right while the other thread stores",
        text: "nodes 2 views 1 threads 2 units 1
            keeps
            home u0 n1
            n0.v0.t0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v0.t1: lock b; store u0.1; store u0.1; unlock b
            n1.v0.t0: load u0.2; lock a; load u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        states: [7_350, 21_866, 7_430, 22_110, 4_052, 15_157],
    },
    World {
        name: "a view of two threads at home keeps its right while the other thread stores",
        text: "nodes 2 views 1 threads 2 units 1
            keeps
            home u0 n0
            n0.v0.t0: lock a; store u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v0.t1: lock b; store u0.1; store u0.1; unlock b
            n1.v0.t0: load u0.2; lock a; load u0.0; unlock a; lock b; load u0.1; store u0.1; unlock b",
        states: [20_577, 59_932, 21_633, 66_513, 15_255, 49_959],
    },
    World {
        name: "a word is put back at home, where the right to write it was kept, while a sharer fetches",
        text: "nodes 2 views 1 units 1
            keeps
            home u0 n0
            n0: store u0.0 = 1; barrier; store u0.0 = 2; store u0.0 = 1; set a
            n1: load u0.1; barrier; load u0.1; await a; load u0.0",
        states: [949, 2_264, 919, 2_288, 624, 1_768],
    },
    World {
        name: "any guess at any time, a lock moves a word between two nodes",
        text: lock_moves_a_word!("2"),
        states: [3_668, 8_460, 2_759, 6_768, 879, 2_595],
    },
    World {
        name: "guesses that take nothing from anybody, a lock moves a word between two nodes",
        text: lock_moves_a_word!("2 refusing"),
        states: [431, 817, 1_209, 2_890, 589, 1_482],
    },
    World {
        name: "guesses by three nodes, first touch: manager, home and reader are different",
        text: three_touch_first!("1 refusing"),
        states: [10_591, 27_495, 18_442, 64_513, 8_317, 40_335],
    },
    World {
        name: "a view of two threads: one guesses while the other acquires",
        text: "nodes 2 views 1 threads 2 units 1
            guesses 1
            home u0 n1
            n0.v0.t0: lock b; unlock b; lock b; load u0.0; unlock b
            n0.v0.t1: lock a; load u0.1; store u0.1; unlock a; lock a; load u0.1; unlock a
            n1.v0.t0: lock a; store u0.1; unlock a; lock b; store u0.0; unlock b",
        states: [35_308, 81_642, 33_605, 80_921, 13_191, 38_780],
    },
    World {
        name: "a stream: a fault brings the next unit along, over barriers",
        text: "nodes 2 views 1 units 2
            guesses 1
            home u0 n1
            n0: store u0.0; barrier; load u0.1; load u1.0; barrier; barrier; load u0.1; load u1.0
            n1: store u0.1; store u1.0; barrier; barrier; store u0.1; store u1.0; barrier",
        states: [14_918, 54_411, 9_577, 36_575, 3_236, 15_246],
    },
    World {
        name: "a page is fetched anew while another view of the node writes it",
        text: "nodes 2 views 2 units 1
            guesses 1
            home u0 n1
            n0.v0: lock a; load u0.0; unlock a; lock a; load u0.0; store u0.0; unlock a
            n0.v1: lock b; store u0.1; store u0.1; unlock b
            n1.v0: lock a; store u0.0; unlock a; lock b; load u0.1; unlock b",
        states: [22_391, 57_403, 22_174, 58_004, 7_111, 24_401],
    },
    World {
        name: "guesses at a page whose writer keeps its right at home",
        text: "nodes 2 views 1 units 1
            guesses 2
            keeps
            home u0 n0
            n0: store u0.0; barrier; barrier; store u0.0; barrier
            n1: store u0.1; barrier; load u0.0; barrier; barrier; load u0.0",
        states: [6_104, 15_909, 5_472, 15_709, 2_706, 8_958],
    },
    World {
        name: "any guess, producer and consumer over barriers, the home is another",
        text: "nodes 3 views 1 units 1
            guesses 2
            home u0 n2
            n0: store u0.0; barrier; barrier; store u0.0; store u0.0; barrier
            n1: barrier; load u0.0; barrier; barrier; load u0.0
            n2: barrier; barrier; barrier; store u0.1",
        states: [29_299, 68_495, 26_816, 68_347, 4_962, 15_615],
    },
    World {
        name: "any write fault without a store, a lock moves a word between two nodes",
        text: lock_moves_a_word!("2 writing"),
        states: [2_779, 7_887, 2_627, 7_921, 1_939, 6_747],
    },
    World {
        name: "a write fault without a store at a page that nobody has used, or another has",
        text: three_touch_first!("1 writing"),
        states: [41_447, 146_055, 34_427, 133_192, 20_054, 98_927],
    },
    World {
        name: "write faults without a store, two views of a node, the writer at home keeps its right",
        text: "nodes 2 views 2 units 1
            guesses 1 writing
            keeps
            home u0 n0
            n0.v0: store u0.0; barrier; store u0.0; barrier
            n0.v1: load u0.2; barrier; barrier; load u0.0
            n1.v0: store u0.1; barrier; store u0.1; barrier; load u0.0",
        states: [54_704, 190_820, 59_310, 207_463, 35_697, 156_676],
    },
    World {
        name: "signals at a barrier: a handler stores beside another writer of its node",
        text: "nodes 3 views 2 units 1
            signals 1
            home u0 n2
            n0.v0 handler: store u0.0
            n0.v0: store u0.0; barrier; load u0.0; barrier; load u0.0
            n0.v1: store u0.1; barrier; barrier
            n1.v0: load u0.2; barrier; store u0.2; barrier",
        states: [24_450, 57_874, 22_810, 56_878, 14_187, 42_360],
    },
    World {
        name: "signals at a barrier: a handler stores beside another writer at home, rights are kept or not",
        text: "nodes 2 views 2 units 1
            signals 1
            keeps
            home u0 n0
            n0.v0 handler: load u0.0; store u0.0
            n0.v0: store u0.0; barrier; load u0.0; set a
            n0.v1: store u0.1; barrier
            n1.v0: load u0.2; barrier; await a; load u0.0; load u0.1",
        states: [11_052, 30_137, 11_114, 33_325, 9_435, 26_946],
    },
    World {
        name: "signals while threads wait for locks and flags: handlers store on two nodes",
        text: "nodes 2 views 2 units 1
            signals 2
            home u0 n1
            n0.v0 handler: store u0.0
            n1.v0 handler: store u0.1
            n0.v0: lock a; load u0.2; store u0.2; unlock a; load u0.0; await b; load u0.0
            n0.v1: lock a; store u0.2; unlock a
            n1.v0: lock a; load u0.2; unlock a; load u0.1; set b",
        states: [11_509, 25_186, 11_505, 25_227, 7_935, 20_247],
    },
];
