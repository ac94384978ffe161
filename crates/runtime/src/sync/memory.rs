//! The shared heap: its tables stand at node 0; who reaches them runs them, others ask.

use std::ops::Range;

use finespun_engine::allocation::{self, Call, Refused, Together};
use finespun_engine::homes::KEEPER;
use finespun_errors::{Code, bytes};
use finespun_heap::{BLOCK_LOG2_MAX, Heap, Policy};
use finespun_types::{ProcessorId, UnitSize};

use crate::consistency::{along, units};
use crate::messages::heap_call;
use crate::messages::wire::Request;
use crate::node::carriers;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::sync::requests;
use crate::sync::touched::{self, Known, Told, Walk};

/// Runs a call: for an allocation its offset and how many of its bytes an earlier one may have had, from the first on. The usable size
/// and 0 for `Usable`, zeros for `Free`.
pub fn call(cluster: &Cluster, slot: usize, call: Call) -> Result<(u64, u64), Failure> {
    if cluster.reach.runs_tables_of(KEEPER) {
        if call.releases() {
            along::released(cluster, KEEPER, carriers::HEAP);
        }
        let result = run(cluster, call);
        if !call.releases() {
            along::granted(cluster, KEEPER, carriers::HEAP, cluster.me);
        }
        return result;
    }
    let (number, arguments) = heap_call::words(call);
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
    let run = |heap: &mut Heap<'_>, together: &mut [Together; 2]| allocation::run(heap, together, call);
    cluster.at(KEEPER).with_heap(run).map_err(|refused| refusal(cluster, refused))
}

/// A refusal of the heap as an error of a call.
fn refusal(cluster: &Cluster, refused: Refused) -> Failure {
    match refused {
        Refused::NoRoom { size, used, largest } => {
            let limit = cluster.shape.unit.bytes_of(cluster.shape.layout.limit_pages() as usize) as u64;
            let [size, used, limit, largest] = [size, used, limit, largest].map(bytes);
            let what =
                format!("no room for {size} in the shared heap: {used} of {limit} used, largest free run {largest}");
            Failure { code: Code::HeapExhausted, what }
        }
        Refused::BadFree(bad) => Failure::new(Code::BadFree, bad),
        Refused::Disagreement { number, size, first } => {
            let what = format!("fsp_malloc_all, call {number}: {size} bytes, but another process asked for {first}");
            Failure { code: Code::Argument, what }
        }
    }
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
