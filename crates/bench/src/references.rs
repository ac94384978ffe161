//! What a case is compared with: its floor, and the nearest operation of a peer. Minima beside minima and medians beside medians; where
//! there are several floors, the lowest.

use crate::results::Results;
use crate::row::{Kind, Row};

/// Names of floors and peers for the cases that begin so.
struct Reference {
    case: &'static str,
    floors: &'static [&'static str],
    peer: Option<&'static str>,
}

const REFERENCES: &[Reference] = &[
    Reference { case: "read-miss", floors: &["fault"], peer: Some("mpi-page-get") },
    Reference { case: "write-miss", floors: &["fault"], peer: Some("mpi-page-get") },
    Reference { case: "write-home-first", floors: &["fault"], peer: None },
    Reference { case: "read-home-first", floors: &["fault"], peer: None },
    Reference { case: "write-upgrade", floors: &["upgrade"], peer: None },
    Reference { case: "rewrite", floors: &["upgrade"], peer: None },
    Reference { case: "release-nothing", floors: &[], peer: None },
    Reference { case: "release-", floors: &["compare-copy"], peer: None },
    Reference { case: "lock-again", floors: &["pthread-mutex"], peer: Some("shmem-lock-again") },
    Reference { case: "lock-pair", floors: &["pthread-mutex-pair"], peer: None },
    Reference { case: "lock-after-other", floors: &["word-lock-after-other"], peer: None },
    Reference { case: "lock-hand-off", floors: &["line-crossing"], peer: None },
    Reference { case: "lock-contended", floors: &["word-lock-contended"], peer: None },
    Reference { case: "counter-", floors: &["word-add-contended"], peer: None },
    Reference { case: "atomic-barrier", floors: &["spin-barrier"], peer: None },
    Reference { case: "flag-round-trip", floors: &["line-round-trip"], peer: None },
    Reference { case: "barrier-crowd", floors: &["pthread-barrier-8"], peer: None },
    Reference { case: "barrier-", floors: &["spin-barrier", "word-barrier"], peer: Some("mpi-barrier") },
    Reference { case: "stream-mib", floors: &["copy-open-read-mib"], peer: None },
    Reference { case: "fill-page", floors: &["touch-page"], peer: None },
    Reference { case: "random-page", floors: &["random-fault"], peer: None },
    Reference { case: "random-miss", floors: &["random-fault"], peer: None },
];

/// A minimum and a median to compare with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beside {
    /// Whose they are.
    pub name: String,
    pub min_ns: f64,
    pub median_ns: f64,
}

impl Beside {
    fn of(row: &Row) -> Self {
        Self { name: row.case.clone(), min_ns: row.min_ns, median_ns: row.median_ns }
    }

    /// The lower minimum and the lower median, which may be those of different floors.
    fn lowest(self, other: Self) -> Self {
        let name = format!("{} or {}", self.name, other.name);
        Self { name, min_ns: self.min_ns.min(other.min_ns), median_ns: self.median_ns.min(other.median_ns) }
    }
}

/// The floor of a case, if it has one and it was measured.
pub(crate) fn floor(results: &Results, row: &Row) -> Option<Beside> {
    let reference = REFERENCES.iter().find(|reference| row.case.starts_with(reference.case))?;
    if row.transport == "tcp" && is_fault(reference) && row.counts.contains_key("messages") {
        return page_by_message(results, row);
    }
    let found = reference.floors.iter().filter_map(|floor| named(results, &full_name(row, floor)?));
    found.reduce(Beside::lowest)
}

/// The nearest operation of a peer.
pub(crate) fn peer(results: &Results, row: &Row) -> Option<Beside> {
    let reference = REFERENCES.iter().find(|reference| row.case.starts_with(reference.case))?;
    results.reference(Kind::Peer, reference.peer?).map(Beside::of)
}

/// A floor by its own name.
pub(crate) fn named(results: &Results, floor: &str) -> Option<Beside> {
    results.reference(Kind::Floor, floor).map(Beside::of)
}

/// A request and an answer. The fastest miss is one in which none slept: beside it stands the floor that never does. The median of misses that
/// sleep stands beside the floor that always does.
pub(crate) fn page_by_message(results: &Results, row: &Row) -> Option<Beside> {
    let busy = named(results, "tcp-page-busy")?;
    if !sleeps(row) {
        return Some(busy);
    }
    let blocking = named(results, "tcp-page-blocking")?;
    let name = format!("{}, median {}", busy.name, blocking.name);
    Some(Beside { name, min_ns: busy.min_ns, median_ns: blocking.median_ns })
}

/// Does the waiter sleep in most operations?
fn sleeps(row: &Row) -> bool {
    row.counts.get("sleeps").is_some_and(|sleeps| *sleeps > 0.5)
}

fn is_fault(reference: &Reference) -> bool {
    reference.floors.iter().any(|floor| matches!(*floor, "fault" | "random-fault"))
}

/// Floors of faults and of reads are measured for each mechanism, those of releases for each number of pages.
fn full_name(row: &Row, floor: &str) -> Option<String> {
    Some(match floor {
        "compare-copy" => format!("compare-copy-{}", row.case.rsplit('-').next()?),
        "fault" | "random-fault" | "upgrade" | "copy-open-read-mib" => format!("{floor}-{}", mechanism(row)),
        plain => plain.to_owned(),
    })
}

/// The fault mechanism that a row's floors are measured for.
pub(crate) fn mechanism(row: &Row) -> &'static str {
    if row.faults == "mprotect" { "mprotect" } else { "uffd" }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::results::Machine;

    fn row(kind: Kind, case: &str, transport: &str, min_ns: f64, median_ns: f64) -> Row {
        Row {
            kind,
            case: case.into(),
            protocol: String::new(),
            transport: transport.into(),
            faults: String::new(),
            operations: 1,
            min_ns,
            median_ns,
            counts: BTreeMap::from([("messages".to_owned(), 2.0)]),
        }
    }

    fn floor_of(row: &Row, floors: &[(&str, f64, f64)]) -> Option<(f64, f64)> {
        let mut results = Results::new(Machine::here(Path::new(".")));
        results.rows =
            floors.iter().map(|&(case, min, median)| self::row(Kind::Floor, case, "", min, median)).collect();
        floor(&results, row).map(|floor| (floor.min_ns, floor.median_ns))
    }

    #[test]
    fn of_several_floors_the_lowest_counts_by_minima_and_by_medians() {
        let barrier = row(Kind::Micro, "barrier-0", "shm", 1.0, 1.0);
        let floors = [("spin-barrier", 30.0, 500.0), ("word-barrier", 60.0, 260.0)];
        assert_eq!(floor_of(&barrier, &floors), Some((30.0, 260.0)));
        assert_eq!(floor_of(&barrier, &floors[..1]), Some((30.0, 500.0)));
        assert_eq!(floor_of(&barrier, &[]), None);
    }

    #[test]
    fn a_page_over_tcp_is_compared_without_sleepers_by_minima_and_with_sleepers_by_medians() {
        let floors = [("tcp-page-busy", 7.0, 9.0), ("tcp-page-blocking", 27.0, 85.0), ("fault-uffd", 1.0, 1.0)];
        let mut miss = row(Kind::Micro, "read-miss", "tcp", 1.0, 1.0);
        assert_eq!(floor_of(&miss, &floors), Some((7.0, 9.0)));
        miss.counts.insert("sleeps".to_owned(), 0.9);
        assert_eq!(floor_of(&miss, &floors), Some((7.0, 85.0)));
        miss.transport = "shm".into();
        assert_eq!(floor_of(&miss, &floors), Some((1.0, 1.0)));
    }

    #[test]
    fn floors_are_those_of_the_mechanism_and_of_the_number_of_pages() {
        let mut far = row(Kind::Micro, "random-miss", "shm", 1.0, 1.0);
        far.faults = "mprotect".into();
        assert_eq!(floor_of(&far, &[("random-fault-mprotect", 2.0, 3.0)]), Some((2.0, 3.0)));
        let release = row(Kind::Micro, "release-word-16", "shm", 1.0, 1.0);
        assert_eq!(floor_of(&release, &[("compare-copy-16", 4.0, 5.0)]), Some((4.0, 5.0)));
        let half = row(Kind::Micro, "relock", "shm", 1.0, 1.0);
        assert_eq!(floor_of(&half, &[("pthread-mutex", 4.0, 5.0)]), None, "half of a pair has no floor");
    }
}
