//! Single promises of the heap, one each.

mod common;

use common::Memory;
use finespun_heap::{ALIGN_MAX, BadFree, Freed, Heap, Page, Policy};
use finespun_types::{NodeId, UnitSize};

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);

fn first_touch(heap: &mut Heap<'_>, size: u64) -> u64 {
    heap.alloc(size, 1, Policy::FirstTouch, N0).expect("there is room").offset
}

#[test]
fn small_objects_of_different_nodes_are_on_different_pages() {
    let mut memory = Memory::new(512, 2, UnitSize::PAGE);
    let mut heap = memory.heap();
    let mut page_of = |node| heap.alloc(24, 8, Policy::FirstTouch, node).unwrap().offset / 4096;
    let (first, other, second) = (page_of(N0), page_of(N1), page_of(N0));
    assert_eq!(first, second);
    assert_ne!(first, other);
    assert_eq!(heap.used_bytes(), 2 * 4096);
}

#[test]
fn a_size_of_zero_gives_different_places() {
    let mut memory = Memory::new(512, 1, UnitSize::PAGE);
    let mut heap = memory.heap();
    assert_ne!(first_touch(&mut heap, 0), first_touch(&mut heap, 0));
}

#[test]
fn a_span_is_filled_then_reused_and_given_back_when_empty() {
    let mut memory = Memory::new(512, 1, UnitSize::PAGE);
    let mut heap = memory.heap();
    let slots: Vec<u64> = (0..256).map(|_| first_touch(&mut heap, 16)).collect();
    assert_eq!(heap.used_bytes(), 4096);
    first_touch(&mut heap, 16);
    assert_eq!(heap.used_bytes(), 2 * 4096);
    assert_eq!(heap.free(slots[100]), Ok(Freed { usable: 16, pages: 0..0 }));
    assert_eq!(first_touch(&mut heap, 16), slots[100]);
    for slot in &slots[1..] {
        assert!(heap.free(*slot).unwrap().pages.is_empty());
    }
    assert_eq!(heap.free(slots[0]), Ok(Freed { usable: 16, pages: 0..1 }));
    assert_eq!(heap.used_bytes(), 4096);
}

#[test]
fn freed_neighbours_become_one_run_and_are_used_again() {
    let mut memory = Memory::new(512, 1, UnitSize::PAGE);
    let mut heap = memory.heap();
    let parts: Vec<u64> = (0..4).map(|_| first_touch(&mut heap, 3 * 4096)).collect();
    let last = first_touch(&mut heap, 4096);
    for part in [0, 2, 1, 3] {
        heap.free(parts[part]).unwrap();
    }
    assert_eq!(first_touch(&mut heap, 12 * 4096), parts[0]);
    assert!(last > parts[3]);
}

#[test]
fn the_limit_counts_every_policy_together() {
    let mut memory = Memory::new(1024, 2, UnitSize::PAGE);
    let mut heap = memory.heap();
    let half = 512 * 4096;
    let on = heap.alloc(half, 1, Policy::On(N1), N0).unwrap();
    assert_eq!(on.policy, Policy::On(N1));
    let rest = first_touch(&mut heap, half);
    assert_eq!(heap.largest_free(), 0);
    assert_eq!(heap.alloc(1, 1, Policy::FirstTouch, N0), None);
    assert_eq!(heap.alloc(1, 1, Policy::Cyclic { block_pages_log2: 0 }, N0), None);
    heap.free(on.offset).unwrap();
    assert_eq!(heap.largest_free(), half);
    heap.free(rest).unwrap();
    assert_eq!(heap.largest_free(), 2 * half);
    assert_eq!(first_touch(&mut heap, 2 * half), 0);
}

#[test]
fn a_full_part_of_the_space_sends_allocations_elsewhere_and_says_so() {
    let mut memory = Memory::new(8192, 4, UnitSize::PAGE);
    let mut heap = memory.heap();
    let on = |size_pages: u64, heap: &mut Heap<'_>| heap.alloc(size_pages * 4096, 1, Policy::On(N1), N0).unwrap();
    assert_eq!(on(2048, &mut heap).policy, Policy::On(N1));
    assert_eq!(on(1, &mut heap).policy, Policy::FirstTouch);
    let dealt = |log2, heap: &mut Heap<'_>| {
        heap.alloc(900 * 4096, 1, Policy::Cyclic { block_pages_log2: log2 }, N0).unwrap().policy
    };
    assert_eq!(dealt(3, &mut heap), Policy::Cyclic { block_pages_log2: 3 });
    assert_eq!(dealt(3, &mut heap), Policy::Cyclic { block_pages_log2: 2 });
    assert_eq!(dealt(3, &mut heap), Policy::Cyclic { block_pages_log2: 1 });
    // The part for single pages is four times as large.
    assert_eq!(dealt(3, &mut heap), Policy::Cyclic { block_pages_log2: 0 });
}

#[test]
fn alignment_reaches_from_sixteen_bytes_to_two_mib_under_every_policy() {
    let mut memory = Memory::new(1 << 16, 3, UnitSize::PAGE);
    let mut heap = memory.heap();
    for policy in [Policy::FirstTouch, Policy::On(N1), Policy::Cyclic { block_pages_log2: 1 }] {
        for align in (0..=21).map(|log2| 1 << log2) {
            let placed = heap.alloc(40, align, policy, N0).unwrap();
            assert!(placed.offset.is_multiple_of(align.max(16)), "{align} {placed:?}");
            assert_eq!(placed.policy, policy);
        }
    }
}

#[test]
fn impossible_requests_are_refused() {
    let mut memory = Memory::new(512, 2, UnitSize::PAGE);
    let mut heap = memory.heap();
    for (size, align, policy, node) in [
        (1, 0, Policy::FirstTouch, N0),
        (1, 24, Policy::FirstTouch, N0),
        (1, 2 * ALIGN_MAX, Policy::FirstTouch, N0),
        (1, 1, Policy::On(NodeId(2)), N0),
        (1, 1, Policy::Cyclic { block_pages_log2: 13 }, N0),
        (1, 1, Policy::FirstTouch, NodeId(2)),
        (513 * 4096, 1, Policy::FirstTouch, N0),
        (u64::MAX, 1, Policy::FirstTouch, N0),
    ] {
        assert_eq!(heap.alloc(size, align, policy, node), None, "{size} {align} {policy:?} {node:?}");
    }
    assert_eq!(heap.used_bytes(), 0);
}

#[test]
fn wrong_frees_say_what_is_wrong_and_change_nothing() {
    let mut memory = Memory::new(512, 2, UnitSize::PAGE);
    let behind = u64::from(memory.layout.pages()) * 4096;
    let mut heap = memory.heap();
    let (small, next) = (first_touch(&mut heap, 100), first_touch(&mut heap, 100));
    let (large, kept) = (first_touch(&mut heap, 9 * 4096), first_touch(&mut heap, 4096));
    for (offset, error) in [
        (behind, BadFree::Outside),
        (u64::MAX, BadFree::Outside),
        (small + 1, BadFree::Interior { start: small }),
        (small + 111, BadFree::Interior { start: small }),
        (next + 112, BadFree::NeverAllocated),
        (large + 8, BadFree::Interior { start: large }),
        (large + 8 * 4096, BadFree::Interior { start: large }),
        (large + 9 * 4096 - 1, BadFree::Interior { start: large }),
        (kept + 4096, BadFree::NeverAllocated),
        (behind - 1, BadFree::NeverAllocated),
    ] {
        assert_eq!(heap.free(offset), Err(error), "{offset:#x}");
        assert_eq!(heap.usable(offset), None);
    }
    heap.free(small).unwrap();
    heap.free(large).unwrap();
    for offset in [small, small + 5, large, large + 4096, large + 8 * 4096] {
        assert_eq!(heap.free(offset), Err(BadFree::AlreadyFreed), "{offset:#x}");
    }
    heap.free(kept).unwrap();
    assert_eq!(heap.free(kept), Err(BadFree::AlreadyFreed), "also when the top went down");
    assert_eq!(heap.usable(next), Some(112));
    assert_eq!(heap.used_bytes(), 4096);
}

#[test]
fn what_no_allocation_has_had_is_told_apart() {
    let mut memory = Memory::new(1024, 2, UnitSize::PAGE);
    let mut heap = memory.heap();
    let small = heap.alloc(100, 1, Policy::FirstTouch, N0).unwrap();
    let large = heap.alloc(9 * 4096, 1, Policy::FirstTouch, N0).unwrap();
    let on_a_node = heap.alloc(4096, 1, Policy::On(N1), N0).unwrap();
    assert_eq!([small, large, on_a_node].map(|placed| placed.reused), [0; 3]);
    heap.free(small.offset).unwrap();
    heap.free(large.offset).unwrap();
    let mut reused = |size| heap.alloc(size, 1, Policy::FirstTouch, N0).unwrap().reused;
    assert_eq!(reused(12 * 4096), 10 * 4096, "pages above the highest ever in use are new");
    assert_eq!(reused(4096), 0);
}

#[test]
fn slots_that_no_allocation_has_had_are_told_apart() {
    let mut memory = Memory::new(1024, 2, UnitSize::PAGE);
    let mut heap = memory.heap();
    let alloc = |heap: &mut Heap<'_>, size| heap.alloc(size, 1, Policy::FirstTouch, N0).unwrap();
    let (first, kept) = (alloc(&mut heap, 100), alloc(&mut heap, 100));
    heap.free(first.offset).unwrap();
    assert_eq!([100, 100, 100].map(|size| alloc(&mut heap, size).reused), [112, 0, 0]);
    assert_eq!(kept.reused, 0);
    let page = alloc(&mut heap, 4096);
    heap.free(page.offset).unwrap();
    let slot = alloc(&mut heap, 200);
    assert_eq!((slot.offset, slot.reused), (page.offset, slot.usable), "in a page that was another's");
}

#[test]
fn tables_are_touched_only_for_what_is_in_use() {
    let mut memory = Memory::new(1 << 18, 8, UnitSize::PAGE);
    let mut heap = memory.heap();
    for policy in [Policy::FirstTouch, Policy::On(N1), Policy::Cyclic { block_pages_log2: 4 }] {
        heap.alloc(1 << 28, 1, policy, N0).expect("there is room");
    }
    let touched = memory.pages.iter().filter(|page| **page != Page::default()).count();
    assert!(touched <= 3, "{touched} entries for three allocations of 65,536 pages");
}
