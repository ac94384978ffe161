//! Whole programs: the sequential one, the same source on native threads, and on the shared memory.

use std::collections::BTreeMap;
use std::process::Command;

use finespun_report::RunStats;

use crate::measure::{job, output_of, per_operation, read_stats};
use crate::results::{Kind, Results, Row, quiet};
use crate::{Plan, Setting};

/// Each application with its size, and the tiny one. The sizes take two cores a few hundred milliseconds; a program's own time
/// begins after every page was touched by its owner, and with `--warm` when all was done once.
const APPLICATIONS: &[(&str, &[&str], &[&str])] = &[
    ("sor", &["--size", "3072x4096", "--iters", "150"], &["--size", "tiny"]),
    ("lu", &["--size", "2048", "--warm", "1"], &["--size", "tiny"]),
    ("clu", &["--size", "2048", "--warm", "1"], &["--size", "tiny"]),
    ("matmul", &["--size", "1240", "--warm", "1"], &["--size", "tiny"]), // at 1280 half the sets of a cache are not used: twice the time
    ("gauss", &["--size", "2047", "--warm", "1"], &["--size", "tiny"]),  // and the right side: rows of whole pages
    ("tsp", &["--size", "14", "--bound", "0"], &["--size", "tiny"]),
];

/// Processors of the runs: as many as most machines have at least.
const PROCESSORS: usize = 2;

/// One way to run an application.
enum Way<'a> {
    Sequential,
    Native,
    /// Under a setting, in a shape: nodes, processes per node.
    Ours(&'a Setting, [&'a str; 4]),
}

impl Way<'_> {
    /// Does the budget look at it?
    fn is_judged(&self) -> bool {
        match self {
            Way::Sequential => false,
            Way::Native => true,
            Way::Ours(setting, _) => setting.transport == "shm",
        }
    }
}

/// What is not judged takes part in each third turn.
const NOT_JUDGED_EACH: usize = 3;

/// Nanoseconds of a run, and what was counted in it.
type Run = (f64, Option<RunStats>);

/// All applications in all ways; the ways take turns, so that a busy moment of the machine meets all of them.
pub fn measure(plan: &Plan, results: &mut Results, tell: &mut dyn FnMut(&str)) -> Result<(), String> {
    let mut ways = vec![Way::Sequential, Way::Native];
    let mut seen: Vec<&str> = Vec::new();
    for setting in &plan.settings {
        if !seen.contains(&setting.transport.as_str()) {
            seen.push(&setting.transport);
            ways.push(Way::Ours(setting, ["-n", "2", "-p", "1"]));
        }
    }
    if let Some(first) = plan.settings.first() {
        ways.push(Way::Ours(first, ["-n", "1", "-p", "2"]));
    }
    for (name, full, tiny) in APPLICATIONS {
        tell(name);
        let size = if plan.tiny { tiny } else { full };
        let mut runs: Vec<Vec<Run>> = ways.iter().map(|_| Vec::new()).collect();
        for turn in 0..plan.repeat.max(1) {
            for (way, runs) in ways.iter().zip(&mut runs) {
                if way.is_judged() || turn % NOT_JUDGED_EACH == 0 {
                    runs.push(one_run(plan, name, size, way)?);
                }
            }
        }
        results.rows.extend(ways.iter().zip(runs).map(|(way, runs)| row(name, way, runs)));
    }
    Ok(())
}

fn one_run(plan: &Plan, name: &str, size: &[&str], way: &Way<'_>) -> Result<Run, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let stats = folder.path().join("stats.json");
    let mut command = match way {
        Way::Sequential | Way::Native => Command::new(plan.programs.join("native").join(name)),
        Way::Ours(setting, shape) => {
            let mut command = job(plan, setting, shape, &stats);
            command.arg(plan.programs.join("apps").join(name));
            command
        }
    };
    command.args(size);
    match way {
        Way::Sequential => _ = command.arg("--sequential"),
        Way::Native => _ = command.env("FINESPUN_THREADS", PROCESSORS.to_string()),
        Way::Ours(..) => {}
    }
    let output = output_of(&mut command)?;
    let time = output
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": time ")?.strip_suffix(" s")?.parse::<f64>().ok());
    let seconds = time.ok_or_else(|| format!("{name} did not say how long it took: {output}"))?;
    let stats = matches!(way, Way::Ours(..)).then(|| read_stats(&stats)).transpose()?;
    Ok((1e9 * seconds, stats))
}

fn row(name: &str, way: &Way<'_>, mut runs: Vec<Run>) -> Row {
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (median_ns, stats) = &runs[runs.len() / 2];
    let (protocol, transport, faults) = match way {
        Way::Sequential => ("sequential".to_owned(), String::new(), String::new()),
        Way::Native => ("native".to_owned(), String::new(), String::new()),
        Way::Ours(setting, [_, nodes, _, processes]) => {
            (format!("{} {nodes}x{processes}", setting.protocol), setting.transport.clone(), setting.faults.clone())
        }
    };
    Row {
        kind: Kind::Application,
        case: name.to_owned(),
        protocol,
        transport,
        faults,
        operations: runs.len() as u64,
        min_ns: runs[quiet(runs.len())].0,
        median_ns: *median_ns,
        counts: stats.as_ref().map_or_else(BTreeMap::new, |stats| per_operation(&stats.totals, 1)),
    }
}
