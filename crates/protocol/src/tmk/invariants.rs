//! What must hold, as named sentences, for a driver that sees all nodes.

use super::{Mode, Seen, Unit, covers};

/// One unit as seen from above, with the nodes' times.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// The copies, by node.
    pub units: &'a [Unit],
    /// By node, then by writer.
    pub writers: &'a [Seen],
    /// By node: the intervals its processors have acquired.
    pub seen: &'a [u32],
    /// Is a message about this unit under way, or an event being handled?
    pub in_flight: bool,
}

type Sentence = (&'static str, fn(&Whole<'_>) -> bool);

const ALWAYS: &[Sentence] = &[
    ("a mapped copy has every store that its node's time covers", mapped_are_complete),
    ("a view that may write has the unit on its dirty list, a mapping and a twin", writers_are_ready),
    ("there is a twin exactly while an interval is open or owed", twin_while_needed),
    ("nobody has a store that its writer has not ended an interval with", applied_has_ended),
    ("what is owed is this node's last interval of the unit", owed_is_own_last),
];

const AT_REST: &[Sentence] = &[("no answer is due", nothing_due)];

/// Checks every sentence that must hold now.
///
/// # Errors
/// The first sentence that does not hold.
pub fn check(whole: &Whole<'_>) -> Result<(), &'static str> {
    let at_rest: &[Sentence] = if whole.in_flight { &[] } else { AT_REST };
    for (sentence, holds) in ALWAYS.iter().chain(at_rest) {
        if !holds(whole) {
            return Err(sentence);
        }
    }
    Ok(())
}

/// Times only grow, and a node acquires only what it was granted and knows.
///
/// # Errors
/// The sentence that does not hold.
pub fn check_times(before: &[u32], seen: &[u32], granted: &[u32], known: &[u32]) -> Result<(), &'static str> {
    if !covers(seen, before) {
        return Err("a node's time only grows");
    }
    if !covers(granted, seen) || !covers(known, granted) {
        return Err("a node has acquired only what it was granted, and was granted only what it knows");
    }
    Ok(())
}

fn rows<'a>(whole: &Whole<'a>) -> impl Iterator<Item = (usize, &'a Unit, &'a [Seen])> {
    let nodes = whole.units.len();
    whole.units.iter().zip(whole.writers.chunks(nodes)).enumerate().map(|(node, (unit, seen))| (node, unit, seen))
}

fn mapped_are_complete(whole: &Whole<'_>) -> bool {
    rows(whole).all(|(_, unit, seen)| !unit.mapped || (unit.mode == Mode::Present && Unit::is_complete(seen)))
}

fn writers_are_ready(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| !unit.writable || (unit.mapped && unit.written && unit.has_twin))
}

fn twin_while_needed(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| unit.has_twin == (unit.written || unit.owed > 0))
}

fn applied_has_ended(whole: &Whole<'_>) -> bool {
    let nodes = whole.units.len();
    rows(whole).all(|(_, _, seen)| {
        (0..nodes).all(|writer| seen[writer].applied.max(seen[writer].noticed) <= whole.seen[writer * nodes + writer])
    })
}

fn owed_is_own_last(whole: &Whole<'_>) -> bool {
    rows(whole).all(|(node, unit, seen)| unit.owed == 0 || unit.owed == seen[node].noticed)
}

fn nothing_due(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| matches!(unit.mode, Mode::Absent | Mode::Present) && unit.awaiting == 0)
}
