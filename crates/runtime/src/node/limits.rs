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

#[cfg(test)]
mod tests {
    use finespun_job::Transport;

    use super::*;

    fn job(transport: Transport, nodes: u32) -> Job {
        Job { nodes, views: 2, transport, heap_bytes: 64 << 20, ..Job::alone() }
    }

    #[test]
    fn a_refusal_says_what_was_tried_and_which_limit_is_in_the_way_if_one_is() {
        let of = |errno| refused("making a file", &io::Error::from_raw_os_error(errno));
        assert!(of(libc::EPERM).starts_with("making a file: ") && !of(libc::EPERM).contains("limit"));
        let descriptors = of(libc::EMFILE);
        assert!(descriptors.starts_with("making a file: ") && descriptors.contains("; the limit of "), "{descriptors}");
        assert!(descriptors.contains("ulimit"), "{descriptors}");
    }

    /// How many bytes of addresses a message names.
    fn named(message: &str) -> &str {
        message.split(" of addresses").next().and_then(|text| text.strip_prefix("mapping ")).expect("a size")
    }

    #[test]
    fn a_process_maps_every_node_over_shared_memory_and_its_own_over_a_network() {
        let (shm, tcp) = (job(Transport::Shm, 4), job(Transport::Tcp, 4));
        let own = job(Transport::Tcp, 1);
        assert_ne!(named(&mapping(&shm, false)), named(&mapping(&tcp, false)));
        assert_ne!(named(&mapping(&own, true)), named(&mapping(&own, false)), "a program's process has a view, too");
        assert!(mapping(&shm, true).ends_with("for a heap of 64.0 MiB (--heap) on 4 nodes"), "{}", mapping(&shm, true));
        assert!(mapping(&own, true).ends_with("on 1 node"));
    }

    #[test]
    fn a_file_is_named_with_its_size_and_the_heap_it_is_for() {
        let said = file(&job(Transport::Shm, 2), "frames", 3 << 20);
        assert_eq!(said, "making 3.0 MiB of frames for a heap of 64.0 MiB (--heap)");
    }
}
