//! How many pages a read fault is served with: decided by the stream that it continues and by what the view has read before.
//!
//! Where the pages behind a stream were read together before, windows double and end with them. Where the stream is on new ground, windows
//! are a sixteenth of what it has read so far. If a stream stops short of pages that it should have gone on to by this history, its last
//! window is forgotten.

use super::history::History;
use super::streams::Found;
use crate::consistency::guesses::Guess;

/// Pages of a stream that do not count as known: a window may be this part of them.
const NEW_GROUND: u32 = 16;
/// On new ground the node's frames may not be there yet: so many are made at once, and mapped by the engine.
const POPULATED_MIN: u32 = 4;

/// Pages that may be fetched behind a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The page of the fault.
    page: u32,
    /// The direction.
    step: i32,
    /// How many.
    pub pages: u32,
    /// How good the guess is that they will be wanted.
    pub guess: Guess,
    /// Are their frames made at once, before they are fetched?
    pub populates: bool,
}

impl Window {
    /// The page that lies so many behind the fault, in a heap of `pages`.
    pub fn page(&self, behind: u32, pages: u32) -> Option<u32> {
        self.page.checked_add_signed(self.step * behind as i32).filter(|page| *page < pages)
    }

    /// Which neighbour of that page is fetched after it: 1 or -1; 0: none, or the engine has not mapped its frame, as on new ground.
    pub fn next(&self, behind: u32) -> i32 {
        if behind < self.pages && self.guess == Guess::Known { self.step } else { 0 }
    }

    /// The pages of the fault and of the window, in a heap of `pages`.
    pub fn all(&self, pages: u32) -> std::ops::Range<u32> {
        let (one, other) = (self.page, self.page.saturating_add_signed(self.step * self.pages as i32));
        one.min(other)..one.max(other).saturating_add(1).min(pages)
    }
}

/// Remembers what a fault tells of pages. Was it known that the stream would come here?
pub fn learn(history: History<'_>, page: u32, found: &Found) -> bool {
    if let Some(lost) = &found.lost {
        let (end, step) = lost.end();
        if history.goes_on(end, step, 1) > 0 {
            history.join(lost.last, lost.next, false);
        }
    }
    let Some((from, together)) = found.from else { return false };
    let pages = from.abs_diff(page);
    let was_known = history.goes_on(from, found.step, pages) == pages;
    if !was_known || !together {
        let before = page.saturating_add_signed(-found.step);
        history.join(from, before, true);
        history.join(before, page, together);
    }
    was_known
}

/// How many pages may be fetched behind the fault? `is_blind`: over messages this process cannot see which pages other nodes have exclusively.
/// `is_taken`: another node has the page of the fault exclusively, as far as can be seen.
pub fn behind(
    history: History<'_>,
    page: u32,
    (found, was_known): (&Found, bool),
    is_blind: bool,
    is_taken: impl FnOnce() -> bool,
) -> Window {
    let step = found.step;
    let known = history.goes_on(page, step, found.window);
    if known > 0 || was_known {
        return Window { page, step, pages: known, guess: Guess::Known, populates: false };
    }
    let pages = found.window.min(found.run / NEW_GROUND);
    let is_long = found.run >= NEW_GROUND * POPULATED_MIN;
    let exclusive = pages > 0 && ((is_blind && is_long) || is_taken());
    Window { page, step, pages, guess: Guess::New { exclusive }, populates: is_long && pages > 0 }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::super::streams::Streams;
    use super::*;

    /// A view that reads pages, and opens all that it may.
    struct Reader {
        words: [AtomicU64; 8],
        streams: Streams,
        interval: u64,
    }

    impl Reader {
        fn new() -> Self {
            Self { words: [const { AtomicU64::new(0) }; 8], streams: Streams::NONE, interval: 0 }
        }

        fn fault(&mut self, page: u32) -> Window {
            let found = self.streams.fault(page, self.interval);
            let history = History::of(&self.words);
            let was_known = learn(history, page, &found);
            let window = behind(history, page, (&found, was_known), false, || false);
            self.streams.opened(&found, window.pages);
            window
        }

        /// Reads these pages one after the other, and returns how many faults that takes.
        fn read(&mut self, mut page: u32, end: u32) -> u32 {
            let mut faults = 0;
            while page < end {
                page += 1 + self.fault(page).pages;
                faults += 1;
            }
            faults
        }
    }

    #[test]
    fn on_new_ground_a_window_is_a_sixteenth_of_what_the_stream_has_read() {
        let mut reader = Reader::new();
        for page in 0..15 {
            assert_eq!(reader.fault(page).pages, 0, "page {page}");
        }
        let window = reader.fault(15);
        assert_eq!((window.pages, window.guess), (1, Guess::New { exclusive: false }));
        assert!(!window.populates, "few frames are made at once");
    }

    #[test]
    fn what_was_read_together_is_fetched_in_windows_that_double() {
        let mut reader = Reader::new();
        let first = reader.read(0, 256);
        reader.interval = 1;
        let second = reader.read(0, 256);
        assert!(second <= 12 && first > 4 * second, "{first} faults, then {second}");
    }

    #[test]
    fn a_window_ends_where_the_pages_that_were_read_together_end() {
        let mut reader = Reader::new();
        reader.read(100, 110);
        reader.interval = 1;
        assert_eq!([100, 101].map(|page| reader.fault(page).pages), [0, 0]);
        assert_eq!(reader.fault(102).pages, 2);
        let window = reader.fault(105);
        assert_eq!((window.pages, window.guess, window.next(1), window.next(4)), (4, Guess::Known, 1, 0));
        assert_eq!(reader.fault(110).pages, 0, "behind the end");
    }

    #[test]
    fn an_acquire_between_two_reads_parts_their_pages() {
        let mut reader = Reader::new();
        for page in 0..8 {
            reader.interval += 1;
            reader.fault(page);
        }
        assert!((0..8).all(|page| History::of(&reader.words).goes_on(page, 1, 1) == 0));
    }

    #[test]
    fn a_page_that_is_exclusive_elsewhere_makes_the_guess_good_and_is_asked_for_only_where_pages_are_fetched() {
        let (words, mut streams) = ([const { AtomicU64::new(0) }; 2], Streams::NONE);
        let history = History::of(&words);
        for page in 0..14 {
            let found = streams.fault(page, 0);
            behind(history, page, (&found, false), false, || panic!("nothing is fetched behind page {page}"));
        }
        streams.fault(14, 0);
        let found = streams.fault(15, 0);
        assert_eq!(behind(history, 15, (&found, false), false, || true).guess, Guess::New { exclusive: true });
        assert_eq!(behind(history, 15, (&found, false), true, || false).guess, Guess::New { exclusive: false });
    }

    #[test]
    fn over_messages_only_a_long_stream_makes_the_guess_good() {
        let (words, mut streams) = ([const { AtomicU64::new(0) }; 2], Streams::NONE);
        let mut last = None;
        for page in 0..64 {
            let found = streams.fault(page, 0);
            last = Some((behind(History::of(&words), page, (&found, false), true, || false), last.map(|(now, _)| now)));
        }
        let (long, short) = last.expect("64 faults");
        assert_eq!((long.guess, long.populates, long.pages), (Guess::New { exclusive: true }, true, 2));
        assert_eq!(short.map(|window| window.guess), Some(Guess::New { exclusive: false }));
    }

    #[test]
    fn a_window_holds_no_page_outside_the_heap() {
        let window = |page, step| Window { page, step, pages: 4, guess: Guess::Known, populates: false };
        assert_eq!([1, 2, 3].map(|behind| window(2, -1).page(behind, 9)), [Some(1), Some(0), None]);
        assert_eq!([1, 2].map(|behind| window(7, 1).page(behind, 9)), [Some(8), None]);
        assert_eq!((window(2, -1).all(9), window(7, 1).all(9), window(3, 1).all(9)), (0..3, 7..9, 3..8));
    }
}
