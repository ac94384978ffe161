//! What a load must return, and whether the program has a race.
//!
//! Programs have no data races: accesses that conflict are ordered by what happens before. So the last store in the order of execution is
//! the last one that happens before, and a load must return its value. A vector clock for each processor, of its own and told by what
//! objects should order, checks that premise too: a mutex that two processors hold at once shows as a race.

use crate::memory::WORDS;
use crate::program::PROCESSORS_MAX;

type Clock = [u32; PROCESSORS_MAX];

/// What passes on what a processor knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A mutex, flag or barrier.
    Sync(u8),
    /// The beginning and the end of a processor's thread.
    Thread(u8),
    /// What is freed is allocated again.
    Heap,
}

/// A word's last store.
#[derive(Clone, Copy, Default)]
struct Known {
    /// `None`: whatever was there when it was allocated.
    latest: Option<u32>,
    before: u32,
    /// How many stores there were, of new values.
    count: u32,
    writer: u8,
    at: u32,
}

pub struct Oracle {
    clocks: Vec<Clock>,
    carriers: Vec<Clock>,
    syncs: usize,
    /// By unit.
    words: Vec<[Known; WORDS]>,
}

/// A race, which no program of ours has.
pub const RACE: &str = "what objects should order is ordered";
/// What a protocol promises.
pub const LOAD: &str = "a load returns the last store that happens before it";

impl Oracle {
    pub fn new(processors: usize, syncs: usize) -> Self {
        let mut clocks = vec![[0; PROCESSORS_MAX]; processors];
        clocks.iter_mut().enumerate().for_each(|(who, clock)| clock[who] = 1);
        Self { clocks, carriers: vec![[0; PROCESSORS_MAX]; syncs + processors + 1], syncs, words: Vec::new() }
    }

    /// One more unit: fresh memory is zero.
    pub fn grow(&mut self) {
        self.words.push([Known { latest: Some(0), ..Known::default() }; WORDS]);
    }

    /// The word belongs to a new allocation. Its values begin anew: a store of what an old copy still holds makes no difference there.
    pub fn renew(&mut self, unit: usize, word: usize) {
        let known = &mut self.words[unit][word];
        if known.count > 0 {
            *known = Known::default();
        }
    }

    fn carrier(&self, carrier: Carrier) -> usize {
        match carrier {
            Carrier::Sync(sync) => usize::from(sync),
            Carrier::Thread(who) => self.syncs + usize::from(who),
            Carrier::Heap => self.carriers.len() - 1,
        }
    }

    /// The processor releases to it.
    pub fn release(&mut self, who: usize, carrier: Carrier) {
        let at = self.carrier(carrier);
        let (clock, carrier) = (&mut self.clocks[who], &mut self.carriers[at]);
        carrier.iter_mut().zip(clock.iter()).for_each(|(has, more)| *has = (*has).max(*more));
        clock[who] += 1;
    }

    /// The processor acquires from it.
    pub fn acquire(&mut self, who: usize, carrier: Carrier) {
        let carrier = self.carriers[self.carrier(carrier)];
        self.clocks[who].iter_mut().zip(carrier).for_each(|(has, more)| *has = (*has).max(more));
    }

    fn is_ordered(&self, who: usize, known: &Known) -> bool {
        known.count == 0 || self.clocks[who][usize::from(known.writer)] >= known.at
    }

    /// The value that a store writes: one that the word never had, or the one before its last.
    pub fn store(&mut self, who: usize, (unit, word): (usize, usize), puts_back: bool) -> Result<u32, &'static str> {
        let known = self.words[unit][word];
        if !self.is_ordered(who, &known) && known.latest.is_some() {
            return Err(RACE);
        }
        let value = if puts_back { known.before } else { known.count + 1 };
        let count = if puts_back { known.count } else { known.count + 1 };
        let before = known.latest.unwrap_or(value);
        let at = self.clocks[who][who];
        self.words[unit][word] = Known { latest: Some(value), before, count, writer: who as u8, at };
        Ok(value)
    }

    /// Looks at what a load returned.
    pub fn load(&self, who: usize, (unit, word): (usize, usize), value: u32) -> Result<(), (&'static str, String)> {
        let known = &self.words[unit][word];
        if !self.is_ordered(who, known) {
            return Err((RACE, format!("p{who} loads u{unit}.{word}, which p{} stored beside it", known.writer)));
        }
        match known.latest {
            Some(latest) if latest == value => Ok(()),
            latest => Err((LOAD, format!("p{who} loads {value} from u{unit}.{word}, not {latest:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle() -> Oracle {
        let mut oracle = Oracle::new(2, 1);
        oracle.grow();
        oracle
    }

    #[test]
    fn a_load_after_the_release_and_the_acquire_must_return_the_store() {
        let mut oracle = oracle();
        assert_eq!(oracle.load(1, (0, 3), 0), Ok(()), "fresh memory is zero");
        assert_eq!(oracle.store(0, (0, 3), false), Ok(1));
        oracle.release(0, Carrier::Sync(0));
        oracle.acquire(1, Carrier::Sync(0));
        assert_eq!(oracle.load(1, (0, 3), 1), Ok(()));
        assert_eq!(oracle.load(1, (0, 3), 0).map_err(|broken| broken.0), Err(LOAD));
    }

    #[test]
    fn accesses_that_nothing_orders_are_a_race() {
        let mut oracle = oracle();
        assert_eq!(oracle.store(0, (0, 3), false), Ok(1));
        assert_eq!(oracle.load(1, (0, 3), 1).map_err(|broken| broken.0), Err(RACE));
        assert_eq!(oracle.store(1, (0, 3), false), Err(RACE));
    }

    #[test]
    fn what_is_put_back_is_the_value_before() {
        let mut oracle = oracle();
        let stores = [false, false, true, false].map(|puts_back| oracle.store(0, (0, 0), puts_back));
        assert_eq!(stores, [Ok(1), Ok(2), Ok(1), Ok(3)]);
    }
}
