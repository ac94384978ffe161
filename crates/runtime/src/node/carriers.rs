//! What carries that which a releaser knows to the processor that acquires: objects of the program, by their addresses; and the
//! runtime's own, by numbers that are addresses in no heap.

/// No carrier: an answer that brings nothing.
pub const NOTHING: u64 = 0;
/// The heap.
pub const HEAP: u64 = 1;
/// The job's threads.
pub const THREADS: u64 = 2;
/// The barrier of all processors.
pub const ALL: u64 = 8;
/// The barrier of processes at a collective allocation.
pub const TOGETHER: u64 = 16;
/// The first meeting of a collection, see [`crate::consistency::tmk`].
pub const KEPT: u64 = 24;
/// The second.
pub const COLLECTED: u64 = 32;

/// What a request passes on, of that which its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Nothing: no processor acquires by it or releases.
    Nothing,
    /// What the receiver need not tell its sender again.
    Asks,
    /// What the carrier's next acquirer must know.
    Releases(u64),
    /// What this carrier's releasers knew, to the receiver.
    Grants(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_of_the_runtime_are_told_apart() {
        let mut all = [NOTHING, HEAP, THREADS, ALL, TOGETHER, KEPT, COLLECTED];
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
