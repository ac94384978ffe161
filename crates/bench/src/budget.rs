//! What each operation may cost, and whether it does: ratios to a floor or a count, judged by minima ([`Row::min_ns`]). A report, not a test.
//!
//! **By medians** what is compared with two processors that look at the same memory: lines cross in a sixth of the time while a host has both on one
//! core, a tenth of the time in some hours and a tenth of a second each, and the minimum of such a floor is that of another machine.
//!
//! The lines are those that the project set itself before it measured (docs/performance.md); what has no line here is only
//! measured. A line whose case or floor was not measured is left out.

use serde::{Deserialize, Serialize};

use crate::results::{Kind, Results, Row};

/// One line: what was allowed, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Of which operation.
    pub what: String,
    /// Protocol, transport and fault mechanism, or the shape of an application's run.
    pub setting: String,
    /// What the number is: `x fault-uffd` (times that floor), `ns`, `messages` ...
    pub unit: String,
    /// The least or most allowed.
    pub allowed: f64,
    /// The number must not be below it; otherwise, not above.
    pub at_least: bool,
    /// What was found.
    pub measured: f64,
    /// Whether it is as allowed.
    pub met: bool,
}

/// Collects the lines of one setting.
struct Judge<'a> {
    results: &'a Results,
    rows: Vec<&'a Row>,
    setting: String,
    lines: Vec<Budget>,
}

/// All lines for which there are measurements.
#[must_use]
pub fn judge(results: &Results) -> Vec<Budget> {
    let mut lines = Vec::new();
    for rows in by_setting(results) {
        let first = rows[0];
        let setting = format!("{} over {}, {}", first.protocol, first.transport, first.faults);
        let is_direct = first.transport == "shm";
        let mut judge = Judge { results, rows, setting, lines: Vec::new() };
        if is_direct {
            judge.faults();
            judge.releases();
            judge.acquires();
            judge.meetings();
            judge.reading();
        } else {
            judge.page_by_message();
        }
        lines.append(&mut judge.lines);
    }
    applications(results, &mut lines);
    lines
}

fn by_setting(results: &Results) -> Vec<Vec<&Row>> {
    let mut all: Vec<Vec<&Row>> = Vec::new();
    for row in results.rows.iter().filter(|row| row.kind == Kind::Micro) {
        match all.last_mut() {
            Some(rows) if is_same_setting(rows[0], row) => rows.push(row),
            Some(_) | None => all.push(vec![row]),
        }
    }
    all
}

fn is_same_setting(one: &Row, other: &Row) -> bool {
    one.protocol == other.protocol && one.transport == other.transport && one.faults == other.faults
}

impl Judge<'_> {
    fn case(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.case == name).copied()
    }

    fn floor(&self, name: &str) -> Option<&Row> {
        self.results.reference(Kind::Floor, name)
    }

    fn mechanism(&self) -> &'static str {
        if self.rows[0].faults == "mprotect" { "mprotect" } else { "uffd" }
    }

    fn at_most(&mut self, what: &str, unit: &str, allowed: f64, measured: Option<f64>) {
        self.line(what, unit, allowed, false, measured);
    }

    fn line(&mut self, what: &str, unit: &str, allowed: f64, at_least: bool, measured: Option<f64>) {
        let Some(measured) = measured else { return };
        let met = if at_least { measured >= allowed } else { measured <= allowed };
        let (what, unit, setting) = (what.to_owned(), unit.to_owned(), self.setting.clone());
        self.lines.push(Budget { what, setting, unit, allowed, at_least, measured, met });
    }

    fn ratio(&self, case: &str, floor: &str) -> Option<f64> {
        Some(self.case(case)?.min_ns / self.floor(floor)?.min_ns)
    }

    /// To a floor of two processors.
    fn ratio_of_medians(&self, case: &str, floor: &str) -> Option<f64> {
        Some(self.case(case)?.median_ns / self.floor(floor)?.median_ns)
    }

    fn faults(&mut self) {
        let (miss, upgrade) = (format!("fault-{}", self.mechanism()), format!("upgrade-{}", self.mechanism()));
        self.at_most("read miss, page at home", &format!("x {miss}"), 1.35, self.ratio("read-miss", &miss));
        self.at_most("write upgrade with twin", &format!("x {upgrade}"), 1.3, self.ratio("write-upgrade", &upgrade));
        let faults = self.case("rewrite").map(|row| count(row, "write_faults"));
        self.at_most("store to a page written in the interval before", "write faults", 0.0, faults);
    }

    /// For each number of dirty pages, the pattern that costs most.
    fn releases(&mut self) {
        for pages in [1, 16, 256, 1024] {
            let cases = ["word", "alternate", "whole"].map(|pattern| format!("release-{pattern}-{pages}"));
            let worst = cases.iter().filter_map(|case| self.case(case)).max_by(|a, b| a.min_ns.total_cmp(&b.min_ns));
            let Some((worst, case)) = worst.map(|row| (row.min_ns, row.case.clone())) else { continue };
            let floor = format!("compare-copy-{pages}");
            self.at_most(&format!("release per dirty page: {case}"), "ns", 1000.0, Some(worst));
            let ratio = self.ratio_of_medians(&case, &floor);
            self.at_most(&format!("release per dirty page: {case}"), &format!("x {floor}"), 3.0, ratio);
        }
    }

    fn acquires(&mut self) {
        self.at_most("acquire, nothing to invalidate", "ns", 200.0, self.case("acquire-0").map(|row| row.min_ns));
        let calls = self.case("acquire-0").map(|row| count(row, "system_calls"));
        self.at_most("acquire, nothing to invalidate", "system calls", 0.0, calls);
        for (case, between) in [("acquire-scattered-64", "closed"), ("acquire-among-open-64", "open")] {
            let what = format!("invalidation of 64 scattered pages, {between} ones between, each");
            self.at_most(&what, "ns", 700.0, self.case(case).map(|row| row.min_ns / 64.0));
        }
        let case = |name| self.case(name).map(|row| row.min_ns);
        let refreshed = case("reread-refresh-64").zip(case("reread-64")).map(|(refreshed, closed)| refreshed / closed);
        self.at_most("acquire and read of 64 scattered pages, refreshed", "x reread-64", 1.0, refreshed);
    }

    fn meetings(&mut self) {
        self.at_most("lock that was here last", "ns", 50.0, self.case("relock").map(|row| row.min_ns));
        let remote = self.ratio_of_medians("lock-after-other", "line-round-trip");
        self.at_most("lock and unlock, free, other node had it", "x line-round-trip", 2.0, remote);
        let hand_off = self.case("lock-hand-off").map(|row| count(row, "sync_messages"));
        self.at_most("hand-off to a waiter", "messages", 1.0, hand_off);
        self.at_most(
            "barrier, nothing dirty",
            "x spin-barrier",
            2.0,
            self.ratio_of_medians("barrier-0", "spin-barrier"),
        );
        let crowd = self.ratio_of_medians("barrier-crowd", "pthread-barrier-8");
        self.at_most("barrier, four processes a core", "x pthread-barrier-8", 1.5, crowd);
    }

    fn reading(&mut self) {
        let speed = self.ratio("stream-mib", "memcpy-mib").map(|times| 1.0 / times);
        self.line("sequential remote read", "of memcpy's speed", 0.6, true, speed);
        // What can be had of that, without any fault, lock or table.
        let floor = format!("copy-open-read-mib-{}", self.mechanism());
        self.at_most("sequential remote read", &format!("x {floor}"), 1.35, self.ratio("stream-mib", &floor));
        let bytes = |case| self.case(case).map(|row| count(row, "bytes")).filter(|bytes| *bytes > 0.0);
        let more = bytes("random-page").zip(bytes("read-miss")).map(|(random, one)| random / one);
        self.at_most("random remote read", "x the bytes of its pages", 1.05, more);
    }

    /// The fault's own part is taken off: what is left is request and reply. Whether the waiter slept says which floor is fair.
    fn page_by_message(&mut self) {
        let fault = self.floor(&format!("fault-{}", self.mechanism()));
        let Some((row, fault)) = self.case("read-miss").zip(fault) else { return };
        let floor = if count(row, "sleeps") > 0.5 { "tcp-page-blocking" } else { "tcp-page-busy" };
        let ratio = self.floor(floor).map(|floor| (row.min_ns - fault.min_ns) / floor.min_ns);
        self.at_most("page fetch, without the fault", &format!("x {floor}"), 1.15, ratio);
    }
}

fn count(row: &Row, name: &str) -> f64 {
    row.counts.get(name).copied().unwrap_or(0.0)
}

/// The applications with a line of their own; all count for the mean.
const NAMED: &[&str] = &["sor", "lu", "clu", "matmul", "gauss"];

fn applications(results: &Results, lines: &mut Vec<Budget>) {
    let rows = || results.rows.iter().filter(|row| row.kind == Kind::Application);
    let native = |case: &str| rows().find(|row| row.case == case && row.protocol == "native").map(|row| row.min_ns);
    for (shape, each, mean) in [("2x1", 0.95, 0.9), ("1x2", 0.98, 0.98)] {
        let ours = rows().filter(|row| row.transport == "shm" && row.protocol.ends_with(shape));
        let speeds = ours.filter_map(|row| Some((row, native(&row.case)? / row.min_ns))).collect::<Vec<_>>();
        let Some(way) = speeds.first().map(|(row, _)| format!("{} over {}", row.protocol, row.transport)) else {
            continue;
        };
        let mut line = |what: &str, allowed: f64, measured: f64| {
            let (what, setting, unit) = (what.to_owned(), way.clone(), "of native speed".to_owned());
            lines.push(Budget { what, setting, unit, allowed, at_least: true, measured, met: measured >= allowed });
        };
        for (row, speed) in speeds.iter().filter(|(row, _)| NAMED.contains(&row.case.as_str())) {
            line(&row.case, each, *speed);
        }
        let logs = speeds.iter().map(|(_, speed)| speed.ln()).sum::<f64>();
        line("all applications, geometric mean", mean, (logs / speeds.len() as f64).exp());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::results::Machine;

    fn row(kind: Kind, case: &str, protocol: &str, min_ns: f64) -> Row {
        let (transport, faults) = if kind == Kind::Floor { ("", "") } else { ("shm", "uffd") };
        Row {
            kind,
            case: case.into(),
            protocol: protocol.into(),
            transport: transport.into(),
            faults: faults.into(),
            operations: 1,
            min_ns,
            median_ns: min_ns,
            counts: BTreeMap::new(),
        }
    }

    fn found(rows: Vec<Row>) -> Vec<Budget> {
        let mut results = Results::new(Machine::here(Path::new(".")));
        results.rows = rows;
        judge(&results)
    }

    #[test]
    fn a_line_is_met_up_to_what_is_allowed_and_not_above() {
        for (min_ns, met) in [(1350.0, true), (1351.0, false)] {
            let lines = found(vec![
                row(Kind::Floor, "fault-uffd", "", 1000.0),
                row(Kind::Micro, "read-miss", "csm-2l", min_ns),
            ]);
            let line = lines.iter().find(|line| line.unit == "x fault-uffd").expect("judged");
            assert_eq!((line.met, line.allowed), (met, 1.35));
        }
    }

    #[test]
    fn what_two_processors_do_to_each_other_is_judged_by_medians() {
        let lucky = Row { median_ns: 240.0, ..row(Kind::Floor, "spin-barrier", "", 34.0) };
        let lines = found(vec![lucky, Row { median_ns: 360.0, ..row(Kind::Micro, "barrier-0", "csm-2l", 261.0) }]);
        assert_eq!(lines.iter().map(|line| (line.measured, line.met)).collect::<Vec<_>>(), [(1.5, true)]);
    }

    #[test]
    fn a_release_is_judged_by_its_dearest_pattern() {
        let lines = found(vec![
            row(Kind::Floor, "compare-copy-16", "", 100.0),
            row(Kind::Micro, "release-word-16", "csm-2l", 150.0),
            row(Kind::Micro, "release-alternate-16", "csm-2l", 400.0),
        ]);
        assert_eq!(
            lines.iter().map(|line| (line.measured, line.met)).collect::<Vec<_>>(),
            [(400.0, true), (4.0, false)]
        );
        assert!(lines.iter().all(|line| line.what.ends_with("release-alternate-16")));
    }

    #[test]
    fn applications_are_judged_one_by_one_and_together() {
        let lines = found(vec![
            row(Kind::Application, "sor", "native", 98.0),
            row(Kind::Application, "tsp", "native", 50.0),
            row(Kind::Application, "sor", "csm-2l 2x1", 100.0),
            row(Kind::Application, "tsp", "csm-2l 2x1", 100.0),
        ]);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].met && lines[0].what == "sor");
        assert!(!lines[1].met && (lines[1].measured - 0.7).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert!(found(vec![row(Kind::Micro, "read-miss", "csm-2l", 1.0)]).is_empty());
    }
}
