//! `finespun bench`, as small as it goes: every case must still run, under every protocol.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{built, protocols, succeed};

/// Cases that tell whether their group ran to its end.
const CASES: &[&str] = &[
    "read-miss-first",
    "read-home-first",
    "write-upgrade",
    "rewrite",
    "release-whole-16",
    "acquire-16",
    "acquire-scattered-1",
    "lock-again",
    "lock-pair",
    "relock",
    "lock-hand-off",
    "flag-round-trip",
    "counter-mutex",
    "counter-atomic",
    "atomic-barrier",
    "barrier-16",
    "barrier-crowd",
    "stream-mib",
    "random-page",
    "random-miss",
    "fill-page",
];

const FLOORS: &[&str] = &[
    "system-call",
    "signal",
    "fault-mprotect",
    "upgrade-mprotect",
    "random-fault-mprotect",
    "copy-page",
    "touch-page",
    "load-page",
    "load-page-after-protect",
    "copy-open-read-mib-mprotect",
    "close-scattered-mprotect",
    "compare-copy-16",
    "line-round-trip",
    "line-crossing",
    "ring-page",
    "pthread-mutex-pair",
    "word-lock-after-other",
    "word-lock-contended",
    "word-add-contended",
    "spin-barrier",
    "word-barrier",
    "pthread-barrier-8",
    "tcp-page-blocking",
];

fn bench(flags: &[&str], name: &str) -> Value {
    let folder = built("lib").with_file_name("tests");
    fs::create_dir_all(&folder).expect("writable");
    let json = folder.join(format!("{name}.json"));
    let mut command = Command::new(built("bin/finespun"));
    command.args(["bench", "--tiny", "--repeat", "1"]).args(flags).arg("--json").arg(&json);
    succeed(&mut command);
    serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("json")
}

fn has(rows: &[Value], case: &str, protocol: &str, transport: &str) -> bool {
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    rows.iter().any(|row| {
        text(row, "case") == case
            && text(row, "protocol") == protocol
            && text(row, "transport") == transport
            && row["min_ns"].as_f64().is_some_and(|least| {
                // A tiny application is over before its own clock starts, where processor 0 came to the barrier late.
                let is_time = least > 0.0 || row["kind"] == "application";
                is_time && least <= row["median_ns"].as_f64().unwrap_or(-1.0)
            })
    })
}

#[test]
fn every_case_runs_under_every_protocol() {
    let found = bench(&["--no-applications", "--protocols", "all", "--faults", "auto"], "bench-micro");
    let rows = found["rows"].as_array().expect("rows");
    for protocol in protocols() {
        for transport in &protocol.transports {
            for case in CASES {
                assert!(has(rows, case, &protocol.name, transport), "{case} under {} over {transport}", protocol.name);
            }
        }
    }
    for floor in FLOORS {
        assert!(has(rows, floor, "", ""), "{floor}");
    }
    let miss = rows.iter().find(|row| row["case"] == "read-miss" && row["protocol"] == "csm-2l").expect("measured");
    assert_eq!(miss["counts"]["system_calls"].as_f64(), Some(2.0), "the change of rights, and the return");
    let budget = found["budget"].as_array().expect("judged");
    for (line, unit) in [
        ("read miss, page at home", "x fault-"),
        ("read miss, at random over 256 MiB", "x random-fault-"),
        ("hand-off to a waiter", "messages"),
        ("lock and unlock, a pair, was here last", "ns"),
        ("lock and unlock, a pair, free, other node had it", "x word-lock-after-other"),
        ("barrier, nothing dirty", "x spin-barrier or word-barrier"),
        ("page fetch, without the fault", "x tcp-page-busy"),
        ("sequential remote read", "of memcpy's speed"),
    ] {
        let is_there =
            |found: &Value| found["what"] == line && found["unit"].as_str().is_some_and(|of| of.starts_with(unit));
        assert!(budget.iter().any(is_there), "{line}, {unit}");
    }
}

#[test]
fn applications_run_beside_native_threads() {
    let found = bench(&["--faults", "auto", "--no-operations"], "bench-applications");
    let rows = found["rows"].as_array().expect("rows");
    for app in [
        "sor",
        "sor in place",
        "lu",
        "lu cold",
        "lu 1024, blocks of 32",
        "lu 1024, blocks of 32, cold",
        "clu",
        "clu cold",
        "matmul",
        "matmul cold",
        "matmul 1024",
        "matmul 1024 cold",
        "gauss",
        "gauss cold",
        "tsp",
    ] {
        for (way, transport) in [
            ("sequential", ""),
            ("native", ""),
            ("native-spin", ""),
            ("csm-2l 2x1", "shm"),
            ("csm-2l 2x1", "tcp"),
            ("csm-2l 1x2", "shm"),
        ] {
            assert!(has(rows, app, way, transport), "{app} {way} {transport}");
        }
    }
}

#[test]
fn costs_are_measured_against_every_axis_and_drawn() {
    let svg = built("lib").with_file_name("tests").join("bench-scale.svg");
    let found = bench(&["--scale", "--svg", svg.to_str().expect("a path of ours")], "bench-scale");
    let points = found["scale"]["points"].as_array().expect("points");
    for axis in ["nodes", "processors a node", "heap, MiB", "dirty pages", "sharers"] {
        for case in ["read-miss", "write-upgrade", "release", "acquire", "lock-after-other", "barrier"] {
            let is_there = |point: &Value| point["axis"] == axis && point["case"] == case;
            assert!(points.iter().any(is_there), "{case} against {axis}");
        }
    }
    let node = &found["scale"]["memory"][1]["by_node"][1];
    assert!(node["frame_bytes"].as_u64().expect("a number") >= 64 * 4096, "{node}");
    assert!(node["table_bytes_per_page"].as_u64().expect("a number") <= 4096 / 20, "5 % of a page: {node}");
    assert!(fs::read_to_string(svg).expect("drawn").contains("against sharers"));
}
