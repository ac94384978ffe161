//! Where a processor stands with faults that have not happened ([`crate::ahead`]).

use finespun_types::NodeId;

/// What a processor has guessed, and the mappings that it has still to change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Early {
    /// A unit that is guessed together with a fault, and not tried yet.
    pub(crate) to_try: u8,
    /// Units whose answers are awaited.
    pub(crate) asked: u8,
    /// Units that the table has opened.
    pub(crate) opening: u8,
    /// Units that the table has closed.
    pub(crate) closing: u8,
    /// Where the guess under way stands.
    pub(crate) stage: Stage,
}

/// Where a guess stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// None is under way.
    #[default]
    AtRest,
    /// In an acquire: the notice is being obeyed.
    Obeying,
    /// Wants to ask the manager whether there is a home.
    AtManager(u8),
    /// Presented for the home's name alone.
    Naming,
    /// Wants to look at the home's entry.
    AtHome(u8, NodeId),
    /// Presented.
    Presented,
    /// Presented again, now that the answer has come inside the nest.
    PresentedAgain,
}

impl Early {
    /// Is no guess under way?
    pub(crate) fn is_at_rest(&self) -> bool {
        self.stage == Stage::AtRest
    }
}
