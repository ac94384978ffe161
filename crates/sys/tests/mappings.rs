//! A view under mprotect in a process that is really out of mappings: rights may be missing, never in excess, and one
//! call repairs each.

mod common;

use common::{Random, Rig, Rights, in_own_process, rig};
use finespun_sys::PAGE_BYTES;
use finespun_sys::memory::Mapping;
use finespun_sys::probe::probe;
use finespun_sys::view::Mechanism;
use std::sync::atomic::Ordering;

const PAGES: usize = 4096;

/// Memory of alternating rights, so many that the process may have no mapping more; then `left` of them given back.
struct Eaten {
    address: usize,
    pages: usize,
}

impl Eaten {
    fn all_but(left: usize) -> Option<Self> {
        let limit = probe().max_map_count.unwrap_or(u64::MAX);
        if limit > 300_000 {
            println!("skipped: vm.max_map_count is {limit}; using that many mappings takes too long");
            return None;
        }
        let pages = limit as usize;
        // Leaked on purpose: to unmap needs mappings too.
        let mapping = std::mem::ManuallyDrop::new(Mapping::reserve(0x3000_0000_0000, pages * PAGE_BYTES).unwrap());
        let mut eaten = Self { address: mapping.address(), pages: 0 };
        // Every second page: two mappings each, until the kernel refuses.
        while eaten.pages + 1 < pages && eaten.protect(eaten.pages + 1..eaten.pages + 2, libc::PROT_READ) {
            eaten.pages += 2;
        }
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOMEM));
        if left > 0 {
            // Making the last pages equal gives their mappings back.
            assert!(eaten.protect(eaten.pages - left..eaten.pages, libc::PROT_NONE));
        }
        Some(eaten)
    }

    fn protect(&self, pages: std::ops::Range<usize>, rights: i32) -> bool {
        let start = std::ptr::with_exposed_provenance_mut(self.address + pages.start * PAGE_BYTES);
        // SAFETY: inside the reservation made in `all_but`, where nobody reads or writes.
        unsafe { libc::mprotect(start, pages.len() * PAGE_BYTES, rights) == 0 }
    }
}

/// Never more than the books say.
fn assert_no_excess(rig: &Rig, page: u32) {
    assert!(rig.seen(page) <= rig.booked(page), "page {page}: {:?}, booked {:?}", rig.seen(page), rig.booked(page));
}

/// One random change, and what it promises about its own page.
fn change(rig: &Rig, random: &mut Random) {
    let page = random.below(PAGES as u32);
    let run = page..(page + 1 + random.below(6)).min(PAGES as u32);
    match random.below(8) {
        0..=2 => {
            rig.view.map_read(page).unwrap();
            rig.book(page, Rights::Read);
            assert_eq!(rig.seen(page), Rights::Read);
        }
        3 | 4 => {
            rig.view.map_write(page).unwrap();
            rig.book(page, Rights::Write);
            assert_eq!(rig.seen(page), Rights::Write);
        }
        5 => {
            let end = run.clone().find(|&page| rig.booked(page) == Rights::None).unwrap_or(run.end);
            rig.view.protect(run.start..end).unwrap();
            (run.start..end).for_each(|page| rig.book(page, Rights::Read));
        }
        6 => {
            rig.view.invalidate(run.clone()).unwrap();
            run.clone().for_each(|page| rig.book(page, Rights::None));
        }
        _ => {
            let some: Vec<u32> = (0..random.below(40)).map(|_| random.below(PAGES as u32)).collect();
            rig.view.invalidate_scattered(&some).unwrap();
            some.iter().for_each(|&page| rig.book(page, Rights::None));
        }
    }
    run.for_each(|page| assert_no_excess(rig, page));
}

fn work_with(left: usize) {
    let rig = rig(Mechanism::Mprotect, PAGES);
    (0..PAGES as u32).for_each(|page| rig.frame_store(page, 5, page as u8));
    let Some(_eaten) = Eaten::all_but(left) else { return };
    let mut random = Random(0x1eaf + left as u64);
    for _ in 0..15_000 {
        change(rig, &mut random);
        assert_no_excess(rig, random.below(PAGES as u32));
    }
    assert!(rig.view.coarse_invalidations() > 0);
    for page in 0..PAGES as u32 {
        assert_no_excess(rig, page);
    }
    // Real accesses: what is missing faults, and one answer of the handler is enough.
    for _ in 0..15_000 {
        let page = random.below(PAGES as u32);
        let (reads, writes) = rig.faults();
        if random.below(2) == 0 {
            assert_eq!(rig.load(page, 5), page as u8);
            assert!(rig.faults().0 - reads <= 1);
        } else {
            rig.store(page, 5, page as u8);
            assert!(rig.faults().1 - writes <= 1);
        }
    }
    assert!(rig.repairs.load(Ordering::Relaxed) > 0, "nothing was withdrawn that the books had open");
}

#[test]
fn a_view_with_a_thousand_mappings_left_grants_no_excess_and_repairs_by_one_fault() {
    in_own_process("a_view_with_a_thousand_mappings_left_grants_no_excess_and_repairs_by_one_fault", || {
        work_with(1_000)
    });
}

#[test]
fn a_view_with_ten_mappings_left_grants_no_excess_and_repairs_by_one_fault() {
    in_own_process("a_view_with_ten_mappings_left_grants_no_excess_and_repairs_by_one_fault", || work_with(10));
}

#[test]
fn a_view_with_no_mapping_left_lives_on_its_ballast() {
    in_own_process("a_view_with_no_mapping_left_lives_on_its_ballast", || work_with(0));
}

#[test]
fn an_instruction_that_needs_many_pages_at_once_gets_through_without_a_mapping_left() {
    in_own_process("an_instruction_that_needs_many_pages_at_once_gets_through_without_a_mapping_left", || {
        let rig = rig(Mechanism::Mprotect, PAGES);
        let Some(_eaten) = Eaten::all_but(0) else { return };
        // Fill what there is, so that every further page has to be won from another.
        (0..PAGES as u32).step_by(2).for_each(|page| assert_eq!(rig.load(page, 0), 0));
        for page in (1..PAGES as u32 - 1).step_by(37) {
            // SAFETY: eight bytes across a page border inside the view, in two pages of different rights.
            unsafe { rig.cell(page, PAGE_BYTES - 4).cast::<u64>().write_unaligned(u64::MAX) };
            assert_eq!((rig.frame_load(page, PAGE_BYTES - 1), rig.frame_load(page + 1, 3)), (255, 255));
        }
        assert!(rig.view.coarse_invalidations() > 0);
    });
}

#[test]
fn without_a_mapping_left_no_more_is_invalidated_than_must_be() {
    in_own_process("without_a_mapping_left_no_more_is_invalidated_than_must_be", || {
        let rig = rig(Mechanism::Mprotect, PAGES);
        let view = &rig.view;
        (0..PAGES as u32).for_each(|page| view.map_read(page).unwrap());
        (16..32).for_each(|page| view.map_write(page).unwrap());
        let Some(_eaten) = Eaten::all_but(0) else { return };
        // Cutting one page out takes two mappings, but the 64 KiB around it are a mapping of their own already.
        view.invalidate(20..21).unwrap();
        assert_eq!([15, 16, 20, 31, 32].map(|page| rig.seen(page)), {
            use Rights::{None, Read};
            [Read, None, None, None, Read]
        });
        assert_eq!(view.coarse_invalidations(), 1);
        // In the middle of 16 MiB of equal rights nothing can be cut out: everything goes.
        view.invalidate(2000..2001).unwrap();
        assert_eq!([0, 2000, PAGES as u32 - 1].map(|page| rig.seen(page)), [Rights::None; 3]);
        assert_eq!(view.coarse_invalidations(), 2);
    });
}
