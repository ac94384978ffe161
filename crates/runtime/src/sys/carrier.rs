//! What carries messages, behind the one trait by which the rest of the runtime uses it. Which one it is says the job.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use finespun_job::{Job, messages};
use finespun_sys::memory::Mapping;
use finespun_transport::{Delay, Loopback, Mesh, Messages};
use finespun_types::NodeId;

use super::segment::Segment;

/// Joins what carries messages between this node and the others. `fd_of` turns a descriptor number of the job into a descriptor.
pub fn attach(
    job: &Job,
    segment: &Segment,
    me: NodeId,
    sockets: Vec<Option<OwnedFd>>,
    fd_of: impl Fn(i32) -> BorrowedFd<'static>,
) -> io::Result<Box<dyn Messages>> {
    match &job.messages.loopback {
        None => Ok(delayed(job, me, mesh(segment, me, job.nodes as usize, sockets)?)),
        Some(descriptors) => Ok(delayed(job, me, loopback(descriptors, me, fd_of)?)),
    }
}

/// Each node draws another sequence of the job's seed.
fn delayed(job: &Job, me: NodeId, carrier: impl Messages + 'static) -> Box<dyn Messages> {
    match job.messages.delay {
        None => Box::new(carrier),
        Some(seed) => Box::new(Delay::new(carrier, seed << 8 | u64::from(me.0))),
    }
}

fn mesh(segment: &Segment, me: NodeId, nodes: usize, sockets: Vec<Option<OwnedFd>>) -> io::Result<Mesh> {
    // SAFETY: the region has `Mesh::bytes(nodes)` bytes (Shape::of), is mapped for the life of the process (the segment
    // is never unmapped while a Cluster lives), zero when the job began, and used by this node's meshes only.
    let mesh = unsafe { Mesh::attach(segment.mesh_memory(), Mesh::bytes(nodes), me, nodes, sockets) };
    mesh.map_err(|error| io::Error::other(error.to_string()))
}

fn loopback(
    descriptors: &messages::Loopback,
    me: NodeId,
    fd_of: impl Fn(i32) -> BorrowedFd<'static>,
) -> io::Result<Loopback<BorrowedFd<'static>>> {
    let doorbells: Vec<_> = descriptors.doorbells.iter().map(|&fd| fd_of(fd)).collect();
    let bytes = Loopback::<BorrowedFd<'_>>::bytes(doorbells.len());
    let memory = Mapping::shared(fd_of(descriptors.memory), bytes)?;
    memory.leave_out_of_cores();
    // SAFETY: mapped with so many bytes, and never unmapped: the mapping is forgotten. The launcher made the memory for loopbacks only.
    let loopback = unsafe { Loopback::attach(memory.as_ptr(), bytes, me, doorbells) };
    std::mem::forget(memory);
    loopback.map_err(|error| io::Error::other(error.to_string()))
}
