//! Worlds for the variants that broadcast, beside those of all.

use super::pinned::World;

/// Name of a world.
pub const READERS: &str = "a page with three readers is written again, four nodes";
/// Name of a world.
pub const UNITS: &str = "readers of two units, whose pages push each other out of the home's buffer";
/// Name of a world.
pub const OWNER: &str = "a page with two readers gets an owner, and readers again";
/// Name of a world.
pub const FLUSH: &str = "a processor faults while its neighbour's flush is under way, and others read";

/// They are pinned beside the variant ([`crate::cashmere::broadcast::PINNED`]).
const ELSEWHERE: [usize; 6] = [0; 6];

/// All of them.
pub const WORLDS: &[World] = &[
    World {
        name: READERS,
        text: "nodes 4 views 1 units 1
            home u0 n0
            n0: store u0.0; barrier; barrier; store u0.0; barrier
            n1: barrier; load u0.0; barrier; barrier; load u0.0
            n2: barrier; load u0.0; barrier; barrier
            n3: barrier; load u0.0; barrier; barrier",
        states: ELSEWHERE,
    },
    World {
        name: UNITS,
        text: "nodes 3 views 1 units 2
            home u0 n0
            home u1 n0
            n0: store u0.0; store u1.0; barrier; store u0.1; barrier
            n1: barrier; load u0.0; load u1.0; barrier; load u0.1; load u1.0
            n2: barrier; load u1.0; load u0.0; barrier; load u1.0; load u0.1",
        states: ELSEWHERE,
    },
    World {
        name: OWNER,
        text: "nodes 3 views 1 units 1
            home u0 n0
            n1: load u0.1; lock a; store u0.0; unlock a; lock a; store u0.0; unlock a; lock a; store u0.0; unlock a
            n2: load u0.1; lock a; load u0.0; unlock a; lock a; load u0.0; unlock a",
        states: ELSEWHERE,
    },
    World {
        name: FLUSH,
        text: "nodes 4 views 2 units 1
            home u0 n0
            n1.v0: load u0.0; lock a; store u0.0; unlock a; load u0.0
            n1.v1: lock b; load u0.1; unlock b
            n2.v0: lock b; store u0.1; unlock b
            n3.v0: lock b; load u0.1; unlock b",
        states: ELSEWHERE,
    },
];
