//! How long the lists of a transaction are.

use core::fmt;

use finespun_protocol::page::ACTIONS_MAX;

/// So deep do handlers nest: requester, home, owner, home, requester; and one that finds its diff empty.
pub(crate) const HANDLERS_MAX: usize = 6;

/// At most so many different messages wait: a transaction sends few kinds, each to a set of nodes.
pub(crate) const LATER_MAX: usize = 6;

/// A flush makes one diff, for which its driver brings the room; nothing else makes any.
const DIFFS_MAX: usize = 1;

/// Locks of the unit are held at so many nodes: requester, home, owner.
const LOCKS_MAX: usize = 3;

/// A transaction has more of something than fits: a bug of ours. No world of the checker may meet one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Handlers, each run by an action of the one before.
    Handlers,
    /// Actions left to do, in all of them.
    Actions,
    /// Messages put aside.
    Aside,
    /// Diffs that a flush makes.
    Diffs,
    /// Nodes at which the unit is locked. The world keeps this list.
    Locks,
}

impl Limit {
    /// The sentence that does not hold.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Handlers => "the handlers of a transaction fit into its list",
            Self::Actions => "the actions of a transaction fit into its list",
            Self::Aside => "the messages that a transaction puts aside fit into its list",
            Self::Diffs => "a transaction makes a diff only for its flush",
            Self::Locks => "the locks that a transaction holds fit into their list",
        }
    }

    /// So many fit.
    #[must_use]
    pub const fn max(self) -> usize {
        match self {
            Self::Handlers => HANDLERS_MAX,
            Self::Actions => ACTIONS_MAX,
            Self::Aside => LATER_MAX,
            Self::Diffs => DIFFS_MAX,
            Self::Locks => LOCKS_MAX,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: at most {}", self.sentence(), self.max())
    }
}
