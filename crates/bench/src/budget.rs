//! What each operation may cost, and whether it does: ratios to a floor, times, counts. A report, not a test.
//!
//! A time is judged twice, by minima ([`Row::min_ns`]) and by medians, each beside the same of its floor, and is met only if both are. Counts
//! have no minimum.
//!
//! The lines are those that the project set itself before it measured (docs/performance.md); what has no line here is only
//! measured. A line whose case or floor was not measured is left out.

use crate::line::{Budget, Measured};
use crate::references::{self, Beside};
use crate::results::Results;
use crate::row::{Kind, Row};

/// A time, or a ratio of times, by minima and by medians.
type Times = (f64, f64);

fn times(row: &Row) -> Times {
    (row.min_ns, row.median_ns)
}

fn over(times: Times, floor: &Beside) -> Times {
    (times.0 / floor.min_ns, times.1 / floor.median_ns)
}

fn each(times: Times, count: f64) -> Times {
    (times.0 / count, times.1 / count)
}

/// The greater of both, by minima and by medians.
fn dearer(one: Times, other: Times) -> Times {
    (one.0.max(other.0), one.1.max(other.1))
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

    fn line(&mut self, what: &str, unit: &str, allowed: f64, at_least: bool, measured: Option<Measured>) {
        let Some(measured) = measured else { return };
        let (what, unit, setting) = (what.to_owned(), unit.to_owned(), self.setting.clone());
        self.lines.push(Budget { what, setting, unit, allowed, at_least, measured });
    }

    fn at_most(&mut self, what: &str, unit: &str, allowed: f64, times: Option<Times>) {
        let timed = |(by_minima, by_medians)| Measured::Timed { by_minima, by_medians };
        self.line(what, unit, allowed, false, times.map(timed));
    }

    fn counted(&mut self, what: &str, unit: &str, allowed: f64, counted: Option<f64>) {
        self.line(what, unit, allowed, false, counted.map(Measured::Counted));
    }

    /// Times of a case.
    fn times(&self, case: &str) -> Option<Times> {
        self.case(case).map(times)
    }

    /// A case beside its floor.
    fn beside_floor(&mut self, what: &str, case: &str, allowed: f64) {
        let Some(row) = self.case(case) else { return };
        let Some(floor) = references::floor(self.results, row) else { return };
        let times = over(times(row), &floor);
        self.at_most(what, &format!("x {}", floor.name), allowed, Some(times));
    }

    fn faults(&mut self) {
        self.beside_floor("read miss, page at home", "read-miss", 1.35);
        self.beside_floor("read miss, at random over 256 MiB", "random-miss", 1.35);
        self.beside_floor("write upgrade with twin", "write-upgrade", 1.3);
        let faults = self.case("rewrite").map(|row| count(row, "write_faults"));
        self.counted("store to a page written in the interval before", "write faults", 0.0, faults);
    }

    /// For each number of dirty pages, the pattern that costs most, by minima and by medians.
    fn releases(&mut self) {
        for pages in [1, 16, 256, 1024] {
            let cases = ["word", "alternate", "whole"].map(|pattern| format!("release-{pattern}-{pages}"));
            let dearest = cases.iter().filter_map(|case| self.times(case)).reduce(dearer);
            let what = format!("release of {pages} dirty pages, each, dearest pattern");
            self.at_most(&what, "ns", 1000.0, dearest);
            let floor = references::named(self.results, &format!("compare-copy-{pages}"));
            let Some((dearest, floor)) = dearest.zip(floor) else { continue };
            self.at_most(&what, &format!("x {}", floor.name), 3.0, Some(over(dearest, &floor)));
        }
    }

    fn acquires(&mut self) {
        self.at_most("acquire, nothing to invalidate", "ns", 200.0, self.times("acquire-0"));
        let calls = self.case("acquire-0").map(|row| count(row, "system_calls"));
        self.counted("acquire, nothing to invalidate", "system calls", 0.0, calls);
        for (case, between) in [("acquire-scattered-64", "closed"), ("acquire-among-open-64", "open")] {
            let what = format!("invalidation of 64 scattered pages, {between} ones between, each");
            self.at_most(&what, "ns", 700.0, self.times(case).map(|times| each(times, 64.0)));
        }
        let refreshed = self.times("reread-refresh-64").zip(self.times("reread-64"));
        let refreshed = refreshed.map(|(refreshed, closed)| (refreshed.0 / closed.0, refreshed.1 / closed.1));
        self.at_most("acquire and read of 64 scattered pages, refreshed", "x reread-64", 1.0, refreshed);
    }

    fn meetings(&mut self) {
        self.at_most("lock and unlock, a pair, was here last", "ns", 50.0, self.times("lock-pair"));
        self.beside_floor("lock and unlock, a pair, free, other node had it", "lock-after-other", 2.0);
        let hand_off = self.case("lock-hand-off").map(|row| count(row, "sync_messages"));
        self.counted("hand-off to a waiter", "messages", 1.0, hand_off);
        self.beside_floor("barrier, nothing dirty", "barrier-0", 2.0);
        self.beside_floor("barrier, four processes a core", "barrier-crowd", 1.5);
    }

    fn reading(&mut self) {
        let memcpy = references::named(self.results, "memcpy-mib");
        let speed = self.times("stream-mib").zip(memcpy).map(|(times, memcpy)| over(times, &memcpy));
        let speed =
            speed.map(|(minima, medians)| Measured::Timed { by_minima: 1.0 / minima, by_medians: 1.0 / medians });
        self.line("sequential remote read", "of memcpy's speed", 0.6, true, speed);
        // What can be had of that, without any fault, lock or table.
        self.beside_floor("sequential remote read", "stream-mib", 1.35);
        let bytes = |case| self.case(case).map(|row| count(row, "bytes")).filter(|bytes| *bytes > 0.0);
        let more = bytes("random-page").zip(bytes("read-miss")).map(|(random, one)| random / one);
        self.counted("random remote read", "x the bytes of its pages", 1.05, more);
    }

    /// The fault's own part is taken off: what is left is request and reply.
    fn page_by_message(&mut self) {
        let Some(row) = self.case("read-miss") else { return };
        let fault = references::named(self.results, &format!("fault-{}", references::mechanism(row)));
        let Some((fault, floor)) = fault.zip(references::page_by_message(self.results, row)) else { return };
        let times = over((row.min_ns - fault.min_ns, row.median_ns - fault.median_ns), &floor);
        self.at_most("page fetch, without the fault", &format!("x {}", floor.name), 1.15, Some(times));
    }
}

fn count(row: &Row, name: &str) -> f64 {
    row.counts.get(name).copied().unwrap_or(0.0)
}

/// The application without a line of its own, for it visits other tours in each run. All count for the mean.
const NOT_ALONE: &str = "tsp";

fn applications(results: &Results, lines: &mut Vec<Budget>) {
    for (shape, single, mean) in [("2x1", 0.95, 0.9), ("1x2", 0.98, 0.98)] {
        let ours = results.rows.iter().filter(|row| row.kind == Kind::Application);
        let ours = ours.filter(|row| row.transport == "shm" && row.protocol.ends_with(shape));
        let speeds = ours.filter_map(|row| Some((row, speed(results, row)?))).collect::<Vec<_>>();
        let Some(way) = speeds.first().map(|(row, _)| format!("{} over {}", row.protocol, row.transport)) else {
            continue;
        };
        let mut line = |what: &str, allowed: f64, (by_minima, by_medians): Times| {
            let (what, setting, unit) = (what.to_owned(), way.clone(), "of native speed".to_owned());
            let measured = Measured::Timed { by_minima, by_medians };
            lines.push(Budget { what, setting, unit, allowed, at_least: true, measured });
        };
        for (row, speed) in speeds.iter().filter(|(row, _)| row.case != NOT_ALONE) {
            line(&row.case, single, *speed);
        }
        line("all applications, geometric mean", mean, geometric_mean(speeds.iter().map(|(_, speed)| *speed)));
    }
}

/// The speed of an application's run, by minima and by medians: that of native threads is 1, of those that sleep or spin the faster.
pub(crate) fn speed(results: &Results, row: &Row) -> Option<Times> {
    let native = results.rows.iter().filter(|other| {
        other.kind == Kind::Application && other.case == row.case && other.protocol.starts_with("native")
    });
    let fastest = native.map(times).reduce(|one, other| (one.0.min(other.0), one.1.min(other.1)))?;
    Some((fastest.0 / row.min_ns, fastest.1 / row.median_ns))
}

/// Of speeds by minima, and of those by medians.
pub(crate) fn geometric_mean(speeds: impl Iterator<Item = Times>) -> Times {
    let (mut logs, mut count) = ((0.0, 0.0), 0.0);
    for speed in speeds {
        logs = (logs.0 + speed.0.ln(), logs.1 + speed.1.ln());
        count += 1.0;
    }
    (f64::exp(logs.0 / count), f64::exp(logs.1 / count))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::line::Met;
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
            median_ns: 2.0 * min_ns,
            counts: BTreeMap::new(),
        }
    }

    fn found(rows: Vec<Row>) -> Vec<Budget> {
        let mut results = Results::new(Machine::here(Path::new(".")));
        results.rows = rows;
        judge(&results)
    }

    fn timed(by_minima: f64, by_medians: f64) -> Measured {
        Measured::Timed { by_minima, by_medians }
    }

    #[test]
    fn a_line_is_met_up_to_what_is_allowed_and_not_above() {
        for (min_ns, met) in [(1350.0, Met::Yes), (1351.0, Met::No)] {
            let lines = found(vec![
                row(Kind::Floor, "fault-uffd", "", 1000.0),
                row(Kind::Micro, "read-miss", "csm-2l", min_ns),
            ]);
            let line = lines.iter().find(|line| line.unit == "x fault-uffd").expect("judged");
            assert_eq!((line.met(), line.allowed), (met, 1.35));
        }
    }

    #[test]
    fn minima_stand_beside_minima_and_medians_beside_medians_and_both_must_hold() {
        let floor = |median_ns| Row { median_ns, ..row(Kind::Floor, "word-barrier", "", 100.0) };
        let case = |median_ns| Row { median_ns, ..row(Kind::Micro, "barrier-0", "csm-2l", 150.0) };
        for (floor, case, measured, met) in [
            (floor(240.0), case(360.0), timed(1.5, 1.5), Met::Yes),
            (floor(100.0), case(360.0), timed(1.5, 3.6), Met::NotByMedians),
        ] {
            let lines = found(vec![floor, case]);
            assert_eq!(lines.iter().map(|line| (line.measured, line.met())).collect::<Vec<_>>(), [(measured, met)]);
        }
        let lines = found(vec![
            Row { min_ns: 30.0, ..floor(240.0) },
            Row { median_ns: 360.0, ..row(Kind::Micro, "barrier-0", "csm-2l", 150.0) },
        ]);
        assert_eq!((lines[0].measured, lines[0].met()), (timed(5.0, 1.5), Met::NotByMinima));
    }

    #[test]
    fn a_barrier_is_judged_by_the_lowest_floor() {
        let lines = found(vec![
            row(Kind::Floor, "spin-barrier", "", 300.0),
            row(Kind::Floor, "word-barrier", "", 200.0),
            row(Kind::Micro, "barrier-0", "csm-2l", 500.0),
        ]);
        assert_eq!((lines[0].measured, lines[0].met()), (timed(2.5, 2.5), Met::No));
    }

    #[test]
    fn a_lock_is_judged_as_a_pair() {
        let lines =
            found(vec![row(Kind::Micro, "relock", "csm-2l", 20.0), row(Kind::Micro, "lock-pair", "csm-2l", 51.0)]);
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].measured, lines[0].met()), (timed(51.0, 102.0), Met::No));
    }

    #[test]
    fn a_release_is_judged_by_its_dearest_pattern_by_minima_and_by_medians() {
        let lines = found(vec![
            row(Kind::Floor, "compare-copy-16", "", 100.0),
            Row { median_ns: 900.0, ..row(Kind::Micro, "release-word-16", "csm-2l", 150.0) },
            row(Kind::Micro, "release-alternate-16", "csm-2l", 400.0),
        ]);
        assert_eq!(
            lines.iter().map(|line| (line.measured, line.met())).collect::<Vec<_>>(),
            [(timed(400.0, 900.0), Met::Yes), (timed(4.0, 4.5), Met::No)]
        );
    }

    #[test]
    fn a_page_by_message_is_compared_where_none_sleeps_by_minima_and_where_all_sleep_by_medians() {
        let counts = BTreeMap::from([("sleeps".to_owned(), 1.0)]);
        let miss = Row { min_ns: 9000.0, median_ns: 90_000.0, counts, ..row(Kind::Micro, "read-miss", "csm-2l", 1.0) };
        let lines = found(vec![
            row(Kind::Floor, "fault-uffd", "", 1000.0),
            row(Kind::Floor, "tcp-page-busy", "", 4000.0),
            row(Kind::Floor, "tcp-page-blocking", "", 22_000.0),
            Row { transport: "tcp".into(), ..miss },
        ]);
        assert_eq!(lines.iter().map(|line| line.measured).collect::<Vec<_>>(), [timed(2.0, 2.0)]);
    }

    #[test]
    fn applications_are_judged_one_by_one_and_together_beside_the_faster_native() {
        let lines = found(vec![
            row(Kind::Application, "sor", "native", 98.0),
            row(Kind::Application, "sor", "native-spin", 90.0),
            row(Kind::Application, "tsp", "native", 40.0),
            row(Kind::Application, "tsp", "native-spin", 50.0),
            row(Kind::Application, "sor", "csm-2l 2x1", 100.0),
            row(Kind::Application, "tsp", "csm-2l 2x1", 100.0),
        ]);
        let told: Vec<_> = lines.iter().map(|line| (&*line.what, line.met())).collect();
        assert_eq!(told, [("sor", Met::No), ("all applications, geometric mean", Met::No)]);
        assert_eq!(lines[0].measured, timed(0.9, 0.9));
        let Measured::Timed { by_minima, .. } = lines[1].measured else { panic!("a time") };
        assert!((by_minima - 0.6).abs() < 1e-9, "{by_minima}");
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert!(found(vec![row(Kind::Micro, "read-miss", "csm-2l", 1.0)]).is_empty());
    }
}
