//! Two runs side by side: every count and every part of the time, with how many times the first the second is.

use finespun_types::{Bucket, Counter};

use crate::RunStats;

/// The table, each line with its end: counts that are 0 in both are left out.
#[must_use]
pub fn compare(first: &RunStats, second: &RunStats) -> String {
    let mut rows = vec![texts(first, second, "program", |stats| stats.run.program.clone())];
    rows.push(texts(first, second, "shape", shape));
    rows.push(texts(first, second, "protocol", |stats| format!("{} over {}", stats.run.protocol, stats.run.transport)));
    rows.push(texts(first, second, "faults", |stats| stats.run.faults.clone()));
    let seconds = [first, second].map(|stats| stats.run.seconds);
    rows.push(Row {
        name: "seconds".into(),
        cells: seconds.map(|seconds| format!("{seconds:.4}")),
        ratio: ratio(seconds),
    });
    for &bucket in Bucket::ALL {
        let nanos = [first, second].map(|stats| stats.times().get(bucket) as f64);
        let name = format!("{} ms", bucket.name().trim_end_matches("_ns"));
        let cells = nanos.map(|nanos| format!("{:.3}", nanos / 1e6));
        rows.push(Row { name, cells, ratio: ratio(nanos) });
    }
    for &counter in Counter::ALL {
        let counts = [first, second].map(|stats| stats.totals.get(counter));
        if counts != [0, 0] {
            let ratio = ratio(counts.map(|count| count as f64));
            rows.push(Row { name: counter.name().into(), cells: counts.map(|count| count.to_string()), ratio });
        }
    }
    render(&rows)
}

/// One line of the table.
struct Row {
    name: String,
    cells: [String; 2],
    ratio: String,
}

fn texts(first: &RunStats, second: &RunStats, name: &str, of: impl Fn(&RunStats) -> String) -> Row {
    Row { name: name.into(), cells: [of(first), of(second)], ratio: String::new() }
}

fn shape(stats: &RunStats) -> String {
    format!("-n {} -p {} -t {}", stats.run.nodes, stats.run.views, stats.run.threads)
}

/// How many times the first the second is.
fn ratio([first, second]: [f64; 2]) -> String {
    if first > 0.0 { format!("x {:.2}", second / first) } else { String::new() }
}

fn render(rows: &[Row]) -> String {
    let width = |of: &dyn Fn(&Row) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
    let (names, firsts, seconds) = (width(&|row| &row.name), width(&|row| &row.cells[0]), width(&|row| &row.cells[1]));
    let line = |row: &Row| {
        let [first, second] = &row.cells;
        let line = format!("{:<names$}  {first:>firsts$}  {second:>seconds$}  {}", row.name, row.ratio);
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use finespun_types::Counter;

    use super::compare;
    use crate::stats::tests::run_of;

    #[test]
    fn two_runs_stand_side_by_side() {
        let first = run_of(2, |_| [10, 0, 0, 0, 0, 2, 0], &[(Counter::Messages, 40), (Counter::Twins, 0)]);
        let mut second = run_of(2, |_| [10, 0, 0, 0, 0, 5, 0], &[(Counter::Messages, 10), (Counter::Diffs, 3)]);
        second.run.protocol = "csm-ms".into();
        second.run.seconds = 2.5;
        let text = compare(&first, &second);
        let line = |name: &str| {
            let found = text.lines().find(|line| line.starts_with(name));
            found.unwrap_or_else(|| panic!("no line {name} in\n{text}")).split_whitespace().collect::<Vec<_>>()
        };
        assert_eq!(line("protocol"), ["protocol", "csm-2l", "over", "shm", "csm-ms", "over", "shm"]);
        assert_eq!(line("seconds"), ["seconds", "1.2500", "2.5000", "x", "2.00"]);
        assert_eq!(line("messages"), ["messages", "80", "20", "x", "0.25"]);
        assert_eq!(line("diffs"), ["diffs", "0", "6"]);
        assert_eq!(line("barrier_wait ms"), ["barrier_wait", "ms", "4.000", "10.000", "x", "2.50"]);
        assert!(!text.contains("twins"), "nothing happened in either\n{text}");
    }
}
