//! What a load must return, and whether the program has a race.
//!
//! But for the words that a program names, programs have no data races: accesses that conflict are ordered by what happens before. So the last store in the order of execution is
//! the last one that happens before, and a load must return its value. A vector clock for each processor, of its own and told by what
//! objects should order, checks that premise too: a mutex that two processors hold at once shows as a race.
//!
//! Of a word with races a load may return any store but those that another one overwrites which happens before the load; under sequential
//! consistency only the last. A release passes on what its processor did when all its flushes are done: from then on every acquire sees it.

use crate::memory::WORDS;
use crate::program::PROCESSORS_MAX;

pub type Clock = [u32; PROCESSORS_MAX];

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
    /// A word with races: the number of its history, plus one.
    racy: u8,
}

/// A store to a word with races.
#[derive(Clone, Copy)]
struct Past {
    value: u32,
    writer: usize,
    /// What its writer knew.
    clock: Clock,
}

pub struct Oracle {
    clocks: Vec<Clock>,
    carriers: Vec<Clock>,
    syncs: usize,
    /// Loads return the last store, races or not.
    sequential: bool,
    /// A load of a word with races returns no value that is known to be overwritten.
    orders_races: bool,
    /// By unit.
    words: Vec<[Known; WORDS]>,
    /// The stores to each word with races, oldest first.
    pasts: Vec<Vec<Past>>,
}

/// A race, which no program of ours has.
pub const RACE: &str = "what objects should order is ordered";
/// What a protocol promises.
pub const LOAD: &str = "a load returns the last store that happens before it";

impl Oracle {
    pub fn new(processors: usize, syncs: usize, sequential: bool, orders_races: bool) -> Self {
        let mut clocks = vec![[0; PROCESSORS_MAX]; processors];
        clocks.iter_mut().enumerate().for_each(|(who, clock)| clock[who] = 1);
        Self {
            clocks,
            carriers: vec![[0; PROCESSORS_MAX]; syncs + processors + 1],
            syncs,
            sequential,
            orders_races,
            words: Vec::new(),
            pasts: Vec::new(),
        }
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

    /// All processors use the word as they like.
    pub fn allow_races(&mut self, unit: usize, word: usize) {
        self.pasts.push(Vec::new());
        self.words[unit][word].racy = self.pasts.len() as u8;
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

    /// What is passed on now.
    pub fn passed_on(&self, carrier: Carrier) -> Clock {
        self.carriers[self.carrier(carrier)]
    }

    /// The processor acquires what was passed on.
    pub fn acquire(&mut self, who: usize, passed_on: &Clock) {
        self.clocks[who].iter_mut().zip(passed_on).for_each(|(has, more)| *has = (*has).max(*more));
    }

    fn is_ordered(&self, who: usize, known: &Known) -> bool {
        known.count == 0 || self.clocks[who][usize::from(known.writer)] >= known.at
    }

    /// May a load of a word with races return this? Under sequential consistency only the last store; under release consistency any that
    /// no store overwrites which happens before the load.
    fn may_return(&self, who: usize, past: &[Past], latest: Option<u32>, value: u32) -> Result<(), String> {
        if self.sequential {
            return if latest == Some(value) { Ok(()) } else { Err(format!("not {latest:?}")) };
        }
        let knows = |clock: &Clock, store: &Past| clock[store.writer] >= store.clock[store.writer];
        let happened = |store: &&Past| store.writer == who || knows(&self.clocks[who], store);
        // The value 0 was there before all stores.
        let own = past.iter().position(|store| store.value == value);
        let overwrites = |(number, store): &(usize, &Past)| match own {
            None => true,
            Some(_) if !self.orders_races => false,
            Some(own) => *number > own && (store.writer == past[own].writer || knows(&store.clock, &past[own])),
        };
        let mut later = past.iter().enumerate().filter(|(_, store)| happened(store)).filter(overwrites);
        match later.next() {
            Some((_, store)) => Err(format!("which {} of p{} overwrites", store.value, store.writer)),
            None if own.is_none() && value != 0 => Err("which nothing stored".to_owned()),
            None => Ok(()),
        }
    }

    /// The value that a store writes: one that the word never had, or the one before its last.
    pub fn store(&mut self, who: usize, (unit, word): (usize, usize), puts_back: bool) -> Result<u32, &'static str> {
        let known = self.words[unit][word];
        if let Some(number) = known.racy.checked_sub(1) {
            let past = &mut self.pasts[usize::from(number)];
            let value = past.len() as u32 + 1;
            past.push(Past { value, writer: who, clock: self.clocks[who] });
            self.words[unit][word].latest = Some(value);
            return Ok(value);
        }
        if !self.is_ordered(who, &known) && known.latest.is_some() {
            return Err(RACE);
        }
        let value = if puts_back { known.before } else { known.count + 1 };
        let count = if puts_back { known.count } else { known.count + 1 };
        let before = known.latest.unwrap_or(value);
        let at = self.clocks[who][who];
        self.words[unit][word] = Known { latest: Some(value), before, count, writer: who as u8, at, racy: 0 };
        Ok(value)
    }

    /// Looks at what a load returned.
    pub fn load(&self, who: usize, (unit, word): (usize, usize), value: u32) -> Result<(), (&'static str, String)> {
        let known = &self.words[unit][word];
        if let Some(number) = known.racy.checked_sub(1) {
            let may = self.may_return(who, &self.pasts[usize::from(number)], known.latest, value);
            return may.map_err(|instead| (LOAD, format!("p{who} loads {value} from u{unit}.{word}, {instead}")));
        }
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
        let mut oracle = Oracle::new(2, 1, false, true);
        oracle.grow();
        oracle
    }

    #[test]
    fn a_load_after_the_release_and_the_acquire_must_return_the_store() {
        let mut oracle = oracle();
        assert_eq!(oracle.load(1, (0, 3), 0), Ok(()), "fresh memory is zero");
        assert_eq!(oracle.store(0, (0, 3), false), Ok(1));
        oracle.release(0, Carrier::Sync(0));
        oracle.acquire(1, &oracle.passed_on(Carrier::Sync(0)));
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
    fn a_word_with_races_returns_what_nothing_known_overwrites() {
        let mut oracle = oracle();
        oracle.allow_races(0, 3);
        let stores = [0, 1, 0].map(|who| oracle.store(who, (0, 3), false));
        assert_eq!(stores, [Ok(1), Ok(2), Ok(3)]);
        let may = |oracle: &Oracle| [0, 1, 2, 3, 4].map(|value| oracle.load(1, (0, 3), value).is_ok());
        assert_eq!(
            may(&oracle),
            [false, true, true, true, false],
            "its own store overwrites the zero; nothing stored 4"
        );
        oracle.release(0, Carrier::Sync(0));
        oracle.acquire(1, &oracle.passed_on(Carrier::Sync(0)));
        assert_eq!(may(&oracle), [false, false, true, true, false], "3 overwrites 1, and nothing that it knows 2");
    }

    #[test]
    fn what_is_put_back_is_the_value_before() {
        let mut oracle = oracle();
        let stores = [false, false, true, false].map(|puts_back| oracle.store(0, (0, 0), puts_back));
        assert_eq!(stores, [Ok(1), Ok(2), Ok(1), Ok(3)]);
    }
}
