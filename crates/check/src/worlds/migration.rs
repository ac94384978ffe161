//! Worlds about a home that moves, beside those of all.

use super::pinned::World;

/// Name of a world.
pub const ROUND: &str = "the home goes round three writers, and back";
/// Name of a world.
pub const THERE_AND_BACK: &str = "a flush and a fetch of one node while the home moves away and back";
/// Name of a world.
pub const MOVED_TWICE: &str = "guesses at a page whose home has moved twice";
/// Name of a world.
pub const ON_ITS_WAY: &str = "flushes are on their way while the home moves";

/// They are pinned beside the variants ([`crate::cashmere::migration::PINNED`]).
const ELSEWHERE: [usize; 6] = [0; 6];

/// All of them.
pub const WORLDS: &[World] = &[
    World {
        name: ROUND,
        text: "nodes 3 views 1 units 1
            n0: lock a; store u0.0; unlock a; lock a; store u0.0; unlock a
            n1: lock a; store u0.0; unlock a; lock a; store u0.0; unlock a
            n2: lock a; load u0.0; store u0.0; unlock a; lock a; load u0.0; unlock a",
        states: ELSEWHERE,
    },
    World {
        name: ON_ITS_WAY,
        text: "nodes 4 views 1 units 1
            home u0 n3
            n0: load u0.0; barrier; lock a; store u0.0; unlock a; lock b; load u0.1; unlock b
            n1: load u0.0; barrier; lock b; store u0.1; unlock b; lock a; load u0.0; unlock a
            n2: load u0.0; barrier; lock a; load u0.0; unlock a",
        states: ELSEWHERE,
    },
    World {
        name: THERE_AND_BACK,
        text: "nodes 3 views 2 units 1
            home u0 n0
            n0.v0: await a; store u0.2
            n1.v0: await b; store u0.0; set a
            n2.v0: load u0.1; set b; store u0.1; set c; load u0.1
            n2.v1: await a; load u0.0",
        states: ELSEWHERE,
    },
    World {
        name: MOVED_TWICE,
        text: "nodes 3 views 1 units 1
            guesses 1 refusing
            home u0 n0
            n0: load u0.1; await b; load u0.0
            n1: store u0.0; set a; await b; load u0.0
            n2: await a; load u0.0; store u0.0; set b",
        states: ELSEWHERE,
    },
];
