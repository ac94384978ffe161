//! The live runtime of a node, in layers. A module uses its own layer and those below it. What must call upwards does so by a hook that is set
//! once.
//!
//! ```text
//!   program       what a program asks; quick: what one word answers
//!   process       start, end, service: a process of the job, and the node's own
//!                 faults, buffers: pages that are made valid; globals, stacks: memory of the program's own that is shared
//!                 dispatch: the module that a message is for; subject: what a diagnosis may ask
//!   sync          objects, locks, barrier, threads, memory: the tables of finespun_sync and finespun_heap; requests, commands: how they answer
//!   consistency   release, acquire and faults: the choice between two engines
//!                 nest: home-based protocols; tmk: lazy release consistency; policy: what is fetched early, which rights are kept
//!                 mappings: opens, closes and write-protects units of this process's view, by the interface `rights`; revoke: the thread that does so for others
//!   messages      wire: what messages look like; wait --> poll: what waits receives, and calls dispatch by Cluster::on_message
//!   node          cluster: the job and the memory that is reached; process: is the runtime running? misuse: errors that end the job; hooks
//!   sys           the node's memory: the only unsafe code
//! ```
//!
//! The C API (crate `finespun-capi`), diagnoses (`finespun-diagnose`) and the node's service process (`finespun-launch`) stand on this.

pub mod program;
#[cfg(test)]
mod tests;

pub mod buffers;
mod builds;
mod dispatch;
mod end;
mod faults;
mod globals;
mod inherited;
pub mod service;
mod stacks;
mod start;
mod subject;

mod barrier;
mod commands;
mod keepers;
mod locks;
mod memory;
mod objects;
mod places;
mod requests;
mod threads;
mod touched;

mod attached;
mod consistency;
mod guesses;
mod join;
mod mappings;
mod nest;
mod policy;
mod revoke;
mod rights;
mod tmk;

mod closing;
mod heap_call;
mod poll;
mod wait;
mod wire;

mod carriers;
mod cluster;
mod engine;
mod failure;
mod hooks;
pub mod limits;
mod meter;
mod misuse;
mod names;
mod phases;
pub mod private;
mod process;
pub mod segment;
pub mod waits;

mod asleep;
mod live;
mod sys;

pub use failure::Failure;
pub use hooks::{Hooks, Stores};
pub use places::Work;
pub use process::{Model, Runtime, is_forked};
pub use start::{Diagnose, Runners};
pub use subject::Subject;
