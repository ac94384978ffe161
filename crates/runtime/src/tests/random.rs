//! Random programs without data races: what a processor loads is what was stored last.
//!
//! In an *epoch* all processors run by turns. Each stores to words of its own, which lie beside those of the others in the same pages, and
//! loads words that none but itself has stored to in this epoch. Between epochs all meet. Some loads go through pages side by side.

use std::ops::Range;

use finespun_types::PAGE_BYTES;

use super::small::{Processor, Small};

/// Words of a page that programs use: some of each line.
const WORDS: usize = 16;
/// Pages that programs use, in each part of the space.
const PAGES: u32 = 12;

/// A source of numbers: SplitMix64.
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    const fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// What a word holds by right.
#[derive(Clone, Copy, Default)]
struct Word {
    value: u64,
    stored_in: u32,
}

/// A program that runs.
pub struct Program<'a> {
    job: &'a Small,
    random: Random,
    /// The pages of each part of the space: by first touch, at the nodes, dealt.
    parts: [Range<u32>; 3],
    words: Vec<[Word; WORDS]>,
    epoch: u32,
}

impl<'a> Program<'a> {
    pub fn new(job: &'a Small, seed: u64) -> Self {
        let limit = job.processors[0].cluster.job.heap_bytes as usize / PAGE_BYTES;
        let part = |number: u32| number * limit as u32..number * limit as u32 + PAGES;
        let words = vec![[Word::default(); WORDS]; 3 * PAGES as usize];
        Self { job, random: Random(seed), parts: [part(0), part(1), part(2)], words, epoch: 0 }
    }

    /// Runs epochs of so many steps, and says what was wrong first.
    pub fn run(&mut self, epochs: u32, steps: usize) {
        for _ in 0..epochs {
            self.epoch += 1;
            for _ in 0..steps {
                let who = self.random.below(self.job.processors.len());
                let index = self.random.below(self.words.len());
                match self.random.below(10) {
                    0..=2 => self.store(who, index),
                    3..=7 => self.load(who, index),
                    // What it has stored so far is released while the others go on.
                    8 => self.job.processors[who].synchronize(),
                    _ => (index..self.words.len().min(index + 6)).for_each(|index| self.load(who, index)),
                }
            }
            self.meet();
        }
    }

    fn page(&self, index: usize) -> u32 {
        self.parts[index / PAGES as usize].start + index as u32 % PAGES
    }

    fn processor(&self, who: usize) -> &'a Processor {
        &self.job.processors[who]
    }

    /// A store to a word of the processor's own.
    fn store(&mut self, who: usize, index: usize) {
        let all = self.job.processors.len();
        let word = self.random.below(WORDS / all) * all + who;
        let value = self.random.next();
        self.processor(who).store(self.page(index), place(word), value);
        self.words[index][word] = Word { value, stored_in: self.epoch };
    }

    /// A load of a word that no other processor has stored to in this epoch.
    fn load(&mut self, who: usize, index: usize) {
        let word = self.random.below(WORDS);
        let Word { value, stored_in } = self.words[index][word];
        let is_own = word % self.job.processors.len() == who;
        let loaded = self.processor(who).load(self.page(index), place(word));
        if is_own || stored_in < self.epoch {
            assert_eq!(loaded, value, "processor {who}, page {}, word {word}, epoch {}", self.page(index), self.epoch);
        }
    }

    /// All that was stored before is seen by all from now on.
    fn meet(&self) {
        for _ in 0..2 {
            self.job.processors.iter().for_each(Processor::synchronize);
        }
    }
}

/// Spread over a page, every second one beside another.
const fn place(word: usize) -> usize {
    word / 2 * 60 + word % 2
}
