//! Locks of the C library where they would lock for one node, or one process, only.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Done, Job, built, compile, line_with, root, succeed, without_addresses};

const SOURCE: &str = "tests/c/misuse/clib_locks.c";
const CALLS: [(&str, &str); 10] = [
    ("mutex", "pthread_mutex_lock"),
    ("try", "pthread_mutex_trylock"),
    ("signal", "pthread_cond_signal"),
    ("wait", "pthread_cond_wait"),
    ("read", "pthread_rwlock_rdlock"),
    ("spin", "pthread_spin_lock"),
    ("barrier", "pthread_barrier_wait"),
    ("semaphore", "sem_wait"),
    ("post", "sem_post"),
    ("mtx", "mtx_lock"),
];

fn plain() -> PathBuf {
    compile("misuse/clib_locks.c", "clib_locks", &["-g", "-std=gnu11"])
}

fn with_driver(compiler: &str, flags: &[&str], source: &str, name: &str) -> PathBuf {
    let program = root().join("build/tests").join(name);
    let mut command = Command::new(built(compiler));
    // From the project's folder, so that lines are named as they are here.
    command.current_dir(root()).args(["-g", "-O2", "-Wall", "-Wextra", "-Werror"]).args(flags);
    succeed(command.args([source, "-o"]).arg(&program));
    program
}

/// The first line of what is said, with addresses as `ADDRESS`.
#[track_caller]
fn first_line(done: &Done) -> String {
    without_addresses(done.stderr.lines().next().unwrap_or_else(|| panic!("{done}")))
}

fn line_of(text: &str) -> String {
    format!("{SOURCE}:{}", line_with(SOURCE, text))
}

#[test]
fn each_lock_of_the_c_library_in_shared_memory_is_an_error() {
    let program = plain();
    for (turn, (case, call)) in CALLS.into_iter().enumerate() {
        let transport = ["shm", "tcp"][turn % 2];
        let done = Job::new(&format!("--quiet -n 2 -p 2 --transport {transport}"), &program, case).limit(20).run();
        done.assert_error("E023");
        let expected = format!(
            "finespun: error E023 (node 1, processor 3): {call} of the C library is called for ADDRESS, which is shared \
             memory: it would lock for node 1 only"
        );
        assert_eq!((first_line(&done), done.code), (expected, Some(23)), "{done}");
    }
}

#[test]
fn a_lock_in_a_shared_global_is_named_with_its_line() {
    let program = with_driver("bin/fspcc", &["--share-globals", "-DSHARED_GLOBALS"], SOURCE, "clib_locks_shared");
    for transport in ["shm", "tcp"] {
        let done = Job::new(&format!("--quiet -n 2 --transport {transport}"), &program, "mutex").limit(20).run();
        done.assert_error("E023");
        let expected = format!(
            "finespun: error E023 (node 1, processor 1): pthread_mutex_lock of the C library is called for ADDRESS, `all` \
             ({}), which is shared memory: it would lock for node 1 only",
            line_of("static struct objects all;")
        );
        assert_eq!(first_line(&done), expected, "{done}");
    }
    let done = Job::new("--quiet -n 1 -p 2", &program, "mutex").run();
    done.assert_success();
    assert_eq!(done.stdout, "clib_locks: nothing was noticed\n", "on one node it locks for all\n{done}");
}

#[test]
fn a_mutex_of_cpp_in_a_shared_global_is_one_of_the_c_library() {
    let source = "tests/c/misuse/std_mutex.cpp";
    let program = with_driver("bin/fspc++", &["--share-globals", "-std=c++17"], source, "std_mutex_plain");
    let done = Job::new("--quiet -n 2", &program, "").limit(20).run();
    done.assert_error("E023");
    let line = first_line(&done);
    assert!(line.contains("pthread_mutex_lock of the C library is called for ADDRESS, `guard` ("), "{done}");
    let program = with_driver("bin/fspc++", &["--pthread", "-std=c++17"], source, "std_mutex_shared");
    let done = Job::new("--quiet -n 2", &program, "").limit(20).run();
    done.assert_success();
    assert_eq!(done.stdout, "std_mutex: 2 turns\n", "{done}");
}

#[test]
fn a_private_lock_of_several_processes_is_told_where_that_is_looked_for() {
    let program = plain();
    for transport in ["shm", "tcp"] {
        let flags = format!("--quiet -n 2 --transport {transport} --check locks");
        let done = Job::new(&flags, &program, "private").limit(20).run();
        done.assert_error("E011");
        let what = format!(
            "pthread_mutex_lock of the C library is called for `guard` ({}), a private variable, as by a process of node",
            line_of("static pthread_mutex_t guard")
        );
        let line = first_line(&done);
        // `compile` names the source by its whole path.
        assert!(line.replace(&format!("{}/", root().display()), "").contains(&what), "{line}\n{what}");
        assert!(line.ends_with(" before: each locks its own"), "{done}");
    }
    for (flags, case) in [("-n 2 --check locks", "own"), ("-n 2", "private"), ("-n 1 --check locks", "private")] {
        let done = Job::new(&format!("--quiet {flags}"), &program, case).limit(20).run();
        done.assert_success();
        assert_eq!(done.stdout, "clib_locks: nothing was noticed\n", "{done}");
    }
}
