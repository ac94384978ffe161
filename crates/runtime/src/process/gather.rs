//! How the processes of a program of threads come to share one table of descriptors, on one host: what is opened in any is open in all,
//! with one offset, and closed in all.
//!
//! A process that was executed has a table of its own, for ever. So the processes that the nodes have started come here, give what they were
//! given to that of processor 0, and end; and that makes a sibling in the place of each (`finespun_sys::sibling`), before any thread runs:
//!
//! ```text
//!   process of node n --Moving--> node n                     (its end is not the view's)
//!                     --Member, descriptors--> process of processor 0
//!                                              makes a sibling: of its own parent, node 0
//!   node n <--Moved(pid)-- sibling, on the stream of the process that it replaces
//! ```
//!
//! A sibling is no child of its node's: that it has ended it hears by way of node 0 and the launcher (`launch/src/node.rs`).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use finespun_errors::Code;
use finespun_job::{Member, NodeMemory, Report};
use finespun_sys::process::Cores;
use finespun_sys::{descriptors as numbers, passing};
use finespun_types::{NodeId, ViewId};

use crate::node::failure::Failure;
use crate::node::misuse;
use crate::process::inherited::Inherited;
use crate::sys::{descriptors, process as own_process, siblings};

/// What a process goes on with, as who it is.
pub type GoOn<C> = fn(Inherited, C) -> !;

/// The stream to the node, and its memory.
const FIXED: usize = 3;

/// Returns in processor 0's process, once there is a sibling for each other; the siblings run `go_on`.
///
/// # Errors
/// [`Code::Machine`].
pub fn together<C: Copy>(inherited: Inherited, go_on: GoOn<C>, with: C) -> Result<Inherited, Failure> {
    let Some([read, written]) = inherited.job.gathering else { return Ok(inherited) };
    if (inherited.node, inherited.view) != (NodeId(0), ViewId(0)) {
        move_over(inherited, written)?;
        own_process::exit_now(0);
    }
    match make_all(&inherited, read, go_on, with) {
        Ok(()) => Ok(inherited),
        Err(failure) => {
            inherited.control.into_iter().for_each(misuse::report_to);
            Err(failure)
        }
    }
}

fn failed(error: std::io::Error) -> Failure {
    Failure::new(
        Code::Machine,
        format!("the processes of the program could not be made one by their descriptors: {error}"),
    )
}

/// Gives processor 0's process all that makes this process what it is.
fn move_over(inherited: Inherited, written: i32) -> Result<(), Failure> {
    let own = inherited.job.memory[usize::from(inherited.node.0)];
    let Some(control) = inherited.control else { return Ok(()) };
    let member = Member {
        node: inherited.node.0.into(),
        view: inherited.view.0.into(),
        peers: inherited.sockets.iter().map(Option::is_some).collect(),
        cores: Cores::allowed().map_err(failed)?.numbers(),
    };
    let text = serde_json::to_vec(&member).map_err(|error| failed(error.into()))?;
    let mut list = vec![control.as_raw_fd(), own.frames, own.segment];
    list.extend(inherited.sockets.iter().flatten().map(AsRawFd::as_raw_fd));
    misuse::report_to(control.try_clone().map_err(failed)?);
    misuse::tell(&Report::Moving);
    passing::send(descriptors::borrow(written), &text, &list).map_err(failed)
}

fn make_all<C: Copy>(first: &Inherited, read: i32, go_on: GoOn<C>, with: C) -> Result<(), Failure> {
    numbers::keep_together().map_err(failed)?;
    let processes = (first.job.nodes * first.job.views) as usize;
    for number in 1..processes {
        let (text, list) = passing::receive(descriptors::borrow(read).as_fd()).map_err(failed)?;
        let member: Member = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        let given = Given { inherited: as_member(first, &member, list)?, cores: member.cores, go_on, with };
        siblings::make(number, begin, given).map_err(failed)?;
    }
    Ok(())
}

/// What a sibling begins with.
struct Given<C> {
    inherited: Inherited,
    cores: Vec<u32>,
    go_on: GoOn<C>,
    with: C,
}

fn begin<C>(mut given: Given<C>) -> ! {
    // A core that has gone meanwhile is no reason not to run.
    let _ = Cores::of(&given.cores).stay();
    given.inherited.control.take().into_iter().for_each(misuse::report_to);
    misuse::tell(&Report::Moved { pid: std::process::id() });
    (given.go_on)(given.inherited, given.with)
}

/// What the process was given that is `member`, under the numbers that its descriptors have here.
fn as_member(first: &Inherited, member: &Member, list: Vec<OwnedFd>) -> Result<Inherited, Failure> {
    let list = list.into_iter().map(numbers::aside).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    list.iter().for_each(|fd| numbers::keep(fd.as_raw_fd()));
    let expected = FIXED + member.peers.iter().filter(|is_there| **is_there).count();
    if list.len() != expected {
        return Err(failed(std::io::ErrorKind::InvalidData.into()));
    }
    let mut list = list.into_iter();
    let [control, frames, segment] = [list.next(), list.next(), list.next()];
    let mut job = first.job.clone();
    if let (Some(frames), Some(segment)) = (frames, segment) {
        job.memory[member.node as usize] = NodeMemory { frames: frames.as_raw_fd(), segment: segment.as_raw_fd() };
        // They live as long as the process.
        std::mem::forget((frames, segment));
    }
    let sockets = member.peers.iter().map(|is_there| is_there.then(|| list.next()).flatten()).collect();
    Ok(Inherited { job, node: NodeId::of(member.node as usize), view: ViewId(member.view as u8), sockets, control })
}
