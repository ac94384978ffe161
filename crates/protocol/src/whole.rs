//! A unit of a home-based protocol as seen from above, and sentences that must hold of it. A driver that sees the whole world (the
//! checker, the simulator) checks them after every step.

/// One unit as seen from above.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a, U, D> {
    /// The copies, by node.
    pub units: &'a [U],
    /// The directory entry at the home.
    pub directory: &'a D,
    /// Is any message about this unit under way, or an action not yet performed?
    pub in_flight: bool,
}

/// A sentence, with its test.
pub type Sentence<U, D> = (&'static str, fn(&Whole<'_, U, D>) -> bool);

/// Checks the sentences that hold always, and those that hold at rest if nothing is under way.
pub(crate) fn check<U, D>(
    whole: &Whole<'_, U, D>,
    always: &[Sentence<U, D>],
    at_rest: &[Sentence<U, D>],
) -> Result<(), &'static str> {
    let at_rest = if whole.in_flight { &[] } else { at_rest };
    always.iter().chain(at_rest).find(|(_, holds)| !holds(whole)).map_or(Ok(()), |(sentence, _)| Err(sentence))
}
