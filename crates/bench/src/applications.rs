//! Whole programs: the sequential one, the same source on native threads, and on the shared memory.

use std::collections::BTreeMap;
use std::process::Command;

use finespun_report::RunStats;

use crate::measure::{UNPINNED, job, output_of, per_operation, read_stats};
use crate::plan::{Plan, Setting};
use crate::results::Results;
use crate::row::{Kind, Row, quiet};

/// One application at one size.
struct Application {
    /// What the tables call it.
    case: &'static str,
    program: &'static str,
    size: &'static str,
    /// Further flags, of tiny runs too.
    flags: &'static [&'static str],
}

const fn case(
    case: &'static str,
    program: &'static str,
    size: &'static str,
    flags: &'static [&'static str],
) -> Application {
    Application { case, program, size, flags }
}

/// The sizes take two cores a few hundred milliseconds. A program's own time begins after every page was touched by its owner. With
/// `--warm 1` it does everything once before; a cold run is the first one, in which pages are still mapped and fetched for the first time.
///
/// For every size and layout that suits pages and caches there is one that does not: blocks whose rows are a sixteenth of a page, a row
/// that is no whole number of pages with both colours in it, an order that is a power of two.
const APPLICATIONS: &[Application] = &[
    case("sor", "sor", "3072x4096", &["--iters", "150"]),
    case("sor in place", "sor-in-place", "2002x1002", &["--iters", "150"]),
    case("lu", "lu", "2048", WARM),
    case("lu cold", "lu", "2048", COLD),
    case("lu 1024, blocks of 32", "lu", "1024", &["--block", "32", "--warm", "1"]),
    case("lu 1024, blocks of 32, cold", "lu", "1024", &["--block", "32", "--warm", "0"]),
    case("clu", "clu", "2048", WARM),
    case("clu cold", "clu", "2048", COLD),
    case("matmul", "matmul", "1240", WARM), // at 1280 half the sets of a cache are not used: twice the time
    case("matmul cold", "matmul", "1240", COLD),
    case("matmul 1024", "matmul", "1024", WARM),
    case("matmul 1024 cold", "matmul", "1024", COLD),
    case("gauss", "gauss", "2047", WARM), // and the right side: rows of whole pages
    case("gauss cold", "gauss", "2047", COLD),
    case("tsp", "tsp", "14", &["--bound", "0"]),
];

const WARM: &[&str] = &["--warm", "1"];
const COLD: &[&str] = &["--warm", "0"];

/// Processors of the runs: as many as most machines have at least.
const PROCESSORS: usize = 2;

/// One way to run an application.
enum Way<'a> {
    Sequential,
    /// With the value of `FINESPUN_WAIT` (benches/native).
    Native(&'static str),
    /// Under a setting, in a shape: nodes, processes per node.
    Ours(&'a Setting, [&'a str; 4]),
}

impl Way<'_> {
    /// Does the budget look at it?
    fn is_judged(&self) -> bool {
        match self {
            Way::Sequential => false,
            Way::Native(_) => true,
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
    let mut ways = vec![Way::Sequential, Way::Native("sleep"), Way::Native(SPIN)];
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
    for application in APPLICATIONS {
        tell(application.case);
        let mut runs: Vec<Vec<Run>> = ways.iter().map(|_| Vec::new()).collect();
        for turn in 0..plan.repeat.max(1) {
            for (way, runs) in ways.iter().zip(&mut runs) {
                if way.is_judged() || turn % NOT_JUDGED_EACH == 0 {
                    runs.push(one_run(plan, application, way, pin(results.machine.cores))?);
                }
            }
        }
        results.rows.extend(ways.iter().zip(runs).map(|(way, runs)| row(application.case, way, runs)));
    }
    Ok(())
}

/// Waits by looking, not by sleeping.
const SPIN: &str = "spin";
/// Each processor has a core of its own.
pub(crate) const PINNED: &str = "cores";

/// Where processors stay, of native threads as of ours: the value of `--pin`, and of `FINESPUN_PIN` for benches/native.
pub(crate) fn pin(cores: usize) -> &'static str {
    if cores >= PROCESSORS { PINNED } else { UNPINNED }
}

fn one_run(plan: &Plan, application: &Application, way: &Way<'_>, pin: &str) -> Result<Run, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let stats = folder.path().join("stats.json");
    let name = application.program;
    let mut command = match way {
        Way::Sequential | Way::Native(_) => Command::new(plan.programs.join("native").join(name)),
        Way::Ours(setting, shape) => {
            let mut command = job(plan, setting, shape, pin, &stats);
            command.arg(plan.programs.join("apps").join(name));
            command
        }
    };
    command.args(["--size", if plan.tiny { "tiny" } else { application.size }]).args(application.flags);
    match way {
        Way::Sequential => _ = command.arg("--sequential"),
        Way::Native(wait) => {
            command.env("FINESPUN_THREADS", PROCESSORS.to_string()).env("FINESPUN_PIN", pin).env("FINESPUN_WAIT", wait);
        }
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
        Way::Native(SPIN) => ("native-spin".to_owned(), String::new(), String::new()),
        Way::Native(_) => ("native".to_owned(), String::new(), String::new()),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn processors_are_pinned_where_each_can_have_a_core() {
        assert_eq!([1, 2, 8].map(pin), [UNPINNED, PINNED, PINNED]);
    }

    #[test]
    fn each_case_has_a_name_of_its_own_and_each_warm_one_its_cold_run() {
        let names: BTreeSet<_> = APPLICATIONS.iter().map(|application| application.case).collect();
        assert_eq!(names.len(), APPLICATIONS.len());
        let key = |application: &Application, warm: &'static str| {
            let flags = application.flags.iter().map(|flag| if *flag == "1" { warm } else { flag }).collect::<Vec<_>>();
            (application.program, application.size, flags)
        };
        let cold: BTreeSet<_> = APPLICATIONS.iter().map(|application| key(application, "1")).collect();
        for application in APPLICATIONS.iter().filter(|application| application.flags.ends_with(WARM)) {
            assert!(cold.contains(&key(application, "0")), "{}", application.case);
        }
    }
}
