//! Rows, and what they were measured on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::scale::Scale;

/// What a row is a measurement of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A part of the machine, with nothing of ours around it.
    Floor,
    /// The same operation of another system.
    Peer,
    /// An operation of ours.
    Micro,
    /// A whole program; nanoseconds of its run.
    Application,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Of what.
    pub kind: Kind,
    /// Which case.
    pub case: String,
    /// The protocol; empty for floors and peers, `native` and `sequential` for applications without ours.
    pub protocol: String,
    /// The transport; empty where there is none.
    pub transport: String,
    /// The fault mechanism; empty where there is none.
    pub faults: String,
    /// Operations measured.
    pub operations: u64,
    /// The least nanoseconds of an operation; of more than two rounds, or runs of an application, the second least.
    pub min_ns: f64,
    /// The median nanoseconds; of several rounds, the median of theirs.
    pub median_ns: f64,
    /// What happened per operation, by the names of the statistics; what never happened is left out.
    pub counts: BTreeMap<String, f64>,
}

impl Row {
    /// What was measured, and under which setting.
    fn key(&self) -> (Kind, [&str; 4]) {
        (self.kind, [&self.case, &self.protocol, &self.transport, &self.faults])
    }
}

/// Which of so many numbers in order, which measure the same, says how fast it can be: the second least, of two or one the least.
///
/// Not the least of all: a host that has put both processors on one core for the moment of a round makes a line's round trip a sixth of
/// what it is otherwise, and every case of the other rounds would be compared with that. Not the middle one: an hour may have more busy moments than quiet ones.
pub(crate) fn quiet(count: usize) -> usize {
    usize::from(count > 2)
}

/// One row for those of all rounds that measure the same: of the minima that of a quiet round, the middle one of the medians, the counts of the first.
pub(crate) fn combine(rounds: Vec<Vec<Row>>) -> Vec<Row> {
    let mut rounds = rounds.into_iter();
    let mut rows = rounds.next().unwrap_or_default();
    let others: Vec<Row> = rounds.flatten().collect();
    for row in &mut rows {
        let same: Vec<&Row> = others.iter().filter(|other| other.key() == row.key()).collect();
        let sorted = |part: fn(&Row) -> f64| {
            let mut numbers: Vec<f64> = same.iter().copied().chain([&*row]).map(part).collect();
            numbers.sort_by(f64::total_cmp);
            numbers
        };
        let (minima, medians) = (sorted(|row| row.min_ns), sorted(|row| row.median_ns));
        row.operations += same.iter().map(|other| other.operations).sum::<u64>();
        row.min_ns = minima[quiet(minima.len())];
        row.median_ns = medians[medians.len() / 2];
    }
    rows
}

/// What the numbers were measured on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The version of Finespun.
    pub version: String,
    /// The commit of the tree that the measured programs stand in; empty where there is none.
    pub commit: String,
    /// The processor's name.
    pub processor: String,
    /// Cores that may be used.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The load average of the last minute when the run began.
    pub load: String,
}

impl Machine {
    /// This one, with programs from this folder.
    #[must_use]
    pub fn here(programs: &Path) -> Self {
        let first_word = |text: String| text.split_whitespace().next().unwrap_or("?").to_owned();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let processor = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: commit(programs),
            processor: processor.map_or("?", |(_, name)| name).into(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            load: first_word(read("/proc/loadavg")),
        }
    }
}

fn commit(folder: &Path) -> String {
    let asked = Command::new("git").arg("-C").arg(folder).args(["describe", "--always", "--dirty"]).output();
    let said = asked.ok().filter(|output| output.status.success());
    said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// Everything that a run of the benchmark found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Where.
    pub machine: Machine,
    /// What was not measured, and why: a sentence each.
    pub missing: Vec<String>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// What was allowed of them, and whether it was kept.
    #[serde(default)]
    pub budget: Vec<Budget>,
    /// How costs grow, if that was asked for.
    #[serde(default)]
    pub scale: Scale,
}

impl Results {
    /// Nothing yet.
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        Self { machine, missing: Vec::new(), rows: Vec::new(), budget: Vec::new(), scale: Scale::default() }
    }

    /// The row of a case that has neither protocol nor transport.
    #[must_use]
    pub fn reference(&self, kind: Kind, case: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.kind == kind && row.case == case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_become_one_row_for_each_case_without_the_luckiest_minimum() {
        let row = |case: &str, min_ns, median_ns| Row {
            kind: Kind::Micro,
            case: case.into(),
            protocol: "csm-2l".into(),
            transport: "shm".into(),
            faults: "uffd".into(),
            operations: 10,
            min_ns,
            median_ns,
            counts: BTreeMap::new(),
        };
        let rounds = vec![
            vec![row("a", 5.0, 9.0), row("b", 1.0, 1.0)],
            vec![row("b", 2.0, 3.0), row("a", 4.0, 20.0)],
            vec![row("a", 1.0, 7.0)],
        ];
        let combined = combine(rounds);
        let told: Vec<_> = combined.iter().map(|row| (&*row.case, row.operations, row.min_ns, row.median_ns)).collect();
        assert_eq!(told, [("a", 30, 4.0, 9.0), ("b", 20, 1.0, 3.0)]);
        assert!(combine(Vec::new()).is_empty());
    }
}
