//! `finespun check tmk`: everything, with a line for each thing covered.

use super::driver::Form;
use super::explore::{explore, litmus, run};
use super::seeded::SEEDED;
use super::worlds::{WAYS, WORLDS, World};
use crate::driver::{Broken, Grain};
use crate::explore::Violation;
use crate::litmus::LITMUS;
use crate::program::Shape;
use crate::summary::{CAUGHT, COUNTED, Summary};

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The worlds to explore completely.
    pub worlds: &'static [World],
    /// Random runs of each shape and way.
    pub random_runs: u64,
    /// The first seed of the random runs; each next run has the next one.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { worlds: WORLDS, random_runs: 500, seed: 1 }
    }
}

const STATES_MAX: usize = 2_000_000;

/// The shapes of the random runs.
const SHAPES: [Shape; 3] = [
    Shape { nodes: 4, views: 1, threads: 1, units: 3 },
    Shape { nodes: 6, views: 1, threads: 1, units: 2 },
    Shape { nodes: 3, views: 1, threads: 2, units: 2 },
];

/// Checks the tables of `tmk` and says what was covered, line by line.
///
/// # Errors
/// The first sentence that does not hold, with the run that leads to it.
pub fn check_tmk(options: Options, say: &mut dyn FnMut(&str)) -> Result<Summary, Violation> {
    let mut summary = Summary::default();
    say("every interleaving (nodes x views x units):");
    for world in options.worlds {
        explore_world(world, &mut summary, say)?;
    }
    say("litmus tests, every interleaving:");
    for test in LITMUS {
        say(&format!("  {:<44} {:>8} states", test.name, litmus(test)?));
        summary.litmus += 1;
    }
    say(&format!("random runs from seed {}:", options.seed));
    for shape in SHAPES {
        for (form, grain) in WAYS {
            let mut steps = 0;
            for number in 0..options.random_runs {
                steps += run(shape, form, grain, options.seed + number).map_err(|violation| *violation)?;
            }
            say(&format!("  {shape} {} {} runs, {steps} steps", way(form, grain), options.random_runs));
            summary.random_runs += options.random_runs;
            summary.random_steps += steps;
        }
    }
    say("seeded bugs:");
    for seeded in SEEDED {
        let caught = seeded.find().map_err(|why| Violation::from(Broken::new(CAUGHT, why)))?;
        let bug = format!("{:?}", seeded.bug);
        say(&format!("  {bug:<26} caught after {:>2} steps: {}", caught.steps, caught.sentence));
        summary.bugs += 1;
    }
    say(&format!(
        "covered: {} worlds, {} states, {} transitions, {} litmus tests, {} random runs of {} steps; {} of {} bugs caught",
        summary.worlds,
        summary.states,
        summary.transitions,
        summary.litmus,
        summary.random_runs,
        summary.random_steps,
        summary.bugs,
        SEEDED.len(),
    ));
    Ok(summary)
}

fn explore_world(world: &World, summary: &mut Summary, say: &mut dyn FnMut(&str)) -> Result<(), Violation> {
    say(&format!("  {}", world.name));
    for ((form, grain), pinned) in WAYS.into_iter().zip(world.states) {
        let rules = world.rules(form, grain).map_err(|why| Violation::from(Broken::new(COUNTED, why)))?;
        let report = explore(&rules, STATES_MAX);
        if let Some(violation) = report.violation {
            return Err(violation);
        }
        let (states, transitions, way) = (report.states, report.transitions, way(form, grain));
        say(&format!("    {} {way} {states:>7} states {transitions:>8} transitions", rules.program.shape));
        if states != pinned {
            let detail = format!("{}, {way}: {states}, not {pinned}", world.name);
            return Err(Violation::from(Broken::new(COUNTED, detail)));
        }
        summary.worlds += 1;
        summary.states += states;
        summary.transitions += transitions;
    }
    Ok(())
}

fn way(form: Form, grain: Grain) -> &'static str {
    match (form, grain) {
        (Form::Messages, Grain::Event) => "messages, by event ",
        (Form::Messages, Grain::Action) => "messages, by action",
        (Form::Direct, Grain::Event) => "direct,   by event ",
        (Form::Direct, Grain::Action) => "direct,   by action",
    }
}
