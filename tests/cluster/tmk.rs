//! TreadMarks programs: two of our own, and small ones for what the header promises.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Done, Job, Protocol, app, built, offers_userfaultfd, protocols, root, succeed};

/// Compiles one of the programs under `tests/tmk` as a user does.
pub fn compile(name: &str) -> PathBuf {
    let folder = root().join("build/tests");
    std::fs::create_dir_all(&folder).expect("writable");
    let (program, new) =
        (folder.join(format!("tmk-{name}")), folder.join(format!("tmk-{name}.new{}", std::process::id())));
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "finespun-tmk"])
        .env("PKG_CONFIG_PATH", built("lib/pkgconfig"))
        .output()
        .expect("pkg-config is there, see scripts/prepare.sh");
    let flags = String::from_utf8(flags.stdout).expect("text");
    let mut command = Command::new("cc");
    command.args(["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&new);
    command.arg(root().join(format!("tests/tmk/{name}.c"))).args(flags.split_whitespace());
    succeed(&mut command);
    std::fs::rename(&new, &program).expect("one file system");
    program
}

/// How a job can be run: flags for every protocol, over its transports, with each fault mechanism, on 1, 2 and 4 nodes.
pub fn every_way() -> Vec<String> {
    let of = |protocol: &Protocol| {
        let mut ways = Vec::new();
        for transport in &protocol.transports {
            for faults in mechanisms() {
                for shape in ["-n 1", "-n 2", "-n 4"] {
                    ways.push(format!(
                        "{shape} --protocol {} --transport {transport} --faults {faults}",
                        protocol.name
                    ));
                }
            }
            ways.push(format!("-n 2 -p 2 --protocol {} --transport {transport}", protocol.name));
        }
        ways
    };
    protocols().iter().flat_map(of).collect()
}

fn mechanisms() -> &'static [&'static str] {
    if offers_userfaultfd() { &["uffd", "mprotect"] } else { &["mprotect"] }
}

fn assert_says(done: &Done, line: &str) {
    done.assert_success();
    assert!(done.stdout.lines().any(|said| said.contains(line)), "expected \"{line}\"\n{done}");
    assert_eq!(done.stderr, "", "{done}");
}

/// Verified in every way, with other timings each time.
fn verified(name: &str, args: &str) {
    let program = app(&format!("tmk-{name}"));
    for way in every_way() {
        for jitter in [0, 1] {
            let done = Job::new(&format!("--quiet {way}"), &program, &format!("{args} -v -j {jitter}")).run();
            assert_says(&done, &format!("{name}: verified"));
        }
    }
}

#[test]
fn jacobi_is_verified_under_every_protocol_in_every_way() {
    verified("jacobi", "-s 64 -i 60");
}

#[test]
fn knapsack_is_verified_under_every_protocol_in_every_way() {
    verified("knapsack", "-s 24 -d 4");
}

#[test]
fn every_call_does_what_the_header_says_under_every_protocol() {
    let program = compile("calls");
    for way in every_way() {
        assert_says(&Job::new(&format!("--quiet {way}"), &program, "-a 3 --").run(), "calls: all as promised");
    }
    assert_says(&Job::new("--quiet -n 3 -p 2 -t 2", &program, "").checked().run(), "as promised, 6 processes");
}

#[test]
fn sets_of_processes_meet_at_barriers_of_their_own_under_every_protocol() {
    let program = compile("groups");
    for way in every_way() {
        assert_says(&Job::new(&format!("--quiet {way}"), &program, "").run(), "groups: all have met");
    }
    assert_says(&Job::new("--quiet -n 4 -p 2", &program, "").checked().run(), "all have met, 8 processes");
}

/// One message, which names what was wrong.
#[test]
fn mistakes_end_the_job_with_a_message_that_names_them() {
    let program = compile("mistakes");
    for (mistake, message) in [
        ("stack", "are not in a global or static variable"),
        ("heap", "are not in a global or static variable"),
        ("lock", "Tmk_lock_acquire: lock 4096; locks are numbered 0 to 4095"),
        ("condition", "Tmk_lock_cond_signal: condition 8; those of a lock are numbered 0 to 7"),
        ("barrier", "is compiled with -DTMK_BARRIER_MASK"),
        ("group", "it must be one of them, and all must exist"),
        ("others-group", "it must be one of them, and all must exist"),
        ("own", "the program's own reason, 7 of many"),
    ] {
        for transport in ["shm", "tcp"] {
            let done = Job::new(&format!("--quiet -n 2 --transport {transport}"), &program, mistake).run();
            done.assert_error("E042");
            assert!(done.stderr.contains(message), "expected \"{message}\"\n{done}");
            assert_eq!(done.code, Some(1), "{done}");
        }
    }
    for (mistake, message) in
        [("early-barrier", "Tmk_barrier before Tmk_startup"), ("early-malloc", "Tmk_malloc before Tmk_startup")]
    {
        let done = Job::new("--quiet", &program, mistake).run();
        assert_eq!((done.code, done.stderr.trim_end()), (Some(1), message), "{done}");
    }
}

#[test]
fn the_launcher_says_how_many_processes_there_are() {
    let program = compile("calls");
    assert_says(&Job::new("--quiet -n 2 -p 2", &program, "-- -n 4").run(), "as promised, 4 processes");
    let done = Job::new("--quiet -n 2", &program, "-- -n 3").run();
    done.assert_error("E042");
    assert!(done.stderr.contains("`finespun run -n 3` starts as many"), "{done}");
    let done = Job::new("--quiet -n 2", &program, "-- -f machines").run();
    done.assert_success();
    assert_eq!(done.stderr.matches("has no effect").count(), 1, "pointed out by one process\n{done}");
}

#[test]
fn a_mask_without_its_flag_does_not_compile_and_the_message_says_the_flag() {
    let source = "#include <Tmk.h>\nint main(void) { Tmk_barrier(Tmk_mask); return 0; }\n";
    let file = tempfile::Builder::new().suffix(".c").tempfile().expect("a file");
    std::fs::write(file.path(), source).expect("writable");
    let compile = |flags: &[&str]| {
        let include = root().join("include");
        let mut command = Command::new("cc");
        command.arg("-fsyntax-only").arg("-I").arg(include.join("finespun/compat")).arg("-I").arg(&include);
        command.args(flags).arg(file.path()).output().expect("cc starts")
    };
    let without = compile(&[]);
    assert!(!without.status.success() && String::from_utf8_lossy(&without.stderr).contains("DTMK_BARRIER_MASK"));
    assert!(compile(&["-DTMK_BARRIER_MASK", "-Wall", "-Werror"]).status.success());
    for standard in ["-std=c89", "-std=c99", "-std=c17", "-std=c2x"] {
        let made = compile(&["-DTMK_BARRIER_MASK", "-Wall", "-Wextra", "-pedantic", "-Werror", standard]);
        assert!(made.status.success(), "{standard}: {}", String::from_utf8_lossy(&made.stderr));
    }
}
