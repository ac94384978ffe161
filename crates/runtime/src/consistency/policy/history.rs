//! What a view remembers of its reads: which neighbouring pages it has read one after the other.
//!
//! A bit for each page, shared by the view's threads: this page and the one below were read together, one right after the other in either
//! direction, with no acquire in between. A run of such pages is a row, a column, a block, a whole array: as far as its end a guess is
//! more than a guess. Behind an acquire the page might have been read only because of what was acquired,
//! and its neighbour may still be at work on it: so no bit joins two intervals. The last time decides.

use std::sync::atomic::{AtomicU64, Ordering};

/// The bits of a view.
#[derive(Clone, Copy)]
pub struct History<'a> {
    words: &'a [AtomicU64],
}

impl<'a> History<'a> {
    /// These words, a bit for each page.
    pub const fn of(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// How many pages behind `page` in this direction were read together with it and each other, up to `limit`?
    pub fn goes_on(&self, page: u32, step: i32, limit: u32) -> u32 {
        (0..limit).take_while(|&ahead| self.joins(page, step, ahead)).count() as u32
    }

    /// Does it go on from the page that lies `ahead` pages behind `page`?
    fn joins(&self, page: u32, step: i32, ahead: u32) -> bool {
        let at = page.checked_add_signed(step * ahead as i32);
        at.is_some_and(|at| self.is_joined(if step > 0 { at.saturating_add(1) } else { at }))
    }

    /// Was `page` read together with the one below?
    fn is_joined(&self, page: u32) -> bool {
        let word = self.words.get(page as usize / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) & 1 << (page % 64) != 0)
    }

    /// The pages from `one` to `other` were read together, or were not.
    pub fn join(&self, one: u32, other: u32, together: bool) {
        for page in one.min(other) + 1..=one.max(other) {
            let Some(word) = self.words.get(page as usize / 64) else { return };
            let bit = 1 << (page % 64);
            if together && word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            } else if !together {
                word.fetch_and(!bit, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> [AtomicU64; 3] {
        [const { AtomicU64::new(0) }; 3]
    }

    #[test]
    fn a_run_of_pages_is_known_from_each_of_its_pages_in_both_directions() {
        let words = words();
        let history = History::of(&words);
        history.join(60, 67, true);
        assert_eq!([59, 60, 63, 67, 68].map(|page| history.goes_on(page, 1, 32)), [0, 7, 4, 0, 0]);
        assert_eq!([59, 60, 63, 67, 68].map(|page| history.goes_on(page, -1, 32)), [0, 0, 3, 7, 0]);
        assert_eq!(history.goes_on(60, 1, 3), 3);
    }

    #[test]
    fn pages_that_were_not_read_together_the_last_time_part_the_run() {
        let words = words();
        let history = History::of(&words);
        history.join(9, 2, true);
        history.join(6, 5, false);
        assert_eq!((history.goes_on(2, 1, 32), history.goes_on(9, -1, 32)), (3, 3));
    }

    #[test]
    fn nothing_is_known_below_the_first_page_and_behind_the_last() {
        let words = words();
        let history = History::of(&words);
        history.join(0, 191, true);
        history.join(191, 200, true);
        assert_eq!(
            (history.goes_on(2, -1, 32), history.goes_on(189, 1, 32), history.goes_on(u32::MAX, 1, 32)),
            (2, 2, 0)
        );
    }
}
