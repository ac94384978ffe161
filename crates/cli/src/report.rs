//! Summaries: after a run, and again from the file of `--stats`.

use std::env;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;

use finespun_errors::{Code, Place, Report};
use finespun_report::{RunStats, Style, compare, summary};

use crate::output;

/// `finespun report FILE`: prints the summary of a finished run.
pub fn reprint(file: &Path) -> Result<i32, Report> {
    output::print(&summary(&read(file)?, style(io::stdout().is_terminal())));
    Ok(0)
}

/// `finespun report --diff FILE OTHER`: prints two finished runs side by side.
pub fn side_by_side(first: &Path, second: &Path) -> Result<i32, Report> {
    output::print(&compare(&read(first)?, &read(second)?));
    Ok(0)
}

fn read(file: &Path) -> Result<RunStats, Report> {
    let text = fs::read_to_string(file).map_err(|error| refuse(file, &error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| refuse(file, &format!("is not what --stats writes: {error}")))
}

/// What a file that cannot be used is answered with.
pub fn refuse(file: &Path, why: &str) -> Report {
    Report { code: Code::File, place: Place::Launcher, what: format!("{}: {why}", file.display()) }
}

/// Colour for terminals, unless the user does not want it (no-color.org).
pub fn style(is_terminal: bool) -> Style {
    let is_unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
    if is_terminal && !is_unwanted && !is_dumb { Style::Colour } else { Style::Plain }
}
