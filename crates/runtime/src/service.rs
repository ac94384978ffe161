//! Serving what other nodes ask by messages. Any process of the node may: who waits, polls. When all compute, the
//! node's service process, asleep in the kernel, is woken by what arrives.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use finespun_errors::Code;
use finespun_job::switches::{Receive, Server};
use finespun_job::{Job, Report};
use finespun_sys::clock::ticks;
use finespun_sys::{calls, sigio};
use finespun_transport::{Mesh, Wait};
use finespun_types::{Counter, NodeId};

use crate::cluster::Cluster;
use crate::consistency::along::{self, Told};
use crate::failure::Failure;
use crate::sys::descriptors;
use crate::wire::{self, Packet, Request};
use crate::{closing, consistency, limits, locks, memory, meter, misuse, names, objects, start, threads};

/// Handles what has arrived, if nodes send messages at all, and this process is one that handles them.
pub fn poll(cluster: &Cluster) {
    let Some(mesh) = &cluster.mesh else { return };
    let Some(_busy) = closing::enter() else { return };
    let is_service = cluster.view.is_none();
    if is_service || cluster.job.switches.server == Server::Concurrent {
        receive(cluster, mesh, is_service);
    }
    if mesh.pending() > 0 {
        mesh.flush();
    }
}

/// Handles what is there; how many messages that were.
fn receive(cluster: &Cluster, mesh: &Mesh, is_service: bool) -> usize {
    let began = ticks();
    let handled = mesh.poll(&mut |from, message| handle(cluster, from, message));
    if handled > 0 {
        let by = if is_service { Counter::HandledByService } else { Counter::HandledByWaiters };
        meter::count(cluster, by, handled as u64);
        mesh.flush();
        meter::served(cluster, ticks().wrapping_sub(began));
    }
    handled
}

/// Bytes queued for other nodes beyond which nobody begins anything new. What is left of the queues is for answers.
const QUEUED_MAX: usize = 4 << 20;

/// Waits while much is queued for other nodes, serving what arrives: others may wait likewise for us.
pub fn await_room(cluster: &Cluster) {
    let Some(mesh) = &cluster.mesh else { return };
    while mesh.pending() > QUEUED_MAX {
        poll(cluster);
        calls::one();
        std::thread::yield_now();
    }
}

/// A waiting process that receives may leave before it has seen the last of what came, and no second signal tells of that:
/// how long the service lets it.
const LEFT_BEHIND: Duration = Duration::from_millis(1);

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
        names::count(job.processors() as usize);
        let cluster = Cluster::join(job.clone(), node, sockets, descriptors::borrow, 0)
            .map_err(|error| io::Error::other(limits::refused(&limits::mapping(job, false), &error)))?;
        // One for a process, and it lives as long.
        let cluster: &'static Cluster = Box::leak(Box::new(cluster));
        let (stop, stopped) = UnixStream::pair()?;
        let serve = match job.switches.receive {
            Receive::Poll => serve,
            Receive::Signal => serve_by_signal,
        };
        let thread = std::thread::Builder::new().name("service".to_owned()).spawn(move || serve(cluster, &stopped))?;
        Ok(Self { thread, stop })
    }

    /// Ends it: all processes of the program, on all nodes, have ended.
    pub fn stop(self) {
        drop(self.stop);
        // A panic of the thread was reported when it happened.
        let _ = self.thread.join();
    }
}

fn serve(cluster: &'static Cluster, stopped: &UnixStream) {
    let Some(mesh) = &cluster.mesh else { return };
    let waiter = mesh.waiter(stopped.as_fd()).unwrap_or_else(|error| cannot_watch(cluster, &error.into()));
    loop {
        poll(cluster);
        meter::collect_calls(cluster);
        match waiter.wait() {
            Wait::Ready | Wait::TimedOut => {}
            Wait::Also => return,
            Wait::PeerGone(node) => misuse::tell(&Report::PeerLost { node: u32::from(node.0) }),
        }
    }
}

/// The same where the kernel announces input by SIGIO, whose handler receives: the signals interrupt nothing but the sleep of
/// this thread.
fn serve_by_signal(cluster: &'static Cluster, stopped: &UnixStream) {
    let Some(mesh) = &cluster.mesh else { return };
    let on_input = move || while receive(cluster, mesh, true) > 0 {};
    sigio::install(Box::new(on_input)).unwrap_or_else(|error| no_signals(cluster, &error));
    mesh.connections().try_for_each(sigio::announce).unwrap_or_else(|error| no_signals(cluster, &error));
    on_input(); // what came before the first signal could
    let mut counted = 0;
    loop {
        mesh.flush();
        if let Some(node) = mesh.take_gone() {
            misuse::tell(&Report::PeerLost { node: u32::from(node.0) });
            continue;
        }
        // Alone, the service has seen the last of everything.
        let is_left = cluster.job.switches.server == Server::Concurrent && mesh.has_input();
        let slept = sigio::sleep([stopped.as_fd(), mesh.room()], is_left.then_some(LEFT_BEHIND));
        let [is_stopped, has_room] = slept.unwrap_or_else(|error| no_signals(cluster, &error));
        if is_stopped {
            return;
        }
        if has_room {
            mesh.take_room();
        }
        if is_left {
            on_input();
        }
        meter::collect_calls(cluster);
        let taken = sigio::taken();
        meter::count(cluster, Counter::SignalsTaken, taken - counted);
        counted = taken;
    }
}

fn cannot_watch(cluster: &Cluster, error: &io::Error) -> ! {
    let what = format!("the connections to the other nodes could not be watched: {error}");
    misuse::end_job(misuse::place(cluster), &Failure { code: Code::Machine, what })
}

fn no_signals(cluster: &Cluster, error: &io::Error) -> ! {
    let what = format!("input could not be announced by signals: {error}");
    misuse::end_job(misuse::place(cluster), &Failure { code: Code::Machine, what })
}

fn handle(cluster: &Cluster, from: NodeId, message: &[u8]) {
    let Some(packet) = wire::parse(message) else { misuse::malformed_message(cluster, from) };
    match packet {
        Packet::Letter(letter) => consistency::receive(cluster, from, letter),
        Packet::Joined(letters) => consistency::receive_joined(cluster, from, letters),
        Packet::Request { request, along } => {
            let told = along::take_request(cluster, from, &request, along);
            serve_request(cluster, request, &told);
        }
        Packet::Reply { who, reply, about, contents } => {
            along::take_reply(cluster, from, reply, about, contents);
            objects::answer_here(cluster, who, reply, contents);
        }
    }
}

fn serve_request(cluster: &Cluster, request: Request, told: &Told) {
    match request {
        Request::Object { who, event } => objects::serve(cluster, who, event, told),
        Request::Migratory { mutex, message } => locks::receive(cluster, mutex, message),
        Request::Thread { who, event } => threads::serve(cluster, who, event),
        Request::Start { who, function, argument, thread } => {
            threads::start_here(cluster, who, (function, argument), thread)
        }
        Request::Build { who, build } => objects::answer(cluster, who, Ok((start::remember_build(cluster, build), 0))),
        Request::Stop => threads::stop_here(cluster),
        Request::Heap { who, call, arguments } => memory::serve(cluster, who, call, arguments),
        Request::Touched { who, start, end } => memory::serve_touched(cluster, who, start..end),
    }
}
