//! Whole jobs whose messages do not go as usual: through memory of this machine (loopback), and delayed, so that those of different
//! pairs of nodes overtake each other.

use std::path::Path;

use crate::support::{Job, app, compile};

const PROTOCOLS: [&str; 4] = ["csm-2l", "strings-rc", "strings-sc", "tmk"];

/// One job with the assertions of the engine in, which must end well.
fn run(how: &str, shape: &str, protocol: &str, program: &Path, args: &str) -> String {
    let flags = format!("{shape} --transport tcp --protocol {protocol} --messages {how} --quiet");
    let done = Job::new(&flags, program, args).checked().run();
    done.assert_success();
    done.stdout
}

/// The applications, and the random program, which uses every kind of object.
fn applications(how: &str) {
    for (number, protocol) in PROTOCOLS.into_iter().enumerate() {
        for (name, args) in [("sor", ""), ("gauss", ""), ("tsp", ""), ("stress", "--iters 2")] {
            let shape = ["-n 3", "-n 2 -p 2"][number % 2];
            let output = run(how, shape, protocol, &app(name), &format!("--size tiny --verify {args}"));
            assert!(output.ends_with(&format!("{name}: verified\n")), "{protocol} {how}: {output}");
        }
    }
}

/// C programs about mutexes that travel, waiters of them, barriers, and handlers of signals at both.
fn locks_and_barriers(how: &str) {
    let locks = compile("lock_cost.c", "lock_cost-carried", &[]);
    let barriers = compile("handler_stores.c", "handler_stores-carried", &[]);
    for protocol in PROTOCOLS {
        run(how, "-n 2 -p 2", protocol, &locks, "wanted 50");
        run(how, "-n 3", protocol, &locks, "moved 3");
        run(how, "-n 2 -p 2", protocol, &barriers, "");
    }
}

#[test]
fn a_loopback_carries_whole_jobs() {
    applications("loopback");
    locks_and_barriers("loopback");
}

#[test]
fn a_loopback_carries_whole_jobs_late_and_in_another_order() {
    applications("loopback,delay=1");
    locks_and_barriers("loopback,delay=2");
}

#[test]
fn sockets_carry_whole_jobs_late_and_in_another_order() {
    applications("sockets,delay=3");
    locks_and_barriers("sockets,delay=4");
}

#[test]
fn a_job_over_a_loopback_counts_its_messages_as_over_sockets() {
    let flags = "-n 2 --transport tcp --messages loopback --quiet";
    let done = Job::new(flags, &app("sor"), "--size tiny").stats().run();
    done.assert_success();
    let stats = done.stats.as_ref().expect("asked for");
    for counted in ["messages", "sync_messages", "handled_by_service"] {
        assert!(stats[counted].as_u64().is_some_and(|count| count > 0), "{counted}: {stats}");
    }
}

#[test]
fn a_way_that_cannot_be_is_refused() {
    for (flags, expected) in [
        ("--transport shm --messages loopback", "csm-2l over shm sends none"),
        ("--transport tcp --receive signal --messages sockets,delay=1", "expected --messages sockets"),
        ("--transport tcp --messages pigeons", "pigeons"),
    ] {
        let done = Job::new(&format!("-n 2 {flags}"), &app("sor"), "").run();
        assert!(done.code == Some(2) && done.stderr.contains(expected), "{flags}: {done}");
    }
}
