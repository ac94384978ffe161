//! What stands in a node's segment for lazy release consistency: valid when all zero.

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU32;

use finespun_protocol::tmk::Unit;
use finespun_sys::lock::WordLock;
use finespun_types::NODES_MAX;

use super::region::Region;

/// Words of the log of one node's intervals, a ring.
pub const LOG_WORDS: usize = 1 << 22;
/// Intervals of one node that a log can hold.
pub const LOG_INTERVALS: usize = 1 << 19;
/// Objects whose releasers' times are told apart at a manager; more share.
pub const OBJECTS: usize = 1 << 10;
/// All of them: and those of the heap, of the job's threads, and of the barriers of all.
pub const OBJECT_TIMES: usize = OBJECTS + 3;
/// The regions of this protocol.
#[derive(Clone, Copy, Debug)]
pub struct Regions {
    /// The node's block.
    pub node: Region,
    /// The node's times.
    pub times: Region,
    /// By object: what its releasers knew.
    pub objects: Region,
    /// A copy per unit.
    pub copies: Region,
    /// By unit and node: what is known of that writer.
    pub writers: Region,
    /// By node and interval: where its record starts.
    pub places: Region,
    /// By node: the records.
    pub words: Region,
    /// Bytes for the node's own diffs.
    pub kept: Region,
    /// Bytes for diffs that came by messages.
    pub came: Region,
}

/// The node's block.
#[repr(C, align(128))]
pub struct TmkNode {
    /// Guards times, times of objects, and additions to the logs.
    pub(super) lock: WordLock,
    /// By writer: where the next record goes, and where the oldest is.
    pub(super) ends: [LogEnds; NODES_MAX],
    pub(super) kept: Arena,
    pub(super) came: Arena,
    /// Processors that are in a collection.
    pub collecting: AtomicU32,
    /// Collections done.
    pub collections: AtomicU32,
    pub(super) clock: UnsafeCell<u32>,
}

#[repr(C)]
pub(super) struct LogEnds {
    pub(super) head: AtomicU32,
    pub(super) tail: AtomicU32,
}

/// Memory given out one after the other, and taken back all at once when nothing of it is needed any more.
#[repr(C)]
pub(super) struct Arena {
    pub(super) lock: WordLock,
    pub(super) head: AtomicU32,
    pub(super) live: AtomicU32,
}

/// What a node has of one unit, beside the writers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The table's state.
    pub unit: Unit,
    /// The node's own diffs: oldest and youngest.
    pub oldest: u32,
    /// See `oldest`.
    pub youngest: u32,
    /// Diffs that came, in the order (stamp, node).
    pub came: u32,
}

/// Words of a time: one per node, and the number of the collection that somebody wishes for.
pub const fn time_words(nodes: usize) -> usize {
    nodes + 1
}

/// How many times a node keeps: seen, granted, known, at the last barrier, collected; and what each node was told.
pub const fn times_words(nodes: usize) -> usize {
    (5 + nodes) * time_words(nodes)
}
