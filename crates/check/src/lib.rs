//! The checker: drives the protocol tables through every interleaving of small worlds, through random larger ones, and
//! through litmus tests; and shows with seeded bugs that it can fail.
//!
//! The tables are those of the live runtime. The checker is another driver: memory is a model page of a few words,
//! processors follow scripts, and time is the order of steps. What a load returns is compared with the last store that
//! happens before it, which in a program without data races is the last store at all.
//!
//! The modules stand in layers, uppermost first: what `finespun check` runs, with a driver of its own for `tmk`; what it
//! must know of each other protocol; ways to choose steps (all of them, random ones) and the programs to choose them
//! for; one step of a processor, a table, a message; the job's moment as plain data.

#![forbid(unsafe_code)]

pub mod outcomes;
pub mod protocols;
mod summary;
pub mod tmk;

pub mod cashmere;
pub mod strings;

pub mod explore;
pub mod litmus;
pub mod races;
pub mod random;
pub mod seeded;
pub mod worlds;

mod ahead;
pub mod driver;
mod handlers;
pub mod processor;
mod scene;
mod transact;

pub mod drawing;
mod early;
pub mod model;
pub mod program;
mod show;
pub mod subject;
pub mod world;

pub use explore::Violation;
pub use summary::{
    Options, Summary, check_broadcast, check_cashmere, check_migration, check_strings_rc, check_strings_sc,
};
