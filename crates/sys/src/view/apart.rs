//! Pages under mprotect that are given rights alone again and again: each gets a mapping of its own and keeps it.
//!
//! To give one page other rights than its neighbours have, the kernel cuts it out of a mapping, and joins the three when it has their rights
//! again. Mappings that differ in an *advice* are not joined, and then a change of rights is no more than that. Of 64 pages,
//! 16 apart (Linux 6.18):
//!
//! ```text
//!                                    cut out and joined    of their own
//!     open, one call each                    1,260 ns          360 ns
//!     close, one call for all                  860 ns          180 ns
//! ```
//!
//! So a page that is given rights alone for the third time is advised: one with an even number as read at random, with an odd one as
//! read in sequence, for neighbours must differ, too. Both are about reading ahead, of which there is none in a memfd. Twice is
//! common, a load and a store where a program fills its memory, and tells nothing.
//!
//! A run that is opened in one call costs 130 to 200 ns a page more where its pages are apart, and as much when it is closed or protected; a right
//! given alone costs 300 to 1,400 less. So pages of which runs were opened again and again, and none alone in between, are joined.
//!
//! A page apart costs two mappings, of which a process has few: a quarter of them is used so at most, and when the kernel is out of them, all
//! are joined, and no page gets another.

use super::Pages;
use crate::memory::{self, Mapping};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// A page that has a mapping of its own. Below it: how often it was given rights alone; above it: how often, since then, in a run.
const APART: u8 = 3;
/// One that has been given rights in so many runs that it is joined in the next.
const STALE: u8 = APART + 4;
/// So many pages in one call are a run.
const RUN_MIN: u32 = 8;
/// Of the mappings that a process may have, there may be one page apart for so many.
const MAPPINGS_PER_PAGE: u64 = 8;

/// What is known of each page: a hint. One that is wrong costs time.
#[derive(Debug)]
pub(super) struct Apart {
    states: Mapping,
    count: AtomicU32,
    most: AtomicU32,
}

impl Apart {
    /// None, of so many pages, in a process that may have so many mappings.
    pub(super) fn new(pages: u32, mappings: u64) -> io::Result<Self> {
        let most = (mappings / MAPPINGS_PER_PAGE).min(pages.into()) as u32;
        Ok(Self { states: Mapping::private(pages as usize)?, count: AtomicU32::new(0), most: AtomicU32::new(most) })
    }

    fn states(&self) -> &[AtomicU8] {
        // SAFETY: the mapping has a byte for each page, zero at first, and lives as long as self; only atomics are made of it.
        unsafe { std::slice::from_raw_parts(self.states.as_ptr().cast(), self.states.bytes()) }
    }

    /// A page was given rights alone.
    pub(super) fn given_alone(&self, range: Pages, page: u32) {
        let state = &self.states()[page as usize];
        match state.load(Ordering::Relaxed) {
            APART => {}
            runs if runs > APART => state.store(APART, Ordering::Relaxed),
            times if times + 1 < APART => state.store(times + 1, Ordering::Relaxed),
            _ => {
                let may = self.count.fetch_add(1, Ordering::Relaxed) < self.most.load(Ordering::Relaxed);
                let advice = if page.is_multiple_of(2) { libc::MADV_RANDOM } else { libc::MADV_SEQUENTIAL };
                if may && advise(range, &(page..page + 1), advice) {
                    state.store(APART, Ordering::Relaxed);
                } else {
                    self.count.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// These pages were given rights together.
    pub(super) fn given_together(&self, range: Pages, pages: Range<u32>) {
        if pages.end - pages.start < RUN_MIN || self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let (mut stale, end) = (pages.start, pages.end);
        for page in pages {
            if !self.grows_stale(page) {
                self.join(range, stale..page);
                stale = page + 1;
            }
        }
        self.join(range, stale..end);
    }

    /// Was it stale before this run?
    fn grows_stale(&self, page: u32) -> bool {
        let state = &self.states()[page as usize];
        let runs = state.load(Ordering::Relaxed);
        if (APART..STALE).contains(&runs) {
            state.store(runs + 1, Ordering::Relaxed);
        }
        runs == STALE
    }

    fn join(&self, range: Pages, pages: Range<u32>) {
        if !pages.is_empty() {
            self.count.fetch_sub(self.forget(&pages), Ordering::Relaxed);
            advise(range, &pages, libc::MADV_NORMAL);
        }
    }

    /// The kernel is out of mappings. True if some were won: no page is apart any more, and none will be.
    pub(super) fn join_all(&self, range: Pages) -> bool {
        self.most.store(0, Ordering::Relaxed);
        if self.count.swap(0, Ordering::Relaxed) == 0 {
            return false;
        }
        let all = 0..range.count;
        self.forget(&all);
        advise(range, &all, libc::MADV_NORMAL)
    }

    /// How many of them were apart?
    fn forget(&self, pages: &Range<u32>) -> u32 {
        let mut apart = 0;
        for state in &self.states()[pages.start as usize..pages.end as usize] {
            if state.load(Ordering::Relaxed) != 0 {
                apart += u32::from(state.swap(0, Ordering::Relaxed) >= APART);
            }
        }
        apart
    }
}

/// False if the kernel is out of mappings.
fn advise(range: Pages, pages: &Range<u32>, advice: i32) -> bool {
    range.pieces(pages).all(|piece| {
        let (start, bytes) = range.pointer(&piece);
        crate::calls::one();
        // SAFETY: the pages lie in the view: checked in `View`. The advice is about reading ahead: rights and bytes stay as they are.
        unsafe { memory::advise(start, bytes, advice) }.is_ok()
    })
}
