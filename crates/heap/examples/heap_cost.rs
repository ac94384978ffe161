//! What an allocation costs: nanoseconds for a pair of alloc and free.
//! `cargo run --release -p finespun-heap --example heap_cost`

use std::time::Instant;

use finespun_heap::{Header, Heap, Layout, Page, Policy, Span, Tables};
use finespun_types::{NodeId, UnitSize};

const LIMIT_PAGES: u32 = 1 << 18;

fn main() {
    let layout = Layout::new(LIMIT_PAGES, 8, UnitSize::PAGE).expect("a sound layout");
    let mut header = Box::new(Header::EMPTY);
    let mut pages = vec![Page::default(); layout.pages() as usize];
    let mut spans = vec![Span::default(); layout.limit_pages() as usize];
    let tables = Tables { header: &mut header, pages: &mut pages, spans: &mut spans };
    let mut heap = Heap::new(layout, tables);
    println!("ns for alloc and free: minimum / median of 200 rounds");
    for (name, size, policy) in [
        ("16 B", 16, Policy::FirstTouch),
        ("100 B", 100, Policy::FirstTouch),
        ("2,000 B", 2000, Policy::FirstTouch),
        ("1 page", 4096, Policy::FirstTouch),
        ("64 pages", 64 << 12, Policy::FirstTouch),
        ("64 pages on a node", 64 << 12, Policy::On(NodeId(3))),
        ("64 pages dealt by 4", 64 << 12, Policy::Cyclic { block_pages_log2: 2 }),
    ] {
        let pair = rounds(|| measure(&mut heap, size, policy, 1));
        let many = rounds(|| measure(&mut heap, size, policy, 1000));
        println!("{name:20} one at a time {pair:>10}    1,000 live, freed at random {many:>10}");
    }
    assert_eq!(heap.used_bytes(), 0);
}

fn rounds(mut round: impl FnMut() -> f64) -> String {
    let mut samples: Vec<f64> = (0..200).map(|_| round()).collect();
    samples.sort_by(f64::total_cmp);
    format!("{:.0} / {:.0}", samples[0], samples[100])
}

/// `live` allocations, then their frees in an order without a pattern, until 2,000 pairs are done; time of one pair.
fn measure(heap: &mut Heap<'_>, size: u64, policy: Policy, live: usize) -> f64 {
    let mut offsets = Vec::with_capacity(live);
    let start = Instant::now();
    for _ in 0..2000 / live {
        offsets.extend((0..live).map(|_| heap.alloc(size, 16, policy, NodeId(1)).expect("there is room").offset));
        while !offsets.is_empty() {
            let which = offsets.len() * 7919 % 1009 % offsets.len();
            heap.free(offsets.swap_remove(which)).expect("it is live");
        }
    }
    start.elapsed().as_nanos() as f64 / 2000.0
}
