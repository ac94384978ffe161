//! Streams of read faults: pages side by side, one after the other, forwards or backwards.
//!
//! ```text
//!   faults at     7   8   9           12                17
//!   fetched ahead             10 11       13 14 15 16       18 ...      a window, twice as long each time
//! ```
//!
//! Three faults in a row make a stream: two neighbours are common by chance, where few pages are used at random. A fault at the page
//! right behind a window says that all of the window was wanted; the next is then twice as long. Several streams may go on in turn
//! (a loop over two arrays), so a thread remembers some; a fault that belongs to none takes the place of the one
//! that has waited longest.

use std::ops::Range;

/// How many streams a thread follows.
const STREAMS: usize = 8;
/// The longest window.
pub const WINDOW_MAX: u32 = 64;
/// The first window.
const WINDOW_MIN: u32 = 2;
/// So many pages side by side make a stream.
const RUN_MIN: u32 = 3;
/// One stream, or a single fault that might become one.
#[derive(Clone, Copy)]
struct Stream {
    /// Where the last fault was.
    last: u32,
    /// Where the next one is if the stream goes on, in its direction; the window lies between.
    next: u32,
    /// 1 or -1; 0: a single fault. See `at`.
    step: i32,
    /// Pages of the stream up to the last fault, with what was fetched ahead and used.
    run: u32,
    /// How long the next window may be.
    window: u32,
    /// When its last fault was.
    turn: u32,
    /// In which interval of its thread that was.
    interval: u64,
}

/// The streams of a thread.
#[derive(Clone, Copy)]
pub struct Streams {
    list: [Stream; STREAMS],
    turn: u32,
}

/// What a fault means for the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    stream: usize,
    /// The stream's direction.
    pub step: i32,
    /// How many pages may be fetched ahead; 0: no stream.
    pub window: u32,
    /// The pages of the stream so far.
    pub run: u32,
    /// The stream goes on from the page of its last fault, and whether this was in the same interval.
    pub from: Option<(u32, bool)>,
    /// The window that this fault shows to have been wanted.
    pub followed: Range<u32>,
    /// The stream that is forgotten had a window that was not followed.
    pub lost: Option<Lost>,
}

/// A window that nobody is known to have used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The fault that opened it.
    pub last: u32,
    /// Where the next fault would have been.
    pub next: u32,
}

impl Lost {
    /// The last page of the window, and the direction of the stream.
    pub const fn end(&self) -> (u32, i32) {
        if self.next > self.last && self.next != u32::MAX {
            (self.next - 1, 1)
        } else {
            (self.next.wrapping_add(1), -1)
        }
    }
}

impl Stream {
    const NONE: Self = Self { last: 0, next: 0, step: 0, run: 0, window: 0, turn: 0, interval: 0 };

    /// The pages fetched ahead after its last fault.
    fn ahead(&self) -> Range<u32> {
        match self.step {
            1 => self.last + 1..self.next,
            // Behind page 0 there is none: `next` is then the number below.
            -1 => self.next.wrapping_add(1)..self.last,
            _ => 0..0,
        }
    }
}

impl Streams {
    /// None yet.
    pub const NONE: Self = Self { list: [Stream::NONE; STREAMS], turn: 0 };

    /// A read fault at this page, in this interval of the thread.
    pub fn fault(&mut self, unit: u32, interval: u64) -> Found {
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn;
        let goes_on = |stream: &Stream| stream.step != 0 && stream.next == unit;
        let begins = |stream: &Stream| stream.run == 1 && stream.step == 0 && stream.last.abs_diff(unit) == 1;
        let (stream, followed) = if let Some(at) = self.list.iter().position(goes_on) {
            let stream = &mut self.list[at];
            let followed = stream.ahead();
            stream.run = stream.run.saturating_add(1 + followed.len() as u32);
            (at, followed)
        } else if let Some(at) = self.list.iter().position(begins) {
            let stream = &mut self.list[at];
            (stream.step, stream.run) = (if unit > stream.last { 1 } else { -1 }, 2);
            (at, 0..0)
        } else {
            return self.begin(unit, interval);
        };
        let it = &mut self.list[stream];
        let from = Some((it.last, it.interval == interval));
        (it.last, it.turn, it.interval) = (unit, turn, interval);
        it.next = unit.wrapping_add_signed(it.step);
        if it.run >= RUN_MIN {
            it.window = it.window.max(WINDOW_MIN);
        }
        Found { stream, step: it.step, window: it.window, run: it.run, from, followed, lost: None }
    }

    /// A fault that belongs to no stream.
    fn begin(&mut self, unit: u32, interval: u64) -> Found {
        let turn = self.turn;
        let age = |stream: &Stream| if stream.run == 0 { u32::MAX } else { turn.wrapping_sub(stream.turn) };
        let oldest = (0..STREAMS).max_by_key(|&at| age(&self.list[at])).expect("there are some");
        let begun = Stream { last: unit, run: 1, turn, interval, ..Stream::NONE };
        let old = std::mem::replace(&mut self.list[oldest], begun);
        let lost = Lost { last: old.last, next: old.next };
        let lost = Some(lost).filter(|_| !old.ahead().is_empty());
        Found { stream: oldest, step: 0, window: 0, run: 1, from: None, followed: 0..0, lost }
    }

    /// So many pages behind the fault are open now: the next fault is expected behind them. A window that could not be filled is
    /// not made longer.
    pub fn opened(&mut self, found: &Found, pages: u32) {
        let it = &mut self.list[found.stream];
        it.next = it.last.wrapping_add_signed(it.step * (pages as i32 + 1));
        if pages >= found.window {
            it.window = (2 * it.window).min(WINDOW_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a fault, and fetches all of its window.
    fn fault(streams: &mut Streams, unit: u32) -> (i32, u32) {
        let found = streams.fault(unit, 0);
        streams.opened(&found, found.window);
        (found.step, found.window)
    }

    #[test]
    fn the_third_fault_in_a_row_makes_a_stream_whose_windows_double() {
        let mut streams = Streams::NONE;
        assert_eq!(fault(&mut streams, 7), (0, 0));
        assert_eq!(fault(&mut streams, 8), (1, 0));
        let mut unit = 9;
        for window in [2, 4, 8, 16, 32, 64, 64] {
            assert_eq!(fault(&mut streams, unit), (1, window));
            unit += window + 1;
        }
    }

    #[test]
    fn a_stream_may_go_backwards_down_to_the_first_page() {
        let mut streams = Streams::NONE;
        assert_eq!([5, 4, 3].map(|unit| fault(&mut streams, unit)), [(0, 0), (-1, 0), (-1, 2)]);
        let found = streams.fault(0, 0);
        assert_eq!((found.step, found.window, found.followed.clone()), (-1, 4, 1..3));
        streams.opened(&found, 0);
        assert_eq!(fault(&mut streams, 100), (0, 0));
    }

    #[test]
    fn two_streams_in_turn_do_not_disturb_each_other() {
        let mut streams = Streams::NONE;
        for unit in [10, 11] {
            fault(&mut streams, unit);
            fault(&mut streams, 1000 - unit);
        }
        assert_eq!((fault(&mut streams, 12), fault(&mut streams, 988)), ((1, 2), (-1, 2)));
        assert_eq!((fault(&mut streams, 15), fault(&mut streams, 985)), ((1, 4), (-1, 4)));
    }

    #[test]
    fn a_fault_behind_a_window_tells_that_it_was_wanted_and_a_forgotten_stream_that_it_was_not() {
        let mut streams = Streams::NONE;
        for unit in [10, 11, 12] {
            fault(&mut streams, unit);
        }
        let found = streams.fault(15, 0);
        assert_eq!(
            (found.followed.clone(), found.run, found.from, found.lost.clone()),
            (13..15, 6, Some((12, true)), None)
        );
        streams.opened(&found, 3);
        // Only three of four could be fetched: the next window is no longer.
        let found = streams.fault(19, 0);
        assert_eq!((found.followed.clone(), found.window), (16..19, 4));
        streams.opened(&found, 4);
        let mut lost = Vec::new();
        for far in 1..20 {
            lost.extend(streams.fault(1000 * far, 0).lost);
        }
        assert_eq!(lost, [Lost { last: 19, next: 24 }]);
        assert_eq!(lost[0].end(), (23, 1));
    }

    #[test]
    fn faults_far_from_each_other_never_make_a_stream() {
        let mut streams = Streams::NONE;
        let mut unit = 1_u32;
        for _ in 0..10_000 {
            unit = unit.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            assert_eq!(fault(&mut streams, unit >> 8).1, 0);
        }
    }

    #[test]
    fn a_stream_tells_where_it_comes_from_and_whether_an_acquire_lies_between() {
        let mut streams = Streams::NONE;
        assert_eq!(streams.fault(7, 3).from, None);
        assert_eq!(streams.fault(8, 3).from, Some((7, true)));
        assert_eq!(streams.fault(9, 4).from, Some((8, false)));
    }
}
