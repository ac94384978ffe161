//! Rows as tables in Markdown.

use std::fmt::Write;

use crate::results::{Kind, Results, Row};
use crate::scale;

/// What a case is compared with: its floor, and the nearest operation of a peer; [`None`] where there is none.
struct Reference {
    /// How the case's name begins.
    case: &'static str,
    floor: Option<&'static str>,
    peer: Option<&'static str>,
}

const REFERENCES: &[Reference] = &[
    Reference { case: "read-miss", floor: Some("fault"), peer: Some("mpi-page-get") },
    Reference { case: "write-miss", floor: Some("fault"), peer: Some("mpi-page-get") },
    Reference { case: "write-home-first", floor: Some("fault"), peer: None },
    Reference { case: "read-home-first", floor: Some("fault"), peer: None },
    Reference { case: "write-upgrade", floor: Some("upgrade"), peer: None },
    Reference { case: "rewrite", floor: Some("upgrade"), peer: None },
    Reference { case: "release-nothing", floor: None, peer: None },
    Reference { case: "release-", floor: Some("compare-copy"), peer: None },
    Reference { case: "lock-again", floor: Some("pthread-mutex"), peer: Some("shmem-lock-again") },
    Reference { case: "relock", floor: Some("pthread-mutex"), peer: None },
    Reference { case: "lock-after-other", floor: Some("line-round-trip"), peer: None },
    Reference { case: "lock-hand-off", floor: Some("line-round-trip"), peer: None },
    Reference { case: "lock-contended", floor: Some("line-round-trip"), peer: None },
    Reference { case: "flag-round-trip", floor: Some("line-round-trip"), peer: None },
    Reference { case: "barrier-crowd", floor: Some("pthread-barrier-8"), peer: None },
    Reference { case: "barrier-", floor: Some("spin-barrier"), peer: Some("mpi-barrier") },
    Reference { case: "stream-mib", floor: Some("copy-open-read-mib"), peer: None },
    Reference { case: "fill-page", floor: Some("touch-page"), peer: None },
    Reference { case: "random-page", floor: Some("fault"), peer: None },
];

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
    references(&mut text, results);
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

fn references(text: &mut String, results: &Results) {
    text.push_str("\n## Floors and peers\n\n| | min | median |\n|---|---|---|\n");
    for row in of(results, Kind::Floor).chain(of(results, Kind::Peer)) {
        let _ = writeln!(text, "| {} | {} | {} |", row.case, number(row.min_ns), number(row.median_ns));
    }
}

fn budget(text: &mut String, results: &Results) {
    if results.budget.is_empty() {
        return;
    }
    text.push_str("\n## Budget\n\nBy minima; of more than two rounds or runs, by the second least. What stands beside two processors at the same memory, by medians. What is not met is said first.\n\n");
    text.push_str("| | setting | allowed | measured | | met |\n|---|---|---|---|---|---|\n");
    let mut lines = results.budget.iter().collect::<Vec<_>>();
    lines.sort_by_key(|line| line.met);
    for line in lines {
        let bound = if line.at_least { "at least" } else { "at most" };
        let (allowed, measured) = (short(line.allowed), short(line.measured));
        let met = if line.met { "yes" } else { "**no**" };
        let _ = writeln!(
            text,
            "| {} | {} | {bound} {allowed} | {measured} | {} | {met} |",
            line.what, line.setting, line.unit
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
        let reference = REFERENCES.iter().find(|reference| row.case.starts_with(reference.case));
        let floor = reference.and_then(|reference| floor_of(results, row, reference.floor?));
        let peer = reference.and_then(|reference| results.reference(Kind::Peer, reference.peer?));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            row.case,
            number(row.min_ns),
            number(row.median_ns),
            ratio(row, floor),
            ratio(row, peer),
            counts(row)
        );
    }
}

/// The floor of a case: that of faults is measured for each mechanism, that of releases for each number of pages, and a page over
/// tcp has a message's.
fn floor_of<'a>(results: &'a Results, row: &Row, floor: &str) -> Option<&'a Row> {
    let name = match floor {
        "compare-copy" => format!("compare-copy-{}", row.case.rsplit('-').next()?),
        "fault" if row.transport == "tcp" && row.counts.contains_key("messages") => "tcp-page-busy".to_owned(),
        "fault" | "upgrade" | "copy-open-read-mib" if row.faults == "mprotect" => format!("{floor}-mprotect"),
        "fault" | "upgrade" | "copy-open-read-mib" => format!("{floor}-uffd"),
        plain => plain.to_owned(),
    };
    results.reference(Kind::Floor, &name)
}

fn ratio(row: &Row, reference: Option<&Row>) -> String {
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

/// Speed against native threads: native's time divided by the row's, by medians.
fn applications(text: &mut String, results: &Results) {
    let mut rows = of(results, Kind::Application).peekable();
    if rows.peek().is_none() {
        return;
    }
    text.push_str("\n## Applications\n\nMilliseconds; speed is that of native threads on the same cores = 1.\n\n");
    text.push_str("| application | run as | min | median | speed | messages | kB |\n|---|---|---|---|---|---|---|\n");
    let mut logs: Vec<(String, Vec<f64>)> = Vec::new();
    for row in rows {
        let native = of(results, Kind::Application).find(|other| other.case == row.case && other.protocol == "native");
        let speed = native.map_or(f64::NAN, |native| native.median_ns / row.median_ns);
        let way = [row.protocol.as_str(), row.transport.as_str()].join(" ").trim().to_owned();
        let count = |name: &str| row.counts.get(name).copied().unwrap_or(0.0);
        let _ = writeln!(
            text,
            "| {} | {way} | {:.1} | {:.1} | {speed:.2} | {:.0} | {:.0} |",
            row.case,
            row.min_ns / 1e6,
            row.median_ns / 1e6,
            count("messages"),
            count("bytes") / 1e3
        );
        match logs.iter_mut().find(|(name, _)| *name == way) {
            Some((_, logs)) => logs.push(speed.ln()),
            None => logs.push((way, vec![speed.ln()])),
        }
    }
    text.push_str("\n| run as | geometric mean of the speeds |\n|---|---|\n");
    for (way, logs) in logs {
        let _ = writeln!(text, "| {way} | {:.2} |", (logs.iter().sum::<f64>() / logs.len() as f64).exp());
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
        let text = tables(&results);
        assert!(text.contains("| sor | csm-2l 2x1 | 2.0 | 4.0 | 0.50 | 1 | 0 |"), "{text}");
        assert!(text.contains("| csm-2l 2x1 | 0.50 |"), "{text}");
    }
}
