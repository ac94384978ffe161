//! The live runtime of a node.
//!
//! ```text
//!    program --fault--> faults --> consistency: the one choice between two engines (engine: which one a job has)
//!                                    nest: the tables of home-based protocols, actions on memory; live: which protocol
//!                                    tmk: lazy release consistency, likewise
//!    program --lock --> objects, barrier, threads: the machines of finespun_sync
//!                       places: threads of a program with as many as it likes
//!                       consistency: release before, acquire after; what is told along with grants and releases
//!                       policy: what may be fetched early, and which rights are kept; faults and nest ask it
//!                       mappings: opens, closes and write-protects pages of this process's view
//!    communication thread: revoke (protocols that take mappings away at once)
//!    wait: who waits, polls --message--> poll --hook--> dispatch: the module that the message is for; service: a node's own process
//!    process: what this process is, which all ask; start, end: how it becomes so
//!    sys: the node segment and the frames, the only unsafe code
//! ```
//!
//! The C API (crate `finespun-capi`) and the node's service process (crate `finespun-launch`) stand on this.

mod asleep;
mod attached;
mod barrier;
pub mod buffers;
mod builds;
mod carriers;
mod closing;
mod cluster;
mod commands;
mod consistency;
mod dispatch;
mod end;
mod engine;
mod failure;
mod faults;
mod globals;
mod guesses;
mod heap_call;
mod hooks;
mod inherited;
mod join;
pub mod limits;
mod live;
mod locks;
mod mappings;
mod memory;
mod meter;
mod misuse;
mod names;
mod nest;
mod objects;
mod phases;
mod places;
mod policy;
mod poll;
pub mod private;
mod process;
pub mod program;
mod requests;
mod revoke;
pub mod segment;
pub mod service;
mod stacks;
mod start;
mod subject;
mod sys;
#[cfg(test)]
mod tests;
mod threads;
mod tmk;
mod touched;
mod wait;
pub mod waits;
mod wire;

pub use failure::Failure;
pub use hooks::{Hooks, Stores};
pub use places::Work;
pub use process::{Model, Runtime, is_forked};
pub use start::{Diagnose, Runners};
pub use subject::Subject;
