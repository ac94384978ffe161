//! What must hold of one unit over all nodes, as named sentences, after every step.

use finespun_types::{NodeId, NodeSet};

use super::{Directory, Mode, Unit};
use crate::whole;

/// One unit as seen from above.
pub type Whole<'a> = whole::Whole<'a, Unit, Directory>;
type Sentence = whole::Sentence<Unit, Directory>;

/// Hold at every moment.
const ALWAYS: &[Sentence] = &[
    ("a unit that a view may write is on its node's dirty list, unless the home is alone with it", writers_are_dirty),
    ("a view that may write has a mapping", writers_are_mapped),
    ("only a valid copy is mapped, dirty or flushed", nothing_without_copy),
    ("whoever has a copy is in the sharing set", copies_are_shared),
    ("a copy that is alone is the only one, and clean", alone_is_alone),
];

/// Hold when nothing is under way.
const AT_REST: &[Sentence] = &[
    ("whoever is in the sharing set has a copy", sharers_have_copies),
    ("no flush, fetch or question is open", nothing_open),
];

/// Checks every sentence that must hold now.
///
/// # Errors
/// The first sentence that does not hold.
pub fn check(whole: &Whole<'_>) -> Result<(), &'static str> {
    whole::check(whole, ALWAYS, AT_REST)
}

fn writers_are_dirty(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| unit.dirty || unit.alone || unit.writers.is_empty())
}

fn alone_is_alone(whole: &Whole<'_>) -> bool {
    let alone = whole.units.iter().any(|unit| unit.alone);
    !alone || (copies(whole).len() == 1 && whole.units.iter().all(|unit| !unit.alone || !unit.dirty))
}

fn writers_are_mapped(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| unit.writers.is_subset(unit.mapped))
}

fn nothing_without_copy(whole: &Whole<'_>) -> bool {
    let empty = |unit: &Unit| unit.mapped.is_empty() && !unit.dirty && !unit.flushing;
    whole.units.iter().all(|unit| unit.mode == Mode::Valid || empty(unit))
}

fn copies(whole: &Whole<'_>) -> NodeSet {
    let valid = whole.units.iter().enumerate().filter(|(_, unit)| unit.mode == Mode::Valid);
    valid.fold(NodeSet::EMPTY, |set, (node, _)| set.with(NodeId::of(node)))
}

fn copies_are_shared(whole: &Whole<'_>) -> bool {
    copies(whole).is_subset(whole.directory.sharers)
}

fn sharers_have_copies(whole: &Whole<'_>) -> bool {
    whole.directory.sharers.is_subset(copies(whole))
}

fn nothing_open(whole: &Whole<'_>) -> bool {
    let open =
        |unit: &Unit| unit.flushing || unit.acks_due != 0 || matches!(unit.mode, Mode::AskingHome | Mode::Fetching);
    !whole.units.iter().any(open)
}
