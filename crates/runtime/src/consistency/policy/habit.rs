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
//! to see. A reading counts if it comes before the view's second acquire after that: of a page that is read later nobody knows how many
//! notices came while it was closed, and as many copies might have been made for one reading. One acquire in between is let
//! pass, for a writer that is a barrier ahead has its notice obeyed a barrier early; but such a page is *slow*, and if the first
//! acquire after the first refresh has a notice of it again, it was copied for nothing: it is read in every second interval, and
//! written in each. That, and a reading that comes late or not at all, puts the page back to the beginning. So what is copied for nothing is at most about what was copied to some use; and [`Credit`] sees to it that
//! not too many pages are tried at once.

/// Readings in time after which a page is refreshed.
const LEVEL_MIN: u8 = 3;
/// Refreshes after the first of these levels, as a power of two.
const FIRST_SHIFT: u8 = 1;
/// Acquires that may come between closing and reading.
const LATE_MAX: u8 = 1;
/// The highest level: 64 refreshes.
const LEVEL_MAX: u8 = LEVEL_MIN + 5;

/// One page of one view, or a few side by side where a node has many views.
///
/// Of an acquire's number there are the low bits: one 256 later is taken for the same, which makes two guesses in 256 too good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit {
    stage: Stage,
    level: u8,
    /// It was once read with an acquire between closing and reading.
    is_slow: bool,
}

/// What became of the page at the last notice of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is open; so many notices refresh it, and the next one closes it.
    Open { refreshes: u8 },
    /// It is open: a slow page that this acquire refreshed for the first time.
    Tried { by: u8 },
    /// This acquire closed it, and it is not known to have been read since.
    Closed { by: u8 },
    /// The same, though it should have been tried.
    Untried { by: u8 },
}

impl Default for Stage {
    fn default() -> Self {
        Self::Open { refreshes: 0 }
    }
}

/// What is to become of a page that a notice names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is refreshed.
    Refresh,
    /// It is refreshed for the first time, if that many new ones may be ([`Credit`]).
    Try,
    /// It is closed.
    Close,
}

/// What a reading tells of all pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// Nothing.
    Nothing,
    /// To try this page was right.
    Right,
    /// To try it would have been right.
    WouldBeRight,
}

impl Habit {
    /// As it is kept: two bytes for a page. All zeros: nothing is known.
    #[must_use]
    pub const fn word(self) -> u16 {
        let (stage, number) = match self.stage {
            Stage::Open { refreshes } => (0, refreshes),
            Stage::Tried { by } => (1, by),
            Stage::Closed { by } => (2, by),
            Stage::Untried { by } => (3, by),
        };
        stage << 14 | (self.is_slow as u16) << 13 | (self.level as u16) << 8 | number as u16
    }

    /// The same back.
    #[must_use]
    pub const fn of_word(word: u16) -> Self {
        let number = word as u8;
        let stage = match word >> 14 {
            0 => Stage::Open { refreshes: number },
            1 => Stage::Tried { by: number },
            2 => Stage::Closed { by: number },
            _ => Stage::Untried { by: number },
        };
        Self { stage, level: (word >> 8) as u8 & 0x1f, is_slow: word >> 13 & 1 == 1 }
    }

    const fn refreshes_at(level: u8) -> u8 {
        if level < LEVEL_MIN { 0 } else { 1 << (level - LEVEL_MIN + FIRST_SHIFT) }
    }

    /// The view reads the page, the last acquire being this one.
    #[must_use]
    pub fn read(self, acquire: u8) -> (Self, Tells) {
        let (by, is_untried) = match self.stage {
            Stage::Open { .. } | Stage::Tried { .. } => return (self, Tells::Nothing),
            Stage::Closed { by } => (by, false),
            Stage::Untried { by } => (by, true),
        };
        let since = acquire.wrapping_sub(by);
        if since > LATE_MAX {
            return (Self::default(), Tells::Nothing);
        }
        let is_slow = self.is_slow || since > 0;
        let level = (self.level + 1).min(LEVEL_MAX);
        let tells = match is_untried {
            // Of a slow page nobody knows.
            true if is_slow => Tells::Nothing,
            true => Tells::WouldBeRight,
            false if self.level == LEVEL_MIN => Tells::Right,
            false => Tells::Nothing,
        };
        (Self { stage: Stage::Open { refreshes: Self::refreshes_at(level) }, level, is_slow }, tells)
    }

    /// What should become of the page at a notice that this acquire obeys?
    #[must_use]
    pub const fn verdict(self, acquire: u8) -> Verdict {
        match self.stage {
            Stage::Tried { by } if acquire.wrapping_sub(by) == 1 => Verdict::Close,
            // The same acquire: another page of this habit.
            Stage::Tried { .. } => Verdict::Refresh,
            Stage::Closed { .. } | Stage::Untried { .. } | Stage::Open { refreshes: 0 } => Verdict::Close,
            Stage::Open { refreshes } if self.level == LEVEL_MIN && refreshes == Self::refreshes_at(LEVEL_MIN) => {
                Verdict::Try
            }
            Stage::Open { .. } => Verdict::Refresh,
        }
    }

    /// The same, with so much credit: it is asked for only where the page would be tried.
    #[must_use]
    pub fn verdict_with(self, acquire: u8, credit: impl FnOnce() -> Credit) -> Verdict {
        match self.verdict(acquire) {
            Verdict::Try if !credit().is_left() => Verdict::Close,
            verdict @ (Verdict::Refresh | Verdict::Try | Verdict::Close) => verdict,
        }
    }

    /// It was refreshed by this acquire.
    #[must_use]
    pub fn refreshed(self, acquire: u8) -> Self {
        let stage = match self.stage {
            Stage::Tried { by } if by == acquire => self.stage,
            Stage::Open { .. } if self.is_slow && self.verdict(acquire) == Verdict::Try => Stage::Tried { by: acquire },
            Stage::Open { refreshes } => Stage::Open { refreshes: refreshes.saturating_sub(1) },
            Stage::Tried { .. } | Stage::Closed { .. } | Stage::Untried { .. } => Stage::Open { refreshes: 0 },
        };
        Self { stage, ..self }
    }

    /// It was closed by this acquire. If it had not been read since it was closed before, or refreshed for nothing, nothing is left of
    /// what was known.
    #[must_use]
    pub fn closed(self, acquire: u8) -> Self {
        match (self.stage, self.verdict(acquire)) {
            (Stage::Closed { by } | Stage::Untried { by }, _) if by == acquire => self,
            (Stage::Closed { .. } | Stage::Untried { .. } | Stage::Tried { .. }, Verdict::Close) => {
                Self { stage: Stage::Closed { by: acquire }, ..Self::default() }
            }
            (_, Verdict::Try) => Self { stage: Stage::Untried { by: acquire }, level: LEVEL_MIN - 1, ..self },
            (_, Verdict::Close | Verdict::Refresh) => Self { stage: Stage::Closed { by: acquire }, ..self },
        }
    }
}

/// How many pages a view may begin to refresh. A program that has read much in one order and then reads it in another would else pay for
/// all of that at once: only so many are tried before the first of them have been closed again, and read in time. Each that was makes room
/// for two more; those that were not take theirs with them.
///
/// Negative: so much more than at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit(pub i32);

impl Credit {
    /// Pages at first.
    const FIRST: i32 = 64;
    /// Pages at most.
    const MOST: i32 = 1 << 20;
    /// Pages again when all was lost, and pages show that to try them would have been right.
    const AGAIN: i32 = 8;

    /// May one more be tried?
    #[must_use]
    pub const fn is_left(self) -> bool {
        self.0 < Self::FIRST
    }

    /// One is tried.
    #[must_use]
    pub const fn tried(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// A page was read.
    #[must_use]
    pub const fn told(self, tells: Tells) -> Self {
        let most = Self::FIRST - Self::MOST;
        match tells {
            Tells::Right if self.0 - 3 > most => Self(self.0 - 3),
            Tells::WouldBeRight if self.0 > Self::FIRST - Self::AGAIN => Self(self.0 - 1),
            Tells::Right | Tells::WouldBeRight | Tells::Nothing => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of which a notice comes at each acquire.
    #[derive(Debug, Default)]
    struct Page {
        habit: Habit,
        acquire: u8,
        refreshes: u32,
        useless: u32,
        faults: u32,
    }

    impl Page {
        const fn is_closed(&self) -> bool {
            matches!(self.habit.stage, Stage::Closed { .. } | Stage::Untried { .. })
        }

        /// One acquire with a notice of the page, if it is open. Was it refreshed?
        fn acquire(&mut self, credit: &mut Credit) -> bool {
            self.acquire = self.acquire.wrapping_add(1);
            let verdict = self.habit.verdict_with(self.acquire, || *credit);
            let refreshes = verdict != Verdict::Close;
            if refreshes {
                self.habit = self.habit.refreshed(self.acquire);
                self.refreshes += 1;
                *credit = if verdict == Verdict::Try { credit.tried() } else { *credit };
            } else if !self.is_closed() {
                // No notice comes of a page that is not open.
                self.habit = self.habit.closed(self.acquire);
            }
            refreshes
        }

        /// The page is read.
        fn read(&mut self, credit: &mut Credit) {
            if self.is_closed() {
                self.faults += 1;
                let tells;
                (self.habit, tells) = self.habit.read(self.acquire);
                *credit = credit.told(tells);
            }
        }

        /// Both, or the first alone.
        fn interval(&mut self, reads: bool, credit: &mut Credit) -> bool {
            let refreshed = self.acquire(credit);
            if reads {
                self.read(credit);
            }
            self.useless += u32::from(refreshed && !reads);
            refreshed
        }

        fn intervals(&mut self, count: usize, reads: bool) -> Vec<bool> {
            let mut credit = Credit::default();
            (0..count).map(|_| self.interval(reads, &mut credit)).collect()
        }
    }

    #[test]
    fn a_habit_comes_back_from_its_word() {
        assert_eq!(Habit::default().word(), 0);
        assert!((0..=u16::MAX).all(|word| Habit::of_word(word).word() == word));
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
        page.intervals(1, true);
        assert_eq!(page.intervals(1000, false), [false; 1000]);
    }

    #[test]
    fn a_page_that_is_read_in_every_second_interval_is_soon_tried_no_more() {
        let (mut page, mut credit) = (Page::default(), Credit::default());
        for interval in 0..2000 {
            page.interval(interval % 2 == 0, &mut credit);
        }
        assert!(page.refreshes <= 64 && page.faults >= 1000, "{page:?}");
    }

    #[test]
    fn a_page_that_is_read_in_every_third_interval_is_never_refreshed() {
        let mut page = Page::default();
        for _ in 0..1000 {
            page.intervals(1, true);
            page.intervals(2, false);
        }
        assert_eq!(page.refreshes, 0);
    }

    #[test]
    fn a_page_whose_notices_come_a_barrier_early_is_refreshed_too() {
        let mut habit = Habit::default();
        for acquire in [1, 3, 5] {
            habit = habit.closed(acquire).read(acquire + 1).0;
        }
        for (acquire, verdict) in [(7, Verdict::Try), (9, Verdict::Refresh)] {
            assert_eq!(habit.verdict(acquire), verdict);
            habit = habit.refreshed(acquire);
        }
        assert_eq!(habit.verdict(11), Verdict::Close);
        habit = habit.closed(11).read(12).0;
        assert_eq!((habit.verdict(13), habit.stage), (Verdict::Refresh, Stage::Open { refreshes: 4 }));
    }

    #[test]
    fn pages_read_at_random_are_seldom_refreshed() {
        let (mut pages, mut random) = (Vec::from_iter((0..1000).map(|_| Page::default())), 1_u64);
        let (mut reads, mut credit) = (0, Credit::default());
        for _ in 0..100 {
            for page in &mut pages {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let is_read = random >> 61 == 0;
                reads += u32::from(is_read);
                page.interval(is_read, &mut credit);
            }
        }
        let useless = pages.iter().map(|page| page.useless).sum::<u32>();
        assert!(useless * 20 <= reads, "{useless} copies for nothing beside {reads} readings");
    }

    fn copies(pages: &[Page]) -> u32 {
        pages.iter().map(|page| page.refreshes + page.faults).sum()
    }

    #[test]
    fn pages_read_in_sequence_and_then_at_random_are_copied_hardly_more_often_than_they_are_read() {
        for rounds in 1..10 {
            let (mut pages, mut credit) = (Vec::from_iter((0..16_384).map(|_| Page::default())), Credit::default());
            let mut round = |is_read: &dyn Fn(usize) -> bool| {
                pages.iter_mut().for_each(|page| _ = page.acquire(&mut credit));
                pages
                    .iter_mut()
                    .enumerate()
                    .filter(|(at, _)| is_read(*at))
                    .for_each(|(_, page)| page.read(&mut credit));
                copies(&pages)
            };
            // Four times in sequence: all of them have been closed and read three times when that ends.
            let before = (0..4).map(|_| round(&|_| true)).last().expect("some");
            let after = (0..rounds).map(|turn| round(&|page| (page + turn) % 8 == 0)).last().expect("some");
            let read = 16_384 / 8 * rounds as u32;
            assert!((after - before) * 20 <= read * 21 + 20 * 128, "{} copies for {read} readings", after - before);
        }
    }

    #[test]
    fn however_many_pages_are_read_in_every_interval_all_of_them_are_refreshed_in_the_end() {
        let (mut pages, mut credit) = (Vec::from_iter((0..10_000).map(|_| Page::default())), Credit::default());
        for _ in 0..200 {
            pages.iter_mut().for_each(|page| _ = page.acquire(&mut credit));
            pages.iter_mut().for_each(|page| page.read(&mut credit));
        }
        let before = pages.iter().map(|page| page.faults).sum::<u32>();
        for _ in 0..65 {
            pages.iter_mut().for_each(|page| _ = page.acquire(&mut credit));
            pages.iter_mut().for_each(|page| page.read(&mut credit));
        }
        let faults = pages.iter().map(|page| page.faults).sum::<u32>() - before;
        assert!(faults <= 10_000 * 3, "{faults} faults in 65 intervals");
    }

    #[test]
    fn credit_that_was_lost_comes_back_when_pages_show_that_to_try_them_would_have_been_right() {
        let lost = Credit(Credit::FIRST + 5);
        assert!(!lost.is_left());
        let told = (0..20).fold(lost, |credit, _| credit.told(Tells::WouldBeRight));
        assert_eq!(told, Credit(Credit::FIRST - Credit::AGAIN));
        assert_eq!(told.tried().told(Tells::Right), Credit(told.0 - 2));
    }

    #[test]
    fn what_a_page_was_opened_for_by_a_guess_counts_for_nothing() {
        let mut habit = Habit::default();
        for acquire in 1..4 {
            habit = habit.closed(acquire).read(acquire).0;
        }
        assert_eq!(habit.verdict(4), Verdict::Try);
        // Closed twice, and never read between: something else had opened it.
        habit = habit.closed(9).closed(10).read(10).0;
        assert_eq!((habit.verdict(11), habit.level), (Verdict::Close, 1));
    }
}
