//! A run drawn as messages between nodes: as text, and as SVG. It is read from the run's trace lines.
//!
//! ```text
//!  n0                          n1
//!  |                           | loads u1.0 = 0
//!  |<--------Fetch u0----------|                             home Owned -> Breaking
//! ```

use std::fmt::Write;

/// One thing that happens at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The node.
    pub node: usize,
    /// The other node, if it is a message's arrival.
    pub from: Option<usize>,
    /// What happens: an operation of the program, an event, or the message's name.
    pub label: String,
    /// What changes by it; empty: nothing.
    pub change: String,
}

/// The rows of a trace. Actions that no other node sees, and the ends of releases, are left out.
#[must_use]
pub fn rows(trace: &[String]) -> Vec<Row> {
    trace.iter().filter_map(|line| row(line)).collect()
}

fn row(line: &str) -> Option<Row> {
    let (node, rest) = node_at(line)?;
    if let Some((from, letter)) = rest.strip_prefix("<- ").and_then(node_at) {
        let end = letter.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(letter.len());
        return Some(Row { node, from: Some(from), label: letter[..end].to_owned(), change: String::new() });
    }
    match rest.split_once(" --") {
        Some((before, rest)) => transition(node, before, rest),
        None => operation(node, rest),
    }
}

/// `n1`, perhaps with a colon, and what follows it.
fn node_at(text: &str) -> Option<(usize, &str)> {
    let text = text.strip_prefix('n')?;
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start_matches(':').trim_start()))
}

/// `u0 home Owned --Fetch(n1)--> Breaking [..]`, from behind the node, cut at the first ` --`.
fn transition(node: usize, before: &str, rest: &str) -> Option<Row> {
    let (event, after) = rest.split_once("--> ")?;
    let after = after.split('[').next().unwrap_or_default().trim();
    let (unit, before) = before.split_once(' ').unwrap_or((before, ""));
    let (name, inside) = event.split_once('(').unwrap_or((event, ""));
    let from = node_at(inside).map(|(from, _)| from).filter(|&from| from != node);
    let (role, before) = ["home", "manager"]
        .iter()
        .find_map(|&role| before.strip_prefix(role).map(|before| (role, before.trim())))
        .unwrap_or(("", before));
    // A state that is a whole structure is told by its name.
    let short = |state: &str| state.split([' ', '{']).next().unwrap_or_default().to_owned();
    let (before, after) = (short(before), short(after));
    let change = if before == after { role.to_owned() } else { format!("{role} {before} -> {after}") };
    Some(Row { node, from, label: format!("{name} {unit}"), change: change.trim().to_owned() })
}

/// `v0 p1 loads u0.0 = 1`, from behind the node.
fn operation(node: usize, rest: &str) -> Option<Row> {
    let mut words = rest.split_whitespace().skip_while(|word| {
        word.strip_prefix(['v', 'p']).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let label = words.by_ref().collect::<Vec<_>>().join(" ");
    let is_program = ["loads", "stores", "has lock", "sees flag", "begins a release", "ends interval", "acquires"];
    let begins = is_program.iter().find(|&&begin| label.starts_with(begin))?;
    let label = match *begins {
        "begins a release" => "releases".to_owned(),
        "ends interval" | "acquires" => (*begins).to_owned(),
        _ => label,
    };
    Some(Row { node, from: None, label, change: String::new() })
}

/// The width of a node's column, in characters.
const COLUMN: usize = 28;

/// The run as text.
#[must_use]
pub fn text(rows: &[Row], nodes: usize) -> String {
    let mut drawing = (0..nodes).map(|node| format!("{:<COLUMN$}", format!("n{node}"))).collect::<String>();
    drawing.truncate(drawing.trim_end().len());
    drawing.push('\n');
    for row in rows {
        let mut line: Vec<char> = vec![' '; COLUMN * nodes];
        (0..nodes).for_each(|node| line[node * COLUMN] = '|');
        match row.from {
            Some(from) => arrow(&mut line, from, row.node, &row.label),
            None => put(&mut line, row.node * COLUMN + 2, &row.label),
        }
        let line = line.into_iter().collect::<String>();
        drawing.push_str(format!("{line}  {}", row.change).trim_end());
        drawing.push('\n');
    }
    drawing
}

fn put(line: &mut [char], at: usize, text: &str) {
    line[at..].iter_mut().zip(text.chars()).for_each(|(place, c)| *place = c);
}

fn arrow(line: &mut [char], from: usize, to: usize, label: &str) {
    let (left, right) = (from.min(to) * COLUMN + 1, from.max(to) * COLUMN);
    line[left..right].fill('-');
    if to > from {
        line[right - 1] = '>';
    } else {
        line[left] = '<';
    }
    let middle = (left + right).saturating_sub(label.chars().count()) / 2;
    put(line, middle, label);
}

/// The same in an SVG's units.
const LANE: usize = 260;
const LINE: usize = 22;
const LEFT: usize = 40;
const TOP: usize = 64;

/// The run as an SVG, under a title.
#[must_use]
pub fn svg(rows: &[Row], nodes: usize, title: &str) -> String {
    let (width, height) = (LEFT + nodes * LANE + 120, TOP + (rows.len() + 1) * LINE);
    let x = |node: usize| LEFT + node * LANE;
    let mut drawing = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"monospace\" font-size=\"13\">\n\
         <defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut add = |element: String| drawing.push_str(&element);
    add(label(LEFT, 24, "start", "black", title));
    for node in 0..nodes {
        add(label(x(node), TOP - 14, "middle", "black", &format!("n{node}")));
        add(format!(
            "<line x1=\"{0}\" y1=\"{TOP}\" x2=\"{0}\" y2=\"{1}\" stroke=\"#999\"/>\n",
            x(node),
            height - LINE / 2
        ));
    }
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + (index + 1) * LINE;
        match row.from {
            Some(from) => {
                add(format!(
                    "<line x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"black\" marker-end=\"url(#tip)\"/>\n",
                    x(from),
                    x(row.node)
                ));
                add(label((x(from) + x(row.node)) / 2, y - 4, "middle", "black", &row.label));
            }
            None => add(label(x(row.node) + 8, y + 4, "start", "#00539f", &row.label)),
        }
        add(label(x(nodes - 1) + LANE - 90, y + 4, "start", "#777", &row.change));
    }
    drawing + "</svg>\n"
}

fn label(x: usize, y: usize, anchor: &str, colour: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut element = String::new();
    if !text.is_empty() {
        let _ = writeln!(element, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>");
    }
    element
}

#[cfg(test)]
mod tests {
    use super::{Row, rows, svg, text};

    fn trace() -> Vec<String> {
        [
            "n1 v0 p1 loads u1.0 = 0",
            "n0 u0 home Owned {n0} --Fetch(n1 write)--> Breaking {n0} [Break(n0)]",
            "n0 u0 NoCopy --ReadFault(v0)--> NoCopy [Fetch(n1)]",
            "n1 u0 manager --AskHome(n1)--> [HomeIs(n1 n0)]",
            "n0 u0   Protect(v0 Read)",
            "n1 <- n0: Grant(Page { of: 1 })",
            "n0 v0 p0 begins a release of units 0b1",
            "n0 v0 p0 ends its release",
            "p1 waits for u0 no longer",
        ]
        .map(str::to_owned)
        .into()
    }

    fn row(node: usize, from: Option<usize>, label: &str, change: &str) -> Row {
        Row { node, from, label: label.to_owned(), change: change.to_owned() }
    }

    #[test]
    fn operations_transitions_and_messages_are_rows() {
        let expected = [
            row(1, None, "loads u1.0 = 0", ""),
            row(0, Some(1), "Fetch u0", "home Owned -> Breaking"),
            row(0, None, "ReadFault u0", ""),
            row(1, None, "AskHome u0", "manager"),
            row(1, Some(0), "Grant", ""),
            row(0, None, "releases", ""),
        ];
        assert_eq!(rows(&trace()), expected);
    }

    #[test]
    fn arrows_point_to_who_receives() {
        let drawn = text(&rows(&trace()), 2);
        let lines = drawn.lines().collect::<Vec<_>>();
        assert_eq!(lines[0], "n0                          n1");
        assert_eq!(lines[1], "|                           | loads u1.0 = 0");
        assert_eq!(lines[2], "|<--------Fetch u0----------|                             home Owned -> Breaking");
        assert_eq!(lines[5], "|-----------Grant---------->|");
    }

    #[test]
    fn the_svg_has_a_line_for_each_message_and_each_node() {
        let drawn = svg(&rows(&trace()), 2, "a < b");
        assert_eq!(drawn.matches("<line ").count(), 4, "{drawn}");
        assert!(drawn.contains("a &lt; b") && drawn.ends_with("</svg>\n"));
    }
}
