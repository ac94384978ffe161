//! How many system calls a thread makes in the engine: each place that calls the kernel on the way of a fault, a release, an
//! acquire or a wait says so here, and whoever counts collects them. Setting up and ending are not counted.
//!
//! A thread's own word: one increment beside a call of a hundred nanoseconds and more, and nobody else's cache line.

use std::cell::Cell;

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// This thread calls the kernel. May be called in the fault handler.
#[inline]
pub fn one() {
    MADE.set(MADE.get().wrapping_add(1));
}

/// The calls of this thread since it asked last.
#[inline]
#[must_use]
pub fn collect() -> u64 {
    MADE.replace(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_collected_once_and_by_the_thread_that_made_them() {
        let _ = collect();
        one();
        one();
        std::thread::spawn(one).join().unwrap();
        assert_eq!(collect(), 2);
        assert_eq!(collect(), 0);
    }
}
