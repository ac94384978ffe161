//! What `--stats` writes and `finespun report` reads back.

use std::collections::BTreeMap;
use std::fmt;

use finespun_types::{Bucket, Counter, Counters};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

macro_rules! by_name {
    ($(#[$of:meta])* $kind:ident: $key:ident, $get:ident) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $kind([u64; $key::COUNT]);

        impl $kind {
            /// Nothing yet.
            pub const ZERO: Self = Self([0; $key::COUNT]);

            /// One of them.
            #[must_use]
            pub const fn get(&self, key: $key) -> u64 {
                self.0[key as usize]
            }
            /// Sets one of them.
            pub const fn set(&mut self, key: $key, value: u64) {
                self.0[key as usize] = value;
            }
            /// Adds all of another.
            pub fn add(&mut self, other: &Self) {
                self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
            }
            /// Those of a processor.
            #[must_use]
            pub fn of(counters: &Counters) -> Self {
                Self(counters.$get)
            }
        }

        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries($key::ALL.iter().map(|&key| (key.name(), self.get(key)))).finish()
            }
        }

        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some($key::COUNT))?;
                for &key in $key::ALL {
                    map.serialize_entry(key.name(), &self.get(key))?;
                }
                map.end()
            }
        }

        /// By name: names that are missing count 0, names of other versions are passed over.
        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let named = BTreeMap::<String, Value>::deserialize(deserializer)?;
                let mut all = Self::ZERO;
                for &key in $key::ALL {
                    all.set(key, named.get(key.name()).and_then(Value::as_u64).unwrap_or(0));
                }
                Ok(all)
            }
        }
    };
}

by_name! {
    /// How often each [`Counter`] happened.
    Counts: Counter, counts
}
by_name! {
    /// The nanoseconds in each [`Bucket`].
    Times: Bucket, nanos
}

impl Times {
    /// All buckets together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// A run: what was asked for, and how it went.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Run {
    /// The version of Finespun.
    pub version: String,
    /// The program and its arguments, as in a shell.
    pub program: String,
    /// Nodes (`-n`).
    pub nodes: u32,
    /// Processes per node (`-p`).
    pub views: u32,
    /// Threads per process (`-t`).
    pub threads: u32,
    /// Processors of the whole job.
    pub processors: u32,
    /// Cores of this machine that the job might use.
    pub cores: u32,
    /// The protocol's name.
    pub protocol: String,
    /// `shm` or `tcp`.
    pub transport: String,
    /// What of the runtime was chosen beside the protocol, by the names of the flags.
    #[serde(default)]
    pub switches: BTreeMap<String, String>,
    /// The fault mechanism that was used: `uffd` or `mprotect`; `none` if the program never started.
    pub faults: String,
    /// The limit of the shared heap.
    pub heap_bytes: u64,
    /// From the last fsp_init to the last fsp_finalize.
    pub seconds: f64,
    /// The exit code of the job.
    pub exit_code: i32,
}

/// Where one processor's time went.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProcessorTimes {
    /// Its node.
    pub node: u32,
    /// Its number in the job.
    pub processor: u32,
    /// The nanoseconds.
    #[serde(flatten)]
    pub times: Times,
}

/// What happened on one node.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NodeCounts {
    /// The node.
    pub node: u32,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Nanoseconds that the node's service process served other nodes, beside its processors and at the same time.
    #[serde(default)]
    pub service_process_ns: u64,
    /// The memory that it took.
    #[serde(flatten, default)]
    pub memory: Memory,
}

/// The memory that a node took, in whole pages of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Pages of the shared space that it touched.
    pub frame_bytes: u64,
    /// Its tables, without twins.
    pub table_bytes: u64,
    /// Twins, as many as were needed at once.
    pub twin_bytes: u64,
    /// The most that tables grow by for a page of the shared space.
    pub table_bytes_per_page: u64,
}

/// What one node counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfNode {
    /// By processor.
    pub processors: Vec<Counters>,
    /// The node's service process and the threads that the program made itself.
    pub others: Counters,
    /// The memory that it took.
    pub memory: Memory,
}

/// A phase that the program marked (`fsp_phase_begin`), of one processor.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PhaseTime {
    /// Its node.
    pub node: u32,
    /// Its number in the job.
    pub processor: u32,
    /// The name.
    pub name: String,
    /// Nanoseconds from begin to end, added up; phases inside included.
    pub phase_ns: u64,
    /// How often it was begun.
    pub count: u64,
    /// What the processor counted from begin to end.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Everything that `--stats` writes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RunStats {
    /// What was run.
    #[serde(flatten)]
    pub run: Run,
    /// The counts of all processors together.
    #[serde(flatten)]
    pub totals: Counts,
    /// By processor.
    pub breakdown: Vec<ProcessorTimes>,
    /// By node.
    pub per_node: Vec<NodeCounts>,
    /// The phases that the program marked, by processor.
    #[serde(default)]
    pub phases: Vec<PhaseTime>,
}

impl RunStats {
    /// Puts a run, what its nodes counted, and their processors' phases together.
    #[must_use]
    pub fn new(run: Run, nodes: &[OfNode], phases: Vec<PhaseTime>) -> Self {
        let mut totals = Counts::ZERO;
        let (mut breakdown, mut per_node) = (Vec::new(), Vec::new());
        let mut processors = 0..;
        for (node, of_node) in (0..).zip(nodes) {
            let mut counts = Counts::of(&of_node.others);
            for (counters, processor) in of_node.processors.iter().zip(&mut processors) {
                counts.add(&Counts::of(counters));
                breakdown.push(ProcessorTimes { node, processor, times: Times::of(counters) });
            }
            totals.add(&counts);
            let service_process_ns = of_node.others.nanos(Bucket::Service);
            per_node.push(NodeCounts { node, counts, service_process_ns, memory: of_node.memory });
        }
        Self { run, totals, breakdown, per_node, phases }
    }

    /// The times of a node's processors together, by node.
    #[must_use]
    pub fn node_times(&self) -> Vec<(u32, Times)> {
        let mut nodes = BTreeMap::<u32, Times>::new();
        for processor in &self.breakdown {
            nodes.entry(processor.node).or_insert(Times::ZERO).add(&processor.times);
        }
        nodes.into_iter().collect()
    }

    /// The times of all processors together.
    #[must_use]
    pub fn times(&self) -> Times {
        let mut all = Times::ZERO;
        self.breakdown.iter().for_each(|processor| all.add(&processor.times));
        all
    }
}

#[cfg(test)]
pub mod tests {
    use finespun_types::{Bucket, Counter, Counters};
    use serde_json::{Value, json};

    use super::{Memory, OfNode, Run, RunStats};

    /// A run of `nodes` nodes of one processor, with the given times (ms, by bucket) and counts on each.
    pub fn run_of(nodes: u32, times: impl Fn(u32) -> [u64; Bucket::COUNT], counts: &[(Counter, u64)]) -> RunStats {
        let run = Run {
            version: "0.1.0".into(),
            program: "./sor --size 2048".into(),
            nodes,
            views: 1,
            threads: 1,
            processors: nodes,
            cores: 64,
            protocol: "csm-2l".into(),
            transport: "shm".into(),
            switches: [("locks".into(), "queue".into())].into(),
            faults: "uffd".into(),
            heap_bytes: 1 << 30,
            seconds: 1.25,
            exit_code: 0,
        };
        let counters = (0..nodes).map(|node| {
            let mut counters = Counters::ZERO;
            counters.nanos = times(node).map(|ms| ms * 1_000_000);
            for &(counter, count) in counts {
                counters.counts[counter as usize] = count;
            }
            OfNode { processors: vec![counters], others: Counters::ZERO, memory: Memory::default() }
        });
        RunStats::new(run, &counters.collect::<Vec<_>>(), Vec::new())
    }

    #[test]
    fn the_names_of_the_json_are_stable() {
        let stats = run_of(2, |_| [7, 6, 5, 4, 3, 2, 1], &[(Counter::ReadFaults, 10), (Counter::Bytes, 4096)]);
        let json = serde_json::to_value(&stats).expect("JSON");
        let expected = [
            "nodes",
            "views",
            "threads",
            "processors",
            "cores",
            "protocol",
            "transport",
            "switches",
            "faults",
            "heap_bytes",
            "seconds",
            "program",
            "version",
            "exit_code",
            "messages",
            "bytes",
            "read_faults",
            "write_faults",
            "page_transfers",
            "twins",
            "diffs",
            "diff_bytes",
            "write_notices",
            "lock_acquires",
            "barriers",
            "breakdown",
            "per_node",
            "phases",
        ];
        for name in expected {
            assert!(json.get(name).is_some(), "{name} is missing");
        }
        assert_eq!(json["read_faults"], 20);
        assert_eq!(json["per_node"][1]["read_faults"], 10);
        let processor = json!({
            "node": 1, "processor": 1, "compute_ns": 7_000_000, "read_fault_ns": 6_000_000, "write_fault_ns": 5_000_000,
            "flush_ns": 4_000_000, "lock_wait_ns": 3_000_000, "barrier_wait_ns": 2_000_000, "service_ns": 1_000_000,
        });
        assert_eq!(json["breakdown"][1], processor);
    }

    #[test]
    fn every_name_is_described_in_the_documentation() {
        let document = include_str!("../../../docs/statistics.md");
        let json = serde_json::to_value(run_of(1, |_| [0; 7], &[])).expect("JSON");
        let names = json.as_object().expect("an object").keys();
        let parts = json["breakdown"][0].as_object().expect("an object").keys();
        for name in names.chain(parts) {
            assert!(document.contains(&format!("`{name}`")), "{name} is missing");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let stats = run_of(3, |node| [u64::from(node); 7], &[(Counter::Twins, 3), (Counter::Sleeps, u64::MAX / 4)]);
        let text = serde_json::to_string_pretty(&stats).expect("JSON");
        assert_eq!(serde_json::from_str::<RunStats>(&text).expect("ours"), stats);
    }

    #[test]
    fn names_of_other_versions_do_no_harm() {
        let stats = run_of(1, |_| [1; 7], &[(Counter::Twins, 3)]);
        let mut json = serde_json::to_value(&stats).expect("JSON");
        json["a_later_counter"] = Value::from(5);
        json.as_object_mut().expect("an object").remove("twins");
        let read: RunStats = serde_json::from_value(json).expect("still readable");
        assert_eq!((read.totals.get(Counter::Twins), read.run), (0, stats.run));
    }

    #[test]
    fn processors_are_numbered_over_the_nodes() {
        let stats = run_of(1, |_| [0; 7], &[]);
        let two = OfNode { processors: vec![Counters::ZERO; 2], others: Counters::ZERO, memory: Memory::default() };
        let stats = RunStats::new(stats.run, &[two.clone(), two], Vec::new());
        let numbers = stats.breakdown.iter().map(|times| (times.node, times.processor)).collect::<Vec<_>>();
        assert_eq!(numbers, [(0, 0), (0, 1), (1, 2), (1, 3)]);
    }
}
