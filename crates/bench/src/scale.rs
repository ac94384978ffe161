//! How the cost of each operation grows: with nodes, processors, the heap, dirty pages and sharers; and the memory that a page and
//! a node take. The jobs have more processes than this machine has cores, most of them asleep: counts say more than times.

use std::fmt::Write;
use std::fs;

use finespun_report::{Memory, RunStats};

use crate::growth::{Point, Scale, Taken};
use crate::measure::{UNPINNED, job, output_of, read_stats, rows};
use crate::plan::{Plan, Setting};
use crate::row::Kind;

/// One axis: what is varied, and how.
struct Axis {
    name: &'static str,
    points: &'static [u64],
    tiny: &'static [u64],
    /// Flags of the job and of the micro benchmark at a point.
    flags: fn(u64) -> (Vec<String>, Vec<String>),
}

/// Dirty pages where nothing else is said.
const DIRTY: &str = "16";

const AXES: &[Axis] = &[
    Axis {
        name: "nodes",
        points: &[1, 2, 4, 8, 16],
        tiny: &[1, 3],
        flags: |at| (shape(at, 1.max(3 - at.min(2))), dirty(DIRTY)),
    },
    Axis { name: "processors a node", points: &[1, 2, 4, 8], tiny: &[2], flags: |at| (shape(2, at), dirty(DIRTY)) },
    Axis {
        name: "heap, MiB",
        points: &[2, 16, 256, 4096, 16384], // 2 MiB is the least
        tiny: &[2, 16384],
        flags: |at| ([shape(2, 1), words(&["--heap", &format!("{at}M")])].concat(), dirty(DIRTY)),
    },
    Axis {
        name: "dirty pages",
        points: &[1, 4, 16, 64, 256, 1024, 4096],
        tiny: &[2],
        flags: |at| (shape(2, 1), dirty(&at.to_string())),
    },
    Axis {
        name: "sharers",
        points: &[1, 2, 4, 8, 15],
        tiny: &[3],
        flags: |at| (shape(16, 1), [dirty(DIRTY), words(&["--sharers", &at.to_string()])].concat()),
    },
];

fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

fn shape(nodes: u64, processes: u64) -> Vec<String> {
    words(&["-n", &nodes.to_string(), "-p", &processes.to_string()])
}

fn dirty(pages: &str) -> Vec<String> {
    words(&["--dirty", pages])
}

/// All axes, under one setting.
///
/// # Errors
/// A sentence: which program failed, and what it said.
pub fn measure(plan: &Plan, setting: &Setting, tell: &mut dyn FnMut(&str)) -> Result<Scale, String> {
    let mut scale = Scale::default();
    for axis in AXES {
        for &at in if plan.tiny { axis.tiny } else { axis.points } {
            tell(&format!("{}: {at}", axis.name));
            let (of_job, of_micro) = (axis.flags)(at);
            let (output, stats) = one_job(plan, setting, "scale", &of_job, &of_micro)?;
            scale.points.extend(rows(Kind::Micro, Some(setting), &output, Some(&stats)).into_iter().map(|row| Point {
                axis: axis.name.into(),
                at,
                case: row.case,
                min_ns: row.min_ns,
                median_ns: row.median_ns,
                counts: row.counts,
            }));
        }
    }
    for nodes in [2, 8] {
        for pages in if plan.tiny { [1, 64] } else { [1, 16384] } {
            tell(&format!("memory: {nodes} nodes, {pages} pages"));
            let (_, stats) = one_job(plan, setting, "memory", &shape(nodes, 1), &dirty(&pages.to_string()))?;
            let by_node = stats.per_node.iter().map(|node| node.memory).collect();
            scale.memory.push(Taken { nodes, pages, by_node });
        }
    }
    Ok(scale)
}

fn one_job(
    plan: &Plan,
    setting: &Setting,
    group: &str,
    of_job: &[String],
    of_micro: &[String],
) -> Result<(String, RunStats), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let (board, stats) = (folder.path().join("board"), folder.path().join("stats.json"));
    fs::write(&board, []).map_err(|error| format!("{}: {error}", board.display()))?;
    let flags = of_job.iter().map(String::as_str).collect::<Vec<_>>();
    let mut command = job(plan, setting, &flags, UNPINNED, &stats);
    // Cases read the same pages in each round, and measure what faults and what is closed.
    command.args(["--refresh", "off"]);
    command.arg(plan.programs.join("micro")).args(["--group", group, "--board"]).arg(&board).args(of_micro);
    if plan.tiny {
        command.arg("--tiny");
    }
    let output = output_of(&mut command)?;
    Ok((output, read_stats(&stats)?))
}

/// A table for each axis: an operation's least time and its messages at each point, and how it grew; then the memory.
#[must_use]
pub fn table(scale: &Scale) -> String {
    let mut text = String::new();
    for axis in AXES {
        let points = scale.points.iter().filter(|point| point.axis == axis.name).collect::<Vec<_>>();
        if !points.is_empty() {
            axis_table(&mut text, axis.name, &points);
        }
    }
    memory_table(&mut text, &scale.memory);
    text
}

fn axis_table(text: &mut String, name: &str, points: &[&Point]) {
    let mut places = points.iter().map(|point| point.at).collect::<Vec<_>>();
    places.dedup();
    let heads = places.iter().map(u64::to_string).collect::<Vec<_>>().join(" | ");
    let lines = "|---".repeat(places.len() + 2);
    let _ = writeln!(text, "\n### Against {name}\n\n| ns (messages) | {heads} | last / first |\n{lines}|");
    for case in points.iter().filter(|point| point.at == places[0]).map(|point| &point.case) {
        let of_case = points.iter().filter(|point| point.case == *case).collect::<Vec<_>>();
        let cells = of_case.iter().map(|point| format!("{:.0} ({:.1})", point.min_ns, messages(point)));
        // One node asks nobody: what grows with nodes grows from two on.
        let first = of_case.iter().find(|point| name != "nodes" || point.at > 1);
        let growth = first.zip(of_case.last()).map_or(1.0, |(first, last)| last.min_ns / first.min_ns);
        let _ = writeln!(text, "| {case} | {} | {growth:.1} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

fn messages(point: &Point) -> f64 {
    ["messages", "sync_messages"].iter().filter_map(|name| point.counts.get(*name)).fold(0.0, |sum, count| sum + count)
}

/// What a page takes more: the difference of two jobs that differ in pages only, on the node that takes most.
fn memory_table(text: &mut String, taken: &[Taken]) {
    if taken.is_empty() {
        return;
    }
    text.push_str(
        "\n### Memory\n\n| nodes | tables of a node with 1 page, KiB | tables per further page, bytes | of the page | at most, \
         bytes | of the page | twins per changed page, bytes |\n|---|---|---|---|---|---|---|\n",
    );
    for pair in taken.chunks(2) {
        let [few, many] = pair else { continue };
        let (node, each) = most_tables(few, many);
        let bound = many.by_node[node].table_bytes_per_page as f64;
        let twins = many.by_node.iter().map(|node| node.twin_bytes).max().unwrap_or(0) as f64 / many.pages as f64;
        let share = |bytes: f64| 100.0 * bytes / 4096.0;
        let _ = writeln!(
            text,
            "| {} | {} | {each:.0} | {:.1} % | {bound:.0} | {:.1} % | {twins:.0} |",
            many.nodes,
            few.by_node[node].table_bytes >> 10,
            share(each),
            share(bound),
        );
    }
}

/// The node whose tables grew most, and by how much a page.
fn most_tables(few: &Taken, many: &Taken) -> (usize, f64) {
    let grown = |(few, many): (&Memory, &Memory)| many.table_bytes.saturating_sub(few.table_bytes);
    let by_node = few.by_node.iter().zip(&many.by_node).map(grown);
    let (node, bytes) = by_node.enumerate().max_by_key(|(_, bytes)| *bytes).unwrap_or((0, 0));
    (node, bytes as f64 / (many.pages - few.pages).max(1) as f64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn point(axis: &str, at: u64, min_ns: f64) -> Point {
        let counts = BTreeMap::from([("messages".to_owned(), 2.0), ("sync_messages".to_owned(), 1.0)]);
        Point { axis: axis.into(), at, case: "release".into(), min_ns, median_ns: min_ns, counts }
    }

    #[test]
    fn an_axis_is_a_table_with_the_growth_from_its_first_to_its_last_point() {
        let points = vec![point("sharers", 1, 100.0), point("sharers", 15, 750.0), point("nodes", 2, 50.0)];
        let text = table(&Scale { points, memory: Vec::new() });
        assert!(text.contains("| ns (messages) | 1 | 15 | last / first |\n|---|---|---|---|"), "{text}");
        assert!(text.contains("| release | 100 (3.0) | 750 (3.0) | 7.5 |"), "{text}");
        assert!(text.contains("### Against nodes"), "{text}");
    }

    #[test]
    fn memory_is_what_more_pages_take_more() {
        let taken = |pages, table_bytes| Taken {
            nodes: 2,
            pages,
            by_node: vec![
                Memory { table_bytes, table_bytes_per_page: 200, twin_bytes: 4096 * pages, ..Memory::default() },
                Memory::default(),
            ],
        };
        let scale = Scale { points: Vec::new(), memory: vec![taken(1, 1 << 20), taken(101, (1 << 20) + 10_000)] };
        assert!(table(&scale).contains("| 2 | 1024 | 100 | 2.4 % | 200 | 4.9 % | 4096 |"), "{}", table(&scale));
    }

    #[test]
    fn one_node_has_two_processes_and_more_nodes_one_each() {
        assert_eq!((AXES[0].flags)(1).0, shape(1, 2));
        assert_eq!((AXES[0].flags)(2).0, shape(2, 1));
        assert_eq!((AXES[0].flags)(16).0, shape(16, 1));
    }
}
