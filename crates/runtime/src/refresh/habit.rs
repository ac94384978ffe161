//! What a view does with a page between notices: does it read it each time?
//!
//! ```text
//!   notice   close   close   close   refresh refresh close   refresh x 4      close   refresh x 8 ..
//!      read ------- read -- read -- read --- ? ----- ? ---- read ----------- ? ---- read --------
//!   level 0          1       2       3                       4                       5            .. up to 64 refreshes
//! ```
//!
//! A page that is closed shows by a fault whether it is read; one that is refreshed shows nothing. So a page is refreshed only after it
//! has been closed and read again three times in a row, and then twice as often each time before it is closed once more,
//! to see. A reading counts if it comes before the view's next acquire: of a page that is read later nobody knows how many
//! notices came while it was closed, and as many copies might have been made for one reading. The first one that comes late, or not at
//! all, puts the page back to the beginning. So what is copied for nothing is at most about what was copied to some use.

/// Readings in time after which a page is refreshed.
const LEVEL_MIN: u8 = 3;
/// Refreshes after the first of these levels, as a power of two.
const FIRST_SHIFT: u8 = 1;
/// The highest level: 64 refreshes.
const LEVEL_MAX: u8 = LEVEL_MIN + 5;

const CLOSED: u16 = 1 << 15;
const LEVEL_SHIFT: u32 = 8;

/// One page of one view. All-zero: nothing is known.
///
/// Bits 0 to 7: refreshes left while it is open; while it is closed, the acquire that closed it (its low bits: an acquire 256 later
/// is taken for the same, which makes one guess in 256 too good). Bits 8 to 11: the level. Bit 15: closed, and not known to have been read since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit(pub u16);

/// What is to become of a page that a notice names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is refreshed.
    Refresh,
    /// It is closed.
    Close,
}

impl Habit {
    const fn open(level: u8, refreshes: u8) -> Self {
        Self((level as u16) << LEVEL_SHIFT | refreshes as u16)
    }

    const fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    const fn level(self) -> u8 {
        (self.0 >> LEVEL_SHIFT) as u8 & 0xf
    }

    const fn number(self) -> u8 {
        self.0 as u8
    }

    /// The view reads the page, the last acquire being this one.
    #[must_use]
    pub const fn read(self, acquire: u8) -> Self {
        if !self.is_closed() {
            return self;
        }
        if self.number() != acquire {
            return Self::open(0, 0);
        }
        let level = if self.level() < LEVEL_MAX { self.level() + 1 } else { LEVEL_MAX };
        let refreshes = if level < LEVEL_MIN { 0 } else { 1 << (level - LEVEL_MIN + FIRST_SHIFT) };
        Self::open(level, refreshes)
    }

    /// What should become of the page at a notice?
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        if self.is_closed() || self.number() == 0 { Verdict::Close } else { Verdict::Refresh }
    }

    /// It was refreshed.
    #[must_use]
    pub const fn refreshed(self) -> Self {
        Self::open(self.level(), self.number().saturating_sub(1))
    }

    /// It was closed by this acquire. If it had not been read since it was closed before, nothing is left of what was known.
    #[must_use]
    pub const fn closed(self, acquire: u8) -> Self {
        let level = if self.is_closed() { 0 } else { self.level() };
        Self(CLOSED | (level as u16) << LEVEL_SHIFT | acquire as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of which a notice comes at each acquire.
    #[derive(Default)]
    struct Page {
        habit: Habit,
        acquire: u8,
        refreshes: u32,
        useless: u32,
        faults: u32,
    }

    impl Page {
        /// One acquire with a notice of the page, if it is open; the page is read after it, or not.
        fn interval(&mut self, reads: bool) -> Verdict {
            self.acquire = self.acquire.wrapping_add(1);
            let verdict = self.habit.verdict();
            match verdict {
                Verdict::Refresh => {
                    self.habit = self.habit.refreshed();
                    self.refreshes += 1;
                    self.useless += u32::from(!reads);
                }
                // No notice comes of a page that is not open.
                Verdict::Close if self.habit.is_closed() => {}
                Verdict::Close => self.habit = self.habit.closed(self.acquire),
            }
            if reads && self.habit.is_closed() {
                self.faults += 1;
                self.habit = self.habit.read(self.acquire);
            }
            verdict
        }

        fn intervals(&mut self, count: usize, reads: bool) -> Vec<bool> {
            (0..count).map(|_| self.interval(reads) == Verdict::Refresh).collect()
        }
    }

    #[test]
    fn a_page_read_in_three_intervals_is_refreshed_twice_and_then_closed_to_see() {
        let mut page = Page::default();
        assert_eq!(page.intervals(3, true), [false; 3]);
        assert_eq!(page.intervals(3, true), [true, true, false]);
        assert_eq!(page.intervals(5, true), [true, true, true, true, false]);
    }

    #[test]
    fn a_page_read_in_every_interval_faults_once_in_65_in_the_end() {
        let mut page = Page::default();
        page.intervals(3 + 2 + 1 + 4 + 1 + 8 + 1 + 16 + 1 + 32 + 1, true);
        let before = page.faults;
        page.intervals(65 * 10, true);
        assert_eq!(page.faults - before, 10);
        assert_eq!(page.useless, 0);
    }

    #[test]
    fn a_page_that_is_no_longer_read_is_copied_no_more_often_for_nothing_than_it_was_of_use() {
        for read_for in 1..400 {
            let mut page = Page::default();
            page.intervals(read_for, true);
            let useful = page.refreshes;
            page.intervals(1000, false);
            assert!(page.useless <= useful + 2, "read in {read_for} intervals: {useful} of use, {} not", page.useless);
            assert_eq!(page.intervals(200, false), [false; 200]);
        }
    }

    #[test]
    fn a_page_that_is_read_again_after_a_while_begins_anew() {
        let mut page = Page::default();
        page.intervals(100, true);
        page.intervals(200, false);
        assert_eq!(page.intervals(4, true), [false; 4]);
        assert_eq!(page.intervals(2, true), [true, true]);
    }

    #[test]
    fn a_page_read_once_by_everybody_and_rewritten_for_ever_is_never_refreshed() {
        let mut page = Page::default();
        page.interval(true);
        assert_eq!(page.intervals(1000, false), [false; 1000]);
    }

    #[test]
    fn a_page_that_is_read_in_every_second_interval_is_never_refreshed() {
        let mut page = Page::default();
        for _ in 0..1000 {
            page.interval(true);
            page.interval(false);
        }
        assert_eq!(page.refreshes, 0);
    }

    #[test]
    fn pages_read_at_random_are_seldom_refreshed() {
        let (mut pages, mut random) = (Vec::from_iter((0..1000).map(|_| Page::default())), 1_u64);
        let mut reads = 0;
        for _ in 0..100 {
            for page in &mut pages {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let is_read = random >> 61 == 0;
                reads += u32::from(is_read);
                page.interval(is_read);
            }
        }
        let useless = pages.iter().map(|page| page.useless).sum::<u32>();
        assert!(useless * 20 <= reads, "{useless} copies for nothing beside {reads} readings");
    }

    #[test]
    fn what_a_page_was_opened_for_by_a_guess_counts_for_nothing() {
        let mut habit = Habit::default();
        for acquire in 1..4 {
            habit = habit.closed(acquire).read(acquire);
        }
        assert_eq!(habit.verdict(), Verdict::Refresh);
        // Closed twice, and never read between: something else had opened it.
        habit = habit.closed(9).closed(10).read(10);
        assert_eq!((habit.verdict(), habit.level()), (Verdict::Close, 1));
    }
}
