//! Buffers of system calls. The kernel reads and writes a buffer through the program's own mapping, but where a load or
//! store would fault and be served, the call fails with `EFAULT` (docs/kernel.md section 3). So the border lets the
//! kernel work on private memory and copies between that and the shared space with loads and stores, which fault
//! as any do. What is here tells which buffers need it, and spares the copy most of its faults.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use finespun_sys::signals::Inside;
use finespun_sys::stack;
use finespun_types::{Access, Counter, UnitId};

use crate::consistency::units;
use crate::node::cluster::Cluster;
use crate::node::{meter, runtime};
use crate::process::faults;

/// The shared space of this process; empty while the runtime is not running. Relaxed: whoever has a pointer into the
/// space got it after `opened`, and a stale answer after `closed` only costs time.
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
/// The program's globals, if they are shared or watched.
static GLOBALS_START: AtomicUsize = AtomicUsize::new(0);
static GLOBALS_END: AtomicUsize = AtomicUsize::new(0);

/// Buffers in these addresses are shared from now on.
pub(crate) fn opened(space: Range<usize>, globals: Range<usize>) {
    GLOBALS_START.store(globals.start, Ordering::Relaxed);
    GLOBALS_END.store(globals.end, Ordering::Relaxed);
    START.store(space.start, Ordering::Relaxed);
    END.store(space.end, Ordering::Relaxed);
}

/// So are buffers in these, the program's private variables: nobody but this process's own loads and stores is served there.
pub(crate) fn watched(variables: Range<usize>) {
    GLOBALS_START.store(variables.start, Ordering::Relaxed);
    GLOBALS_END.store(variables.end, Ordering::Relaxed);
}

/// The runtime has ended.
pub(crate) fn closed() {
    END.store(0, Ordering::Relaxed);
    GLOBALS_END.store(0, Ordering::Relaxed);
}

/// Does any byte of the buffer lie in the shared space? A few loads; right at any time: before the start and after the end
/// nothing is shared. A child made by fork is told yes, so that it touches the space and gets the error for that.
#[inline]
#[must_use]
pub fn is_shared(address: usize, bytes: usize) -> bool {
    let end = address.saturating_add(bytes);
    let overlaps = |from: &AtomicUsize, to: &AtomicUsize| {
        address < to.load(Ordering::Relaxed) && end > from.load(Ordering::Relaxed)
    };
    bytes > 0 && (overlaps(&START, &END) || overlaps(&GLOBALS_START, &GLOBALS_END))
}

/// Makes the pages of a buffer valid in this process, to read or to write, as they would become by being touched, but
/// without a signal for each. Only to save time: another thread may take pages away again before they are used. Pages
/// outside the shared space are left alone; so is everything when the runtime is not running.
pub fn prepare(address: usize, bytes: usize, writes: bool) {
    let Some(runtime) = runtime::running() else { return };
    if is_shared(address, bytes) {
        meter::count(runtime.cluster, Counter::BuffersPrepared, 1);
        stack::on_private(move || make_valid(address, bytes, writes));
    }
}

/// The same, on a private stack, of addresses in the shared space.
pub(crate) fn make_valid(address: usize, bytes: usize, writes: bool) {
    let Some(runtime) = runtime::running() else { return };
    let cluster = runtime.cluster;
    let _signals = Inside::new();
    let needed = if writes { Access::Write } else { Access::Read };
    for unit in units_of(cluster, address, bytes) {
        if units::access(cluster, unit) < needed {
            faults::serve(cluster, unit, writes);
        }
    }
}

/// The units that a buffer lies in.
fn units_of(cluster: &Cluster, address: usize, bytes: usize) -> impl Iterator<Item = UnitId> {
    let size = cluster.shape.unit.bytes();
    let starts = (address - address % size..address.saturating_add(bytes)).step_by(size);
    starts.filter_map(|start| cluster.unit_at(start))
}
