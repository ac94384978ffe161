//! Where the pages of a view are: addresses to pages and back.
//!
//! ```text
//!   page       0         first        end              count
//!   space      |.........|------------|..................|      base + page x 4 KiB
//!   window               |............|                         a run of the pages stands at other addresses instead
//! ```
//!
//! Without a window every page stands in the space.

use crate::{PAGE_BYTES, invalid};
use std::io;
use std::ops::Range;

/// Pages that one batch of scattered invalidations handles: 512 bytes of numbers and 2 KiB of ranges on the stack.
pub(super) const CHUNK: usize = 128;

/// The addresses of a view's pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages {
    pub(super) base: usize,
    pub(super) count: u32,
    window: Window,
}

/// A run of pages that stands at addresses of its own; empty if there is none.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    address: usize,
    first: u32,
    end: u32,
}

impl Pages {
    pub(super) fn new(base: usize, bytes: usize) -> io::Result<Self> {
        let count = u32::try_from(bytes / PAGE_BYTES).map_err(|_| invalid())?;
        if !base.is_multiple_of(PAGE_BYTES) || !bytes.is_multiple_of(PAGE_BYTES) || count == 0 {
            return Err(invalid());
        }
        Ok(Self { base, count, window: Window::default() })
    }

    /// The same with `pages` at `address`, which must lie outside the space.
    pub(super) fn with_window(self, address: usize, pages: &Range<u32>) -> io::Result<Self> {
        self.check(pages)?;
        let end = address.checked_add(pages.len() * PAGE_BYTES).ok_or_else(invalid)?;
        let space_end = self.base + self.count as usize * PAGE_BYTES;
        if !address.is_multiple_of(PAGE_BYTES) || pages.is_empty() || (address < space_end && end > self.base) {
            return Err(invalid());
        }
        Ok(Self { window: Window { address, first: pages.start, end: pages.end }, ..self })
    }

    /// The addresses of the window.
    #[inline]
    pub(super) fn window(self) -> Range<usize> {
        let Window { address, first, end } = self.window;
        address..address + (end - first) as usize * PAGE_BYTES
    }

    pub(super) fn check(self, pages: &Range<u32>) -> io::Result<()> {
        if pages.start <= pages.end && pages.end <= self.count { Ok(()) } else { Err(invalid()) }
    }

    /// The page at an address. A page that stands in the window is not found in the space.
    #[inline]
    pub(super) fn page_of(self, address: usize) -> Option<u32> {
        let window = self.window();
        if window.contains(&address) {
            return Some(self.window.first + ((address - window.start) / PAGE_BYTES) as u32);
        }
        let page = address.checked_sub(self.base)? / PAGE_BYTES;
        u32::try_from(page).ok().filter(|&page| page < self.count && !self.is_in_window(page))
    }

    #[inline]
    const fn is_in_window(self, page: u32) -> bool {
        self.window.first <= page && page < self.window.end
    }

    /// Address and length in bytes of a range that was checked and lies inside the window or outside of it.
    pub(super) fn span(self, pages: &Range<u32>) -> (usize, usize) {
        let Window { address, first, end } = self.window;
        let bytes = (pages.end - pages.start) as usize * PAGE_BYTES;
        debug_assert!(pages.is_empty() || self.is_in_window(pages.start) == self.is_in_window(pages.end - 1));
        let start = if first <= pages.start && pages.end <= end && first < end {
            address + (pages.start - first) as usize * PAGE_BYTES
        } else {
            self.base + pages.start as usize * PAGE_BYTES
        };
        (start, bytes)
    }

    pub(super) fn pointer(self, pages: &Range<u32>) -> (*mut libc::c_void, usize) {
        let (address, bytes) = self.span(pages);
        (std::ptr::with_exposed_provenance_mut(address), bytes)
    }

    /// The parts of a range that [`Pages::span`] takes: before, inside and behind the window, without empty ones.
    pub(super) fn pieces(self, pages: &Range<u32>) -> impl Iterator<Item = Range<u32>> + use<> {
        let (first, end) = (self.window.first, self.window.end);
        let clip = |from: u32, to: u32| pages.start.max(from)..pages.end.min(to);
        let pieces = if first == end {
            [pages.clone(), 0..0, 0..0]
        } else {
            [clip(0, first), clip(first, end), clip(end, u32::MAX)]
        };
        pieces.into_iter().filter(|piece| piece.start < piece.end)
    }

    /// May a range not go over this page's start?
    const fn is_border(self, page: u32) -> bool {
        self.window.first < self.window.end && (page == self.window.first || page == self.window.end)
    }

    /// Does a range go over a border of the window?
    pub(super) const fn crosses_border(self, pages: &Range<u32>) -> bool {
        let Window { first, end, .. } = self.window;
        first < end && (pages.start < first && first < pages.end || pages.start < end && end < pages.end)
    }

    /// The runs of neighbours in sorted page numbers, which may repeat.
    pub(super) const fn runs(self, sorted: &[u32]) -> Runs<'_> {
        Runs { pages: self, sorted }
    }
}

/// See [`Pages::runs`]; none goes over a border of the window.
#[derive(Clone)]
pub(super) struct Runs<'a> {
    pub(super) pages: Pages,
    sorted: &'a [u32],
}

impl Iterator for Runs<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        let (&first, mut rest) = self.sorted.split_first()?;
        let mut end = first + 1;
        while let Some((&page, later)) = rest.split_first().filter(|&(&page, _)| page <= end) {
            if page == end && self.pages.is_border(page) {
                break;
            }
            end = page + 1;
            rest = later;
        }
        self.sorted = rest;
        Some(first..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: usize = 0x2000_0000_0000;
    const WINDOW: usize = 0x40_3000;

    fn eight_pages() -> Pages {
        Pages::new(BASE, 8 * PAGE_BYTES).unwrap()
    }

    #[test]
    fn sorted_pages_are_merged_into_runs() {
        let pages = Pages::new(BASE, 16 * PAGE_BYTES).unwrap();
        let runs: Vec<_> = pages.runs(&[1, 2, 2, 3, 7, 9, 10]).collect();
        assert_eq!(runs, [1..4, 7..8, 9..11]);
        assert_eq!(pages.runs(&[]).next(), None);
    }

    #[test]
    fn pages_outside_the_view_are_refused() {
        let pages = Pages::new(BASE, 4 * PAGE_BYTES).unwrap();
        assert!(pages.check(&(3..4)).is_ok() && pages.check(&(4..5)).is_err());
        assert!(pages.check(&(0..4)).is_ok() && pages.check(&(2..5)).is_err());
        #[expect(clippy::reversed_empty_ranges, reason = "that is the bad argument")]
        let reversed = 3..2;
        assert!(pages.check(&reversed).is_err());
        assert!(Pages::new(0x2000_0000_0800, PAGE_BYTES).is_err());
        assert!(Pages::new(BASE, 100).is_err());
    }

    #[test]
    fn a_window_takes_its_pages_out_of_the_space() {
        let pages = eight_pages().with_window(WINDOW, &(2..5)).unwrap();
        assert_eq!(pages.page_of(WINDOW), Some(2));
        assert_eq!(pages.page_of(WINDOW + 3 * PAGE_BYTES - 1), Some(4));
        assert_eq!(pages.page_of(WINDOW + 3 * PAGE_BYTES), None);
        assert_eq!(pages.page_of(WINDOW - 1), None);
        assert_eq!(pages.page_of(BASE + PAGE_BYTES), Some(1));
        assert_eq!(pages.page_of(BASE + 2 * PAGE_BYTES), None);
        assert_eq!(pages.page_of(BASE + 5 * PAGE_BYTES), Some(5));
        assert_eq!(pages.span(&(3..5)), (WINDOW + PAGE_BYTES, 2 * PAGE_BYTES));
        assert_eq!(pages.span(&(5..8)), (BASE + 5 * PAGE_BYTES, 3 * PAGE_BYTES));
    }

    #[test]
    fn ranges_and_runs_are_cut_at_the_borders_of_the_window() {
        let pages = eight_pages().with_window(WINDOW, &(2..5)).unwrap();
        assert_eq!(pages.pieces(&(0..8)).collect::<Vec<_>>(), [0..2, 2..5, 5..8]);
        assert_eq!(pages.pieces(&(3..6)).collect::<Vec<_>>(), [3..5, 5..6]);
        assert!(pages.pieces(&(2..5)).eq(std::iter::once(2..5)));
        assert_eq!(pages.pieces(&(6..6)).count(), 0);
        assert!(eight_pages().pieces(&(0..8)).eq(std::iter::once(0..8)));
        assert_eq!(pages.runs(&[0, 1, 2, 3, 4, 4, 5, 6]).collect::<Vec<_>>(), [0..2, 2..5, 5..7]);
        let at_start = eight_pages().with_window(WINDOW, &(0..2)).unwrap();
        assert_eq!(at_start.pieces(&(0..8)).collect::<Vec<_>>(), [0..2, 2..8]);
    }

    #[test]
    fn a_window_that_overlaps_the_space_or_has_no_pages_is_refused() {
        let pages = eight_pages();
        assert!(pages.with_window(BASE + PAGE_BYTES, &(0..1)).is_err());
        assert!(pages.with_window(BASE - PAGE_BYTES, &(0..2)).is_err());
        assert!(pages.with_window(BASE - PAGE_BYTES, &(0..1)).is_ok());
        assert!(pages.with_window(WINDOW, &(3..3)).is_err());
        assert!(pages.with_window(WINDOW, &(7..9)).is_err());
        assert!(pages.with_window(WINDOW + 8, &(0..1)).is_err());
    }
}
