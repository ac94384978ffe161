//! The summary after a run: at most 14 lines of at most 80 columns (but for a long command or advice).

use std::fmt::Write;

use finespun_types::{Bucket, Counter};

use crate::advice::advice;
use crate::{RunStats, Times};

/// How the text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// ASCII only: for a pipe, a file, or `NO_COLOR`.
    Plain,
    /// Block characters in colour: for a terminal.
    Colour,
}

/// Cells of a bar.
const BAR: usize = 56;
/// With more nodes than this only the slowest and the mean are shown.
const NODES_SHOWN: usize = 8;
const SLOWEST_SHOWN: usize = 3;

/// Name, sign in plain text, and colour (an ANSI number) of a bucket.
const fn look(bucket: Bucket) -> (&'static str, char, u8) {
    match bucket {
        Bucket::Compute => ("compute", '=', 32),
        Bucket::ReadFault => ("read faults", 'r', 34),
        Bucket::WriteFault => ("write faults and twins", 'w', 36),
        Bucket::Flush => ("diffs and flush", 'd', 35),
        Bucket::LockWait => ("lock wait", 'l', 31),
        Bucket::BarrierWait => ("barrier wait", 'b', 33),
        Bucket::Service => ("message service", 's', 37),
    }
}

/// The whole text, each line with its end.
#[must_use]
pub fn summary(stats: &RunStats, style: Style) -> String {
    let mut lines = vec![header(stats)];
    lines.extend(bars(stats, style));
    lines.extend(legend(&stats.times(), style));
    lines.extend(counts(stats));
    if let Some(advice) = advice(stats) {
        lines.push(format!("  advice: {advice}"));
    }
    lines.join("\n") + "\n"
}

fn header(stats: &RunStats) -> String {
    let run = &stats.run;
    let per_node = run.views * run.threads;
    let threads = if run.threads > 1 { format!(" ({} x {} threads)", run.views, run.threads) } else { String::new() };
    format!(
        "finespun: {}: {} x {}{threads}, {} over {}, {}, {:.2} s",
        shortened(file_name(&run.program), 40),
        plural(run.nodes, "node"),
        plural(per_node, "processor"),
        run.protocol,
        run.transport,
        run.faults,
        run.seconds,
    )
}

fn plural(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The command without the folders of its program.
fn file_name(command: &str) -> &str {
    let program = command.split(' ').next().unwrap_or(command);
    program.rfind('/').map_or(command, |slash| &command[slash + 1..])
}

fn shortened(text: &str, most: usize) -> String {
    let text = text.replace(char::is_control, "?"); // a summary is lines, whatever the arguments hold
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most - 3).chain("...".chars()).collect()
}

fn bars(stats: &RunStats, style: Style) -> Vec<String> {
    let mut nodes = stats.node_times();
    if nodes.len() <= NODES_SHOWN {
        return nodes.iter().map(|(node, times)| bar_line(&format!("n{node}"), times, style)).collect();
    }
    // Slowest: least time spent waiting for others.
    let waiting = |times: &Times| times.get(Bucket::LockWait) + times.get(Bucket::BarrierWait);
    nodes.sort_by_key(|(node, times)| (std::cmp::Reverse(times.total() - waiting(times)), *node));
    let slowest = nodes.iter().take(SLOWEST_SHOWN).map(|(node, times)| bar_line(&format!("n{node}"), times, style));
    slowest.chain([bar_line("mean", &stats.times(), style)]).collect()
}

fn bar_line(name: &str, times: &Times, style: Style) -> String {
    let mut bar = String::new();
    for (&bucket, cells) in Bucket::ALL.iter().zip(cells(times, BAR)) {
        let (_, sign, colour) = look(bucket);
        match style {
            Style::Plain => bar.extend(std::iter::repeat_n(sign, cells)),
            Style::Colour if cells > 0 => {
                let _ = write!(bar, "\x1b[{colour}m{}\x1b[0m", "\u{2588}".repeat(cells));
            }
            Style::Colour => {}
        }
    }
    let compute = percent(times, Bucket::Compute);
    let (open, close) = match style {
        Style::Plain => ("[", "]"),
        Style::Colour => ("", ""),
    };
    format!("  {name:>4} {open}{bar}{close} {compute:>3} % compute")
}

/// Divides `width` cells among the buckets by their parts, losing none: the largest remainders get the rest.
fn cells(times: &Times, width: usize) -> [usize; Bucket::COUNT] {
    let mut cells = [0; Bucket::COUNT];
    let total = u128::from(times.total());
    if total == 0 {
        return cells;
    }
    let scaled = |bucket: Bucket| u128::from(times.get(bucket)) * width as u128;
    for &bucket in Bucket::ALL {
        cells[bucket as usize] = usize::try_from(scaled(bucket) / total).expect("a part of the width");
    }
    let mut order = Bucket::ALL.to_vec();
    order.sort_by_key(|&bucket| std::cmp::Reverse(scaled(bucket) % total));
    let left = width - cells.iter().sum::<usize>();
    order.iter().take(left).for_each(|&bucket| cells[bucket as usize] += 1);
    cells
}

fn percent(times: &Times, bucket: Bucket) -> u64 {
    let total = u128::from(times.total()).max(1);
    let part = (u128::from(times.get(bucket)) * 100 + total / 2) / total;
    u64::try_from(part).expect("at most 100")
}

fn legend(times: &Times, style: Style) -> Vec<String> {
    let entry = |&bucket: &Bucket| {
        let (name, sign, colour) = look(bucket);
        let share = percent(times, bucket);
        match style {
            Style::Plain => format!("{sign} {name} {share} %"),
            Style::Colour => format!("\x1b[{colour}m\u{2588}\x1b[0m {name} {share} %"),
        }
    };
    let entries = Bucket::ALL.iter().map(entry).collect::<Vec<_>>();
    entries.chunks(4).map(|line| format!("       {}", line.join("  "))).collect()
}

fn counts(stats: &RunStats) -> [String; 2] {
    let count = |counter| grouped(stats.totals.get(counter));
    let bytes = |counter| readable_bytes(stats.totals.get(counter));
    [
        format!(
            "  faults {} read, {} write; page transfers {}; {} in {} messages",
            count(Counter::ReadFaults),
            count(Counter::WriteFaults),
            count(Counter::PageTransfers),
            bytes(Counter::Bytes),
            count(Counter::Messages),
        ),
        format!(
            "  twins {}, diffs {} ({}), write notices {}; locks {}, barriers {}",
            count(Counter::Twins),
            count(Counter::Diffs),
            bytes(Counter::DiffBytes),
            count(Counter::WriteNotices),
            count(Counter::LockAcquires),
            count(Counter::Barriers),
        ),
    ]
}

/// `1,234,567`, and from ten million `12.3 M`.
fn grouped(count: u64) -> String {
    if count >= 10_000_000 {
        return format!("{:.1} M", count as f64 / 1e6);
    }
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `512 B`, `12.3 MB`.
fn readable_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 999.5 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

#[cfg(test)]
mod tests {
    use finespun_types::{Bucket, Counter};

    use super::{BAR, Style, cells, grouped, readable_bytes, summary};
    use crate::stats::tests::run_of;
    use crate::{RunStats, Times};

    fn sor(nodes: u32) -> RunStats {
        let counts = [
            (Counter::ReadFaults, 6172),
            (Counter::WriteFaults, 300),
            (Counter::PageTransfers, 5100),
            (Counter::Bytes, 22_500_000),
            (Counter::Messages, 8000),
            (Counter::Twins, 20),
            (Counter::Diffs, 10),
            (Counter::DiffBytes, 400),
            (Counter::WriteNotices, 999),
            (Counter::Barriers, 200),
        ];
        run_of(nodes, |node| [610 + u64::from(node), 120, 30, 20, 0, 180, 40], &counts)
    }

    #[test]
    fn plain_text_is_as_agreed() {
        let expected = "\
finespun: sor --size 2048: 2 nodes x 1 processor, csm-2l over shm, uffd, 1.25 s
    n0 [==================================rrrrrrrwwdbbbbbbbbbbss]  61 % compute
    n1 [==================================rrrrrrrwwdbbbbbbbbbbss]  61 % compute
       = compute 61 %  r read faults 12 %  w write faults and twins 3 %  d diffs and flush 2 %
       l lock wait 0 %  b barrier wait 18 %  s message service 4 %
  faults 12,344 read, 600 write; page transfers 10,200; 45.0 MB in 16,000 messages
  twins 40, diffs 20 (800 B), write notices 1,998; locks 0, barriers 400
";
        assert_eq!(summary(&sor(2), Style::Plain), expected);
    }

    #[test]
    fn colour_shows_the_same_bar_in_blocks() {
        let text = summary(&sor(1), Style::Colour);
        let bar = text.lines().nth(1).expect("a bar");
        assert_eq!(bar.chars().filter(|&c| c == '\u{2588}').count(), BAR);
        assert!(bar.starts_with("    n0 \x1b[32m\u{2588}") && bar.ends_with("\x1b[0m  61 % compute"), "{bar:?}");
        let plain = text.lines().map(|line| line.split('\x1b').count() - 1).sum::<usize>();
        assert!(plain.is_multiple_of(2), "each colour is ended");
    }

    #[test]
    fn eight_nodes_with_advice_are_fourteen_lines_and_more_nodes_are_fewer() {
        let mut stats = sor(8);
        stats.totals.set(Counter::IncomingDiffs, 1000);
        assert_eq!(summary(&stats, Style::Plain).lines().count(), 14);
        let text = summary(&sor(9), Style::Plain);
        let names = text.lines().skip(1).take(4).map(|line| line[..6].trim()).collect::<Vec<_>>();
        assert_eq!(names, ["n8", "n7", "n6", "mean"]);
    }

    #[test]
    fn plain_text_is_ascii_and_lines_stay_within_their_width() {
        for nodes in [1, 8, 64] {
            let text = summary(&sor(nodes), Style::Plain);
            assert!(text.is_ascii());
            assert!(text.lines().all(|line| line.len() <= 96), "{text}");
            assert!(text.lines().count() <= 14);
        }
    }

    #[test]
    fn a_run_without_times_has_empty_bars() {
        let text = summary(&run_of(1, |_| [0; 7], &[]), Style::Plain);
        assert!(text.contains("n0 []   0 % compute"), "{text}");
    }

    #[test]
    fn a_long_command_is_shortened_and_kept_on_its_line() {
        let mut stats = sor(1);
        stats.run.program = format!("./app \n{}", "x".repeat(100));
        let text = summary(&stats, Style::Plain);
        assert!(
            text.lines()
                .next()
                .is_some_and(|line| line.starts_with("finespun: app ?xxx") && line.contains("xxx...: 1 node"))
        );
    }

    #[test]
    fn cells_fill_the_bar_for_any_parts() {
        for seed in 1..200 {
            let mut times = Times::ZERO;
            Bucket::ALL.iter().zip(1..).for_each(|(&bucket, n)| times.set(bucket, seed * n * n % 17));
            assert_eq!(cells(&times, BAR).iter().sum::<usize>(), if times.total() == 0 { 0 } else { BAR });
        }
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            ["0", "999", "1,000", "9,999,999"],
            [0, 999, 1000, 9_999_999].map(grouped).each_ref().map(String::as_str)
        );
        assert_eq!(grouped(12_345_678), "12.3 M");
        assert_eq!(
            [0, 999, 1000, 999_499, 999_500, 45_000_000].map(readable_bytes),
            ["0 B", "999 B", "1.0 kB", "999.5 kB", "1.0 MB", "45.0 MB"]
        );
    }
}
