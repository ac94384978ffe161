//! Programs whose threads' stacks are shared memory (`fspcc --pthread --share-stacks`): pointers to local variables are good on
//! every node.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Job, built, offers_userfaultfd, protocols, root, succeed};

const PROGRAMS: [&str; 2] = ["stacks", "frames"];

fn mechanisms() -> Vec<&'static str> {
    if offers_userfaultfd() { vec!["uffd", "mprotect"] } else { vec!["mprotect"] }
}

fn build(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let folder = root().join("build/tests/stacks");
    std::fs::create_dir_all(&folder).expect("writable");
    let program = folder.join(name);
    let driver = if source.ends_with(".cpp") { "bin/fspc++" } else { "bin/fspcc" };
    let mut command = Command::new(built(driver));
    command.args(["--pthread", "-O2", "-Wall", "-Wextra", "-Werror"]).args(flags);
    succeed(command.arg(root().join(source)).arg("-o").arg(&program));
    program
}

fn program(name: &str) -> &'static Path {
    static BUILT: OnceLock<[(&str, PathBuf); 2]> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let sources = ["tests/c/pthread/stacks.c", "tests/c/pthread/frames.cpp"];
        [0, 1].map(|index| (PROGRAMS[index], build(sources[index], PROGRAMS[index], &["--share-stacks"])))
    });
    built.iter().find(|(known, _)| *known == name).map(|(_, path)| path).expect("built")
}

#[track_caller]
fn all_right(name: &str, flags: &str) {
    let done = Job::new(&format!("--quiet {flags}"), program(name), "").run();
    done.assert_success();
    assert_eq!(done.stdout, format!("{name}: all right\n"), "{done}");
}

#[test]
fn local_variables_of_any_thread_are_shared_on_any_nodes_transport_and_mechanism() {
    for name in PROGRAMS {
        for mechanism in mechanisms() {
            for transport in ["shm", "tcp"] {
                for layout in ["-n 1", "-n 2", "-n 4", "-n 2 -p 2", "-n 2 -t 2"] {
                    all_right(name, &format!("{layout} --transport {transport} --faults {mechanism}"));
                }
            }
        }
    }
}

#[test]
fn local_variables_of_any_thread_are_shared_under_every_protocol() {
    let mechanisms = mechanisms();
    let mut turn = 0;
    for protocol in protocols() {
        for transport in &protocol.transports {
            for name in PROGRAMS {
                let layout = ["-n 2", "-n 4", "-n 2 -p 2", "-n 3"][turn % 4];
                let mechanism = mechanisms[turn / 2 % mechanisms.len()];
                let protocol = &protocol.name;
                all_right(
                    name,
                    &format!("{layout} --transport {transport} --protocol {protocol} --faults {mechanism}"),
                );
                turn += 1;
            }
            turn += 1;
        }
    }
}

#[test]
fn stacks_are_shared_where_mutexes_migrate_and_in_a_small_heap() {
    all_right("stacks", "-n 3 --locks migratory");
    all_right("frames", "-n 3 --locks migratory --transport tcp");
    all_right("stacks", "-n 2 --heap 64M");
}

#[test]
fn a_program_with_shared_stacks_runs_without_a_launcher() {
    for name in PROGRAMS {
        let output = succeed(&mut Command::new(program(name)));
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{name}: all right\n"));
    }
}

#[test]
fn a_stack_that_overflows_is_told_with_its_size() {
    for mechanism in mechanisms() {
        let flags = format!("--quiet -n 3 --faults {mechanism}");
        let done = Job::new(&flags, program("stacks"), "overflow").limit(20).run();
        done.assert_error("E054");
        let said = "(node 1, processor 1): the thread's stack of 256 KiB, in shared memory, has overflown\n";
        assert!(done.stderr.contains(said), "{done}");
        assert!(done.stderr.contains("pthread_attr_setstacksize"), "{done}");
    }
}

#[test]
fn exit_on_a_shared_stack_ends_the_job_with_its_code() {
    for transport in ["shm", "tcp"] {
        let done = Job::new(&format!("--quiet -n 2 --transport {transport}"), program("stacks"), "exit").run();
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(7), "", ""), "{done}");
    }
}

/// The program is not to blame where it can be built so that it works.
#[test]
fn an_argument_on_a_private_stack_is_told_to_share_the_stacks() {
    let private = build("tests/c/pthread/stacks.c", "private", &[]);
    let done = Job::new("--quiet -n 2", &private, "").limit(20).run();
    done.assert_error("E012");
    assert!(done.stderr.contains("points to private memory (the stack)"), "{done}");
    assert!(done.stderr.contains("--share-stacks"), "{done}");
    let misuse = build("tests/c/pthread/misuse.c", "misuse", &["--share-stacks"]);
    for case in ["mutex_on_stack", "condition_on_stack", "barrier_on_stack", "semaphore_on_stack", "argument_on_stack"]
    {
        let done = Job::new("--quiet -n 3", &misuse, case).run();
        done.assert_success();
        assert_eq!(done.stdout, "nothing was noticed\n", "{done}");
    }
}

#[test]
fn stacks_are_shared_with_pthreads_only() {
    let mut command = Command::new(built("bin/fspcc"));
    let output = command.args(["--share-stacks", "absent.c"]).output().expect("it starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--share-stacks: only with --pthread"));
}
