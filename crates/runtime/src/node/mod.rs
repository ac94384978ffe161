//! What a process knows: of itself, of its node, and of the job.

pub mod carriers;
pub mod cluster;
pub mod engine;
pub mod failure;
pub mod hooks;
pub mod last;
pub mod limits;
pub mod meter;
pub mod misuse;
pub mod names;
pub mod phases;
pub mod private;
pub mod runtime;
pub mod segment;
pub mod waits;
