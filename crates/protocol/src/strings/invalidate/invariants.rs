//! What must hold of one unit over all nodes, as named sentences, after every step.

use finespun_types::{NodeId, NodeSet};

use super::{Directory, Leaving, Mode, Phase, Unit};
use crate::whole;

/// One unit as seen from above.
pub type Whole<'a> = whole::Whole<'a, Unit, Directory>;
type Sentence = whole::Sentence<Unit, Directory>;

/// Hold at every moment.
const ALWAYS: &[Sentence] = &[
    ("single writer or many readers: while a node may write no other node maps the unit", single_writer),
    ("a view that may write has a mapping, at the owner", writers_own),
    ("in modes without a copy nothing is mapped", nothing_without_copy),
    ("whoever maps the unit is in the sharing set", mapped_are_shared),
    ("a mapping is being taken away only for a request of the home", revoked_for_a_reason),
];

/// Hold when nothing is under way.
const AT_REST: &[Sentence] = &[
    ("the sharing set holds exactly the nodes with copies", sharers_have_copies),
    ("the directory says who the owner is", owner_agrees),
    ("who waits, waits at the home: no request is forgotten", waiting_agree),
];

/// Checks every sentence that must hold now.
///
/// # Errors
/// The first sentence that does not hold.
pub fn check(whole: &Whole<'_>) -> Result<(), &'static str> {
    whole::check(whole, ALWAYS, AT_REST)
}

fn single_writer(whole: &Whole<'_>) -> bool {
    let writing = nodes(whole, |unit| !unit.writers.is_empty());
    writing.is_empty() || nodes(whole, |unit| !unit.mapped.is_empty()).is_subset(writing) && writing.len() == 1
}

fn writers_own(whole: &Whole<'_>) -> bool {
    let own = |unit: &Unit| unit.writers.is_empty() || unit.mode == Mode::Owned;
    whole.units.iter().all(|unit| unit.writers.is_subset(unit.mapped) && own(unit))
}

fn has_copy(unit: &Unit) -> bool {
    match unit.mode {
        Mode::Shared | Mode::Upgrading | Mode::Owned => true,
        Mode::Untouched | Mode::AskingHome | Mode::NoCopy | Mode::Reading | Mode::Writing => false,
    }
}

fn nothing_without_copy(whole: &Whole<'_>) -> bool {
    let nothing = |unit: &Unit| unit.mapped.is_empty() && unit.leaving == Leaving::Nothing;
    whole.units.iter().all(|unit| has_copy(unit) || nothing(unit))
}

fn mapped_are_shared(whole: &Whole<'_>) -> bool {
    nodes(whole, |unit| !unit.mapped.is_empty()).is_subset(whole.directory.sharers)
}

fn revoked_for_a_reason(whole: &Whole<'_>) -> bool {
    whole.units.iter().all(|unit| {
        unit.revoked.is_subset(unit.mapped) && (unit.revoked.is_empty() || unit.leaving != Leaving::Nothing)
    })
}

fn sharers_have_copies(whole: &Whole<'_>) -> bool {
    nodes(whole, has_copy) == whole.directory.sharers
}

fn owner_agrees(whole: &Whole<'_>) -> bool {
    let owner = whole.directory.owner().map_or(NodeSet::EMPTY, NodeSet::only);
    nodes(whole, |unit| unit.mode == Mode::Owned) == owner
}

fn waiting_agree(whole: &Whole<'_>) -> bool {
    let Directory { readers, writers, .. } = *whole.directory;
    let reading = nodes(whole, |unit| unit.mode == Mode::Reading);
    let writing = nodes(whole, |unit| matches!(unit.mode, Mode::Writing | Mode::Upgrading));
    let served = writing.minus(writers);
    let serving = matches!(whole.directory.phase, Phase::Invalidating | Phase::Recalling);
    reading == readers && writers.is_subset(writing) && served.len() <= usize::from(serving)
}

fn nodes(whole: &Whole<'_>, is_one: impl Fn(&Unit) -> bool) -> NodeSet {
    let those = whole.units.iter().enumerate().filter(|(_, unit)| is_one(unit));
    those.fold(NodeSet::EMPTY, |set, (node, _)| set.with(NodeId::of(node)))
}
