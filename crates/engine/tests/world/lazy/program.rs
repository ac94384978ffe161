//! Programs without data races: a word is guarded by a mutex, or it is one processor's between two barriers.

use crate::random::Random;

/// Mutexes. Word `w` of each unit below this number is guarded by mutex `w`.
pub const LOCKS: usize = 3;
/// The first of the words that are a processor's own.
const OWN: usize = 8;

/// What a processor does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Lock(usize),
    Unlock(usize),
    /// Unit and word.
    Load(usize, usize),
    Store(usize, usize),
    Barrier,
}

/// A script for each node's processor.
pub struct Program {
    pub units: usize,
    pub scripts: Vec<Vec<Op>>,
}

impl Program {
    pub fn random(random: &mut Random) -> Self {
        let (nodes, units) = (random.of(&[2, 2, 3, 3, 4, 5, 8]), random.within(1..4));
        let rounds = random.within(1..6);
        let mut scripts = vec![Vec::new(); nodes];
        for _ in 0..rounds {
            for (who, script) in scripts.iter_mut().enumerate() {
                for _ in 0..random.below(5) {
                    step(random, (units, who), script);
                }
                script.push(Op::Barrier);
                let others = (0..random.below(4)).map(|_| Op::Load(random.below(units), OWN + random.below(nodes)));
                script.extend(others);
                script.push(Op::Barrier);
            }
        }
        Self { units, scripts }
    }
}

/// A critical section, or accesses to the processor's own words.
fn step(random: &mut Random, (units, who): (usize, usize), script: &mut Vec<Op>) {
    let lock = (!random.once_in(3)).then(|| random.below(LOCKS));
    script.extend(lock.map(Op::Lock));
    let word = lock.unwrap_or(OWN + who);
    for _ in 0..random.within(1..5) {
        let unit = random.below(units);
        script.push(if random.once_in(2) { Op::Load(unit, word) } else { Op::Store(unit, word) });
    }
    script.extend(lock.map(Op::Unlock));
}
