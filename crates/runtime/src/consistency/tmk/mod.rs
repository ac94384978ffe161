//! Lazy release consistency, live: an engine beside the home-based one, with its own messages and times.
//!
//! ```text
//!   steps    end of an interval, acquire          asks      a fault, and whom it asks       collect   the steps of a collection
//!      |                                            |       arrivals  what others ask and answer
//!      +------------------> copy: the table of a node's copy, its actions on memory <---------+
//!   news: what travels with locks, barriers, threads and the heap;  wish: whether a collection is wished for
//!   letters: the messages
//! ```
//!
//! A node has one view, so a handler needs one lock, that of the unit at its node, and asks others only after it has given
//! it back: the copy's mode says meanwhile that an answer is due. Where nodes reach each other's memory, the faulting thread runs
//! the writers' handlers one after the other, each under the lock of the unit there, and then applies their diffs straight
//! from their memory: a diff that is kept does not change before it is collected, and no thread is in a fault then.
//! Otherwise diffs that come are kept in this node's memory until the last answer is there.

pub mod arrivals;
pub mod asks;
pub mod collect;
pub mod copy;
mod letters;
pub mod news;
pub mod steps;
mod wish;
