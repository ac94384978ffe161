//! Random allocations and frees against a model that only remembers what is live.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use common::Memory;
use finespun_heap::{BLOCK_LOG2_MAX, BadFree, Heap, Layout, Page, Placement, Policy};
use finespun_types::{NodeId, UnitSize};

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Sizes as programs have them: mostly small, sometimes pages, seldom large.
    fn size(&mut self) -> u64 {
        match self.below(20) {
            0..12 => self.below(2100),
            12..18 => self.below(40_000),
            _ => self.below(3 << 20),
        }
    }

    fn policy(&mut self, nodes: u64) -> Policy {
        match self.below(4) {
            0 => Policy::On(NodeId::of(self.below(nodes) as usize)),
            1 => Policy::Cyclic { block_pages_log2: self.below(u64::from(BLOCK_LOG2_MAX) + 1) as u8 },
            _ => Policy::FirstTouch,
        }
    }
}

struct Live {
    usable: u64,
    is_slot: bool,
    node: NodeId,
}

#[derive(Default)]
struct Model {
    live: BTreeMap<u64, Live>,
    /// By 16 bytes: what an allocation has had.
    had: Vec<bool>,
}

impl Model {
    fn add(&mut self, layout: Layout, placed: Placement, size: u64, align: u64, node: NodeId) {
        let Placement { offset, usable, reused, policy } = placed;
        let page = layout.page().bytes() as u64;
        let end = offset + usable;
        self.hand_out(offset + reused, end, true);
        self.hand_out(offset, offset + reused, false);
        assert!(usable >= size && offset.is_multiple_of(align.max(16)));
        assert!(size < page || offset.is_multiple_of(page), "whole pages begin at a page");
        assert!(end <= u64::from(layout.pages()) * page);
        let before = self.live.range(..end).next_back();
        assert!(before.is_none_or(|(start, other)| start + other.usable <= offset), "overlap at {offset:#x}");
        let (first, last) = ((offset / page) as u32, ((end - 1) / page) as u32);
        assert_eq!((layout.policy_of(first), layout.policy_of(last)), (policy, policy));
        match policy {
            Policy::FirstTouch => assert_eq!(layout.home_of(first), None),
            Policy::On(on) => assert_eq!((layout.home_of(first), layout.home_of(last)), (Some(on), Some(on))),
            Policy::Cyclic { block_pages_log2: log2 } => {
                assert_eq!(layout.home_of(first), Some(NodeId(0)), "the first block is at node 0");
                let expected = NodeId::of((((last - first) >> log2) % layout.nodes()) as usize);
                assert_eq!(layout.home_of(last), Some(expected));
            }
        }
        let is_slot = !usable.is_multiple_of(page);
        self.live.insert(offset, Live { usable, is_slot, node });
    }

    /// An allocation has these bytes from now on; none had them before if they are new.
    fn hand_out(&mut self, start: u64, end: u64, is_new: bool) {
        let granules = (start / 16) as usize..(end / 16) as usize;
        if self.had.len() < granules.end {
            self.had.resize(granules.end, false);
        }
        let had = &mut self.had[granules];
        assert!(!is_new || had.iter().all(|had| !had), "{start:#x} to {end:#x} are called new");
        had.fill(true);
    }

    /// Pages in use; and small allocations of two nodes never share one.
    fn pages_in_use(&self, page: u64) -> u64 {
        let (mut small, mut large) = (HashMap::new(), 0);
        for (offset, live) in &self.live {
            if live.is_slot {
                let node = *small.entry(offset / page).or_insert(live.node);
                assert_eq!(node, live.node, "page {} has objects of two nodes", offset / page);
            } else {
                large += live.usable / page;
            }
        }
        large + small.len() as u64
    }

    /// The allocation around an offset: its start.
    fn around(&self, offset: u64) -> Option<u64> {
        let (start, live) = self.live.range(..=offset).next_back()?;
        (offset < start + live.usable).then_some(*start)
    }
}

fn check_wrong_frees(heap: &mut Heap<'_>, model: &Model, offset: u64) {
    match model.around(offset) {
        Some(start) if start == offset => assert_eq!(heap.usable(offset), Some(model.live[&start].usable)),
        Some(start) => assert_eq!(heap.free(offset), Err(BadFree::Interior { start })),
        None => {
            let error = heap.free(offset);
            let is_right = matches!(error, Err(BadFree::AlreadyFreed | BadFree::NeverAllocated));
            assert!(is_right, "{error:?} for free memory at {offset:#x}");
        }
    }
}

fn run(seed: u64, (limit_pages, size): (u32, UnitSize), nodes: u32, operations: usize) {
    println!("seed {seed}, {limit_pages} pages of {} bytes, {nodes} nodes", size.bytes());
    let page = size.bytes() as u64;
    let mut memory = Memory::new(limit_pages, nodes, size);
    let (layout, mut model, mut random) = (memory.layout, Model::default(), Random(seed));
    let mut exhausted = 0;
    for operation in 0..operations {
        // A heap made anew for each operation: nothing is kept outside the tables.
        let mut heap = memory.heap();
        // Phases of growing and of shrinking, so that it becomes full and nearly empty.
        let is_growing = operation / 1000 % 2 == 0;
        if random.below(10) < if is_growing { 7 } else { 3 } {
            let (size, policy) = (random.size(), random.policy(u64::from(nodes)));
            let align = if random.below(4) == 0 { 1 << random.below(22) } else { 1 };
            let node = NodeId::of(random.below(u64::from(nodes)) as usize);
            match heap.alloc(size, align, policy, node) {
                Some(placed) => model.add(layout, placed, size, align, node),
                None => exhausted += 1,
            }
        } else if let Some(start) = model.around_any(&mut random) {
            let freed = heap.free(start).expect("it is live");
            let live = model.live.remove(&start).expect("it is live");
            assert_eq!(freed.usable, live.usable);
            let pages = u64::from(freed.pages.start) * page..u64::from(freed.pages.end) * page;
            assert!(model.live.range(pages).next().is_none(), "released pages hold nothing");
            check_wrong_frees(&mut heap, &model, start);
        }
        let somewhere = random.below(u64::from(layout.pages()) * page);
        check_wrong_frees(&mut heap, &model, somewhere);
        if let Some(start) = model.around_any(&mut random) {
            let inside = start + random.below(model.live[&start].usable);
            check_wrong_frees(&mut heap, &model, inside);
        }
        if operation % 16 == 0 {
            assert_eq!(heap.used_bytes(), model.pages_in_use(page) * page);
            assert!(heap.used_bytes() <= u64::from(layout.limit_pages()) * page);
        }
    }
    assert!(exhausted > 0, "the limit was reached");
    let mut heap = memory.heap();
    // In another order than they were made.
    let rest: BTreeSet<_> = model.live.keys().map(|start| (start % 977, *start)).collect();
    for (_, start) in rest {
        heap.free(start).expect("it is live");
    }
    assert_eq!(heap.used_bytes(), 0);
    assert_eq!(heap.largest_free(), u64::from(layout.limit_pages()) * page);
    let in_use = memory.pages.iter().position(|page| *page != Page::default());
    assert_eq!(in_use, None, "every entry of an empty heap is zero again");
}

impl Model {
    /// Some live allocation.
    fn around_any(&self, random: &mut Random) -> Option<u64> {
        let last = *self.live.keys().next_back()?;
        let above = random.below(last + 1);
        self.live.range(above..).next().map(|(start, _)| *start)
    }
}

#[test]
fn random_operations_keep_every_promise_and_end_in_an_empty_heap() {
    for seed in 0..4 {
        run(seed, (8192, UnitSize::PAGE), 3, 8000);
    }
    run(100, (512, UnitSize::PAGE), 1, 8000);
    run(101, (4096, UnitSize::PAGE), 64, 8000);
    run(102, (12_000, UnitSize::PAGE), 8, 8000);
    for bytes in [8 << 10, 64 << 10] {
        run(103, (512, UnitSize::of(bytes).expect("a power of two")), 3, 8000);
    }
}
