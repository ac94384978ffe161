//! `finespun check PROTOCOL --litmus FILE`: which outcomes a program of a few lines has, and the runs that lead to them, drawn.

use std::fs;
use std::path::Path;

use finespun_check::drawing;
use finespun_check::outcomes::{self, Outcome};
use finespun_errors::{Code, Place, Report};

use crate::output;

/// Lists the outcomes, or draws the run to each that is wanted. The exit code is 1 if one is not allowed, or a sentence does not hold.
pub fn litmus(
    protocol: &str,
    file: &Path,
    draws: bool,
    wanted: Option<&str>,
    svg: Option<&Path>,
) -> Result<i32, Report> {
    let text = fs::read_to_string(file).map_err(|error| unable(file, &error))?;
    let all = match outcomes::reached(protocol, &text) {
        Ok(all) => all,
        Err(violation) => {
            eprintln!("{violation}");
            return Ok(1);
        }
    };
    let chosen = all.iter().filter(|each| wanted.is_none_or(|wanted| each.is(wanted))).collect::<Vec<_>>();
    if let Some(wanted) = wanted
        && chosen.is_empty()
    {
        let reached = all.iter().map(|each| each.values.as_str()).collect::<Vec<_>>().join(", ");
        output::print(&format!("{protocol}: no interleaving ends with {wanted}; reached: {reached}\n"));
        return Ok(1);
    }
    for outcome in &chosen {
        output::print(&told(protocol, outcome, draws));
        if let Some(svg) = svg {
            let title = format!("{protocol}: {}", outcome.values);
            let rows = drawing::rows(&outcome.trace);
            fs::write(svg, drawing::svg(&rows, nodes(&rows), &title)).map_err(|error| unable(svg, &error))?;
        }
    }
    Ok(i32::from(chosen.iter().any(|each| each.is_allowed == Some(false))))
}

fn told(protocol: &str, outcome: &Outcome, draws: bool) -> String {
    let Outcome { values, is_allowed, trace } = outcome;
    let allowed = match is_allowed {
        Some(true) => ", allowed",
        Some(false) => ", NOT allowed",
        None => "",
    };
    let line = format!("{protocol}: {values}{allowed}\n");
    if !draws {
        return line;
    }
    let rows = drawing::rows(trace);
    let messages = rows.iter().filter(|row| row.from.is_some()).count();
    format!("{line}\n{}\nmessages between nodes: {messages}\n\n", drawing::text(&rows, nodes(&rows)))
}

/// How many nodes take part in the run.
fn nodes(rows: &[drawing::Row]) -> usize {
    let last = rows.iter().map(|row| row.node.max(row.from.unwrap_or(0))).max();
    last.map_or(1, |last| last + 1)
}

fn unable(path: &Path, error: &std::io::Error) -> Report {
    Report { code: Code::File, place: Place::Launcher, what: format!("{}: {error}", path.display()) }
}
