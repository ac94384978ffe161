//! Every application, verified, over every configuration the project promises.

use std::process::Command;

use serde_json::Value;

use crate::support::{Done, Job, app, offers_userfaultfd, protocols, succeed};

/// What `--stats` promises for every run (docs/statistics.md), besides the texts.
const COUNTS: &[&str] = &[
    "messages",
    "bytes",
    "read_faults",
    "write_faults",
    "page_transfers",
    "twins",
    "diffs",
    "diff_bytes",
    "incoming_diffs",
    "write_notices",
    "diffs_fetched",
    "collections",
    "updates",
    "messages_joined",
    "revocations",
    "exclusive_entries",
    "exclusive_breaks",
    "broadcasts",
    "broadcast_hits",
    "migrations",
    "migration_attempts",
    "fetches_skipped",
    "flushes_skipped",
    "invalidations",
    "lock_acquires",
    "deferred_releases",
    "sync_messages",
    "handled_by_waiters",
    "handled_by_service",
    "signals_taken",
    "barriers",
    "flags",
    "condition_waits",
    "sleeps",
    "wakes",
    "buffers_prepared",
    "coarse_invalidations",
];
const PARTS: &[&str] =
    &["compute_ns", "read_fault_ns", "write_fault_ns", "flush_ns", "lock_wait_ns", "barrier_wait_ns", "service_ns"];

#[derive(Clone, Copy)]
struct Shape {
    nodes: u64,
    processes: u64,
    threads: u64,
}

/// One run, verified by the program itself; returns what it has computed.
fn verified(app_name: &str, shape: Shape, transport: &str, faults: &str, args: &str) -> String {
    run_as("csm-2l", app_name, shape, shape, transport, faults, args)
}

/// The same under a protocol, which may make another shape of what is asked for.
fn run_as(
    protocol: &str,
    app_name: &str,
    asked: Shape,
    shape: Shape,
    transport: &str,
    faults: &str,
    args: &str,
) -> String {
    let Shape { nodes, processes, threads } = asked;
    let shape_flags = format!("-n {nodes} -p {processes} -t {threads}");
    let flags = format!("{shape_flags} --protocol {protocol} --transport {transport} --faults {faults} --quiet");
    let done = Job::new(&flags, &app(app_name), &format!("{args} --verify")).stats().run();
    done.assert_success();
    assert_eq!(done.stderr, "", "{done}");
    assert!(done.stdout.lines().any(|line| line == format!("{app_name}: verified")), "{done}");
    assert_sensible(&done, protocol, shape, transport, faults);
    checksum(&done.stdout)
}

fn assert_sensible(done: &Done, protocol: &str, shape: Shape, transport: &str, faults: &str) {
    let stats = done.stats.as_ref().expect("a file");
    let processors = shape.nodes * shape.processes * shape.threads;
    for (name, expected) in [
        ("nodes", shape.nodes),
        ("views", shape.processes),
        ("threads", shape.threads),
        ("processors", processors),
        ("exit_code", 0),
    ] {
        assert_eq!(stats[name].as_u64(), Some(expected), "{name}\n{done}");
    }
    for (name, expected) in [("protocol", protocol), ("transport", transport), ("faults", faults)] {
        assert_eq!(stats[name].as_str(), Some(expected), "{name}\n{done}");
    }
    let elapsed = done.elapsed.as_secs_f64();
    let seconds = stats["seconds"].as_f64().expect("a number");
    assert!(seconds > 0.0 && seconds <= elapsed, "{seconds} s\n{done}");
    for name in COUNTS {
        let count = stats[*name].as_u64().unwrap_or_else(|| panic!("{name} is missing\n{done}"));
        let of_nodes = stats["per_node"].as_array().expect("an array").iter().map(|node| node[*name].as_u64());
        assert_eq!(of_nodes.sum::<Option<u64>>(), Some(count), "{name}: the nodes' sum\n{done}");
    }
    let count = |name: &str| stats[name].as_u64().expect("checked");
    assert!(count("read_faults") + count("write_faults") > 0, "shared memory was used\n{done}");
    if shape.nodes > 1 {
        assert!(count("messages") > 0 && count("bytes") > 0, "several nodes exchange something\n{done}");
    } else {
        assert_eq!((count("messages"), count("page_transfers")), (0, 0), "there is nobody else\n{done}");
    }
    let breakdown = stats["breakdown"].as_array().expect("an array");
    assert_eq!(breakdown.len() as u64, processors, "{done}");
    for (number, processor) in breakdown.iter().enumerate() {
        assert_breakdown(processor, number as u64, shape, elapsed, done);
    }
}

fn assert_breakdown(processor: &Value, number: u64, shape: Shape, elapsed: f64, done: &Done) {
    assert_eq!(processor["processor"].as_u64(), Some(number), "{done}");
    assert_eq!(processor["node"].as_u64(), Some(number / (shape.processes * shape.threads)), "{done}");
    let part = |name: &str| processor[name].as_u64().unwrap_or_else(|| panic!("{name} is missing\n{done}"));
    let total = PARTS.iter().map(|name| part(name)).sum::<u64>();
    assert!(total > 0 && total as f64 <= elapsed * 1e9, "the parts of {number} are {total} ns\n{done}");
}

fn checksum(output: &str) -> String {
    let line = output.lines().find(|line| line.contains(": checksum "));
    line.unwrap_or_else(|| panic!("no checksum in {output}")).to_owned()
}

/// Every number of nodes, processes and threads, at the tiny size.
fn all_shapes(app_name: &str, transport: &str, faults: &str) {
    if faults == "uffd" && !offers_userfaultfd() {
        println!("not run: this machine offers no userfaultfd");
        return;
    }
    let alone = (app_name != "stress").then(|| {
        let alone = succeed(Command::new(app(app_name)).args(["--size", "tiny", "--sequential"]));
        checksum(&String::from_utf8_lossy(&alone.stdout))
    });
    for nodes in [1, 2, 4, 8] {
        for (processes, threads) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
            let shape = Shape { nodes, processes, threads };
            let found = verified(app_name, shape, transport, faults, "--size tiny");
            if let Some(alone) = &alone {
                assert_eq!(
                    &found, alone,
                    "{app_name} -n {nodes} -p {processes} -t {threads}: not as the sequential program"
                );
            }
        }
    }
}

/// Under every protocol, over every transport it runs on, with every fault mechanism.
fn every_protocol(app_name: &str) {
    for protocol in protocols() {
        assert!(!protocol.transports.is_empty(), "{} runs nowhere", protocol.name);
        for &transport in &protocol.transports {
            for (faults, shapes) in [("uffd", [(2, 1, 1), (3, 2, 1)]), ("mprotect", [(3, 1, 1), (4, 1, 2)])] {
                if faults == "uffd" && !offers_userfaultfd() {
                    continue;
                }
                for (nodes, processes, threads) in shapes {
                    let threads = if protocol.one_level { 1 } else { threads };
                    let asked = Shape { nodes, processes, threads };
                    let runs_as = if protocol.one_level {
                        Shape { nodes: nodes * processes, processes: 1, threads }
                    } else {
                        asked
                    };
                    run_as(&protocol.name, app_name, asked, runs_as, transport, faults, "--size tiny");
                }
            }
        }
    }
}

/// What two cores can do of the small size.
fn small(app_name: &str) {
    let faults = if offers_userfaultfd() { "uffd" } else { "mprotect" };
    for (nodes, processes, threads, transport, faults) in
        [(4, 1, 1, "shm", faults), (2, 2, 1, "tcp", faults), (2, 1, 2, "shm", "mprotect")]
    {
        verified(app_name, Shape { nodes, processes, threads }, transport, faults, "--size small");
    }
}

macro_rules! applications {
    ($($app:ident)*) => { $(
        mod $app {
            #[test]
            fn is_verified_over_shm_with_userfaultfd_on_every_shape() {
                super::all_shapes(stringify!($app), "shm", "uffd");
            }
            #[test]
            fn is_verified_over_shm_with_mprotect_on_every_shape() {
                super::all_shapes(stringify!($app), "shm", "mprotect");
            }
            #[test]
            fn is_verified_over_tcp_with_userfaultfd_on_every_shape() {
                super::all_shapes(stringify!($app), "tcp", "uffd");
            }
            #[test]
            fn is_verified_over_tcp_with_mprotect_on_every_shape() {
                super::all_shapes(stringify!($app), "tcp", "mprotect");
            }
            #[test]
            fn is_verified_under_every_protocol() {
                super::every_protocol(stringify!($app));
            }
            #[test]
            fn is_verified_at_the_small_size() {
                super::small(stringify!($app));
            }
        }
    )* };
}

applications! { sor lu clu matmul gauss tsp stress }

/// Where a row is no whole number of pages, two bands write the page between them, and each half-step reads it.
#[test]
fn sor_in_place_is_verified_with_pages_that_two_bands_write() {
    for flags in
        ["-n 2", "-n 3 -p 2", "-n 2 -t 2", "-n 3 --transport tcp", "-n 3 --faults mprotect", "-n 3 --protocol tmk"]
    {
        let done = Job::new(&format!("{flags} --quiet"), &app("sor-in-place"), "--size 66x500 --verify").run();
        done.assert_success();
        assert!(done.stdout.ends_with("sor-in-place: verified\n"), "{done}");
    }
}
