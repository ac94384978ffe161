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

/// Addresses, or none. Relaxed: a thread that has a pointer to them got it after they were set, and a stale answer after they were cleared
/// only costs time.
struct Addresses {
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Addresses {
    const fn none() -> Self {
        Self { start: AtomicUsize::new(0), end: AtomicUsize::new(0) }
    }

    fn set(&self, addresses: &Range<usize>) {
        self.start.store(addresses.start, Ordering::Relaxed);
        self.end.store(addresses.end, Ordering::Relaxed);
    }

    fn clear(&self) {
        self.end.store(0, Ordering::Relaxed);
    }

    #[inline]
    fn overlap(&self, start: usize, end: usize) -> bool {
        start < self.end.load(Ordering::Relaxed) && end > self.start.load(Ordering::Relaxed)
    }
}

/// The shared space of this process, while the runtime is running.
static SPACE: Addresses = Addresses::none();
/// The program's globals, if they are shared or watched.
static GLOBALS: Addresses = Addresses::none();

/// Buffers in these addresses are shared from now on.
pub(crate) fn opened(space: &Range<usize>, globals: &Range<usize>) {
    GLOBALS.set(globals);
    SPACE.set(space);
}

/// So are buffers in these, the program's private variables: nobody but this process's own loads and stores is served there.
pub(crate) fn watched(variables: &Range<usize>) {
    GLOBALS.set(variables);
}

/// The runtime has ended.
pub(crate) fn closed() {
    SPACE.clear();
    GLOBALS.clear();
}

/// Does any byte of the buffer lie in the shared space? A few loads; right at any time: before the start and after the end
/// nothing is shared. A child made by fork is told yes, so that it touches the space and gets the error for that.
#[inline]
#[must_use]
pub fn is_shared(address: usize, bytes: usize) -> bool {
    let end = address.saturating_add(bytes);
    bytes > 0 && (SPACE.overlap(address, end) || GLOBALS.overlap(address, end))
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
    let unit = cluster.shape.unit;
    let starts = (address - unit.within(address)..address.saturating_add(bytes)).step_by(unit.bytes());
    starts.filter_map(|start| cluster.unit_at(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_overlaps_if_any_byte_of_it_lies_inside() {
        let addresses = Addresses::none();
        assert!(!addresses.overlap(0, usize::MAX), "none");
        addresses.set(&(4096..8192));
        let overlap = |start: usize, bytes: usize| addresses.overlap(start, start.saturating_add(bytes));
        assert!(overlap(4096, 1) && overlap(8191, 1) && overlap(4095, 2) && overlap(0, usize::MAX));
        assert!(!overlap(4095, 1) && !overlap(8192, 1));
        addresses.clear();
        assert!(!overlap(4096, 4096));
    }
}
