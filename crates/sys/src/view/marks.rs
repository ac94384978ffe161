//! Which pages of a view may be open, a bit for each: what lies between two pages to be closed may then be closed with them.
//!
//! One call of the kernel for a range costs little more than one for a page: 64 pages that are 16 apart cost 750 ns each by a vector of 64
//! pages, 80 by a range over all (docs/measurements.md). That is free of harm where all pages in between are closed anyhow.
//!
//! The bits are a hint. One that is set too much costs a system call more. One that is missing, or set a moment too late, closes a page that
//! somebody opens just now: its user faults once more, and the books say that it is open ([`super`]: more than the view grants, never less).

use super::pages::{Pages, Runs};
use crate::memory::Mapping;
use std::io;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most closed pages between two runs that are closed in one. The kernel looks at each, for 1 ns, or for 7 if it was write-protected
/// when it was open; a range of its own costs 700.
const GAP_PAGES_MAX: u32 = 64;
/// The most pages of a range that the kernel drops from the processor's translations one by one, 70 ns each, and not all at once.
const SINGLE_FLUSHES_MAX: u32 = 33;
/// So many single ones cost as much as another range.
const SINGLE_FLUSHES_PER_RUN: u32 = 8;
/// A range of a whole page table would give the table back, and the next fault makes it again.
const RANGE_PAGES_MAX: u32 = 511;

/// The marks of one view: private memory, where pages were opened only.
#[derive(Debug)]
pub(super) struct Marks {
    bits: Mapping,
    words: usize,
}

impl Marks {
    /// None set.
    pub(super) fn new(pages: u32) -> io::Result<Self> {
        let words = (pages as usize).div_ceil(64);
        Ok(Self { bits: Mapping::private(words * size_of::<u64>())?, words })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is so long, aligned to a page, zero at first and lives as long as self; only atomics are made of it.
        unsafe { std::slice::from_raw_parts(self.bits.as_ptr().cast(), self.words) }
    }

    /// The words of a range that was checked, with the bits of its pages in each.
    fn masks(&self, pages: &Range<u32>) -> impl Iterator<Item = (&AtomicU64, u64)> + use<'_> {
        let (start, end) = (pages.start as usize, pages.end as usize);
        let words = if start < end { start / 64..end.div_ceil(64) } else { 0..0 };
        let first = words.start;
        self.words()[words].iter().enumerate().map(move |(index, word)| {
            let here = (first + index) * 64;
            let (from, to) = (start.max(here) - here, end.min(here + 64) - here);
            (word, u64::MAX << from & u64::MAX >> (64 - to))
        })
    }

    /// Marks pages, before they are opened.
    pub(super) fn set(&self, pages: &Range<u32>) {
        for (word, mask) in self.masks(pages) {
            if word.load(Ordering::Relaxed) & mask != mask {
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    /// Takes the marks away, after they were closed.
    pub(super) fn clear(&self, pages: &Range<u32>) {
        for (word, mask) in self.masks(pages) {
            if word.load(Ordering::Relaxed) & mask != 0 {
                word.fetch_and(!mask, Ordering::Relaxed);
            }
        }
    }

    fn any(&self, pages: &Range<u32>) -> bool {
        self.masks(pages).any(|(word, mask)| word.load(Ordering::Relaxed) & mask != 0)
    }

    /// The runs of marked pages.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<u32>> + use<'_> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(at, true)?;
            at = self.next(start, false).unwrap_or(self.words as u32 * 64);
            Some(start..at)
        })
    }

    /// The first page from this one on that is marked, or that is not.
    fn next(&self, page: u32, is_marked: bool) -> Option<u32> {
        let first = page as usize / 64;
        let rest = self.words().get(first..)?;
        rest.iter().enumerate().find_map(|(index, word)| {
            let word = word.load(Ordering::Relaxed);
            let wanted = if is_marked { word } else { !word };
            let wanted = if index == 0 { wanted & u64::MAX << (page % 64) } else { wanted };
            (wanted != 0).then(|| (first + index) as u32 * 64 + wanted.trailing_zeros())
        })
    }

    /// The runs, joined over unmarked pages where that is cheaper.
    pub(super) fn join<'a>(&'a self, runs: Runs<'a>) -> Joined<'a> {
        Joined { pages: runs.pages, marks: self, runs: runs.peekable() }
    }
}

/// See [`Marks::join`].
#[derive(Clone)]
pub(super) struct Joined<'a> {
    pages: Pages,
    marks: &'a Marks,
    runs: Peekable<Runs<'a>>,
}

impl Joined<'_> {
    fn may_join(&self, so_far: &Range<u32>, next: &Range<u32>) -> bool {
        let gap = so_far.end..next.start;
        let joined = so_far.start..next.end;
        gap.end - gap.start <= GAP_PAGES_MAX
            && joined.end - joined.start <= RANGE_PAGES_MAX
            && !self.pages.crosses_border(&joined)
            && !self.marks.any(&gap)
    }
}

impl Iterator for Joined<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        let first = self.runs.next()?;
        let (mut joined, mut count, mut rest) = (first.clone(), 1, self.runs.clone());
        while let Some(next) = rest.next_if(|next| self.may_join(&joined, next)) {
            joined.end = next.end;
            count += 1;
        }
        let pages = joined.end - joined.start;
        if pages <= SINGLE_FLUSHES_MAX && pages > SINGLE_FLUSHES_PER_RUN * count {
            return Some(first);
        }
        self.runs = rest;
        Some(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE_BYTES;

    const PAGES: u32 = 2048;

    fn pages() -> Pages {
        Pages::new(0x2000_0000_0000, PAGES as usize * PAGE_BYTES).unwrap()
    }

    fn joined(marks: &Marks, pages: Pages, sorted: &[u32]) -> Vec<(u32, u32)> {
        marks.join(pages.runs(sorted)).map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn marks_are_set_cleared_and_found_across_words() {
        let marks = Marks::new(PAGES).unwrap();
        for run in [0..1, 63..64, 64..65, 60..70, 0..64, 64..128, 5..300, PAGES - 1..PAGES, 0..PAGES] {
            assert!(!marks.any(&(0..PAGES)));
            marks.set(&run);
            assert!((0..PAGES).all(|page| marks.any(&(page..page + 1)) == run.contains(&page)), "{run:?}");
            marks.clear(&(run.start..run.start + 1));
            assert_eq!(marks.any(&run), run.len() > 1);
            marks.clear(&run);
        }
        marks.set(&(7..7));
        marks.set(&(PAGES..PAGES));
        assert!(!marks.any(&(0..PAGES)));
    }

    #[test]
    fn marked_pages_come_as_runs() {
        let marks = Marks::new(PAGES).unwrap();
        assert_eq!(marks.runs().next(), None);
        let runs = [0..1, 5..64, 100..300, 511..512, 513..514, PAGES - 70..PAGES];
        runs.iter().for_each(|run| marks.set(run));
        assert_eq!(marks.runs().collect::<Vec<_>>(), runs);
    }

    #[test]
    fn scattered_pages_are_one_range_if_nothing_between_them_is_open() {
        let marks = Marks::new(PAGES).unwrap();
        let scattered: Vec<u32> = (0..31).map(|page| page * 16).collect();
        assert_eq!(joined(&marks, pages(), &scattered), [(0, 481)]);
        marks.set(&(100..101));
        assert_eq!(joined(&marks, pages(), &scattered), [(0, 97), (112, 481)]);
    }

    #[test]
    fn a_range_ends_before_wide_gaps_before_it_is_a_whole_table_and_at_the_border_of_a_window() {
        let marks = Marks::new(PAGES).unwrap();
        assert_eq!(joined(&marks, pages(), &[0, 1, 66, 132]), [(0, 67), (132, 133)]);
        let scattered: Vec<u32> = (0..64).map(|page| page * 16).collect();
        assert_eq!(joined(&marks, pages(), &scattered), [(0, 497), (512, 1009)]);
        let window = pages().with_window(0x40_3000, &(200..300)).unwrap();
        let evens: Vec<u32> = (190..310).step_by(2).collect();
        assert_eq!(joined(&marks, window, &evens), [(190, 199), (200, 299), (300, 309)]);
        assert_eq!(joined(&marks, window, &[199, 200, 260, 299, 300]), [(199, 200), (200, 300), (300, 301)]);
    }

    #[test]
    fn few_pages_are_not_joined_over_a_gap_that_costs_more_than_their_own_ranges() {
        let marks = Marks::new(PAGES).unwrap();
        assert_eq!(joined(&marks, pages(), &[4, 20]), [(4, 5), (20, 21)]);
        assert_eq!(joined(&marks, pages(), &[4, 8]), [(4, 9)]);
        assert_eq!(joined(&marks, pages(), &[4, 20, 24, 50]), [(4, 51)]);
        assert_eq!(joined(&marks, pages(), &[4, 24, 28]), [(4, 5), (24, 29)]);
    }
}
