//! What a program can ask, as the borders (the C API) call it: release and acquire where they belong, counted and timed.
//!
//! Every function may be called by any thread of the process. Each keeps signal handlers out while it is inside the
//! engine (`finespun_sys::signals`), so that a signal handler of the program, which may touch shared memory, never finds the engine's locks taken by the
//! thread it interrupted.
//!
//! Here: start and end, who am I, phases; `memory`, `objects`, `words`, `sleepers` and `threads` for the rest; `quick` for what needs none of this.

mod foreign;
mod memory;
mod objects;
mod quick;
mod repeats;
mod sleepers;
mod stacks;
mod threads;
mod words;

pub use foreign::{lock_of_one_node, mapping_of_program};
pub use memory::*;
pub use objects::*;
pub use sleepers::*;
pub use threads::*;
pub use words::*;

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::Ordering;

use finespun_errors::Code;
use finespun_sys::process::ErrnoKept;
use finespun_sys::signals::Inside;
use finespun_sys::stack;

use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::runtime::{self, Model, Runtime, runtime};
use crate::node::{hooks, meter, misuse, phases};
use crate::process::end;
use crate::process::stacks::revive;
use crate::process::start::{self, Diagnose, Runners};

/// What a call returns.
pub type Result<T> = std::result::Result<T, Failure>;

/// Starts the runtime; see [`Model`]. `globals` are the addresses of the program's variables if they are to be shared, which
/// only models can where main goes on in one process.
///
/// # Errors
/// Why the process cannot take part.
pub fn start(model: Model, globals: Range<usize>, runners: Runners, diagnose: Diagnose) -> Result<&'static Runtime> {
    start::start(model, globals, runners, diagnose)
}

/// Is there a runtime to call?
#[must_use]
pub fn runs() -> bool {
    runtime::running().is_some()
}

/// Ends the runtime of this process; nothing if it is not running.
pub fn end() {
    stack::on_private(end::end);
}

/// The program has ended the runtime, and goes on: from now on each access to shared memory is an error that is told. Nothing in a process
/// whose runtime has not ended.
pub fn close_memory() {
    stack::on_private(end::close_memory);
}

/// Ends the job with an error of the program.
pub fn fail(failure: &Failure) -> ! {
    let place = runtime().map_or_else(|_| misuse::joined_as(), |runtime| misuse::place(runtime.cluster));
    misuse::end_job(place, failure)
}

/// Ends the job because the program exits, here, with all its threads.
pub fn exit_job(code: i32) {
    if runtime::running().is_some() {
        misuse::tell(&finespun_job::Report::Exited { exit_code: code & 0xff });
    }
}

/// Ends the job because the program says so.
pub fn abort(code: i32, why: &str) -> ! {
    let place = runtime().map_or_else(|_| misuse::joined_as(), |runtime| misuse::place(runtime.cluster));
    misuse::end_job_with(place, &Failure::new(Code::Aborted, why), code.clamp(1, 255))
}

/// Who the caller is and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The caller's node.
    pub node: usize,
    /// Nodes of the job.
    pub nodes: usize,
    /// The caller's processor; a thread that the program made itself has the number of its process's first.
    pub processor: usize,
    /// Processors of the job.
    pub processors: usize,
    /// Processors on each node.
    pub per_node: usize,
    /// The caller's process.
    pub process: usize,
    /// Processes of the job.
    pub processes: usize,
}

/// See [`Identity`].
///
/// # Errors
/// [`Code::NotStarted`], [`Code::Forked`].
pub fn identity() -> Result<Identity> {
    let cluster = runtime()?.cluster;
    let shape = &cluster.shape;
    let first = usize::from(cluster.my_view().0) * shape.threads;
    let slot = meter::slot_index().filter(|slot| *slot < shape.processors_per_node()).unwrap_or(first);
    Ok(Identity {
        node: usize::from(cluster.me.0),
        nodes: shape.nodes,
        processor: cluster.processor_at(slot).0 as usize,
        processors: shape.processors(),
        per_node: shape.processors_per_node(),
        process: usize::from(cluster.me.0) * shape.views + usize::from(cluster.my_view().0),
        processes: shape.nodes * shape.views,
    })
}

/// The caller's processor; `None` for a thread that is none.
#[must_use]
pub fn own_processor() -> Option<usize> {
    let cluster = runtime().ok()?.cluster;
    let slot = meter::slot_index().filter(|slot| *slot < cluster.shape.processors_per_node())?;
    Some(cluster.processor_at(slot).0 as usize)
}

/// The engine, entered by a call of the program.
struct Entered {
    runtime: &'static Runtime,
    cluster: &'static Cluster,
    slot: usize,
    _signals: Inside,
    /// What waits makes system calls that fail in the ordinary course of things; the program's `errno` is its own.
    _errno: ErrnoKept,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.cluster.flush_messages();
    }
}

/// Runs a call of the program inside the engine. Everything here stands on the private stack of a thread whose own is shared
/// (`finespun_sys::stack`), and refers to nothing on the other: that it is `'static` says so.
fn inside<R: 'static>(body: impl FnOnce(&Entered) -> Result<R> + 'static) -> Result<R> {
    hooks::before_release();
    stack::on_private(move || {
        let result = enter().and_then(|entered| body(&entered));
        revive();
        result
    })
}

/// The same as the thread of this slot.
fn inside_slot(runtime: &'static Runtime, slot: usize, body: fn(&Entered)) {
    stack::on_private(move || {
        body(&enter_slot(runtime, slot));
        revive();
    });
}

fn enter() -> Result<Entered> {
    let runtime = runtime()?;
    let mut entered = enter_slot(runtime, 0);
    entered.slot = match meter::slot_index() {
        Some(slot) => slot,
        None => adopt(runtime.cluster)?,
    };
    Ok(entered)
}

/// Enters as the thread of this slot.
fn enter_slot(runtime: &'static Runtime, slot: usize) -> Entered {
    Entered { runtime, cluster: runtime.cluster, slot, _errno: ErrnoKept::new(), _signals: Inside::new() }
}

/// Gives a thread that the program made itself a slot to wait in.
fn adopt(cluster: &'static Cluster) -> Result<usize> {
    several_threads_now(cluster);
    let Some(slot) = cluster.take_guest_slot() else {
        let what = "more threads of the program's own call the library at once than a node has room for (31)";
        return Err(Failure::new(Code::Argument, what));
    };
    meter::become_slot(slot);
    GUEST.set(Some(Guest { cluster, slot }));
    Ok(slot)
}

thread_local! {
    /// Gives the thread's slot back when the thread ends.
    static GUEST: Cell<Option<Guest>> = const { Cell::new(None) };
}

/// A slot taken by a thread that the program made itself.
struct Guest {
    cluster: &'static Cluster,
    slot: usize,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.cluster.give_guest_slot(self.slot);
    }
}

fn several_threads_now(cluster: &Cluster) {
    cluster.mine().view(cluster.my_view()).several_threads.store(1, Ordering::SeqCst);
}

/// The program is about to make a thread of its own, perhaps before the start: from now on nothing may be skipped at a
/// release.
pub fn note_own_thread() {
    runtime::note_own_threads();
    if let Some(runtime) = runtime::running() {
        several_threads_now(runtime.cluster);
    }
}

/// From now on this is called before each call of the program that may release: what the program keeps in private memory for
/// others can go where they see it.
pub fn on_release(function: extern "C" fn()) {
    hooks::set_release(function);
}

/// Opens a phase of the program, for reports.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn begin_phase(name: &str) -> Result<()> {
    let cluster = runtime()?.cluster;
    meter::collect_calls(cluster);
    phases::begin(meter::slot(cluster), name);
    Ok(())
}

/// Closes the last phase opened.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn end_phase() -> Result<()> {
    let cluster = runtime()?.cluster;
    meter::collect_calls(cluster);
    phases::end(meter::slot(cluster));
    Ok(())
}
