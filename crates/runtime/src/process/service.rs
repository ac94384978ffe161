//! The node's service process: receives messages when no process of the program does, asleep in the kernel until one arrives.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use finespun_errors::Code;
use finespun_job::switches::{Receive, Server};
use finespun_job::{Job, Report};
use finespun_sys::sigio;
use finespun_transport::Wait;
use finespun_types::{Counter, NodeId};

use crate::messages::poll::{poll, receive};
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::{limits, meter, misuse, names};
use crate::process::dispatch;
use crate::sys::descriptors;

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
        let cluster = Cluster::join(job.clone(), node, sockets, descriptors::borrow, dispatch::message, 0)
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
    let waiter = mesh.waiter(stopped.as_fd()).unwrap_or_else(|error| cannot_watch(cluster, &error));
    loop {
        poll(cluster);
        meter::collect_calls(cluster);
        match waiter.sleep() {
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
    let announced = mesh.announced().unwrap_or_else(|| no_signals(cluster, &io::ErrorKind::Unsupported.into()));
    let on_input = move || while receive(cluster, &**mesh, true) > 0 {};
    sigio::install(Box::new(on_input)).unwrap_or_else(|error| no_signals(cluster, &error));
    announced
        .connections()
        .into_iter()
        .try_for_each(sigio::announce)
        .unwrap_or_else(|error| no_signals(cluster, &error));
    on_input(); // what came before the first signal could
    let mut counted = 0;
    loop {
        mesh.flush();
        if let Some(node) = mesh.take_gone() {
            misuse::tell(&Report::PeerLost { node: u32::from(node.0) });
            continue;
        }
        // Alone, the service has seen the last of everything.
        let is_left = cluster.job.switches.server == Server::Concurrent && announced.has_input();
        let slept = sigio::sleep([stopped.as_fd(), announced.room()], is_left.then_some(LEFT_BEHIND));
        let [is_stopped, has_room] = slept.unwrap_or_else(|error| no_signals(cluster, &error));
        if is_stopped {
            return;
        }
        if has_room {
            announced.take_room();
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
