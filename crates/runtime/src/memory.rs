//! The shared heap: its tables stand at node 0; who reaches them runs them, others ask.

use std::ops::Range;
use std::sync::atomic::Ordering;

use finespun_errors::{Code, bytes};
use finespun_heap::{BLOCK_LOG2_MAX, Heap, Policy};
use finespun_types::{NodeId, ProcessorId, UnitSize};

use crate::cluster::Cluster;
use crate::consistency::{along, units};
use crate::failure::Failure;
use crate::heap_call::{self, Call, releases};
use crate::touched::{self, Known, Told, Walk};
use crate::wire::Request;
use crate::{carriers, requests};

/// The node with the heap's tables.
const KEEPER: NodeId = NodeId(0);

/// Runs a call: for an allocation its offset and how many of its bytes an earlier one may have had, from the first on. The usable size
/// and 0 for `Usable`, zeros for `Free`.
pub fn call(cluster: &Cluster, slot: usize, call: Call) -> Result<(u64, u64), Failure> {
    let (number, arguments) = heap_call::words(call);
    if cluster.runs_tables_of(KEEPER) {
        if releases(number) {
            along::released(cluster, KEEPER, carriers::HEAP);
        }
        let result = run(cluster, call);
        if !releases(number) {
            along::granted(cluster, KEEPER, carriers::HEAP, cluster.me);
        }
        return result;
    }
    let request = Request::Heap { who: cluster.processor_at(slot), call: number, arguments };
    requests::ask(cluster, cluster.slot(slot), KEEPER, request)
}

/// A call that came by a message.
pub fn serve(cluster: &Cluster, who: ProcessorId, number: u8, arguments: [u64; 3]) {
    let (node, _) = cluster.slot_of(who);
    let result = match heap_call::parse(number, arguments, node) {
        Some(call) => run(cluster, call),
        None => Err(Failure::new(Code::Bug, format!("call {number} of the heap does not exist"))),
    };
    requests::answer_about(cluster, (KEEPER, carriers::HEAP), who, result);
}

fn run(cluster: &Cluster, call: Call) -> Result<(u64, u64), Failure> {
    cluster.at(KEEPER).with_heap(|heap| match call {
        Call::Allocate { size, align, policy, node } => allocate(cluster, heap, size, align, policy, node),
        Call::Free { offset } => match heap.free(offset) {
            Ok(_) => Ok((0, 0)),
            Err(bad) => Err(Failure::new(Code::BadFree, bad)),
        },
        Call::Usable { offset } => Ok((heap.usable(offset).unwrap_or(0), 0)),
        Call::Together { number, size } => {
            let entry = &cluster.at(KEEPER).node().together[(number % 2) as usize];
            if entry.number.load(Ordering::Relaxed) != number {
                let page = heap.page();
                let (offset, reused) = allocate(cluster, heap, size, page, Policy::FirstTouch, KEEPER)?;
                entry.offset.store(offset, Ordering::Relaxed);
                entry.reused.store(reused, Ordering::Relaxed);
                entry.size.store(size, Ordering::Relaxed);
                entry.number.store(number, Ordering::Relaxed);
            }
            match entry.size.load(Ordering::Relaxed) {
                first if first == size => {
                    Ok((entry.offset.load(Ordering::Relaxed), entry.reused.load(Ordering::Relaxed)))
                }
                first => {
                    let what =
                        format!("fsp_malloc_all, call {number}: {size} bytes, but another process asked for {first}");
                    Err(Failure { code: Code::Argument, what })
                }
            }
        }
    })
}

fn allocate(
    cluster: &Cluster,
    heap: &mut Heap<'_>,
    size: u64,
    align: u64,
    policy: Policy,
    node: NodeId,
) -> Result<(u64, u64), Failure> {
    if let Some(placement) = heap.alloc(size, align, policy, node) {
        return Ok((placement.offset, placement.reused));
    }
    let (used, largest) = (bytes(heap.used_bytes()), bytes(heap.largest_free()));
    let limit = bytes(u64::from(cluster.shape.layout.limit_pages()) * heap.page());
    let size = bytes(size);
    let what = format!("no room for {size} in the shared heap: {used} of {limit} used, largest free run {largest}");
    Err(Failure { code: Code::HeapExhausted, what })
}

/// The policy for memory dealt to the nodes in blocks of `block` bytes, rounded up to a power of two of units.
pub fn dealt(block: u64, unit: UnitSize) -> Policy {
    let pages = unit.units_for(block).max(1);
    let log2 = pages.next_power_of_two().trailing_zeros().min(u32::from(BLOCK_LOG2_MAX));
    Policy::Cyclic { block_pages_log2: log2 as u8 }
}

/// The next run of units of a walk in which something may be. Managers answer to `slot`, that of the calling thread. A thread without
/// one takes for touched what it would have to ask about.
///
/// # Errors
/// A bug of ours.
pub fn next_touched(cluster: &Cluster, slot: Option<usize>, walk: &mut Walk) -> Result<Option<Range<u32>>, Failure> {
    let known = |unit| match units::is_touched(cluster, unit) {
        Some(true) => Known::Touched,
        Some(false) => Known::Untouched,
        None => slot.map_or(Known::Touched, |_| Known::By(cluster.place(cluster.me, unit).manager)),
    };
    walk.next_run(known, |manager, units| {
        let index = slot.expect("else nothing is asked about");
        let request = Request::Touched { who: cluster.processor_at(index), start: units.start, end: units.end };
        let (start, end) = requests::ask(cluster, cluster.slot(index), manager, request)?;
        Ok(Told { start: start as u32, end: end as u32 })
    })
}

/// Answers for the units that this node manages.
pub fn serve_touched(cluster: &Cluster, who: ProcessorId, units: Range<u32>) {
    let Told { start, end } = touched::answer(units, |unit| {
        let is_mine = cluster.place(cluster.me, unit).manager == cluster.me;
        (is_mine && (unit.0 as usize) < cluster.shape.pages).then(|| cluster.mine().has_given_home(unit))
    });
    requests::answer(cluster, who, Ok((u64::from(start), u64::from(end))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_rounded_up_to_a_power_of_two_of_pages() {
        for (bytes, log2) in [(0, 0), (1, 0), (4096, 0), (4097, 1), (5 * 4096, 3), (1 << 40, BLOCK_LOG2_MAX)] {
            assert_eq!(dealt(bytes, UnitSize::PAGE), Policy::Cyclic { block_pages_log2: log2 });
        }
    }
}
