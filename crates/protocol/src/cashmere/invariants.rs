//! What must hold of one unit over all nodes, as named sentences. A driver that sees the whole world (the checker, the
//! simulator) calls [`check`] after every step.

use finespun_types::{NodeId, NodeSet, ViewSet};

use super::{Directory, Mode, Phase, Unit};
use crate::whole;

/// One unit as seen from above.
pub type Whole<'a> = whole::Whole<'a, Unit, Directory>;
type Sentence = whole::Sentence<Unit, Directory>;

/// Hold at every moment.
const ALWAYS: &[Sentence] = &[
    ("an exclusive copy is the only one: no other node maps the unit", exclusive_is_alone),
    ("a view that may write is on the dirty list, unless the unit is exclusive", writers_are_dirty),
    ("a view that may write has a mapping", writers_are_mapped),
    ("a copy away from home has a twin exactly while a view is dirty", twin_while_dirty),
    ("the home has a twin only while a view is dirty", home_twin_while_dirty),
    ("in modes without a copy nothing is mapped, dirty or owed", nothing_without_copy),
];

/// Hold when nothing is under way.
const AT_REST: &[Sentence] = &[
    ("the sharing set holds every node with a mapping or with something to flush", sharers_cover_copies),
    ("the directory says exclusive exactly when the owner does", owner_agrees),
    ("a sharer out of date has a write notice on the list of every view that maps the unit", notices_are_listed),
    ("no flush, fetch or question is open", nothing_open),
];

/// Holds when nothing is under way, where homes do not move.
const NO_SURPLUS: &[Sentence] = &[("the sharing set holds no node without a copy", sharers_have_copies)];

/// Checks every sentence that must hold now.
///
/// # Errors
/// The first sentence that does not hold.
pub fn check(whole: &Whole<'_>) -> Result<(), &'static str> {
    check_moving(whole)?;
    whole::check(whole, &[], NO_SURPLUS)
}

/// Checks those that hold where homes move, too: there a node that left may stay in the sharing set.
///
/// # Errors
/// The first sentence that does not hold.
pub fn check_moving(whole: &Whole<'_>) -> Result<(), &'static str> {
    whole::check(whole, ALWAYS, AT_REST)
}

fn exclusive_is_alone(whole: &Whole<'_>) -> bool {
    let exclusive = whole.units.iter().filter(|unit| unit.mode == Mode::Exclusive).count();
    let mapped = whole.units.iter().filter(|unit| !unit.mapped.is_empty()).count();
    exclusive == 0 || (exclusive == 1 && mapped <= 1)
}

fn writers_are_dirty(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| unit.mode == Mode::Exclusive || unit.writers.is_subset(unit.dirty))
}

fn writers_are_mapped(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| unit.writers.is_subset(unit.mapped))
}

fn twin_while_dirty(whole: &Whole<'_>) -> bool {
    nodes(whole).all(|(node, unit)| unit.is_home(node) || unit.has_twin != unit.dirty.is_empty())
}

fn home_twin_while_dirty(whole: &Whole<'_>) -> bool {
    nodes(whole).all(|(node, unit)| !unit.is_home(node) || !unit.has_twin || !unit.dirty.is_empty())
}

fn nothing_without_copy(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| match unit.mode {
        Mode::Untouched | Mode::AskingHome | Mode::NoCopy => {
            unit.mapped.is_empty() && unit.dirty.is_empty() && unit.flusher().is_none()
        }
        Mode::Exclusive => unit.dirty.is_empty() && unit.flusher().is_none(),
        Mode::Fetching | Mode::Shared | Mode::Upgrading => true,
    })
}

fn sharers_cover_copies(whole: &Whole<'_>) -> bool {
    let copies = nodes(whole).filter(|(_, unit)| !unit.mapped.is_empty() || !unit.dirty.is_empty());
    copies.fold(NodeSet::EMPTY, |set, (node, _)| set.with(node)).is_subset(whole.directory.sharers)
}

fn sharers_have_copies(whole: &Whole<'_>) -> bool {
    nodes(whole).all(|(node, unit)| {
        !whole.directory.sharers.contains(node) || matches!(unit.mode, Mode::Shared | Mode::Exclusive)
    })
}

fn owner_agrees(whole: &Whole<'_>) -> bool {
    whole.directory.phase != Phase::Breaking
        && nodes(whole).all(|(node, unit)| (unit.mode == Mode::Exclusive) == (whole.directory.owner() == Some(node)))
}

fn notices_are_listed(whole: &Whole<'_>) -> bool {
    nodes(whole).all(|(node, unit)| {
        unit.mode != Mode::Shared || unit.is_current(node) || unit.mapped.minus(unit.noticed) == ViewSet::EMPTY
    })
}

fn nothing_open(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| {
        unit.flusher().is_none()
            && unit.acks_due == 0
            && !matches!(unit.mode, Mode::AskingHome | Mode::Fetching | Mode::Upgrading)
    })
}

fn nodes<'a>(whole: &Whole<'a>) -> impl Iterator<Item = (NodeId, &'a Unit)> {
    whole.units.iter().enumerate().map(|(node, unit)| (NodeId::of(node), unit))
}
