//! Programs whose threads can never go on end with one message, soon; right programs that wait for long do not.
//!
//! The mistakes are made by `tests/c/misuse/hangs.c`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Done, Job, built, compile, root, succeed, without_addresses};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("misuse/hangs.c", "hangs", &["-Wno-infinite-recursion"]))
}

fn job(flags: &str, case: &str) -> Job {
    Job::new(&format!("--quiet --heap 64M {flags}"), program(), case).limit(30)
}

/// The configurations in which every mistake is made: nodes of processes that reach each other's memory, and nodes of threads that do not.
const WORLDS: [&str; 2] = ["-n 2 -p 2", "-n 2 -t 2 --transport tcp"];

/// What is said, with addresses as `ADDRESS`: one message with this number.
#[track_caller]
fn said(done: &Done, number: &str) -> String {
    done.assert_error(number);
    without_addresses(done.stderr.lines().next().expect("a line"))
}

/// The job ends with this number, and says these words. The jobs wait most of the time, so they run side by side.
#[track_caller]
fn hangs(case: &str, worlds: &[&str], number: &str, words: &[&str]) {
    let jobs: Vec<_> = worlds.iter().map(|flags| job(flags, case).start()).collect();
    for running in jobs {
        let done = running.wait();
        let said = said(&done, number);
        for words in words {
            assert!(said.contains(words), "it says: {words}\n{done}");
        }
    }
}

#[test]
fn main_that_waits_alone_at_a_barrier_is_told_so() {
    let words =
        ["processor 0 (node 0) waits at the barrier at ADDRESS, where 1 of 2 have arrived", "3 processors run nothing"];
    hangs("barrier_in_main", &WORLDS, "E027", &words);
}

#[test]
fn a_count_of_one_too_many_is_told() {
    hangs("barrier_of_too_many", &WORLDS, "E027", &["where 4 of 5 have arrived"]);
}

#[test]
fn a_count_that_no_job_can_bring_is_told_while_others_compute() {
    hangs("barrier_of_a_million", &["-n 2"], "E027", &["where 1 of 1000000 have arrived"]);
}

#[test]
fn one_processor_at_the_barrier_of_all_in_a_parallel_section_is_told_so() {
    let words = ["processor 3 (node 1) waits at fsp_barrier_all", "2 processors run nothing"];
    hangs("barrier_all_of_one", &[WORLDS[0], WORLDS[1], "-n 2 -p 2 --barrier flat"], "E027", &words);
}

#[test]
fn a_circle_of_mutexes_is_told_with_all_who_stand_in_it() {
    let words = [
        "processor 0 (node 0) waits for the mutex at ADDRESS, which processor 1 (node 0) holds",
        "processor 1 (node 0) waits for the mutex at ADDRESS, which processor 2 (node 1) holds",
        "processor 3 (node 1) waits for the mutex at ADDRESS, which processor 0 (node 0) holds",
    ];
    let migratory = WORLDS.map(|flags| format!("{flags} --locks migratory"));
    hangs("circle", &[WORLDS[0], WORLDS[1], &migratory[0], &migratory[1]], "E026", &words);
    hangs("circle", &["-n 4 --protocol tmk"], "E026", &["processor 3 (node 3) waits for the mutex at ADDRESS"]);
    hangs("circle", &["-n 2 --locks migratory", "-n 2 --protocol strings-sc"], "E026", &words[..0]);
}

#[test]
fn a_circle_is_told_though_another_computes() {
    let words = ["processor 1 (node 1) waits for the mutex at ADDRESS, which processor 2 (node 2) holds"];
    hangs("circle_beside_main", &["-n 3", "-n 3 --locks migratory --transport tcp"], "E026", &words);
}

#[test]
fn a_join_with_the_mutex_held_is_a_circle() {
    let words = ["processor 0 (node 0) waits for the end of the thread that is processor 3 (node 1)"];
    hangs("join_with_the_mutex", &WORLDS, "E026", &words);
}

#[test]
fn a_mutex_that_an_ended_thread_holds_is_told() {
    let words = ["which processor 3 (node 1) holds, and the thread that locked it there has ended"];
    hangs("mutex_left_behind", &[WORLDS[0], WORLDS[1], "-n 2 -p 2 --locks migratory"], "E028", &words);
}

#[test]
fn a_flag_that_nobody_is_left_to_set_is_told() {
    hangs("flag_never_set", &WORLDS, "E029", &["waits for the flag at ADDRESS to reach 3, which is at 2"]);
}

#[test]
fn a_signal_that_came_too_early_is_told() {
    let words = ["processor 3 (node 1) waits for a signal of the condition variable at ADDRESS"];
    hangs("signal_before_the_wait", &WORLDS, "E029", &words);
}

#[test]
fn a_process_whose_main_has_ended_sets_no_flag_and_comes_to_no_barrier() {
    hangs("spmd_flag", &WORLDS, "E029", &["has come to the end of its program"]);
    hangs("spmd_barrier", &["-n 2 -p 2 --transport tcp"], "E027", &["where 3 of 4 have arrived"]);
}

#[test]
fn the_mutexes_of_a_circle_are_named_where_they_have_names() {
    let (source, program) = ("tests/c/pthread/circle.c", root().join("build/tests/circle"));
    let mut command = Command::new(built("bin/fspcc"));
    command.current_dir(root()).args(["--pthread", "-g", "-O2", "-Wall", "-Wextra", "-Werror", source, "-o"]);
    succeed(command.arg(&program));
    for flags in ["-n 3", "-n 2 --transport tcp"] {
        let done = Job::new(&format!("--quiet {flags}"), &program, "").limit(30).run();
        let said = said(&done, "E026");
        assert!(said.contains("waits for the mutex at ADDRESS, `first` (tests/c/pthread/circle.c:5), which"), "{done}");
        assert!(
            said.contains("waits for the mutex at ADDRESS, `second` (tests/c/pthread/circle.c:5), which"),
            "{done}"
        );
    }
}

/// Each waits for more than three looks. They sleep, so they run side by side.
#[test]
fn right_programs_that_wait_for_long_are_left_alone() {
    let cases = ["late_flag", "own_thread", "own_threads_at_a_barrier", "unlocked_by_a_later_thread"];
    let all = WORLDS.iter().flat_map(|flags| cases.map(|case| job(flags, case)));
    let jobs: Vec<_> = all.map(Job::start).collect();
    for running in jobs {
        let done = running.wait();
        done.assert_success();
        assert_eq!(done.stdout, "done\n", "{done}");
    }
}
