//! Objects, threads and the heap: brings events to the tables of `finespun_sync` and `finespun_heap`, at the node that keeps them.
//!
//! ```text
//!   objects, locks, barrier, threads, memory --> requests: asks the keeper; the answer wakes the asker
//!   objects, locks, threads                   --> keepers: the tables that this process reaches, as the engine wires them
//!   threads, places --> commands: what a processor that serves is to do
//! ```

pub mod barrier;
pub mod commands;
pub mod keepers;
pub mod locks;
pub mod memory;
pub mod objects;
pub mod places;
pub mod requests;
pub mod threads;
pub mod touched;
