//! The words between a policy, which guesses what a program will want ([`crate::consistency::policy`]), and an engine, which presents that early.

use finespun_types::UnitId;

/// What became of such a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// The page is not fetched now.
    Refused,
    /// Open already.
    WasOpen,
    /// The caller opens it.
    Wanted,
    /// The answer is awaited: to be presented as a fault.
    Asked,
}

/// How good is the guess that the page will be wanted?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess {
    /// The view has read it together with its neighbour before.
    Known,
    /// The stream has come so far, on new ground.
    New {
        /// The page of the fault was exclusive at another node; where this cannot be seen, the stream is long.
        exclusive: bool,
    },
}

/// What became of a page that a notice names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obeyed {
    /// Nothing is left to do: it is new enough, or not mapped, or closed already.
    Stands,
    /// The caller closes it.
    Closes,
    /// Fetched anew; it stays open.
    Refreshed,
    /// The answer is awaited, to be presented as a fault; it stays open.
    Asked,
}

/// A page that is guessed to be wanted.
#[derive(Clone, Copy, Debug)]
pub struct Guessed {
    /// Which.
    pub unit: UnitId,
    /// How good the guess is.
    pub guess: Guess,
}

impl Guess {
    /// May an owner elsewhere lose its exclusive mode by it?
    pub const fn may_end_exclusive_mode(self) -> bool {
        match self {
            Self::Known => true,
            Self::New { exclusive } => exclusive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_on_new_ground_takes_nothing_from_an_owner_unless_the_page_before_was_taken() {
        assert!(Guess::Known.may_end_exclusive_mode());
        assert!(Guess::New { exclusive: true }.may_end_exclusive_mode());
        assert!(!Guess::New { exclusive: false }.may_end_exclusive_mode());
    }
}
