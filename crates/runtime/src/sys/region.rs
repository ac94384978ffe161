//! Where a table stands in the segment.

/// A table in the segment.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First byte.
    pub offset: usize,
    /// How many elements.
    pub len: usize,
}
