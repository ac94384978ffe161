//! Are the programs free of data races? If not, a load that returns an old value would be blamed on the protocol.
//! Sequential runs with vector times: an access must come after every
//! conflicting one of another processor.

use crate::program::{Op, Program, WORDS, Word};
use crate::random::Random;

type Times = Vec<u32>;

/// What has been seen of one word: each processor's own time at its last load and its last store.
struct Seen {
    loads: Times,
    stores: Times,
}

struct Sequential<'a> {
    program: &'a Program,
    next: Vec<usize>,
    times: Vec<Times>,
    held: [bool; 4],
    lock_times: Vec<Times>,
    flags: [bool; 4],
    flag_times: Vec<Times>,
    arrived: Vec<bool>,
    /// What those knew who have arrived.
    barrier_times: Times,
    signals: u8,
    words: Vec<Seen>,
}

/// Runs the program once, one operation after another in a random order, and returns a race if there is one.
#[must_use]
pub fn race(program: &Program, random: &mut Random) -> Option<String> {
    let processors = program.scripts.len();
    let zero = vec![0; processors];
    let words = program.shape.units * WORDS;
    let mut run = Sequential {
        program,
        next: vec![0; processors],
        times: (0..processors).map(|own| (0..processors).map(|other| u32::from(other == own)).collect()).collect(),
        held: [false; 4],
        lock_times: vec![zero.clone(); 4],
        flags: [false; 4],
        flag_times: vec![zero.clone(); 4],
        arrived: vec![false; processors],
        barrier_times: zero.clone(),
        signals: program.signals,
        words: (0..words).map(|_| Seen { loads: zero.clone(), stores: zero.clone() }).collect(),
    };
    loop {
        let able: Vec<usize> = (0..processors).filter(|&processor| run.is_able(processor)).collect();
        if able.is_empty() {
            return None;
        }
        let processor = able[random.below(able.len())];
        if let Some(at) = run.step(processor, random) {
            return Some(format!("p{processor} and another processor race for u{}.{}", at.unit, at.word));
        }
    }
}

impl Sequential<'_> {
    fn op(&self, processor: usize) -> Option<&Op> {
        self.program.scripts[processor].get(self.next[processor])
    }

    fn is_able(&self, processor: usize) -> bool {
        self.is_able_itself(processor) || self.takes_signal(processor)
    }

    /// A signal comes while its processor waits for others.
    fn takes_signal(&self, processor: usize) -> bool {
        let waits = matches!(self.op(processor), Some(Op::Lock(_) | Op::Await(_) | Op::Barrier));
        waits && self.signals > 0 && !self.program.handlers[processor].is_empty()
    }

    fn is_able_itself(&self, processor: usize) -> bool {
        match self.op(processor) {
            None => false,
            Some(&Op::Lock(lock)) => !self.held[lock],
            Some(&Op::Await(flag)) => self.flags[flag],
            Some(Op::Barrier) => !self.arrived[processor],
            Some(Op::Load(..) | Op::Store(..) | Op::Unlock(_) | Op::Set(_) | Op::Either(_)) => true,
        }
    }

    fn step(&mut self, own: usize, random: &mut Random) -> Option<Word> {
        if self.takes_signal(own) && (!self.is_able_itself(own) || random.below(2) == 0) {
            return self.handle(own);
        }
        let op = self.op(own)?.clone();
        if op != Op::Barrier {
            self.next[own] += 1;
        }
        match op {
            Op::Load(at, _) => return self.access(own, at, false).then_some(at),
            Op::Store(at, _) => return self.access(own, at, true).then_some(at),
            Op::Either(places) => self.next[own] = places[random.below(places.len())],
            Op::Lock(lock) => {
                self.held[lock] = true;
                join(&mut self.times[own], &self.lock_times[lock]);
            }
            Op::Await(flag) => join(&mut self.times[own], &self.flag_times[flag]),
            Op::Unlock(lock) => {
                self.held[lock] = false;
                self.lock_times[lock].clone_from(&self.times[own]);
                self.times[own][own] += 1;
            }
            Op::Set(flag) => {
                self.flags[flag] = true;
                join(&mut self.flag_times[flag], &self.times[own]);
                self.times[own][own] += 1;
            }
            Op::Barrier => self.arrive(own),
        }
        None
    }

    fn handle(&mut self, own: usize) -> Option<Word> {
        self.signals -= 1;
        let program = self.program;
        program.handlers[own].iter().find_map(|op| match *op {
            Op::Load(at, _) => self.access(own, at, false).then_some(at),
            Op::Store(at, _) => self.access(own, at, true).then_some(at),
            Op::Lock(_) | Op::Unlock(_) | Op::Barrier | Op::Set(_) | Op::Await(_) | Op::Either(_) => None,
        })
    }

    fn arrive(&mut self, own: usize) {
        self.arrived[own] = true;
        join(&mut self.barrier_times, &self.times[own]);
        self.times[own][own] += 1;
        let scripts = &self.program.scripts;
        let takes_part: Vec<usize> = (0..scripts.len()).filter(|&one| scripts[one].contains(&Op::Barrier)).collect();
        if !takes_part.iter().all(|&one| self.arrived[one]) {
            return;
        }
        for one in takes_part {
            join(&mut self.times[one], &self.barrier_times);
            self.arrived[one] = false;
            self.next[one] += 1;
        }
    }

    /// Does this access race with an earlier one?
    fn access(&mut self, own: usize, at: Word, store: bool) -> bool {
        let (times, seen) = (&self.times[own], &mut self.words[at.unit * WORDS + at.word]);
        let is_before = |others: &Times| others.iter().zip(times).all(|(other, mine)| other <= mine);
        let ordered = is_before(&seen.stores) && (!store || is_before(&seen.loads));
        let place = if store { &mut seen.stores } else { &mut seen.loads };
        place[own] = times[own];
        !ordered
    }
}

fn join(times: &mut Times, other: &Times) {
    for (mine, theirs) in times.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::race;
    use crate::litmus::LITMUS;
    use crate::program::{Program, Shape};
    use crate::random::{self, Random};
    use crate::worlds::WORLDS;

    fn races(program: &Program) -> Option<String> {
        (0..400).find_map(|seed| race(program, &mut Random::new(seed)))
    }

    #[test]
    fn the_worlds_have_no_data_race() {
        for world in WORLDS {
            assert_eq!(races(&Program::parse(world.text).unwrap()), None, "{}", world.name);
        }
    }

    #[test]
    fn the_litmus_tests_have_a_data_race_exactly_where_they_say_so() {
        for litmus in LITMUS {
            let program = Program::parse(litmus.text).unwrap();
            assert_eq!(races(&program).is_some(), program.racy, "{}", litmus.name);
        }
    }

    #[test]
    fn random_programs_have_no_data_race() {
        let shape = Shape { nodes: 3, views: 2, threads: 1, units: 2 };
        for seed in 0..300 {
            let program = random::program(shape, &mut Random::new(seed));
            let found = (0..10).find_map(|seed| race(&program, &mut Random::new(seed)));
            assert_eq!(found, None, "seed {seed}");
        }
    }
}
