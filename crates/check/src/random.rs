//! Larger worlds at random: programs without data races, and one interleaving of each, all from one seed.
//!
//! A program is made of phases between barriers. In each phase every word has one rule: only one processor uses it, or
//! all only read it, or whoever holds its lock uses it. So neighbouring words of one unit are used by different
//! processors at the same time, and each word moves between processors from phase to phase.

use finespun_types::NodeId;

use crate::driver::{Broken, Form, Grain, Rules, Run};
use crate::explore::{ENDS, Violation, ended, look};
use crate::processor::Move;
use crate::program::{Guesses, Op, Program, Shape, WORDS, Word};
use crate::subject::Subject;

/// A source of numbers: SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Who may use a word in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Only(usize),
    ReadByAll,
    Locked(usize),
}

/// A program without data races.
#[must_use]
pub fn program(shape: Shape, random: &mut Random) -> Program {
    let mut program = Program::empty(shape);
    for home in &mut program.homes {
        *home = (random.below(2) == 0).then(|| NodeId::of(random.below(shape.nodes)));
    }
    let phases = 2 + random.below(3);
    let handled = handler(&mut program, random);
    for phase in 0..phases {
        let mut rules: Vec<Rule> = (0..shape.units * WORDS).map(|_| rule(shape, random)).collect();
        if let Some((place, processor)) = handled {
            rules[place] = Rule::Only(processor);
        }
        for (processor, script) in program.scripts.iter_mut().enumerate() {
            for _ in 0..random.below(5) {
                section(processor, &rules, random, script);
            }
            if phase + 1 < phases {
                script.push(Op::Barrier);
            }
        }
    }
    program.keeps = random.below(2) == 0;
    let which = [Guesses::Any, Guesses::Refusing, Guesses::Writing][random.below(3)];
    program.guesses = ([0, 0, 3, 20][random.below(4)], which);
    program
}

/// In every fourth program a processor has a signal handler, which stores to a word that only this processor uses.
fn handler(program: &mut Program, random: &mut Random) -> Option<(usize, usize)> {
    if random.below(4) > 0 {
        return None;
    }
    let (place, processor) = (random.below(program.shape.units * WORDS), random.below(program.shape.processors()));
    let at = Word { unit: place / WORDS, word: place % WORDS };
    program.handlers[processor] = vec![Op::Load(at, None), Op::Store(at, None)];
    program.signals = 1 + random.below(4) as u8;
    Some((place, processor))
}

fn rule(shape: Shape, random: &mut Random) -> Rule {
    match random.below(5) {
        0 => Rule::ReadByAll,
        1 | 2 => Rule::Only(random.below(shape.processors())),
        _ => Rule::Locked(random.below(3)),
    }
}

/// A few accesses, with or without locks around them; locks are taken in one order, so that no program blocks itself.
fn section(processor: usize, rules: &[Rule], random: &mut Random, script: &mut Vec<Op>) {
    let first = random.below(4);
    let last = (first + random.below(2)).min(3);
    let held: Vec<usize> = (first..last.max(first)).chain((last < 3).then_some(last)).collect();
    for &lock in &held {
        script.push(Op::Lock(lock));
        accesses(processor, rules, &held[..=lock - first], random, script);
    }
    accesses(processor, rules, &held, random, script);
    for (place, &lock) in held.iter().enumerate() {
        script.push(Op::Unlock(lock));
        accesses(processor, rules, &held[place + 1..], random, script);
    }
}

fn accesses(processor: usize, rules: &[Rule], held: &[usize], random: &mut Random, script: &mut Vec<Op>) {
    for _ in 0..random.below(4) {
        let place = random.below(rules.len());
        let at = Word { unit: place / WORDS, word: place % WORDS };
        let may_store = match rules[place] {
            Rule::Only(one) if one == processor => true,
            Rule::Locked(lock) if held.contains(&lock) => true,
            Rule::ReadByAll => false,
            Rule::Only(_) | Rule::Locked(_) => continue,
        };
        script.push(if may_store && random.below(2) == 0 { Op::Store(at, None) } else { Op::Load(at, None) });
    }
}

/// One random run of a random program; tells how many steps it had.
///
/// # Errors
/// The violation, with the run that led to it.
pub fn run<P: Subject>(shape: Shape, form: Form, grain: Grain, seed: u64) -> Result<usize, Box<Violation>> {
    let mut random = Random::new(seed);
    let program = program(shape, &mut random);
    let rules = Rules::<P> { program, form, grain, bug: None };
    let schedule = random.clone();
    interleave(&rules, schedule.clone(), false).map_err(|(_, steps)| {
        let (broken, trace) = match interleave(&rules, schedule, true) {
            Err(((broken, trace), _)) => (broken, trace),
            Ok(_) => (Broken::new(ENDS, "a run that cannot be repeated"), Vec::new()),
        };
        Box::new(Violation::after(broken, trace, steps, Some(seed)))
    })
}

type Failure = ((Broken, Vec<String>), usize);

/// Steps after the delays in which everybody must come to an end.
const HEALED_MAX: usize = 200_000;
/// The most steps with delays.
const DELAYED_MAX: usize = 2_000;
/// Steps for which the same tasks stand still.
const DELAY: usize = 100;

/// Which of the things that can happen does. First come delays: a third of the tasks, processors and channels, stand still as long as
/// anybody else can go on, others the next time. Then the delays stop, everything may happen at any time, and in a bounded number
/// of steps everybody must have got every answer: the phase of liveness. Some schedules prefer one task for long in both phases.
pub(crate) struct Schedule {
    random: Random,
    stickiness: usize,
    last: Option<u16>,
    delayed: usize,
    steps: usize,
}

impl Schedule {
    pub(crate) fn new(mut random: Random) -> Self {
        let stickiness = [0, 1, 7, 30][random.below(4)];
        let delayed = random.below(2) * random.below(DELAYED_MAX);
        Self { random, stickiness, last: None, delayed, steps: 0 }
    }

    /// One of `moves`, of which there is at least one.
    pub(crate) fn next(&mut self, moves: &[Move]) -> Move {
        let (last, free) = (self.last, moves.iter().filter(|one| !self.stands_still(one.task)).count());
        let again = moves.iter().find(|one| last == Some(one.task) && !self.stands_still(one.task)).copied();
        let next = match again {
            Some(next) if self.random.below(self.stickiness + 1) > 0 => next,
            Some(_) | None if free == 0 => moves[self.random.below(moves.len())],
            Some(_) | None => {
                let place = self.random.below(free);
                let mut free = moves.iter().filter(|one| !self.stands_still(one.task));
                *free.nth(place).expect("so many there are")
            }
        };
        self.last = Some(next.task);
        self.steps += 1;
        next
    }

    fn stands_still(&self, task: u16) -> bool {
        self.steps < self.delayed && Random::new((self.steps / DELAY * 1_000 + usize::from(task)) as u64).below(3) == 0
    }

    /// How many steps there were.
    pub(crate) const fn steps(&self) -> usize {
        self.steps
    }

    /// Somebody waits for ever.
    ///
    /// # Errors
    /// That sentence.
    pub(crate) fn is_in_time(&self) -> Result<(), Broken> {
        if self.steps <= self.delayed + HEALED_MAX {
            return Ok(());
        }
        Err(Broken::new(ENDS, format!("{HEALED_MAX} steps after the last delay something still happens")))
    }
}

/// Goes on until nothing can happen.
fn interleave<P: Subject>(rules: &Rules<P>, random: Random, traced: bool) -> Result<usize, Failure> {
    let mut run = Run::new(rules);
    run.trace = traced.then(Vec::new);
    let (mut schedule, mut moves) = (Schedule::new(random), Vec::new());
    loop {
        run.moves(&mut moves);
        if moves.is_empty() {
            let (ending, steps) = (ended(&run), schedule.steps());
            return ending.map(|()| steps).map_err(|broken| ((broken, run.trace.unwrap_or_default()), steps));
        }
        let next = schedule.next(&moves);
        let result = run.apply(next).and_then(|()| look(&run)).and_then(|()| schedule.is_in_time());
        if let Err(broken) = result {
            return Err(((broken, run.trace.unwrap_or_default()), schedule.steps()));
        }
        if schedule.steps() % 64 == 0 {
            run.world.make_canonical(rules.program.shape);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_keep_tasks_back_for_a_while_and_then_everybody_is_served() {
        let moves: Vec<Move> = (0..6).map(|task| Move { task, choice: 0 }).collect();
        let mut delayed = 0;
        for seed in 0..50 {
            let mut schedule = Schedule::new(Random::new(seed));
            let until = schedule.delayed;
            let mut still = [false; 6];
            for _ in 0..until {
                let kept: Vec<u16> = (0..6).filter(|&task| schedule.stands_still(task)).collect();
                let next = schedule.next(&moves);
                assert!(kept.len() == 6 || !kept.contains(&next.task), "who stands still does not go on");
                kept.iter().for_each(|&task| still[usize::from(task)] = true);
            }
            delayed += usize::from(still.contains(&true));
            assert!((0..6).all(|task| !schedule.stands_still(task)), "the delays have stopped");
        }
        assert!(delayed > 10, "{delayed} of 50 schedules delay somebody");
    }

    #[test]
    fn what_goes_on_for_ever_is_told() {
        let mut schedule = Schedule::new(Random::new(1));
        schedule.steps = DELAYED_MAX + HEALED_MAX + 1;
        assert_eq!(schedule.is_in_time().map_err(|broken| broken.sentence), Err(ENDS));
    }
}
