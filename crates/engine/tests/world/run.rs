//! One run of one seed: its program, its setting, its schedule. A failure is made small and says how to run it again.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use finespun_protocol::cashmere::variants::Variant;

use crate::bugs::Bug;
use crate::engine::Engine;
use crate::generate;
use crate::job::{Broken, Job, Setting};
use crate::program::{PROCESSORS_MAX, Program, Shape};
use crate::random::Random;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The protocol's name.
    pub name: &'static str,
    pub variant: Variant,
    pub levels: Levels,
    pub bug: Option<Bug>,
}

/// How processors are dealt to nodes.
#[derive(Clone, Copy, Debug)]
pub enum Levels {
    /// Views of several processes, of several threads.
    Two,
    /// Every processor is a node of its own.
    One,
    /// Every process is a node of its own, with several threads, of which some may be outside the barrier of all.
    Threads,
}

/// A run that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Of all that happened.
    pub hash: u64,
    pub steps: u64,
}

/// A run that broke a sentence.
#[derive(Debug)]
pub struct Failure {
    pub plan: Plan,
    pub seed: u64,
    pub broken: Broken,
    pub hash: u64,
    /// The smaller program that also breaks it, and the last transitions of that run.
    pub program: Program,
    pub schedule: u64,
    pub trace: Vec<String>,
}

/// The code gave up.
const PANIC: &str = "no assertion of the code fails";

fn shape(plan: &Plan, random: &mut Random) -> Shape {
    let nodes = random.of(&[2, 2, 2, 3, 3, 3, 4, 5, 8]);
    let (views, threads) = match plan.levels {
        Levels::Two => random.of(&[(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (2, 2)]),
        Levels::One => (1, 1),
        Levels::Threads => random.of(&[(1, 1), (1, 2), (1, 2), (1, 3)]),
    };
    let most = PROCESSORS_MAX / nodes;
    let (views, threads) = if views * threads <= most { (views, threads) } else { (views.min(most), 1) };
    let some_outside = matches!(plan.levels, Levels::Threads) && threads > 1 && random.once_in(2);
    Shape { nodes, views, threads, outside: usize::from(some_outside) }
}

/// One run, of these steps of the seed's program, on one of its schedules.
struct Attempt<'a> {
    plan: &'a Plan,
    seed: u64,
    steps: &'a [usize],
    schedule: u64,
}

impl Attempt<'_> {
    fn program(&self) -> Program {
        let shape = shape(self.plan, &mut Random::new(self.seed).fork(3));
        generate::program(shape, self.seed, self.steps.iter().copied())
    }

    fn run<E: Engine>(&self, program: &Program, traced: bool) -> (Result<Ended, Broken>, u64, Vec<String>) {
        let source = Random::new(self.seed).fork(4);
        let setting = Setting::random(self.plan.variant, &mut source.fork(0));
        let schedule = source.fork(1 + self.schedule);
        let mut job = Job::<E>::new(program, setting, self.plan.bug, schedule, traced);
        let panic = catch_unwind(AssertUnwindSafe(|| job.run())).err();
        let broken = panic.map(|what| {
            let text = what.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| what.downcast_ref::<&str>().copied()).unwrap_or_default();
            Broken { sentence: PANIC, detail: text.to_owned() }
        });
        let (hash, steps) = (job.notes.hash(), job.steps);
        let broken = broken.or(job.broken.take());
        (broken.map_or(Ok(Ended { hash, steps }), Err), hash, job.notes.into_lines())
    }

    /// Which sentence breaks, if one does.
    fn breaks<E: Engine>(&self) -> Option<&'static str> {
        self.run::<E>(&self.program(), false).0.err().map(|broken| broken.sentence)
    }
}

/// The run of a seed.
///
/// # Errors
/// What broke, made small.
pub fn run<E: Engine>(plan: &Plan, seed: u64) -> Result<Ended, Box<Failure>> {
    let steps: Vec<usize> = (0..generate::steps(seed)).collect();
    let attempt = Attempt { plan, seed, steps: &steps, schedule: 0 };
    let (result, _, _) = attempt.run::<E>(&attempt.program(), false);
    result.map_err(|broken| Box::new(small::<E>(plan, seed, steps, &broken)))
}

/// Which sentence the seed's run breaks, if it does.
pub fn breaks<E: Engine>(plan: &Plan, seed: u64) -> Option<&'static str> {
    let steps: Vec<usize> = (0..generate::steps(seed)).collect();
    Attempt { plan, seed, steps: &steps, schedule: 0 }.breaks::<E>()
}

/// Schedules that are tried with each smaller program.
const SCHEDULES: u64 = 12;

/// Leaves out steps of the program as long as it still breaks the sentence, on one schedule or another: halves first, then less.
fn small<E: Engine>(plan: &Plan, seed: u64, mut steps: Vec<usize>, broken: &Broken) -> Failure {
    let (mut schedule, mut piece) = (0, steps.len().div_ceil(2));
    while piece > 0 {
        let mut from = 0;
        while from < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(from..(from + piece).min(steps.len()));
            let still = |schedule: &u64| {
                let attempt = Attempt { plan, seed, steps: &fewer, schedule: *schedule };
                attempt.breaks::<E>() == Some(broken.sentence)
            };
            match (0..SCHEDULES).find(still) {
                Some(found) => (steps, schedule) = (fewer, found),
                None => from += piece,
            }
        }
        piece /= 2;
    }
    let attempt = Attempt { plan, seed, steps: &steps, schedule };
    let program = attempt.program();
    let (result, hash, trace) = attempt.run::<E>(&program, true);
    let broken = result.err().unwrap_or_else(|| broken.clone());
    Failure { plan: *plan, seed, broken, hash, program, schedule, trace }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan: Plan { name, variant, bug, .. }, seed, broken, hash, program, schedule, trace } = self;
        writeln!(f, "{name}, seed {seed}: `{}` does not hold: {}", broken.sentence, broken.detail)?;
        writeln!(f, "  again: FINESPUN_SEED={seed} cargo test -p finespun-engine --test world {name}")?;
        writeln!(
            f,
            "  {variant:?}, bug {bug:?}; made small: {} operations, schedule {schedule}, hash {hash:016x}",
            program.operations()
        )?;
        write!(f, "{program}")?;
        trace.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

#[cfg(test)]
mod tests {
    use finespun_protocol::cashmere::Cashmere;

    use super::*;
    use crate::home::Home;
    use crate::lazy::Lazy;

    const PLAN: Plan = Plan { name: "csm_none", variant: Variant::NONE, levels: Levels::Two, bug: None };

    fn has_no_race_and_ends<E: Engine>(plan: &Plan) {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let steps: Vec<usize> = (0..generate::steps(seed)).filter(|_| !random.once_in(3)).collect();
            let attempt = Attempt { plan, seed, steps: &steps, schedule: 0 };
            assert_eq!(attempt.breaks::<E>(), None, "seed {seed}");
        }
    }

    #[test]
    fn a_program_without_some_of_its_steps_has_no_race_and_ends() {
        has_no_race_and_ends::<Home<Cashmere>>(&PLAN);
        has_no_race_and_ends::<Lazy>(&Plan { name: "tmk_tcp", levels: Levels::Threads, ..PLAN });
    }

    #[test]
    fn a_failure_is_made_small_and_says_how_to_run_it_again() {
        let plan = Plan { bug: Some(Bug::NoticeDropped), ..PLAN };
        let failure = || (0..20).find_map(|seed| run::<Home<Cashmere>>(&plan, seed).err()).expect("the bug is found");
        let (told, again) = (failure(), failure());
        assert_eq!(told.to_string(), again.to_string());
        let steps = 0..generate::steps(told.seed);
        let whole = generate::program(told.program.shape, told.seed, steps).operations();
        assert!(told.program.operations() < whole / 2, "{} of {whole} operations", told.program.operations());
        let text = told.to_string();
        assert!(text.contains(&format!("FINESPUN_SEED={}", told.seed)) && text.contains("hash"), "{text}");
        assert!(told.trace.iter().any(|line| line.contains("--")) && told.trace.len() > 10, "{text}");
    }
}
