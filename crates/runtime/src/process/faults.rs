//! Page faults: from the signal handler to the protocol's table and back.
//!
//! Runs in the faulting thread, with all signals blocked. It may call what `finespun_sys::faults` lists: the engine
//! allocates nothing, takes only locks in the node's segments (which no thread holds while it runs the program's own
//! code), and touches frames through the engine's mapping only.

use std::cell::Cell;
use std::sync::OnceLock;

use finespun_errors::{Code, Place, Report};
use finespun_sys::faults::{Death, FaultKind};
use finespun_sys::view::Mechanism;
use finespun_sys::{maps, stack};
use finespun_types::{Bucket, Counter, UnitId};

use crate::consistency;
use crate::consistency::policy;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::{hooks, last, meter, misuse, runtime};
use crate::sys::process::exit_now;
use crate::sys::slot::Slot;

/// The process's job, for the handler.
static CLUSTER: OnceLock<&'static Cluster> = OnceLock::new();

/// Serves the faults of this process's view from now on.
///
/// # Errors
/// The kernel's, when the handler cannot be installed.
pub fn install(cluster: &'static Cluster) -> std::io::Result<()> {
    let (_, mapping) = cluster.view.as_ref().expect("only a process of the program has faults");
    CLUSTER.get_or_init(|| cluster);
    finespun_sys::faults::set_window(mapping.window());
    last::prepare();
    finespun_sys::faults::before_death(before_death)?;
    finespun_sys::faults::install(mapping.addresses(), mapping.mechanism(), on_fault)
}

/// A signal is about to end the process: the launcher is left word of it, and the core has the pages that the program could use.
fn before_death(death: Death) {
    let Some(cluster) = CLUSTER.get().filter(|_| !runtime::is_forked()) else { return };
    last::leave_word(cluster, death);
    if let Some((_, mapping)) = cluster.view.as_ref() {
        mapping.put_into_core();
    }
}

fn on_fault(address: usize, kind: FaultKind) -> bool {
    let Some(cluster) = CLUSTER.get() else { return false };
    let Some(unit) = cluster.unit_at(address) else { return false };
    if runtime::is_forked() {
        fault_in_child(address);
    }
    if runtime::is_closed() {
        touched_after_end(cluster, address, kind);
    }
    if stack::has_overflown(address) {
        misuse::stack_overflown(cluster, stack::of_caller().map_or(0, |stack| stack.len()));
    }
    let writes = match kind {
        FaultKind::Read | FaultKind::Unknown => false,
        FaultKind::Write => true,
    };
    serve(cluster, unit, writes);
    if is_often(address) {
        look_at_mapping(cluster, address);
    }
    true
}

/// A child made by fork touched the shared space.
#[cold]
fn fault_in_child(address: usize) -> ! {
    let what = format!("a child made by fork touched shared memory at {address:#x}");
    let report = Report { code: Code::Forked, place: Place::Launcher, what };
    eprintln!("{report}");
    exit_now(Code::Forked.exit_code())
}

/// The program has called fsp_finalize, and touches shared memory.
#[cold]
fn touched_after_end(cluster: &Cluster, address: usize, kind: FaultKind) -> ! {
    let access = match kind {
        FaultKind::Read => "a load from",
        FaultKind::Write => "a store to",
        FaultKind::Unknown => "an access to",
    };
    let what = format!("{access} shared memory, at {address:#x}, after fsp_finalize");
    misuse::end_job(misuse::place(cluster), &Failure { code: Code::NotStarted, what })
}

thread_local! {
    /// Where the thread faulted last, and how often in a row.
    static REPEATED: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
}

/// So many faults at one address, with none elsewhere in between, are looked into: rare in a right program, and soon over in one that
/// faults for ever.
const OFTEN: u32 = 4096;

/// Has the thread faulted at this address [`OFTEN`] times in a row?
#[inline]
fn is_often(address: usize) -> bool {
    let (last, count) = REPEATED.get();
    let count = if last == address { count + 1 } else { 0 };
    REPEATED.set((address, count % OFTEN));
    count == OFTEN
}

/// With userfaultfd the mapping has all rights: if the program took some away, past the C library, the fault comes again whatever is
/// done about it.
#[cold]
fn look_at_mapping(cluster: &Cluster, address: usize) {
    let is_uffd = cluster.view.as_ref().is_some_and(|(_, mapping)| mapping.mechanism() == Mechanism::Uffd);
    if is_uffd && maps::rights_at(address).is_some_and(|rights| rights != maps::Rights::ALL) {
        let what = format!("the rights of shared memory at {address:#x} were changed by a system call");
        misuse::end_job(misuse::place(cluster), &Failure::new(Code::Mapping, what));
    }
}

/// Makes a unit valid in this view, to read or to write: what a fault does, also for buffers of system calls.
pub fn serve(cluster: &Cluster, unit: UnitId, writes: bool) {
    let (bucket, counter) =
        if writes { (Bucket::WriteFault, Counter::WriteFaults) } else { (Bucket::ReadFault, Counter::ReadFaults) };
    let slot = meter::slot(cluster);
    slot.count(counter, 1);
    meter::timed_in(slot, bucket, || serve_untimed(cluster, slot, unit, writes));
    if writes && let Some(told) = hooks::stores() {
        told.opens(unit);
    }
}

fn serve_untimed(cluster: &Cluster, slot: &Slot, unit: UnitId, writes: bool) {
    let since = cluster.mine().tick();
    if policy::fault_seen(cluster, unit, writes, since) {
        return;
    }
    consistency::fault((cluster, slot), unit, writes, since);
}
