//! Starts the processes of a job on this machine, wires them, watches them, and leaves nothing behind.
//!
//! ```text
//! finespun run -n 2 -p 2 ./sor          launcher     makes the memory, decides how the job ends
//! ├── finespun node -- ./sor            node 0       service process: wires, spawns, serves messages, watches
//! │   ├── ./sor                         view 0       processor 0: the only one that has the terminal's input
//! │   └── ./sor                         view 1
//! └── finespun node -- ./sor            node 1
//!     ├── ./sor                         view 0
//!     └── ./sor                         view 1
//! ```
//!
//! Every arrow is a stream socket with JSON lines ([`control`]): a view reports to its node ([`finespun_job::Report`]),
//! a node to the launcher. The launcher feeds what it hears into [`verdict::Roll`], a pure state machine that alone
//! decides when the job ends, with which exit code and which one message.
//!
//! Why nothing is left behind, whichever part is killed:
//! - memory and descriptors have no name in any file system: they go with the last process;
//! - a view gets SIGKILL from the kernel when its node process ends (parent-death signal);
//! - launcher and nodes are *child subreapers*: whatever their descendants leave becomes their child, so that
//!   [`reap::kill_all`] reaches also what the program itself started;
//! - a node sees the end of its stream to the launcher, and then does the same for its own descendants. It gets SIGCONT when the launcher
//!   ends, so that it sees that also when it was stopped. SIGKILL would leave children of the program's processes to run on.

#![deny(unsafe_code)]

pub mod control;
pub mod diagnosis;
mod globals;
mod hangs;
mod last;
pub mod launcher;
pub mod memory;
mod mesh;
mod names;
pub mod node;
mod output;
mod plan;
mod pointers;
mod private_locks;
pub mod program;
pub mod reap;
mod service;
pub mod spins;
#[allow(unsafe_code)]
pub mod sys;
pub mod verdict;

pub use diagnosis::Diagnosis;
pub use launcher::run;
pub use plan::{Outcome, Plan, Wanted};
