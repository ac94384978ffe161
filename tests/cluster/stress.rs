//! The random program with a few fixed seeds; `scripts/soak.sh` runs it with any number of them.
//!
//! Every other run uses the library and the command that have their assertions in: a protocol that leaves its tables
//! stops there, before a wrong value shows.

use crate::support::{Done, Job, app, offers_userfaultfd, protocols};

const SHAPES: &[&str] = &["-n 2", "-n 3", "-n 4", "-n 2 -p 2", "-n 3 -t 2", "-n 2 -p 2 -t 2", "-n 6", "-n 1 -p 3"];

fn stress(flags: &str, args: &str, is_checked: bool) -> Done {
    let job = Job::new(flags, &app("stress"), args).limit(120);
    let done = if is_checked { job.checked() } else { job }.run();
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.stdout.lines().any(|line| line == "stress: verified"), "{done}");
    done
}

fn seeds(transport: &str, faults: &str, seeds: std::ops::Range<usize>) {
    if faults == "uffd" && !offers_userfaultfd() {
        println!("not run: this machine offers no userfaultfd");
        return;
    }
    for seed in seeds {
        let shape = SHAPES[seed % SHAPES.len()];
        let flags = format!("{shape} --transport {transport} --faults {faults} --quiet");
        stress(&flags, &format!("--size tiny --iters 6 --seed {seed}"), seed % 2 == 0);
    }
}

#[test]
fn no_value_is_wrong_over_shm_with_userfaultfd() {
    seeds("shm", "uffd", 100..116);
}

#[test]
fn no_value_is_wrong_over_shm_with_mprotect() {
    seeds("shm", "mprotect", 200..216);
}

#[test]
fn no_value_is_wrong_over_tcp_with_userfaultfd() {
    seeds("tcp", "uffd", 300..316);
}

#[test]
fn no_value_is_wrong_over_tcp_with_mprotect() {
    seeds("tcp", "mprotect", 400..416);
}

/// Every protocol over every transport it runs on. Direct access and messages mixed are where orders could cross.
#[test]
fn no_value_is_wrong_under_any_protocol() {
    let mechanisms = if offers_userfaultfd() { ["uffd", "mprotect"] } else { ["mprotect"; 2] };
    for (number, protocol) in protocols().iter().enumerate() {
        for transport in &protocol.transports {
            for round in 0..4 {
                let seed = 600 + 10 * number + round;
                let shape = SHAPES[(number + 2 * round) % SHAPES.len()];
                let shape = if protocol.one_level { shape.replace("-t 2", "-t 1") } else { shape.to_owned() };
                let name = &protocol.name;
                let flags = format!(
                    "{shape} --protocol {name} --transport {transport} --faults {} --quiet",
                    mechanisms[round % 2]
                );
                stress(&flags, &format!("--size tiny --iters 6 --seed {seed}"), round < 2);
            }
        }
    }
}

#[test]
fn where_every_process_is_a_node_the_summary_says_so() {
    let done = stress("-n 2 -p 2 --protocol csm-1l-dms", "--size tiny --iters 6 --seed 700", true);
    assert!(done.stderr.contains("4 nodes x 1 processor"), "{done}");
}

/// With so little room that nearly every barrier of all collects, and with threads that share a node.
#[test]
fn no_value_is_wrong_while_old_intervals_and_diffs_are_collected() {
    for (seed, transport) in (740..).zip(["shm", "tcp", "shm", "tcp"]) {
        let shape = if seed % 4 < 2 { "-n 4" } else { "-n 2 -t 2" };
        let flags = format!("{shape} --protocol tmk --transport {transport} --quiet");
        let args = format!("--size tiny --iters 6 --seed {seed}");
        let done = Job::new(&flags, &app("stress"), &args).env("FINESPUN_TMK_COLLECT", "4000").stats().limit(120).run();
        assert!(done.stdout.lines().any(|line| line == "stress: verified"), "{done}");
        let collections = done.stats.as_ref().and_then(|stats| stats["collections"].as_u64());
        assert!(collections.is_some_and(|count| count > 0), "{done}");
    }
}

#[test]
fn every_kind_of_sharing_is_right_by_itself() {
    for (number, kind) in ["locks", "words", "flags", "queue", "rotate", "heap", "ranges"].iter().enumerate() {
        for transport in ["shm", "tcp"] {
            let flags = format!("-n 3 -p 2 --transport {transport} --quiet");
            stress(&flags, &format!("--size tiny --iters 6 --seed {} --kinds {kind}", 500 + number), true);
        }
    }
}

#[test]
fn the_fallback_that_runs_out_of_mappings_is_right_too() {
    // Many pages with rights of their own: more mappings than a process may have, on a machine that allows the usual 65,530.
    stress("-n 2 --faults mprotect --quiet", "--size 512 --iters 2 --seed 600", false);
}
