//! One measurement, and how those of several rounds become one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
