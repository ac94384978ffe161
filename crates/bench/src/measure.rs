//! Runs the measured programs and reads what they print: `bench: CASE ops N min A median B`, nanoseconds an operation.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use finespun_report::{Counts, RunStats};
use finespun_types::Counter;

use crate::plan::{Plan, Setting};
use crate::row::{Kind, Row};

/// Two nodes of one process each.
const PAIR: &[&str] = &["-n", "2"];
/// The same for cases that read the same pages in each round: no acquire fetches them before the faults that are measured, or
/// in a barrier that nobody times.
const CLOSING: &[&str] = &["-n", "2", "--refresh", "off"];
/// Two nodes of four processes each: four a core, where there are two.
const CROWD: &[&str] = &["-n", "2", "-p", "4"];
/// The groups of cases of the micro benchmark, a job each.
const GROUPS: &[(&str, &[&str])] = &[
    ("misses", CLOSING),
    ("releases", CLOSING),
    ("acquires", CLOSING),
    ("locks", PAIR),
    ("barriers", PAIR),
    ("crowd", CROWD),
    ("stream", CLOSING),
    ("rereads", CLOSING),
    ("refreshes", PAIR),
    ("far", CLOSING),
];
/// How long one program may take.
const LIMIT: Duration = Duration::from_secs(300);

/// The floors.
pub fn floors(plan: &Plan) -> Result<Vec<Row>, String> {
    let mut command = Command::new(plan.programs.join("floors"));
    if plan.tiny {
        command.arg("--tiny");
    }
    Ok(rows(Kind::Floor, None, &output_of(&mut command)?, None))
}

/// The peers whose programs were built; a note for each that was not, or that failed.
pub fn peers(plan: &Plan, all: &mut Vec<Row>, tell: &mut dyn FnMut(&str)) -> Vec<String> {
    let mut missing = Vec::new();
    for (name, launcher, what) in
        [("mpi", "mpirun", "MPI"), ("shmem", "oshrun", "OpenSHMEM"), ("ga", "mpirun", "Global Arrays")]
    {
        let program = plan.programs.join("peers").join(name);
        if !program.exists() {
            missing.push(format!("{what}: not built, for its packages are not installed (make bench tries to)"));
            continue;
        }
        tell(what);
        let mut command = Command::new(launcher);
        command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]).arg(&program);
        command.arg(if plan.tiny { "20" } else { "2000" });
        match output_of(&mut command) {
            Ok(output) => all.extend(rows(Kind::Peer, None, &output, None)),
            Err(why) => missing.push(format!("{what}: {why}")),
        }
    }
    missing
}

/// Every case of the micro benchmark under one setting.
pub fn micro(plan: &Plan, setting: &Setting, all: &mut Vec<Row>, tell: &mut dyn FnMut(&str)) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    for &(group, shape) in GROUPS {
        tell(&format!("{group} under {} over {}, {}", setting.protocol, setting.transport, setting.faults));
        let (board, stats) = (folder.path().join(format!("{group}.board")), folder.path().join("stats.json"));
        fs::write(&board, []).map_err(|error| format!("{}: {error}", board.display()))?;
        let mut command = job(plan, setting, shape, UNPINNED, &stats);
        command.arg(plan.programs.join("micro")).args(["--group", group, "--board"]).arg(&board);
        if plan.tiny {
            command.arg("--tiny");
        }
        let output = output_of(&mut command)?;
        all.extend(rows(Kind::Micro, Some(setting), &output, Some(&read_stats(&stats)?)));
    }
    Ok(())
}

/// For programs that pin themselves, as floors and the micro benchmark do, by the same function (benches/measure.h).
pub const UNPINNED: &str = "none";

/// The beginning of a job's command line.
pub fn job(plan: &Plan, setting: &Setting, shape: &[&str], pin: &str, stats: &Path) -> Command {
    let mut command = Command::new(&plan.finespun);
    command.args(["run", "--quiet", "--pin", pin]).args(shape).args(["--protocol", &setting.protocol]);
    command.args(["--transport", &setting.transport, "--faults", &setting.faults, "--stats"]).arg(stats);
    command
}

/// Reads what `--stats` wrote.
pub fn read_stats(path: &Path) -> Result<RunStats, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs a program to its end and returns its standard output.
///
/// # Errors
/// That it could not be started, failed, or did not end.
pub fn output_of(command: &mut Command) -> Result<String, String> {
    let line = format!("{command:?}");
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{line}: {error}"))?;
    let reader = |pipe: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut text = String::new();
            // What cannot be read is as good as not said: the exit code decides.
            let _ = pipe.map(|mut pipe| pipe.read_to_string(&mut text));
            text
        })
    };
    let output = reader(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let errors = reader(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("{line}: {error}"))? {
            break status;
        }
        if began.elapsed() > LIMIT {
            // Both may only fail when it has ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{line}: did not end within {} s", LIMIT.as_secs()));
        }
        thread::sleep(Duration::from_millis(5));
    };
    let (output, errors) = (output.join().unwrap_or_default(), errors.join().unwrap_or_default());
    if status.success() { Ok(output) } else { Err(format!("{line}: {status}: {}", errors.trim())) }
}

/// The rows of a program's lines, with the counts of the phases that have the cases' names.
pub fn rows(kind: Kind, setting: Option<&Setting>, output: &str, stats: Option<&RunStats>) -> Vec<Row> {
    let line = |line: &str| {
        let (case, rest) = line.strip_prefix("bench: ")?.split_once(' ')?;
        let words = rest.split_whitespace().collect::<Vec<_>>();
        let ["ops", operations, "min", min, "median", median] = words[..] else { return None };
        let operations = operations.parse().ok()?;
        let word = |of: fn(&Setting) -> &String| setting.map_or(String::new(), |setting| of(setting).clone());
        Some(Row {
            kind,
            case: case.into(),
            protocol: word(|setting| &setting.protocol),
            transport: word(|setting| &setting.transport),
            faults: word(|setting| &setting.faults),
            operations,
            min_ns: min.parse().ok()?,
            median_ns: median.parse().ok()?,
            counts: stats.map(|stats| counts_of(stats, case, operations)).unwrap_or_default(),
        })
    };
    output.lines().filter_map(line).collect()
}

/// What processors counted in the phase of a case, per operation.
fn counts_of(stats: &RunStats, case: &str, operations: u64) -> BTreeMap<String, f64> {
    let mut sum = Counts::ZERO;
    stats.phases.iter().filter(|phase| phase.name == case).for_each(|phase| sum.add(&phase.counts));
    per_operation(&sum, operations)
}

/// Counts for one operation, without the zeros.
pub fn per_operation(counts: &Counts, operations: u64) -> BTreeMap<String, f64> {
    let each = |&counter: &Counter| {
        let count = counts.get(counter);
        (count > 0).then(|| (counter.name().to_owned(), count as f64 / operations.max(1) as f64))
    };
    Counter::ALL.iter().filter_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_program_become_rows_and_other_lines_do_not() {
        let output = "hello\nbench: read-miss ops 256 min 2400.0 median 2560.5\nbench: cut short ops\n";
        let found = rows(Kind::Floor, None, output, None);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].case.as_str(), found[0].operations), ("read-miss", 256));
        assert_eq!((found[0].min_ns, found[0].median_ns), (2400.0, 2560.5));
    }

    #[test]
    fn counts_are_per_operation_and_what_never_happened_is_left_out() {
        let mut counts = Counts::ZERO;
        counts.set(Counter::Messages, 30);
        assert_eq!(per_operation(&counts, 10), BTreeMap::from([("messages".to_owned(), 3.0)]));
    }

    #[test]
    fn a_program_that_fails_says_how() {
        let error = output_of(Command::new("sh").args(["-c", "echo no >&2; exit 3"])).unwrap_err();
        assert!(error.contains("exit status: 3: no"), "{error}");
        assert!(output_of(&mut Command::new("/nowhere")).is_err());
    }
}
