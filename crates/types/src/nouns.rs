//! Nodes, views, units, processors, rights, and the sizes of the shared space.

use core::fmt;

/// Where the shared space starts in every process, unless the job says otherwise. docs/kernel.md section 8 of
/// the measurements: free in every PIE and non-PIE start tried, and under AddressSanitizer.
pub const SPACE_BASE: usize = 0x2000_0000_0000;

/// The most nodes a job may have: a sharing set is one 64-bit word.
pub const NODES_MAX: usize = 64;

/// The most views (processes) a node may have: sets of views are 32-bit words in a unit's state.
pub const VIEWS_MAX: usize = 32;

/// A node: what hardware keeps coherent, with one set of frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct NodeId(pub NodeIndex);

/// The number of a node. A live job has [`NODES_MAX`] nodes at most, a simulated one as many as there are numbers.
pub type NodeIndex = u16;

impl NodeId {
    /// The node with this number.
    ///
    /// # Panics
    /// In tests, if there is no such number.
    #[inline]
    #[must_use]
    pub const fn of(index: usize) -> Self {
        debug_assert!(index <= NodeIndex::MAX as usize, "a node has a number");
        Self(index as NodeIndex)
    }
}

/// A view: one process of a node, with its own mapping of the node's frames and its own rights to them. It runs
/// one processor, or several as threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ViewId(pub u8);

/// A unit of coherence: number `UnitId.0` of the shared space, counted in units of the job's size ([`UnitSize`](crate::UnitSize)).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UnitId(pub u32);

/// A processor of the whole job: `(node * views + view) * threads + thread`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ProcessorId(pub u32);

/// What a view may do with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Any access faults.
    None,
    /// A store faults.
    Read,
    /// Nothing faults.
    Write,
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl fmt::Debug for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl fmt::Debug for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u{}", self.0)
    }
}

impl fmt::Debug for ProcessorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}
