//! How often a thread has looked in vain: operations on the same few words that found what the last ones found, and changed nothing.
//!
//! A loop that waits for a word asks the word's manager at each turn. A thread that is known to wait for one word alone may *glance* at
//! its node's own copy instead, and ask only now and then, or when the copy has changed. A loop that walks through words does not wait, however
//! long it is, since it meets words that it has not seen. So a thread remembers the last few words with what it saw in them.

/// Words that a loop may wait for and still be known to wait.
const WORDS: usize = 4;

/// Turns of a loop that cost what they cost.
const FREE: u32 = 32;
/// A loop that has waited for less is no burden, and the kernel does not sleep for less than a tenth of it.
const PATIENCE_NS: u64 = 400_000;
/// No sleep is longer.
const SLEEP_NS_MAX: u64 = 1_000_000;
/// Glances without a question in between go on for so long at least.
const GLANCES_NS: u64 = 20_000;

/// What the thread should do before it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nothing.
    None,
    /// Let others run.
    Yield,
    /// Sleep for so many nanoseconds.
    Sleep(u64),
}

/// The last words of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Repeats {
    seen: [(usize, u64); WORDS],
    next: usize,
    count: u32,
    since_ns: u64,
    /// The word of the last look with what was in it, how often it was found so in a row, and when the last time.
    last: (usize, u64),
    alone: u32,
    looked_ns: u64,
}

impl Repeats {
    /// Nothing was looked at.
    pub const fn new() -> Self {
        Self { seen: [(0, 0); WORDS], next: 0, count: 0, since_ns: 0, last: (0, 0), alone: 0, looked_ns: 0 }
    }

    /// The thread has changed a word, or is about to do something else.
    pub const fn forget(&mut self) {
        self.count = 0;
        self.alone = 0;
        self.seen = [(0, 0); WORDS];
    }

    /// What the thread may take for the word's value if the node's own copy has it: the thread waits for this word alone, and has not looked
    /// long ago. An eighth of the time that it has waited is not long.
    pub fn expects(&self, address: usize, now: impl FnOnce() -> u64) -> Option<u64> {
        let (word, value) = self.last;
        if !self.is_alone() || word != address {
            return None;
        }
        let now = now();
        let often = (now.saturating_sub(self.since_ns) / 8).clamp(GLANCES_NS, SLEEP_NS_MAX);
        (now.saturating_sub(self.looked_ns) < often).then_some(value)
    }

    /// Does the thread wait for one word alone?
    pub const fn is_alone(&self) -> bool {
        self.alone >= FREE
    }

    /// The thread has found `value` in a word and left it as it was. `now` is asked for the time where that matters.
    pub fn found(&mut self, address: usize, value: u64, now: impl FnOnce() -> u64) -> Pause {
        if self.last == (address, value) {
            self.alone = (self.alone + 1).min(FREE);
        } else {
            (self.last, self.alone) = ((address, value), 0);
        }
        if !self.seen.contains(&(address, value)) {
            self.count = 0;
            self.seen[self.next] = (address, value);
            self.next = (self.next + 1) % WORDS;
            return Pause::None;
        }
        self.count += 1;
        if self.count < FREE {
            return Pause::None;
        }
        let now = now();
        self.looked_ns = now;
        if self.count == FREE {
            self.since_ns = now;
        }
        self.count = self.count.min(u32::MAX - 1);
        match now.saturating_sub(self.since_ns) {
            waited if waited < PATIENCE_NS => Pause::Yield,
            waited => Pause::Sleep((waited / 8).min(SLEEP_NS_MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(repeats: &mut Repeats, times: u32, now: u64) -> Pause {
        (0..times).map(|_| repeats.found(64, 7, || now)).last().expect("at least once")
    }

    #[test]
    fn a_loop_on_one_word_lets_others_run_and_then_sleeps_for_longer_and_longer() {
        let mut repeats = Repeats::new();
        assert_eq!(after(&mut repeats, FREE, 1_000), Pause::None);
        assert_eq!(after(&mut repeats, 1, 1_000), Pause::Yield);
        assert_eq!(after(&mut repeats, 1, 1_000 + PATIENCE_NS), Pause::Sleep(PATIENCE_NS / 8));
        assert_eq!(after(&mut repeats, 1, 1_000 + 100 * PATIENCE_NS), Pause::Sleep(SLEEP_NS_MAX));
    }

    #[test]
    fn a_value_that_was_not_there_ends_the_waiting() {
        let mut repeats = Repeats::new();
        after(&mut repeats, 2 * FREE, 0);
        assert_eq!(repeats.found(64, 8, || 0), Pause::None);
        assert_eq!(after(&mut repeats, FREE - 1, 0), Pause::None);
    }

    #[test]
    fn a_loop_may_wait_for_several_words() {
        let mut repeats = Repeats::new();
        let mut turn = || [64, 128, 192].map(|word| repeats.found(word, 0, || 0));
        (0..FREE).for_each(|_| _ = turn());
        assert_eq!(turn(), [Pause::Yield; 3]);
    }

    #[test]
    fn a_walk_through_many_words_never_pauses() {
        let mut repeats = Repeats::new();
        let walks = || (0..1000).map(|word| 8 * word);
        assert!(walks().chain(walks()).all(|word| repeats.found(word, 0, || 0) == Pause::None));
    }

    #[test]
    fn a_thread_that_waits_for_one_word_glances_at_it_for_an_eighth_of_the_time_that_it_waits() {
        let mut repeats = Repeats::new();
        after(&mut repeats, FREE, 0);
        assert_eq!(repeats.expects(64, || 0), None);
        after(&mut repeats, 1, 0);
        assert_eq!(repeats.expects(64, || GLANCES_NS - 1), Some(7));
        assert_eq!(repeats.expects(64, || GLANCES_NS), None);
        assert_eq!(repeats.expects(128, || 1), None, "another word");
        after(&mut repeats, 1, 800 * GLANCES_NS);
        assert_eq!(repeats.expects(64, || 840 * GLANCES_NS), Some(7));
        assert_eq!(repeats.expects(64, || 800 * GLANCES_NS + SLEEP_NS_MAX), None);
        repeats.found(64, 8, || 0);
        assert_eq!(repeats.expects(64, || 0), None, "it has changed");
    }

    #[test]
    fn a_thread_that_waits_for_several_words_does_not_glance() {
        let mut repeats = Repeats::new();
        for _ in 0..4 * FREE {
            _ = [64, 128].map(|word| repeats.found(word, 0, || 0));
            assert_eq!((repeats.expects(64, || 0), repeats.expects(128, || 0)), (None, None));
        }
    }

    #[test]
    fn what_changes_a_word_does_not_wait() {
        let mut repeats = Repeats::new();
        for _ in 0..10 * FREE {
            assert_eq!(repeats.found(64, 7, || 0), Pause::None);
            repeats.forget();
        }
    }
}
