//! Errors that end the job, and where they go.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;

use finespun_errors::{Code, Place, Report};
use finespun_job::Report as Line;
use finespun_types::{Access, NodeId, UnitId};

use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::{meter, names, runtime};
use crate::sys::descriptors;

/// The stream to the node's service process; none when the process is the whole job.
static CONTROL: OnceLock<UnixStream> = OnceLock::new();

/// Who this process is, from the moment it knows.
static JOINED_AS: OnceLock<Place> = OnceLock::new();

/// The process joins as this.
pub fn join_as(place: Place) {
    // A second call is a second start, which is refused before it gets here.
    let _ = JOINED_AS.set(place);
}

/// Who the process is, before its runtime runs and after.
pub fn joined_as() -> Place {
    JOINED_AS.get().cloned().unwrap_or(Place::Launcher)
}

/// Where reports go from now on.
pub fn report_to(control: OwnedFd) {
    // A second call is a second start, which is refused before it gets here.
    let _ = CONTROL.set(control.into());
}

/// Tells the service process something; without one there is nobody to tell.
pub fn tell(line: &Line) {
    let Some(mut control) = CONTROL.get() else { return };
    if let Ok(mut text) = serde_json::to_vec(line) {
        text.push(b'\n');
        match control.write_all(&text) {
            Err(error) if is_not_open(&error) => without_stream(),
            // If the other side is gone the job is ending, and this process with it.
            Ok(()) | Err(_) => {}
        }
    }
}

/// How long the node may take to end a process that has closed its stream.
const SEEN: Duration = Duration::from_secs(5);

/// The program has closed the stream. The node has seen that, and the launcher is about to say it, once for the job, and to end it; only
/// where neither is so it is said here.
#[cold]
fn without_stream() -> ! {
    if JOINED_AS.get().is_some() {
        std::thread::sleep(SEEN);
    }
    let what = "the program has closed the descriptors of the job by system calls of its own".to_owned();
    let report = Report { code: Code::Closed, place: joined_as(), what };
    // One write, so that the other processes' are not mixed with it.
    let _ = std::io::stderr().write_all(format!("{report}\n").as_bytes());
    crate::sys::process::exit_now(Code::Closed.exit_code())
}

/// Does the error say that a descriptor of ours is closed?
fn is_not_open(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(crate::sys::descriptors::NOT_OPEN)
}

/// Ends the job with this error: one message, from the launcher, or from here where there is none.
pub fn end_job(place: Place, failure: &Failure) -> ! {
    end_job_with(place, failure, failure.code.exit_code())
}

/// Ends the job with this error and this exit code.
pub fn end_job_with(place: Place, failure: &Failure, exit_code: i32) -> ! {
    let report = Report { code: failure.code, place, what: failure.what.clone() };
    take_inherited_control();
    // A child made by fork has the stream, but is no part of the job: its end is its parent's business.
    if CONTROL.get().is_some() && !runtime::is_forked() {
        let image = runtime::started().map_or(0, |runtime| runtime.program.image.start as u64);
        tell(&Line::Failed { message: report.to_string(), exit_code, image });
    } else {
        eprintln!("{report}");
    }
    crate::sys::process::exit_now(exit_code)
}

/// An error before the process has joined: the stream is still where the launcher has put it. All processes are about to
/// make the same mistake, and only the launcher can say it once.
fn take_inherited_control() {
    if CONTROL.get().is_none() && JOINED_AS.get().is_none() {
        let number = std::env::var(finespun_job::ENV_CONTROL).ok().and_then(|text| text.parse().ok());
        if let Some(control) = number.and_then(descriptors::own) {
            report_to(control);
        }
    }
}

/// Where the caller stands, for messages.
pub fn place(cluster: &Cluster) -> Place {
    let node = u32::from(cluster.me.0);
    match (&cluster.view, meter::slot_index()) {
        (None, _) => Place::Node(node),
        (Some((view, _)), slot) => {
            let slot = slot.unwrap_or(usize::from(view.0) * cluster.shape.threads);
            names::place(node, cluster.processor_at(slot).0)
        }
    }
}

/// A table has no row for what happened.
#[cold]
pub fn bug(cluster: &Cluster, unit: UnitId, node: NodeId, impossible: &dyn std::fmt::Debug) -> ! {
    let what = format!("unit {} at node {}: {impossible:?}", unit.0, node.0);
    end_job(place(cluster), &Failure { code: Code::Bug, what })
}

/// What came with a message is not what the message needs.
#[cold]
pub fn malformed(cluster: &Cluster, unit: UnitId, node: NodeId) -> ! {
    let what =
        format!("a message about unit {} reached node {} without its page, or with a malformed diff", unit.0, node.0);
    end_job(place(cluster), &Failure { code: Code::Bug, what })
}

/// A message from another node cannot be read.
#[cold]
pub fn malformed_message(cluster: &Cluster, from: NodeId) -> ! {
    let what = format!("a message from node {} could not be read", from.0);
    end_job(place(cluster), &Failure { code: Code::Bug, what })
}

/// The queue to another node is full: it has not received for a long time.
#[cold]
pub fn queue_full(cluster: &Cluster, to: NodeId) -> ! {
    let what = format!("node {} has stopped receiving: the queue of messages to it is full", to.0);
    end_job(place(cluster), &Failure { code: Code::Unreachable, what })
}

/// A fault in the guard of the calling thread's shared stack, of so many bytes.
#[cold]
pub fn stack_overflown(cluster: &Cluster, bytes: usize) -> ! {
    let what = format!("the thread's stack of {} KiB, in shared memory, has overflown", bytes >> 10);
    end_job(place(cluster), &Failure { code: Code::StackOverflow, what })
}

/// The kernel refused to change a mapping.
#[cold]
pub fn mapping(cluster: &Cluster, unit: UnitId, access: Access, error: &std::io::Error) -> ! {
    let what = format!("the mapping of unit {} could not be made {access:?}: {error}", unit.0);
    let code = if is_not_open(error) { Code::Closed } else { Code::Machine };
    end_job(place(cluster), &Failure { code, what })
}
