//! `finespun check`: everything in the forms asked for, with a line for each thing covered.

use std::time::Instant;

use finespun_protocol::cashmere::Cashmere;
use finespun_protocol::strings::{invalidate::StringsSc, update::StringsRc};

use crate::cashmere::bugs::SEEDED;
use crate::cashmere::{broadcast, migration};
use crate::driver::{Broken, Form, Grain, Rules};
use crate::explore::{Violation, explore};
use crate::litmus::LITMUS;
use crate::program::{Program, Shape};
use crate::seeded::Seeded;
use crate::strings::{self, invalidate, update};
use crate::subject::Subject;
use crate::worlds::{WAYS, WORLDS, World};
use crate::{random, worlds};

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The forms to explore; a bug is looked for if it is seeded in one of them.
    pub forms: &'a [Form],
    /// The worlds to explore completely.
    pub worlds: &'static [World],
    /// Random runs of each shape, form and grain.
    pub random_runs: u64,
    /// The first seed of the random runs; each next run has the next one.
    pub seed: u64,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { forms: &Form::ALL, worlds: WORLDS, random_runs: 500, seed: 1 }
    }
}

/// What was covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Worlds explored completely, each form and grain counted.
    pub worlds: usize,
    /// Those of them in which views guess.
    pub guessing: usize,
    /// Their states.
    pub states: usize,
    /// The steps between them.
    pub transitions: usize,
    /// Litmus tests.
    pub litmus: usize,
    /// Random runs.
    pub random_runs: u64,
    /// Their steps.
    pub random_steps: usize,
    /// Seeded bugs, all caught.
    pub bugs: usize,
}

/// A seeded bug must break its sentence.
pub const CAUGHT: &str = "every seeded bug is caught by the sentence that names it";
/// The counts of states are pinned.
pub const COUNTED: &str = "a world has as many states as it had when it was last looked at";

const STATES_MAX: usize = 5_000_000;

/// The shapes of the random runs.
const SHAPES: [Shape; 4] = [
    Shape { nodes: 4, views: 3, threads: 1, units: 4 },
    Shape { nodes: 8, views: 1, threads: 1, units: 2 },
    Shape { nodes: 2, views: 2, threads: 1, units: 2 },
    Shape { nodes: 3, views: 1, threads: 2, units: 2 },
];

/// One world in one form and grain.
struct Exploration {
    name: &'static str,
    text: &'static str,
    form: Form,
    grain: Grain,
    /// How many states it has.
    pinned: usize,
}

/// Checks Cashmere's tables and says what was covered, line by line.
///
/// # Errors
/// The first sentence that does not hold, with the run that leads to it.
pub fn check_cashmere(options: Options<'_>, say: &mut dyn FnMut(&str)) -> Result<Summary, Violation> {
    let mut explorations = Vec::new();
    for world in options.worlds {
        let all = WAYS.into_iter().zip(world.states);
        let here = all.filter(|((form, _), _)| options.forms.contains(form));
        explorations.extend(here.map(|((form, grain), pinned)| Exploration {
            name: world.name,
            text: world.text,
            form,
            grain,
            pinned,
        }));
    }
    check_tables::<Cashmere>(options, &explorations, SEEDED, say)
}

/// Checks the tables of adaptive broadcast, in the one form that they run in.
///
/// # Errors
/// As above.
pub fn check_broadcast(options: Options<'_>, say: &mut dyn FnMut(&str)) -> Result<Summary, Violation> {
    let mut explorations = Vec::new();
    for (name, pinned) in broadcast::PINNED {
        let world =
            worlds::named(name).ok_or_else(|| Violation::from(Broken::new(COUNTED, format!("no world {name}"))))?;
        let both = [Grain::Event, Grain::Action].into_iter().zip(*pinned);
        explorations.extend(both.map(|(grain, pinned)| Exploration {
            name,
            text: world.text,
            form: broadcast::FORM,
            grain,
            pinned,
        }));
    }
    check_tables(Options { forms: &[broadcast::FORM], ..options }, &explorations, broadcast::SEEDED, say)
}

/// Checks the tables of home migration, in the forms asked for.
///
/// # Errors
/// As above.
pub fn check_migration(options: Options<'_>, say: &mut dyn FnMut(&str)) -> Result<Summary, Violation> {
    let mut explorations = Vec::new();
    for (name, pinned) in migration::PINNED {
        let world =
            worlds::named(name).ok_or_else(|| Violation::from(Broken::new(COUNTED, format!("no world {name}"))))?;
        let all = WAYS.into_iter().zip(*pinned);
        let here = all.filter(|((form, _), _)| options.forms.contains(form));
        explorations.extend(here.map(|((form, grain), pinned)| Exploration {
            name,
            text: world.text,
            form,
            grain,
            pinned,
        }));
    }
    check_tables(options, &explorations, migration::SEEDED, say)
}

/// Checks Strings' tables for release consistency by update.
///
/// # Errors
/// As above.
pub fn check_strings_rc(options: Options<'_>, say: &mut dyn FnMut(&str)) -> Result<Summary, Violation> {
    check_tables::<StringsRc>(strings_options(options), &of_strings(update::COUNTED)?, update::SEEDED, say)
}

/// Checks Strings' tables for sequential consistency by invalidation.
///
/// # Errors
/// As above.
pub fn check_strings_sc(options: Options<'_>, say: &mut dyn FnMut(&str)) -> Result<Summary, Violation> {
    check_tables::<StringsSc>(strings_options(options), &of_strings(invalidate::COUNTED)?, invalidate::SEEDED, say)
}

fn strings_options(options: Options<'_>) -> Options<'_> {
    Options { forms: &[Form::None, Form::Dms], ..options }
}

fn of_strings(worlds: &[strings::Counted]) -> Result<Vec<Exploration>, Violation> {
    let mut explorations = Vec::new();
    for world in worlds {
        let (name, text) = (world.world, world.program().map_err(|why| Violation::from(Broken::new(COUNTED, why)))?);
        let all = strings::WAYS.into_iter().zip(world.states);
        explorations.extend(all.map(|((form, grain), pinned)| Exploration { name, text, form, grain, pinned }));
    }
    Ok(explorations)
}

fn check_tables<P: Subject>(
    options: Options<'_>,
    explorations: &[Exploration],
    seeded: &[Seeded<P>],
    say: &mut dyn FnMut(&str),
) -> Result<Summary, Violation> {
    let mut summary = Summary::default();
    say("every interleaving (nodes x views x units):");
    explore_worlds::<P>(explorations, &mut summary, say)?;
    say("litmus tests, every form, every interleaving:");
    for litmus in LITMUS {
        let mut states = 0;
        for &form in options.forms {
            states += litmus.run::<P>(form)?;
        }
        say(&format!("  {:<44} {states:>8} states", litmus.name));
        summary.litmus += 1;
    }
    say(&format!("random runs from seed {}:", options.seed));
    run_randomly::<P>(options, &mut summary, say)?;
    say("seeded bugs:");
    let seeded_here = seeded.iter().filter(|seeded| options.forms.contains(&seeded.form));
    for seeded in seeded_here.clone() {
        let caught = seeded.find().map_err(|why| Violation::from(Broken::new(CAUGHT, why)))?;
        let (bug, form) = (seeded.name(), format!("{:?}", seeded.form));
        say(&format!("  {bug:<26} {form:<4} caught after {:>2} steps: {}", caught.steps, caught.sentence));
        summary.bugs += 1;
    }
    say(&format!(
        "covered: {} worlds, in {} of them views guess, {} states, {} transitions, {} litmus tests, {} random runs of {} steps; {} of {} bugs caught",
        summary.worlds,
        summary.guessing,
        summary.states,
        summary.transitions,
        summary.litmus,
        summary.random_runs,
        summary.random_steps,
        summary.bugs,
        seeded_here.count(),
    ));
    Ok(summary)
}

fn explore_worlds<P: Subject>(
    explorations: &[Exploration],
    summary: &mut Summary,
    say: &mut dyn FnMut(&str),
) -> Result<(), Violation> {
    let mut last = "";
    for &Exploration { name, text, form, grain, pinned } in explorations {
        if name != last {
            say(&format!("  {name}"));
            last = name;
        }
        let program = Program::parse(text).map_err(|why| Violation::from(Broken::new(COUNTED, why)))?;
        let rules = Rules::<P> { program, form, grain, bug: None };
        let clock = Instant::now();
        let report = explore(&rules, STATES_MAX);
        if let Some(violation) = report.violation {
            return Err(violation);
        }
        let (states, transitions, seconds) = (report.states, report.transitions, clock.elapsed().as_secs_f64());
        let way = way(form, grain);
        say(&format!(
            "    {} {way} {states:>7} states {transitions:>8} transitions {seconds:>6.2} s",
            rules.program.shape
        ));
        if states != pinned {
            let detail = format!("{name}, {way}: {states}, not {pinned}");
            return Err(Violation::from(Broken::new(COUNTED, detail)));
        }
        summary.worlds += 1;
        summary.guessing += usize::from(P::READS_AHEAD && rules.program.guesses.0 > 0);
        summary.states += states;
        summary.transitions += transitions;
    }
    Ok(())
}

fn run_randomly<P: Subject>(
    options: Options<'_>,
    summary: &mut Summary,
    say: &mut dyn FnMut(&str),
) -> Result<(), Violation> {
    for shape in SHAPES {
        for (form, grain) in WAYS.into_iter().filter(|(form, _)| options.forms.contains(form)) {
            let mut steps = 0;
            for run in 0..options.random_runs {
                steps += random::run::<P>(shape, form, grain, options.seed + run).map_err(|violation| *violation)?;
            }
            say(&format!("  {shape} {} {} runs, {steps} steps", way(form, grain), options.random_runs));
            summary.random_runs += options.random_runs;
            summary.random_steps += steps;
        }
    }
    Ok(())
}

fn way(form: Form, grain: Grain) -> &'static str {
    match (form, grain) {
        (Form::None, Grain::Event) => "None, by event ",
        (Form::None, Grain::Action) => "None, by action",
        (Form::Ms, Grain::Event) => "MS,   by event ",
        (Form::Ms, Grain::Action) => "MS,   by action",
        (Form::Dms, Grain::Event) => "DMS,  by event ",
        (Form::Dms, Grain::Action) => "DMS,  by action",
    }
}
