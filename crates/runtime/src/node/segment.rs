//! What the launcher must know of a node's memory: its size, and what to read from it after a run.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use finespun_job::Job;
use finespun_sys::clock;
use finespun_sys::memory::touched;
use finespun_types::Counters;

use crate::sys::segment::Segment;
use crate::sys::shape::Shape;

/// Bytes of a node's frames, sparse.
#[must_use]
pub fn frame_bytes(job: &Job) -> u64 {
    Shape::of(job).frame_bytes() as u64
}

/// Bytes of a node's segment, sparse, all-zero at first.
#[must_use]
pub fn segment_bytes(job: &Job) -> u64 {
    Shape::of(job).bytes as u64
}

/// One phase that the program marked, of one processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseTold {
    /// The processor, counted in its node.
    pub processor: usize,
    /// Its name.
    pub name: String,
    /// Nanoseconds spent in it, nested phases included.
    pub nanos: u64,
    /// How often it was begun.
    pub count: u64,
    /// What the processor counted meanwhile; no times.
    pub counters: Counters,
}

/// The layout of a node's memory and of the messages, as one number: the sizes of what stands there, and the version.
#[must_use]
pub fn layout() -> u64 {
    crate::sys::shape::fingerprint()
}

/// What a node's memory tells after a run, or during one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// By processor of the node.
    pub processors: Vec<Counters>,
    /// What the node's service process and threads of the program's own did, beside the processors and at the same time.
    pub others: Counters,
    /// Nanoseconds of the monotonic clock when the first process started; 0 if none did.
    pub started_ns: u64,
    /// Nanoseconds of the monotonic clock when the last process ended; 0 if none did.
    pub ended_ns: u64,
    /// The phases of its processors.
    pub phases: Vec<PhaseTold>,
    /// The memory it took.
    pub memory: MemoryTold,
}

/// Memory that a node took, in whole pages of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTold {
    /// Frames: pages of the shared space that this node touched.
    pub frame_bytes: u64,
    /// The node segment without twins.
    pub table_bytes: u64,
    /// Twins: as many as were needed at once.
    pub twin_bytes: u64,
    /// The most that tables grow by for a page of the shared space.
    pub table_bytes_per_page: u64,
}

/// To be asked before anybody looks at the tables: looking makes pages, too.
fn memory(segment: BorrowedFd<'_>, frames: BorrowedFd<'_>, shape: &Shape) -> io::Result<MemoryTold> {
    let twins = shape.twin.offset as u64..(shape.twin.offset + shape.twin_bytes()) as u64;
    let twin_bytes = touched(segment, twins)?;
    Ok(MemoryTold {
        frame_bytes: touched(frames, 0..shape.frame_bytes() as u64)?,
        table_bytes: touched(segment, 0..shape.bytes as u64)? - twin_bytes,
        twin_bytes,
        table_bytes_per_page: shape.table_bytes_per_page() as u64,
    })
}

/// Reads a node's counters.
///
/// # Errors
/// The kernel's, when the memory cannot be mapped.
pub fn read(segment: BorrowedFd<'_>, frames: BorrowedFd<'_>, job: &Job) -> io::Result<Told> {
    let shape = Shape::of(job);
    let memory = memory(segment, frames, &shape)?;
    let segment = Segment::map(segment, frames, shape)?;
    let node = segment.node();
    let ticks_per_ms = node.ticks_per_ms.load(Ordering::Relaxed);
    let all: Vec<Counters> =
        (0..segment.slots()).map(|slot| segment.slot(slot).read(clock::ticks(), ticks_per_ms)).collect();
    let (own, guests) = all.split_at(segment.shape().processors_per_node());
    let processors = own.to_vec();
    let mut others = Counters::ZERO;
    guests.iter().for_each(|guest| others.add(guest));
    let mut phases = Vec::new();
    for processor in 0..processors.len() {
        for phase in &segment.slot(processor).phases {
            let Some(name) = phase.name() else { break };
            let ticks = u128::from(phase.ticks.load(Ordering::Relaxed));
            let nanos = (ticks * 1_000_000 / u128::from(ticks_per_ms.max(1))) as u64;
            let counters = Counters { counts: phase.counted(), ..Counters::ZERO };
            phases.push(PhaseTold { processor, name, nanos, count: phase.count.load(Ordering::Relaxed), counters });
        }
    }
    Ok(Told {
        memory,
        phases,
        processors,
        others,
        started_ns: node.started_ns.load(Ordering::Relaxed),
        ended_ns: node.ended_ns.load(Ordering::Relaxed),
    })
}
