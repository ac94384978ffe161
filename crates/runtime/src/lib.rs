//! The live runtime of a node, in layers. A module uses its own layer and those below it. What must call upwards does so by a hook that is
//! set once.
//!
//! ```text
//!   program       what a program asks; quick: what one word answers
//!   process       start, end, service: a process of the job, and the node's own
//!                 faults, buffers: pages that are made valid; globals, stacks: memory of the program that is shared
//!                 dispatch: the module that a message is for; subject: what a diagnosis may ask
//!   sync          objects, locks, barrier, threads, memory: what processors ask of tables; keepers: the tables
//!                 requests, commands: how processors are answered
//!   consistency   release, acquire and faults: the choice between two engines
//!                 nest: home-based protocols; tmk: lazy release consistency
//!                 policy: what is fetched early, which rights are kept
//!                 mappings: opens, closes and write-protects units of this process's view, by the interface rights
//!                 revoke: the thread that takes mappings away while the program computes
//!   messages      wire: what messages look like
//!                 wait --> poll: a thread that waits receives; what it receives goes to dispatch by Cluster::on_message
//!   node          cluster: the job and the memory that is reached; runtime: has this process begun, or ended?
//!                 misuse: errors that end the job; hooks: what is told to diagnoses
//!   sys           the node's memory: the only unsafe code
//! ```
//!
//! The C API (crate `finespun-capi`), diagnoses (`finespun-diagnose`) and the node's service process (`finespun-launch`) stand on this.

pub mod program;
#[cfg(test)]
mod tests;

mod process;

mod sync;

mod consistency;

mod messages;

mod node;

mod sys;

pub use node::failure::Failure;
pub use node::hooks::{Hooks, Stores};
pub use node::runtime::{Model, Runtime, is_forked};
pub use node::{last, limits, private, segment, waits};
pub use process::start::{Diagnose, Runners};
pub use process::subject::Subject;
pub use process::{buffers, service};
pub use sync::places::Work;
