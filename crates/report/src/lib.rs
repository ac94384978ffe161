//! Statistics of a run: the JSON of `--stats`, the summary after a run, and its one sentence of advice.
//!
//! docs/statistics.md describes every name.

#![forbid(unsafe_code)]

pub mod advice;
mod compare;
mod stats;
mod summary;

pub use compare::compare;
pub use stats::{Counts, Memory, NodeCounts, OfNode, PhaseTime, ProcessorTimes, Run, RunStats, Times};
pub use summary::{Style, summary};
