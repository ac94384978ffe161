//! How costs grow, as numbers: what [`crate::scale`] measures.

use std::collections::BTreeMap;

use finespun_report::Memory;
use serde::{Deserialize, Serialize};

/// One operation at one point of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What was varied.
    pub axis: String,
    /// Its value.
    pub at: u64,
    /// The operation.
    pub case: String,
    /// The least nanoseconds of an operation.
    pub min_ns: f64,
    /// The median nanoseconds.
    pub median_ns: f64,
    /// What happened per operation, by the names of the statistics.
    pub counts: BTreeMap<String, f64>,
}

/// The memory of a job's nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Nodes of the job.
    pub nodes: u64,
    /// Pages that two of them shared, and changed.
    pub pages: u64,
    /// By node.
    pub by_node: Vec<Memory>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// Costs.
    pub points: Vec<Point>,
    /// Memory.
    pub memory: Vec<Taken>,
}
