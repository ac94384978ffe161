//! Rows as tables in Markdown.

use std::fmt::Write;

use crate::applications;
use crate::budget;
use crate::line::{Measured, Met};
use crate::references::{self, Beside};
use crate::results::Results;
use crate::row::{Kind, Row};
use crate::scale;

/// The counts that a row shows, where they happened.
const COUNTS: &[(&str, &str)] = &[
    ("messages", "messages"),
    ("bytes", "bytes"),
    ("read_faults", "read faults"),
    ("write_faults", "write faults"),
    ("page_transfers", "pages"),
    ("diffs", "diffs"),
    ("twins", "twins"),
    ("write_notices", "notices"),
    ("invalidations", "invalidations"),
    ("sync_messages", "sync messages"),
    ("system_calls", "system calls"),
    ("sleeps", "sleeps"),
    ("wakes", "wakes"),
];

/// All tables.
#[must_use]
pub fn tables(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "Finespun {} {}; {}, {} cores, Linux {}, load {} at the start. Nanoseconds an operation, minimum / median.\n",
        machine.version, machine.commit, machine.processor, machine.cores, machine.kernel, machine.load
    );
    text.push_str(&scale::table(&results.scale));
    if results.rows.is_empty() {
        return text;
    }
    budget(&mut text, results);
    floors_and_peers(&mut text, results);
    micro(&mut text, results);
    applications(&mut text, results);
    for missing in &results.missing {
        let _ = writeln!(text, "\nNot measured: {missing}");
    }
    text
}

fn of(results: &Results, kind: Kind) -> impl Iterator<Item = &Row> {
    results.rows.iter().filter(move |row| row.kind == kind)
}

fn floors_and_peers(text: &mut String, results: &Results) {
    if of(results, Kind::Floor).next().is_none() {
        return;
    }
    text.push_str("\n## Floors and peers\n\n| | min | median |\n|---|---|---|\n");
    for row in of(results, Kind::Floor).chain(of(results, Kind::Peer)) {
        let _ = writeln!(text, "| {} | {} | {} |", row.case, number(row.min_ns), number(row.median_ns));
    }
}

fn budget(text: &mut String, results: &Results) {
    if results.budget.is_empty() {
        return;
    }
    text.push_str(
        "\n## Budget\n\nBy minima (of more than two rounds or runs, the second least) and by medians, each beside the same of its floor. \
         A line is met only if both are. What is not met is said first.\n\n",
    );
    text.push_str(
        "| | setting | allowed | by minima, or counted | by medians | | met |\n|---|---|---|---|---|---|---|\n",
    );
    let mut lines = results.budget.iter().collect::<Vec<_>>();
    lines.sort_by_key(|line| line.met());
    for line in lines {
        let bound = if line.at_least { "at least" } else { "at most" };
        let (minima, medians) = match line.measured {
            Measured::Counted(count) => (short(count), "-".to_owned()),
            Measured::Timed { by_minima, by_medians } => (short(by_minima), short(by_medians)),
        };
        let met = match line.met() {
            Met::Yes => "yes",
            Met::NotByMedians => "**not met** by medians",
            Met::NotByMinima => "**not met** by minima",
            Met::No => "**not met**",
        };
        let _ = writeln!(
            text,
            "| {} | {} | {bound} {} | {minima} | {medians} | {} | {met} |",
            line.what,
            line.setting,
            short(line.allowed),
            line.unit
        );
    }
}

/// A number of a budget, which may be a ratio.
fn short(value: f64) -> String {
    if value < 20.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

fn micro(text: &mut String, results: &Results) {
    let mut last = None;
    for row in of(results, Kind::Micro) {
        let setting = (&row.protocol, &row.transport, &row.faults);
        if last != Some(setting) {
            last = Some(setting);
            let _ = writeln!(text, "\n## {} over {}, {}\n", row.protocol, row.transport, row.faults);
            text.push_str(
                "| case | min | median | to the floor | to the peer | per operation |\n|---|---|---|---|---|---|\n",
            );
        }
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            row.case,
            number(row.min_ns),
            number(row.median_ns),
            ratio(row, references::floor(results, row)),
            ratio(row, references::peer(results, row)),
            counts(row)
        );
    }
}

fn ratio(row: &Row, reference: Option<Beside>) -> String {
    reference.map_or("-".into(), |other| {
        format!("{:.2} / {:.2}", row.min_ns / other.min_ns, row.median_ns / other.median_ns)
    })
}

fn counts(row: &Row) -> String {
    let shown = COUNTS.iter().filter_map(|(key, name)| {
        let count = *row.counts.get(*key)?;
        Some(if count.fract().abs() < 0.005 { format!("{count:.0} {name}") } else { format!("{count:.2} {name}") })
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Speed against native threads, by minima and by medians.
fn applications(text: &mut String, results: &Results) {
    let mut rows = of(results, Kind::Application).peekable();
    if rows.peek().is_none() {
        return;
    }
    let placed = match applications::pin(results.machine.cores) {
        applications::PINNED => "Each processor is pinned to a core of its own, of native threads as of ours.",
        _ => "No processor is pinned, of native threads or of ours: the cores are too few.",
    };
    let _ = writeln!(
        text,
        "\n## Applications\n\nMilliseconds. {placed} Speed, by minima / by medians: that of native threads is 1, of those that \
         sleep at barriers (native) and those that spin (native-spin) the faster.\n"
    );
    text.push_str("| application | run as | min | median | speed | messages | kB |\n|---|---|---|---|---|---|---|\n");
    let mut speeds: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for row in rows {
        let speed = budget::speed(results, row).unwrap_or((f64::NAN, f64::NAN));
        let way = [row.protocol.as_str(), row.transport.as_str()].join(" ").trim().to_owned();
        let count = |name: &str| row.counts.get(name).copied().unwrap_or(0.0);
        let _ = writeln!(
            text,
            "| {} | {way} | {:.1} | {:.1} | {:.2} / {:.2} | {:.0} | {:.0} |",
            row.case,
            row.min_ns / 1e6,
            row.median_ns / 1e6,
            speed.0,
            speed.1,
            count("messages"),
            count("bytes") / 1e3
        );
        match speeds.iter_mut().find(|(name, _)| *name == way) {
            Some((_, speeds)) => speeds.push(speed),
            None => speeds.push((way, vec![speed])),
        }
    }
    text.push_str("\n| run as | geometric mean of the speeds |\n|---|---|\n");
    for (way, speeds) in speeds {
        let (by_minima, by_medians) = budget::geometric_mean(speeds.into_iter());
        let _ = writeln!(text, "| {way} | {by_minima:.2} / {by_medians:.2} |");
    }
}

/// A time for people: more digits for small ones.
fn number(nanoseconds: f64) -> String {
    if nanoseconds < 100.0 { format!("{nanoseconds:.1}") } else { format!("{nanoseconds:.0}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::line::Budget;
    use crate::results::Machine;

    fn row(kind: Kind, case: &str, transport: &str, ns: f64) -> Row {
        Row {
            kind,
            case: case.into(),
            protocol: "csm-2l".into(),
            transport: transport.into(),
            faults: "uffd".into(),
            operations: 1,
            min_ns: ns,
            median_ns: 2.0 * ns,
            counts: BTreeMap::from([("messages".to_owned(), 1.0)]),
        }
    }

    fn results() -> Results {
        let mut results = Results::new(Machine::here(std::path::Path::new(".")));
        results.rows = vec![
            row(Kind::Floor, "fault-uffd", "", 1000.0),
            row(Kind::Floor, "tcp-page-busy", "", 5000.0),
            row(Kind::Micro, "read-miss", "shm", 1500.0),
            row(Kind::Micro, "read-miss", "tcp", 10_000.0),
        ];
        results
    }

    #[test]
    fn a_miss_is_compared_with_the_floor_of_its_mechanism_and_transport() {
        let text = tables(&results());
        assert!(text.contains("| read-miss | 1500 | 3000 | 1.50 / 1.50 | - | 1 messages |"), "{text}");
        assert!(text.contains("| read-miss | 10000 | 20000 | 2.00 / 2.00 | - | 1 messages |"), "{text}");
    }

    #[test]
    fn applications_are_compared_with_native_threads() {
        let mut results = results();
        let application =
            |protocol: &str, ns| Row { protocol: protocol.into(), ..row(Kind::Application, "sor", "", ns) };
        results.rows.push(application("native", 1e6));
        results.rows.push(application("csm-2l 2x1", 2e6));
        results.rows.push(Row { median_ns: 1e6, ..application("native-spin", 1e6) });
        let text = tables(&results);
        assert!(text.contains("| sor | csm-2l 2x1 | 2.0 | 4.0 | 0.50 / 0.25 | 1 | 0 |"), "{text}");
        assert!(text.contains("| sor | native | 1.0 | 2.0 | 1.00 / 0.50 | 1 | 0 |"), "{text}");
        assert!(text.contains("| csm-2l 2x1 | 0.50 / 0.25 |"), "{text}");
    }

    #[test]
    fn a_budget_says_what_is_not_met_and_by_which_number() {
        let mut results = results();
        let line = |what: &str, by_minima, by_medians| Budget {
            what: what.into(),
            setting: "here".into(),
            unit: "ns".into(),
            allowed: 50.0,
            at_least: false,
            measured: Measured::Timed { by_minima, by_medians },
        };
        results.budget = vec![line("good", 40.0, 45.0), line("slow at times", 40.0, 60.0), line("slow", 51.0, 60.0)];
        let text = tables(&results);
        let rows = [
            "| slow | here | at most 50 | 51 | 60 | ns | **not met** |",
            "| slow at times | here | at most 50 | 40 | 60 | ns | **not met** by medians |",
            "| good | here | at most 50 | 40 | 45 | ns | yes |",
        ];
        assert!(text.contains(&rows.join("\n")), "{text}");
    }
}
