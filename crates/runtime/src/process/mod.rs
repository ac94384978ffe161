//! A process of the job: how it joins, what it does there, how it leaves.
//!
//! ```text
//!   program --> start <- inherited: what the launcher gave; builds: do all run the same program?
//!   gather: the processes of a program of threads share their descriptors
//!   a load or a store --> faults <- buffers: those of system calls
//!   a message --> dispatch; service: the process of the node itself, which receives when no other does
//!   globals, stacks: memory of the program that is shared, and private again at the --> end
//! ```

pub mod buffers;
pub mod builds;
pub mod dispatch;
pub mod end;
pub mod faults;
pub mod gather;
pub mod globals;
pub mod inherited;
pub mod service;
pub mod stacks;
pub mod start;
pub mod subject;
