//! Strings' two page protocols [Strings §2.3]: release consistency by update ([`update`], `strings-rc`) and sequential
//! consistency by invalidation ([`invalidate`], `strings-sc`).
//!
//! The paper names the two and leaves their tables to its ancestors: the first is Munin's multiple-writer update protocol as Quarks
//! had it, the second the single-writer protocol of shared virtual memory. What the paper adds is written here where it is
//! used: many diffs in one message, the node (one address space there) as the unit of consistency, and a communication thread.
//!
//! Both are home-based: the home keeps the directory entry of a unit, and where the address does not fix it, the unit's
//! manager decides it by first touch ([`FirstTouch`]).

pub mod invalidate;
pub mod update;

use finespun_types::{NodeId, NodeIndex};
use zerocopy::{FromZeros, Immutable};

/// The manager's entry of one unit: who is home, decided by first touch. All-zero: nobody yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(transparent)]
pub struct FirstTouch(NodeIndex);

impl FirstTouch {
    /// A node asks: the first one becomes home.
    pub fn decide(&mut self, from: NodeId) -> NodeId {
        if self.0 == 0 {
            self.0 = from.0 + 1;
        }
        NodeId(self.0 - 1)
    }

    /// The home, if decided.
    #[must_use]
    pub fn home(self) -> Option<NodeId> {
        self.0.checked_sub(1).map(NodeId)
    }
}
