//! The choices beside the protocol: each does what it says, as its counters show, and no program sees a difference.

use serde_json::Value;

use crate::support::{Done, Job, app, built, compile};

const APPS: &[&str] = &["sor", "lu", "clu", "matmul", "gauss", "tsp", "stress"];

/// One verified run with its statistics.
fn verified(app_name: &str, flags: &str, args: &str) -> Done {
    let done = Job::new(&format!("{flags} --quiet"), &app(app_name), &format!("{args} --verify")).stats().run();
    done.assert_success();
    assert!(done.stdout.lines().any(|line| line == format!("{app_name}: verified")), "{done}");
    done
}

fn stats(done: &Done) -> &Value {
    done.stats.as_ref().expect("a file")
}

fn count(done: &Done, name: &str) -> u64 {
    stats(done)[name].as_u64().unwrap_or_else(|| panic!("{name} is missing\n{done}"))
}

fn migratory(app_name: &str) {
    for transport in ["shm", "tcp"] {
        for shape in ["-n 2", "-n 3 -p 2", "-n 2 -t 2", "-n 4"] {
            let done = verified(app_name, &format!("{shape} --locks migratory --transport {transport}"), "--size tiny");
            assert_eq!(stats(&done)["switches"]["locks"], "migratory", "{done}");
        }
    }
}

macro_rules! applications_with_migratory_mutexes {
    ($($app:ident)*) => { $(
        #[test]
        fn $app() {
            assert!(APPS.contains(&stringify!($app)));
            migratory(stringify!($app));
        }
    )* };
}

mod is_verified_with_migratory_mutexes {
    use super::{APPS, migratory};

    applications_with_migratory_mutexes! { sor lu clu matmul gauss tsp stress }
}

#[test]
fn pages_are_fetched_ahead_of_a_stream_unless_that_is_switched_off() {
    for transport in ["shm", "tcp"] {
        let run =
            |prefetch| verified("matmul", &format!("-n 4 --transport {transport} --prefetch {prefetch}"), "--size 384");
        let (off, adaptive) = (run("off"), run("adaptive"));
        assert_eq!(stats(&off)["switches"]["prefetch"], "off", "{off}");
        assert_eq!(count(&off, "pages_ahead"), 0, "{off}");
        assert!(count(&adaptive, "pages_ahead") > 0, "{adaptive}");
        assert!(count(&adaptive, "read_faults") < count(&off, "read_faults"), "{adaptive}");
        // What is not used costs bytes.
        assert!(count(&adaptive, "bytes") * 20 <= count(&off, "bytes") * 21, "{off}\n{adaptive}");
    }
}

/// Blocks lie side by side, exclusive at their owner until the others read them; the second time these know how far they will read.
#[test]
fn blocks_that_another_node_has_just_written_are_fetched_together_where_they_were_read_before() {
    for transport in ["shm", "tcp"] {
        let run = |prefetch, warm| {
            let args = format!("--size 512 --warm {warm}");
            verified("clu", &format!("-n 3 --transport {transport} --prefetch {prefetch}"), &args)
        };
        let [off, once, twice] = [run("off", 3), run("adaptive", 0), run("adaptive", 3)];
        let (faults, ahead) = (count(&twice, "read_faults"), count(&twice, "pages_ahead"));
        assert!(faults * 6 < count(&off, "read_faults") * 5, "{off}\n{twice}");
        assert!(count(&once, "pages_ahead") * 4 < ahead, "{once}\n{twice}");
        assert!(count(&twice, "bytes") * 20 <= count(&off, "bytes") * 21, "{off}\n{twice}");
    }
}

/// What all processors counted in a phase.
fn in_phase(done: &Done, phase: &str, name: &str) -> u64 {
    let phases = stats(done)["phases"].as_array().unwrap_or_else(|| panic!("no phases\n{done}"));
    let found = phases.iter().filter(|each| each["name"] == phase).map(|each| each[name].as_u64().unwrap_or(0));
    found.sum()
}

#[test]
fn pages_that_are_read_in_each_interval_no_longer_fault_and_are_closed_when_nobody_reads_them() {
    let program = compile("rereads.c", "rereads-refresh", &[]);
    for transport in ["shm", "tcp"] {
        for shape in ["-n 2", "-n 3 -p 2"] {
            let run = |refresh: &str| {
                let flags = format!("{shape} --transport {transport} --refresh {refresh} --quiet");
                let done = Job::new(&flags, &program, "").stats().run();
                done.assert_success();
                assert_eq!(stats(&done)["switches"]["refresh"], refresh, "{done}");
                done
            };
            let (off, adaptive) = (run("off"), run("adaptive"));
            assert_eq!(count(&off, "pages_refreshed"), 0, "{off}");
            let [faults_off, faults] = [&off, &adaptive].map(|done| in_phase(done, "settled", "read_faults"));
            assert!(faults_off >= 55 * 24, "each page, each time\n{off}");
            // Where a node has two views, they look at different times.
            assert!(if shape == "-n 2" { faults == 0 } else { faults * 10 <= faults_off }, "{adaptive}");
            for name in ["pages_refreshed", "read_faults"] {
                assert_eq!(in_phase(&adaptive, "forgotten", name), 0, "{name}\n{adaptive}");
            }
            // What came for nothing when they were no longer read is little beside what was of use.
            let [came_off, came] = [&off, &adaptive].map(|done| count(done, "page_transfers"));
            assert!(came <= came_off * 3 / 2, "{came} instead of {came_off}\n{adaptive}");
        }
    }
}

#[test]
fn stress_with_migratory_mutexes_and_assertions_reads_no_wrong_value() {
    let shapes = ["-n 2", "-n 3", "-n 2 -p 2", "-n 3 -t 2", "-n 2 -p 2 -t 2", "-n 5"];
    for seed in 800..818 {
        let (shape, transport) = (shapes[seed % shapes.len()], ["shm", "tcp"][seed / shapes.len() % 2]);
        let flags = format!("{shape} --transport {transport} --locks migratory --quiet");
        let args = format!("--size tiny --iters 6 --seed {seed} --verify");
        let done = Job::new(&flags, &app("stress"), &args).limit(120).checked().run();
        done.assert_success();
    }
}

#[test]
fn stress_reads_no_wrong_value_under_the_variants_between_with_migratory_mutexes() {
    for (seed, protocol) in (830..).zip(["csm-ms", "csm-s", "csm-none", "csm-1l-dms"]) {
        let flags = format!("-n 2 -p 2 --protocol {protocol} --locks migratory");
        verified("stress", &flags, &format!("--size tiny --iters 6 --seed {seed}"));
    }
}

#[test]
fn rows_that_every_interval_writes_fault_only_where_rights_are_not_kept() {
    // Neighbours share 6 pages, each written 40 times by its owner.
    let run = |rewrites: &str| verified("sor", &format!("-n 4 --rewrites {rewrites}"), "--size 512 --iters 40");
    let (keep, fault) = (run("keep"), run("fault"));
    assert_eq!(["rights_kept", "kept_in_vain"].map(|name| count(&fault, name)), [0, 0], "{fault}");
    assert!(count(&keep, "rights_kept") > count(&keep, "kept_in_vain"), "{keep}");
    assert!(count(&keep, "write_faults") + 100 < count(&fault, "write_faults"), "{keep}\n{fault}");
}

/// What a release keeps, the next one compares, although nothing was written in between.
#[test]
fn a_critical_section_that_writes_nothing_compares_few_pages_whatever_was_written_before_it() {
    const KEPT_MAX: u64 = 32;
    let program = compile("empty_sections.c", "empty-sections-counted", &[]);
    for flags in ["-n 2", "-n 2 -p 2 --faults mprotect", "-n 2 --protocol strings-rc"] {
        let done = Job::new(&format!("{flags} --quiet"), &program, "").stats().run();
        done.assert_success();
        let [written, empty] = ["written", "empty"].map(|phase| in_phase(&done, phase, "rights_kept"));
        assert!((1..=2 * KEPT_MAX).contains(&written), "two releases kept {written}\n{done}");
        assert!(empty <= 9 * KEPT_MAX, "nine releases kept {empty}\n{done}");
    }
}

#[test]
fn stress_reads_no_wrong_value_whether_rights_are_kept_or_not() {
    for (seed, rewrites) in (840..).zip(["keep", "fault", "keep"]) {
        for transport in ["shm", "tcp"] {
            let flags = format!("-n 3 -p 2 --transport {transport} --rewrites {rewrites}");
            verified("stress", &flags, &format!("--size tiny --iters 6 --seed {seed}"));
        }
    }
}

/// What a preset says, as the run's counters show it.
fn preset(protocol: &str, name: &str, app_name: &str) {
    let args = if app_name == "stress" { "--size tiny --iters 4 --seed 9" } else { "--size tiny" };
    let flags = format!("-n 2 -p 2 --transport tcp --protocol {protocol} --strings {name}");
    let done = verified(app_name, &flags, args);
    let shape = ["nodes", "views", "threads"].map(|part| count(&done, part));
    assert_eq!(shape, if name == "S" { [4, 1, 1] } else { [2, 1, 2] }, "{done}");
    let switches =
        ["locks", "barrier", "server", "receive", "cores"].map(|name| stats(&done)["switches"][name].clone());
    let expected = match name {
        "S" | "K" => ["migratory", "flat", "iterative", "signal", "all"],
        "M" => ["migratory", "flat", "iterative", "signal", "one"],
        "C" => ["migratory", "flat", "concurrent", "signal", "all"],
        "P" => ["migratory", "flat", "concurrent", "poll", "all"],
        "B" => ["migratory", "summing", "concurrent", "poll", "all"],
        other => panic!("no preset {other}"),
    };
    assert_eq!(switches, expected, "{done}");
    let [waiters, service, signals] =
        ["handled_by_waiters", "handled_by_service", "signals_taken"].map(|name| count(&done, name));
    assert!(waiters + service > 0, "{done}");
    assert!(expected[2] == "concurrent" || waiters == 0, "only the service process handles messages\n{done}");
    assert_eq!(expected[3] == "signal", signals > 0, "{done}");
    if app_name == "stress" && expected[2] == "concurrent" {
        assert!(waiters > 0, "who waits handles messages\n{done}");
    }
}

macro_rules! presets {
    ($($app:ident: $name:ident)*) => { $(
        #[test]
        fn $name() {
            for protocol in ["csm-none", "strings-rc", "strings-sc"] {
                for name in ["S", "M", "K", "C", "P", "B"] {
                    preset(protocol, name, stringify!($app));
                }
            }
        }
    )* };
}

presets! {
    sor: sor_is_verified_in_every_configuration_of_strings
    tsp: tsp_is_verified_in_every_configuration_of_strings
    stress: stress_is_verified_in_every_configuration_of_strings
}

#[test]
fn an_iterative_server_may_poll_too() {
    let done = verified("stress", "-n 3 -p 2 --transport tcp --server iterative", "--size tiny --iters 4 --seed 3");
    assert_eq!((count(&done, "handled_by_waiters"), count(&done, "signals_taken")), (0, 0), "{done}");
}

#[test]
fn messages_over_mapped_memory_may_be_announced_by_signals_too() {
    let done = verified("sor", "-n 2 --protocol csm-ms --receive signal", "--size tiny");
    assert!(count(&done, "signals_taken") > 0, "{done}");
}

/// sor uses no other synchronization: two processors on the node that does not manage the barrier ask and are answered.
#[test]
fn a_summing_barrier_takes_one_message_for_each_node_and_a_flat_one_for_each_processor() {
    for transport in ["shm", "tcp"] {
        let of = |barrier: &str| {
            let flags = format!("-n 2 -t 2 --transport {transport} --barrier {barrier}");
            let done = verified("sor", &flags, "--size tiny");
            (count(&done, "sync_messages"), count(&done, "barriers"))
        };
        let ((flat, passed), (summing, as_often)) = (of("flat"), of("summing"));
        assert_eq!(passed, as_often);
        // Processes also meet at the end, where nobody collects.
        assert!(flat > summing && flat.abs_diff(2 * summing) <= 2, "{transport}: {flat} flat, {summing} summing");
    }
}

fn lock_cost(flags: &str, mode: &str, rounds: u64) -> Done {
    let program = compile("lock_cost.c", &format!("lock_cost-{mode}"), &[]);
    let done = Job::new(&format!("{flags} --quiet"), &program, &format!("{mode} {rounds}")).stats().run();
    done.assert_success();
    done
}

#[test]
fn locking_again_where_a_migratory_mutex_was_last_costs_no_message() {
    assert!(built("bin/finespun").exists());
    for transport in ["shm", "tcp"] {
        let of = |locks: &str, rounds| {
            let done = lock_cost(&format!("-n 3 --transport {transport} --locks {locks}"), "again", rounds);
            count(&done, "sync_messages")
        };
        assert_eq!(of("migratory", 40), of("migratory", 10), "{transport}: thirty rounds more, and not one message");
        assert!(of("queue", 40) > of("queue", 10) + 1000, "{transport}");
    }
}

#[test]
fn a_release_is_deferred_only_where_one_release_covers_who_hands_over_and_who_gets() {
    let of = |flags: &str| count(&lock_cost(flags, "crowded", 100), "deferred_releases");
    assert!(of("-n 2 -t 3 --locks migratory") > 0);
    assert!(of("-n 2 -t 3 --locks migratory --transport tcp") > 0);
    assert_eq!(of("-n 2 -p 3 --locks migratory"), 0, "each process has a dirty list of its own");
    assert_eq!(of("-n 2 -t 3 --locks queue"), 0);
    for transport in ["shm", "tcp"] {
        let flags = format!("-n 2 -p 3 --protocol strings-rc --transport {transport}");
        assert!(of(&flags) > 0, "one dirty list for the node, and migratory mutexes are its own\n{flags}");
        assert_eq!(of(&format!("{flags} --locks queue")), 0);
    }
}

/// The same mistakes as with the queue at a manager, and the same numbers.
#[test]
fn mistakes_with_migratory_mutexes_have_the_same_numbers() {
    let program = compile("misuse/cases.c", "cases-migratory", &["-Wno-free-nonheap-object"]);
    for (case, number) in [
        ("unlock_free", "E020"),
        ("unlock_foreign", "E020"),
        ("unlock_twice", "E020"),
        ("wait_unlocked", "E020"),
        ("relock", "E022"),
        ("mutex_null", "E005"),
        ("die_with_the_lock", "E041"),
    ] {
        for flags in ["--transport shm", "--transport tcp", "--transport tcp --server iterative --receive signal"] {
            let flags = format!("-n 2 -p 2 --heap 64M --locks migratory {flags}");
            let done = Job::new(&flags, &program, case).limit(20).run();
            done.assert_error(number);
            assert!(done.stderr.contains("(node 1, processor 3)"), "{case}: it names who\n{done}");
        }
    }
    for transport in ["shm", "tcp"] {
        let flags = format!("-n 2 --quiet --locks migratory --transport {transport}");
        let done = Job::new(&flags, &program, "retrylock").limit(20).run();
        assert!(done.code == Some(0) || done.stderr.contains("finespun: error E022"), "{done}");
    }
}

#[test]
fn a_disagreement_about_the_barrier_of_all_is_seen_where_it_is_flat_too() {
    let program = compile("misuse/cases.c", "cases-flat", &["-Wno-free-nonheap-object"]);
    for transport in ["shm", "tcp"] {
        let flags = format!("-n 2 -p 2 --barrier flat --transport {transport}");
        Job::new(&flags, &program, "return_early").limit(20).run().assert_error("E041");
        Job::new(&flags, &program, "barrier_counts").limit(20).run().assert_error("E021");
    }
}
