//! The checker's world for `tmk`: a driver of its own, since lazy release consistency needs what the home-based protocols have
//! not, intervals and vector times that travel with locks and barriers. Programs, litmus tests and what a violation looks
//! like are the same.
//!
//! Each view of a program's shape is a node here. Locks, flags and the barrier stand at managers, which pass on what releasers
//! knew; a world may collect at every barrier.

pub mod bugs;
pub mod driver;
pub mod explore;
mod handlers;
mod processor;
pub mod seeded;
mod summary;
pub mod world;
pub mod worlds;

pub use summary::{Options, check_tmk};

/// What the protocol is called.
pub const NAME: &str = "tmk";
