//! `finespun bench`: what each operation of the shared memory costs, per protocol, transport and fault mechanism; the
//! applications beside the sequential program and native threads; and, in the same run, the machine's own floors and other
//! systems for distributed memory. Times are minima and medians; counts stand beside them; the tables give ratios to a
//! floor and to a peer, and say which of the project's budgets are met.
//!
//! ```text
//!   programs   benches/micro (C, on the public headers), benches/peers, benches/native: what is measured
//!   measure    runs them as jobs, reads their lines and the counts of their phases
//!   results    one row for each measurement: JSON
//!   scale      how costs grow with nodes, processors, heap, dirty pages and sharers; memory
//!   budget     what each operation may cost, and whether it does
//!   table      rows as Markdown, with ratios;  drawing: the same as a picture
//! ```

#![forbid(unsafe_code)]

mod applications;
mod budget;
mod drawing;
mod measure;
mod results;
mod scale;
mod table;

use std::path::{Path, PathBuf};

pub use budget::{Budget, judge};
pub use drawing::{draw, draw_scale};
pub use results::{Kind, Machine, Results, Row};
pub use scale::{Point, Scale, Taken};
pub use table::tables;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The command `finespun` itself.
    pub finespun: PathBuf,
    /// The folder of the programs that are measured.
    pub programs: PathBuf,
    /// Protocol, transport and fault mechanism, each measured with every micro benchmark.
    pub settings: Vec<Setting>,
    /// Applications too: with the first setting of each transport.
    pub applications: bool,
    /// How costs grow, with the first setting; and then nothing else.
    pub scale: bool,
    /// As little as possible: does everything run?
    pub tiny: bool,
    /// Runs of each application.
    pub repeat: usize,
    /// How often floors, peers and operations are measured, by turns.
    pub rounds: usize,
}

/// How a job is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Of `finespun run --protocol list`.
    pub protocol: String,
    /// `shm` or `tcp`.
    pub transport: String,
    /// `uffd`, `mprotect` or `auto`.
    pub faults: String,
}

/// Measures all of the plan. `tell` hears what is being done, a line each.
///
/// # Errors
/// A sentence: which program failed, and what it said.
pub fn run(plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<Results, String> {
    let mut results = Results::new(Machine::here(&plan.programs));
    if plan.scale {
        let first = plan.settings.first().ok_or("no setting to measure with")?;
        results.scale = scale::measure(plan, first, tell)?;
        return Ok(results);
    }
    // A busy moment of the machine, which may last for minutes, is no round's alone: what is compared has met the same ones.
    let mut rounds = Vec::new();
    for round in 0..plan.rounds.max(1) {
        tell("the machine's own floors");
        let mut rows = measure::floors(plan)?;
        let missing = measure::peers(plan, &mut rows, tell);
        if round == 0 {
            results.missing = missing;
        }
        for setting in &plan.settings {
            measure::micro(plan, setting, &mut rows, tell)?;
        }
        rounds.push(rows);
    }
    results.rows = results::combine(rounds);
    if plan.applications {
        applications::measure(plan, &mut results, tell)?;
    }
    results.budget = judge(&results);
    Ok(results)
}

/// The folder of the measured programs beside a command: `libexec/finespun` in the same tree.
#[must_use]
pub fn programs_beside(command: &Path) -> Option<PathBuf> {
    let folder = command.parent()?.parent()?.join("libexec/finespun");
    folder.join("micro").exists().then_some(folder)
}
