//! Serving what other nodes ask by messages. Any process of the node may: who waits, polls. When all compute, the
//! node's service process, asleep in the kernel, is woken by what arrives.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use finespun_job::{Job, Report};
use finespun_sys::clock::ticks;
use finespun_transport::Wait;
use finespun_types::NodeId;

use crate::cluster::Cluster;
use crate::sys::descriptors;
use crate::wire::{self, Packet, Request};
use crate::{memory, meter, misuse, nest, objects, start, threads};

/// Handles what has arrived, if nodes send messages at all.
pub fn poll(cluster: &Cluster) {
    let Some(mesh) = &cluster.mesh else { return };
    let began = ticks();
    let handled = mesh.poll(&mut |from, message| handle(cluster, from, message));
    if handled > 0 {
        mesh.flush();
        meter::served(cluster, ticks().wrapping_sub(began));
    } else if mesh.pending() > 0 {
        mesh.flush();
    }
}

/// Bytes queued for other nodes beyond which nobody begins anything new. What is left of the queues is for answers.
const QUEUED_MAX: usize = 4 << 20;

/// Waits while much is queued for other nodes, serving what arrives: others may wait likewise for us.
pub fn await_room(cluster: &Cluster) {
    let Some(mesh) = &cluster.mesh else { return };
    while mesh.pending() > QUEUED_MAX {
        poll(cluster);
        std::thread::yield_now();
    }
}

/// The node's service: a thread of the node's service process.
pub struct Service {
    thread: JoinHandle<()>,
    stop: UnixStream,
}

impl Service {
    /// Starts serving the messages of the other nodes. `control` takes the reports of errors that end the job.
    ///
    /// # Errors
    /// The kernel's, when the node's memory cannot be mapped or a thread not made.
    pub fn start(job: &Job, node: NodeId, sockets: Vec<Option<OwnedFd>>, control: OwnedFd) -> io::Result<Self> {
        misuse::report_to(control);
        let cluster = Cluster::join(job.clone(), node, sockets, descriptors::borrow, 0)?;
        let (stop, stopped) = UnixStream::pair()?;
        let thread = std::thread::Builder::new().name("service".to_owned()).spawn(move || serve(&cluster, &stopped))?;
        Ok(Self { thread, stop })
    }

    /// Ends it: all processes of the program, on all nodes, have ended.
    pub fn stop(self) {
        drop(self.stop);
        // A panic of the thread was reported when it happened.
        let _ = self.thread.join();
    }
}

fn serve(cluster: &Cluster, stopped: &UnixStream) {
    let Some(mesh) = &cluster.mesh else { return };
    loop {
        poll(cluster);
        match mesh.wait(None, Some(stopped.as_fd())) {
            Wait::Ready | Wait::TimedOut => {}
            Wait::Also => return,
            Wait::PeerGone(node) => misuse::tell(&Report::PeerLost { node: u32::from(node.0) }),
        }
    }
}

fn handle(cluster: &Cluster, from: NodeId, message: &[u8]) {
    let Some(packet) = wire::parse(message) else { misuse::malformed_message(cluster, from) };
    match packet {
        Packet::Protocol { unit, msg, attached } => {
            if unit.0 as usize >= cluster.shape.pages {
                misuse::malformed_message(cluster, from);
            }
            nest::receive(cluster, from, unit, msg, attached);
        }
        Packet::Request(request) => serve_request(cluster, request),
        Packet::Reply { who, reply, text } => objects::answer_here(cluster, who, reply, text),
    }
}

fn serve_request(cluster: &Cluster, request: Request) {
    match request {
        Request::Object { who, event } => objects::serve(cluster, who, event),
        Request::Thread { who, event } => threads::serve(cluster, who, event),
        Request::Start { who, function, argument } => threads::start_here(cluster, who, function, argument),
        Request::Build { who, build } => objects::answer(cluster, who, Ok((start::remember_build(cluster, build), 0))),
        Request::Stop => threads::stop_here(cluster),
        Request::Heap { who, call, arguments } => memory::serve(cluster, who, call, arguments),
    }
}
