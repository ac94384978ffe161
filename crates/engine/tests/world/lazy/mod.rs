//! `tmk` in the same world: its tables with the engine's `lazy`, the mutexes and barriers of `sync`, the network and the data oracle of
//! the others. It has a job of its own, because lazy release consistency tells times along with grants, and has no transaction.
//!
//! ```text
//!   program  critical sections and phases between barriers, from a seed
//!   node     copies, times, the log of intervals
//!   job      processors, messages, objects at their managers, collections
//! ```
//!
//! A node has one processor. Handlers run to their end at one moment; a release, an acquire and a collection take a step for each unit.

mod job;
mod node;
mod program;

use crate::job::{Broken, ENDS};
use crate::number;
use crate::oracle::LOAD;
use crate::random::Random;
use crate::scene::ROW;
use job::Job;
use program::Program;

/// One wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Diffs are applied in the order opposite to that of their stamps.
    DiffsReversed,
    /// An acquire obeys no notices.
    NoticesIgnored,
    /// A collection does not complete the copies of last writers.
    NothingKept,
    /// Waiting processors are not woken.
    NoWake,
}

/// One run of one seed; how many steps it had.
fn run(seed: u64, bug: Option<Bug>) -> Result<u64, Broken> {
    let random = Random::new(seed);
    let program = Program::random(&mut random.fork(1));
    let mut job = Job::new(&program, random.fork(2), bug);
    job.run();
    job.broken.take().map_or(Ok(job.steps), Err)
}

#[test]
fn tmk() {
    let (first, runs) = match number("FINESPUN_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("FINESPUN_RUNS").unwrap_or(super::RUNS)),
    };
    let mut steps = 0;
    for seed in first..first + runs {
        match run(seed, None) {
            Ok(taken) => steps += taken,
            Err(Broken { sentence, detail }) => panic!(
                "tmk, seed {seed}: `{sentence}` does not hold: {detail}\n  again: FINESPUN_SEED={seed} cargo test -p finespun-engine \
                 --test world tmk"
            ),
        }
    }
    println!("tmk: {runs} runs from seed {first}, {steps} steps");
}

#[test]
fn a_seed_of_tmk_replays_exactly() {
    assert!((0..20).all(|seed| run(seed, None).ok() == run(seed, None).ok()));
}

#[test]
fn every_seeded_bug_of_tmk_is_found() {
    let find = |bug, sentences: &[&str]| {
        let found = (0..500).find_map(|seed| run(seed, Some(bug)).err().map(|broken| (seed, broken.sentence)));
        assert!(found.is_some_and(|(_, sentence)| sentences.contains(&sentence)), "{bug:?}: {found:?}");
    };
    find(Bug::DiffsReversed, &[LOAD]);
    find(Bug::NoticesIgnored, &[LOAD]);
    find(Bug::NothingKept, &[LOAD, ROW, node::KEPT]);
    find(Bug::NoWake, &[ENDS]);
}
