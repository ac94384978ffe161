//! One line of the budget: what was allowed of an operation, and what was found.

use serde::{Deserialize, Serialize};

/// One line: what was allowed, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Of which operation.
    pub what: String,
    /// Protocol, transport and fault mechanism, or the shape of an application's run.
    pub setting: String,
    /// What the number is: `x fault-uffd` (times that floor), `ns`, `messages` ...
    pub unit: String,
    /// The least or most allowed.
    pub allowed: f64,
    /// The number must not be below it; otherwise, not above.
    pub at_least: bool,
    /// What was found.
    pub measured: Measured,
}

/// What was found of a line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// How often something happened.
    Counted(f64),
    /// A time, or a ratio of times.
    Timed {
        /// Of minima.
        by_minima: f64,
        /// Of medians.
        by_medians: f64,
    },
}

/// Whether a line is as allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Met {
    /// Neither by minima nor by medians.
    No,
    /// By medians only.
    NotByMinima,
    /// By minima only.
    NotByMedians,
    /// In every way.
    Yes,
}

impl Budget {
    /// Whether it is met.
    #[must_use]
    pub fn met(&self) -> Met {
        let holds = |found: f64| if self.at_least { found >= self.allowed } else { found <= self.allowed };
        let (by_minima, by_medians) = match self.measured {
            Measured::Counted(count) => (holds(count), holds(count)),
            Measured::Timed { by_minima, by_medians } => (holds(by_minima), holds(by_medians)),
        };
        match (by_minima, by_medians) {
            (true, true) => Met::Yes,
            (true, false) => Met::NotByMedians,
            (false, true) => Met::NotByMinima,
            (false, false) => Met::No,
        }
    }
}
