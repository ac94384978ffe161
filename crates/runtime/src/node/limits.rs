//! What a message says when the machine refuses something: what was tried, how much of it, why not, and which limit is in the way.

use std::io;

use finespun_errors::bytes;
use finespun_job::Job;
use finespun_sys::limits;
use finespun_types::NodeId;

use crate::sys::shape::Shape;

/// What was tried, and why it failed.
#[must_use]
pub fn refused(tried: &str, error: &io::Error) -> String {
    let Some(limit) = limits::behind(error) else { return format!("{tried}: {error}") };
    let value = if limit.is_bytes { bytes(limit.value) } else { limit.value.to_string() };
    format!("{tried}: {error}; the limit of {} is {value} ({})", limit.of, limit.shell)
}

/// A process is to map the job's memory: a process of the program, or a node's service process.
#[must_use]
pub fn mapping(job: &Job, is_of_program: bool) -> String {
    let shape = Shape::of(job);
    let frames = shape.frame_bytes() as u64;
    let reached = u64::from(job.reach(NodeId(0)).mapped_of(job.nodes));
    let own = if is_of_program { frames } else { 0 };
    let all = bytes(reached * (frames + shape.bytes as u64) + own);
    let heap = bytes(job.heap_bytes);
    format!("mapping {all} of addresses for a heap of {heap} (--heap) on {}", nodes(job.nodes))
}

/// A file in memory, of pages that are made as they are touched.
#[must_use]
pub fn file(job: &Job, what: &str, size: u64) -> String {
    format!("making {} of {what} for a heap of {} (--heap)", bytes(size), bytes(job.heap_bytes))
}

fn nodes(count: u32) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}
