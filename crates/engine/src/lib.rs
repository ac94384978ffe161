//! The engine: what every driver of the page protocols does alike, written once.
//!
//! A *driver* brings a [`World`]: the live memory of a node, the checker's model, a simulator's. The engine touches no memory, no clock,
//! no thread, no signal and no network. It says what comes next; the world does it.
//!
//! ```text
//!   steps        a fault, a release, an acquire: values that are asked what to do next       (any number of units)
//!   transaction  one event of one unit, until all that it brought about here is done         (a small stack of handlers)
//!   later        what a transaction sends to equals: handled when it holds no lock
//!   routes       handled inside, put aside, or sent?
//!   homes        which node decides a unit's home
//!   objects      mutexes, barriers, flags, conditions, threads: which table an event is for, which processors hear of it
//!   allocation   calls of the heap
//! ```
//!
//! Everything is stepped: [`Transaction::step`] performs one action. A live job runs a transaction to its end in one loop. The checker
//! stops before every action that others can see. A simulator prices each.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod allocation;
pub mod homes;
mod later;
pub mod lazy;
mod limits;
pub mod objects;
mod routes;
mod steps;
mod transaction;
mod world;

pub use limits::Limit;
pub use routes::Route;
pub use steps::{Acquire, Fault, Release, Todo};
pub use transaction::{Next, Transaction};
pub use world::{Answer, Question, World};
