//! The checker: drives the protocol tables through every interleaving of small worlds, through random larger ones, and
//! through litmus tests; and shows with seeded bugs that it can fail.
//!
//! The tables are those of the live runtime. The checker is another driver: memory is a model page of a few words,
//! processors follow scripts, and time is the order of steps. What a load returns is compared with the last store that
//! happens before it, which in a program without data races is the last store at all.

#![forbid(unsafe_code)]

mod ahead;
pub mod cashmere;
pub mod driver;
pub mod explore;
mod handlers;
pub mod litmus;
pub mod processor;
pub mod program;
pub mod protocols;
pub mod races;
pub mod random;
mod scene;
pub mod seeded;
mod show;
pub mod strings;
pub mod subject;
mod summary;
pub mod tmk;
mod transact;
pub mod world;
pub mod worlds;

pub use explore::Violation;
pub use summary::{
    Options, Summary, check_broadcast, check_cashmere, check_migration, check_strings_rc, check_strings_sc,
};
