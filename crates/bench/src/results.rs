//! All rows, and what they were measured on.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::growth::Scale;
use crate::line::Budget;
use crate::row::{Kind, Row};

/// What the numbers were measured on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The version of Finespun.
    pub version: String,
    /// The commit of the tree that the measured programs stand in; empty where there is none.
    pub commit: String,
    /// The processor's name.
    pub processor: String,
    /// Cores that may be used.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The load average of the last minute when the run began.
    pub load: String,
}

impl Machine {
    /// This one, with programs from this folder.
    #[must_use]
    pub fn here(programs: &Path) -> Self {
        let first_word = |text: String| text.split_whitespace().next().unwrap_or("?").to_owned();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let processor = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: commit(programs),
            processor: processor.map_or("?", |(_, name)| name).into(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            load: first_word(read("/proc/loadavg")),
        }
    }
}

fn commit(folder: &Path) -> String {
    let asked = Command::new("git").arg("-C").arg(folder).args(["describe", "--always", "--dirty"]).output();
    let said = asked.ok().filter(|output| output.status.success());
    said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// Everything that a run of the benchmark found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Where.
    pub machine: Machine,
    /// What was not measured, and why: a sentence each.
    pub missing: Vec<String>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// What was allowed of them, and whether it was kept.
    #[serde(default)]
    pub budget: Vec<Budget>,
    /// How costs grow, if that was asked for.
    #[serde(default)]
    pub scale: Scale,
}

impl Results {
    /// Nothing yet.
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        Self { machine, missing: Vec::new(), rows: Vec::new(), budget: Vec::new(), scale: Scale::default() }
    }

    /// The row of a case that has neither protocol nor transport.
    #[must_use]
    pub fn reference(&self, kind: Kind, case: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.kind == kind && row.case == case)
    }
}
