//! The shared heap, as a program asks for it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use finespun_engine::allocation::Call;
use finespun_errors::{Code, bytes};
use finespun_heap::Policy;
use finespun_types::{Bucket, NodeId, PAGE_BYTES};

use super::{Result, inside};
use crate::consistency;
use crate::consistency::units;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::meter;
use crate::node::runtime::{self, Model, running};
use crate::sync::barrier;
use crate::sync::memory;
use crate::sync::touched::Walk;

/// Where the caller wants homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// At whoever touches a page first.
    FirstTouch,
    /// At this node.
    Node(usize),
    /// Dealt to the nodes in blocks of so many bytes.
    Dealt(u64),
}

/// New memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Its address.
    pub address: usize,
    /// How many of its bytes, from the first on, may hold what an earlier allocation left there. The others are zero.
    pub reused: usize,
}

/// Allocates. Acquires, as [`free`] releases: memory may come from another node, whose last stores to it must
/// neither arrive later nor be missing from this node's copy, against which its diffs are made.
///
/// # Errors
/// [`Code::HeapExhausted`], [`Code::Argument`].
pub fn allocate(size: u64, align: u64, home: Home) -> Result<Allocated> {
    inside(move |entered| {
        let policy = match home {
            Home::FirstTouch => Policy::FirstTouch,
            Home::Node(node) if node < entered.cluster.shape.nodes => Policy::On(NodeId::of(node)),
            Home::Node(node) => {
                let what = format!("fsp_malloc_on: node {node} of {}", entered.cluster.shape.nodes);
                return Err(Failure { code: Code::Argument, what });
            }
            Home::Dealt(block) if block <= entered.cluster.job.heap_bytes => {
                memory::dealt(block, entered.cluster.shape.unit)
            }
            Home::Dealt(block) => {
                let heap = bytes(entered.cluster.job.heap_bytes);
                let what = format!("fsp_malloc_distributed: blocks of {block} bytes, in a shared heap of {heap}");
                return Err(Failure { code: Code::Argument, what });
            }
        };
        let call = Call::Allocate { size, align, policy, node: entered.cluster.me };
        let (offset, reused) = memory::call(entered.cluster, entered.slot, call)?;
        consistency::acquire(entered.cluster);
        Ok(Allocated { address: base(entered.cluster) + offset as usize, reused: reused as usize })
    })
}

/// Allocates together with all processes of an SPMD program, which make the same calls in the same order: one address for all. In the
/// main model the memory is the caller's alone. Only one process has something to clear; [`meet`] comes next.
///
/// # Errors
/// [`Code::HeapExhausted`]; [`Code::Argument`] when processes disagree about the size.
pub fn allocate_together(size: u64) -> Result<Allocated> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    inside(move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        if entered.runtime.model != Model::Spmd {
            return allocate(size, PAGE_BYTES as u64, Home::FirstTouch);
        }
        let number = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
        let (offset, reused) = memory::call(cluster, slot, Call::Together { number, size })?;
        consistency::acquire(cluster);
        let clears = cluster.me == NodeId(0) && cluster.my_view().0 == 0;
        Ok(Allocated { address: base(cluster) + offset as usize, reused: if clears { reused as usize } else { 0 } })
    })
}

/// A walk over shared memory in whose pages something may be. Pages that no node has touched are passed over.
#[derive(Debug)]
pub struct Touched {
    addresses: Range<usize>,
    walk: Option<(usize, Walk)>,
}

/// Over these addresses, all of one allocation.
#[must_use]
pub const fn touched(addresses: Range<usize>) -> Touched {
    Touched { addresses, walk: None }
}

impl Touched {
    /// The next part in which something may be; what lies before it, from the last part on, is zero. `None` behind the last.
    ///
    /// # Errors
    /// [`Code::NotStarted`].
    pub fn next_part(&mut self) -> Result<Option<Range<usize>>> {
        let (addresses, walk) = (self.addresses.clone(), self.walk);
        let (walk, part) = inside(move |entered| {
            let Some((from, mut walk)) = walk.or_else(|| start_walk(entered.cluster, &addresses)) else {
                return Ok((None, None));
            };
            let run = memory::next_touched(entered.cluster, Some(entered.slot), &mut walk)?;
            let unit = entered.cluster.shape.unit;
            let address = |number: u32| from + unit.bytes_of(number as usize);
            let part = run.map(|run| address(run.start).max(addresses.start)..address(run.end).min(addresses.end));
            Ok((Some((from, walk)), part))
        })?;
        self.walk = walk;
        Ok(part)
    }
}

/// Where the addresses of the units are counted from, and the walk over those in which `addresses` lie.
fn start_walk(cluster: &Cluster, addresses: &Range<usize>) -> Option<(usize, Walk)> {
    let unit_at = |address| cluster.shape.unit.at(offset(cluster, address)?);
    let (first, last) = (unit_at(addresses.start)?, unit_at(addresses.end.checked_sub(1)?)?);
    Some((base(cluster), Walk::over(first.0..last.0 + 1)))
}

/// A zeroed block that every process of a program in the model of threads finds by itself. Main makes it, by the first
/// call of all; one block, of one size.
///
/// # Errors
/// [`Code::HeapExhausted`], [`Code::NotStarted`].
pub fn block_of_all(size: u64) -> Result<usize> {
    inside(move |entered| {
        // Collective allocations, whose numbers these are, are for SPMD programs; the first is the globals (crate::process::globals).
        let call = Call::Together { number: 2, size };
        let (offset, _) = memory::call(entered.cluster, entered.slot, call)?;
        Ok(base(entered.cluster) + offset as usize)
    })
}

/// Waits for all processes of an SPMD program; releases and acquires. Nothing in the main model.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn meet() -> Result<()> {
    inside(move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        if entered.runtime.model == Model::Spmd {
            consistency::release(cluster);
            meter::timed(cluster, Bucket::BarrierWait, || barrier::arrive_together(cluster, slot))?;
            consistency::acquire(cluster);
        }
        Ok(())
    })
}

/// Gives an allocation back. Releases: what this view stored there must be at its home before another node's stores.
///
/// # Errors
/// [`Code::BadFree`].
pub fn free(address: usize) -> Result<()> {
    inside(move |entered| {
        let result = match heap_offset(entered.cluster, address) {
            Some(offset) => {
                consistency::release(entered.cluster);
                memory::call(entered.cluster, entered.slot, Call::Free { offset }).map(|_| ())
            }
            None => Err(Failure::new(Code::BadFree, "it lies outside the shared heap")),
        };
        result.map_err(|failure| Failure { what: format!("fsp_free({address:#x}): {}", failure.what), ..failure })
    })
}

/// The usable bytes of an allocation; 0 if it is none.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn usable(address: usize) -> Result<u64> {
    inside(move |entered| match heap_offset(entered.cluster, address) {
        Some(offset) => Ok(memory::call(entered.cluster, entered.slot, Call::Usable { offset })?.0),
        None => Ok(0),
    })
}

/// Does the address lie in the shared space?
#[must_use]
pub fn is_shared(address: usize) -> bool {
    running().is_some_and(|runtime| offset(runtime.cluster, address).is_some())
}

/// The addresses of the shared heap, from the start on, also after the end.
#[must_use]
pub fn heap_addresses() -> std::ops::Range<usize> {
    runtime::started()
        .and_then(|runtime| runtime.cluster.view.as_ref())
        .map_or(0..0, |(_, mapping)| mapping.addresses())
}

/// The home of an address, as this node knows it.
#[must_use]
pub fn home(address: usize) -> Option<usize> {
    let found = inside(move |entered| {
        let cluster = entered.cluster;
        let unit = offset(cluster, address).and_then(|offset| cluster.shape.unit.at(offset));
        Ok(unit.and_then(|unit| units::home(cluster, unit)))
    });
    found.ok()?.map(|home| usize::from(home.0))
}

pub(super) fn base(cluster: &Cluster) -> usize {
    cluster.view.as_ref().map_or(0, |(_, mapping)| mapping.addresses().start)
}

/// An address of the shared space or of shared globals, as bytes from the start of the space.
pub(super) fn offset(cluster: &Cluster, address: usize) -> Option<u64> {
    let (_, mapping) = cluster.view.as_ref()?;
    let page = mapping.page_of(address)?;
    Some(u64::from(page) * PAGE_BYTES as u64 + (address % PAGE_BYTES) as u64)
}

/// The same for an address that the heap may have given out.
fn heap_offset(cluster: &Cluster, address: usize) -> Option<u64> {
    let (_, mapping) = cluster.view.as_ref()?;
    offset(cluster, address).filter(|_| mapping.addresses().contains(&address))
}
