//! A view under mprotect and the mappings it is made of. In a process that is really out of them rights may be missing, never in excess, and
//! one call repairs each.

mod common;

use common::{Random, Rig, Rights, in_own_process, rig};
use finespun_sys::PAGE_BYTES;
use finespun_sys::maps;
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

/// How many mappings the view is made of.
fn mappings(rig: &Rig) -> usize {
    let addresses = rig.view.addresses();
    let is_in_view = |region: &maps::Region| addresses.contains(&region.addresses.start);
    maps::of_this_process().unwrap().into_iter().filter(is_in_view).count()
}

/// Opens pages one by one and closes them together, so many times.
fn open_and_close(rig: &Rig, pages: &[u32], times: usize) {
    for _ in 0..times {
        for &page in pages {
            rig.view.map_read(page).unwrap();
            assert_eq!(rig.seen(page), Rights::Read);
        }
        rig.view.invalidate_scattered(pages).unwrap();
        pages.iter().for_each(|&page| assert_eq!(rig.seen(page), Rights::None));
    }
}

#[test]
fn a_page_that_is_opened_alone_for_the_third_time_keeps_a_mapping_of_its_own_until_only_runs_are_opened() {
    let name = "a_page_that_is_opened_alone_for_the_third_time_keeps_a_mapping_of_its_own_until_only_runs_are_opened";
    in_own_process(name, || {
        let rig = rig(Mechanism::Mprotect, PAGES);
        // Neighbours among them.
        let pages = [10, 11, 12, 40, 41, 900];
        open_and_close(rig, &pages, 2);
        assert_eq!(mappings(rig), 1);
        open_and_close(rig, &pages, 1);
        assert_eq!(mappings(rig), 6 + 4);
        // A load and a store are twice.
        (100..200).for_each(|page| rig.view.map_read(page).and_then(|()| rig.view.upgrade(page)).unwrap());
        rig.view.invalidate(100..200).unwrap();
        assert_eq!(mappings(rig), 6 + 4);
        let run = |times: usize| {
            for _ in 0..times {
                rig.view.map_read_run(5..50).unwrap();
                (5..50).for_each(|page| assert_eq!(rig.seen(page), Rights::Read));
                rig.view.invalidate(5..50).unwrap();
            }
        };
        run(4);
        assert_eq!(mappings(rig), 6 + 4);
        open_and_close(rig, &[11], 1);
        run(1);
        // All but the one that was opened alone: 0 to 10, 11, 12 to 899, 900, and the rest.
        assert_eq!(mappings(rig), 5);
        run(4);
        assert_eq!(mappings(rig), 3);
    });
}

#[test]
fn mappings_of_single_pages_are_given_up_before_any_right_and_then_for_good() {
    in_own_process("mappings_of_single_pages_are_given_up_before_any_right_and_then_for_good", || {
        let rig = rig(Mechanism::Mprotect, PAGES);
        let pages: Vec<u32> = (0..1000).step_by(4).collect();
        open_and_close(rig, &pages, 3);
        assert!(mappings(rig) >= 2 * pages.len());
        let Some(_eaten) = Eaten::all_but(0) else { return };
        // The kernel has none left for these: the others' are taken.
        let (opened, others) = ([2001, 2003, 2005], [2007, 2009, 2011]);
        opened.iter().for_each(|&page| rig.view.map_read(page).unwrap());
        opened.iter().for_each(|&page| assert_eq!(rig.seen(page), Rights::Read));
        assert_eq!(mappings(rig), 7);
        open_and_close(rig, &others, 5);
        assert_eq!(mappings(rig), 7);
        assert_eq!(rig.view.coarse_invalidations(), 0);
    });
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
