//! `finespun bench`: what each operation of the shared memory costs, per protocol, transport and fault mechanism; the
//! applications beside the sequential program and native threads; and, in the same run, the machine's own floors and other
//! systems for distributed memory. Times are minima and medians; counts stand beside them; the tables give ratios to a
//! floor and to a peer, and say which of the project's budgets are met.
//!
//! ```text
//!   programs   benches/micro (C, on the public headers), benches/peers, benches/native: what is measured
//!   measure    runs them as jobs, reads their lines and the counts of their phases
//!   plan       what is measured, and how often
//!   row        one measurement; results: all of them, as JSON
//!   scale      how costs grow with nodes, processors, heap, dirty pages and sharers; memory
//!   references what each case is compared with: floors and peers
//!   line       a line of the budget; budget: what each operation may cost, and whether it does
//!   table      rows as Markdown, with ratios;  drawing: the same as a picture
//! ```

#![forbid(unsafe_code)]

mod applications;
mod budget;
mod drawing;
mod growth;
mod line;
mod measure;
mod plan;
mod references;
mod results;
mod row;
mod scale;
mod table;

use std::path::{Path, PathBuf};

pub use budget::judge;
pub use drawing::{draw, draw_scale};
pub use growth::{Point, Scale, Taken};
pub use line::{Budget, Measured, Met};
pub use plan::{Plan, Setting};
pub use results::{Machine, Results};
pub use row::{Kind, Row};
pub use table::tables;

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
    let count = if plan.operations { plan.rounds.max(1) } else { 0 };
    for round in 0..count {
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
    results.rows = row::combine(rounds);
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
