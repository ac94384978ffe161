//! `--check globals`: which private variables are told, in which words, and which are not.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::support::{Done, Job, app, compile, line_with, offers_userfaultfd, root};
use crate::{c_programs, fspcc, tmk};

const CHECK: &str = "-q -n 2 --heap 64M --check globals";
const WHY: &str = concat!(
    "  why: each process has its own copy of the program's global and static variables: the reader sees an older value\n",
    "  fix: build with `fspcc --share-globals`, or keep the value in memory of fsp_malloc (TreadMarks: Tmk_malloc, or Tmk_distribute)\n",
    "  more: finespun explain E014\n",
);
const ONE: &str =
    "finespun: error E014: a global variable that is not shared is written in one process and read in another\n";

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("checks/globals.c", "check-globals", &["-g", "-O0"]))
}

/// `steps (tests/c/checks/globals.c:29)`, for the line with this mark: the one that the compiler was told of.
fn place(name: &str, mark: &str) -> String {
    let source = "tests/c/checks/globals.c";
    format!("{name} ({}:{})", root().join(source).display(), line_with(source, mark))
}

/// One line of the message.
fn told(variable: &str, mark: &str, writer: &str, reader: &str) -> String {
    format!(
        "  {}: written by processor 0 (node 0) in {}, read by processor 1 (node 1) in {}\n",
        place(&format!("`{variable}`"), &format!("{variable} declared")),
        place(writer, &format!("{mark} written")),
        place(reader, &format!("{mark} read")),
    )
}

fn assert_finds(done: &Done, exit_code: i32, message: &str) {
    assert_eq!((done.code, done.stderr.as_str()), (Some(exit_code), message), "{done}");
}

/// Every mechanism, over both transports.
fn ways() -> Vec<String> {
    let mechanisms: &[&str] = if offers_userfaultfd() { &["uffd", "mprotect"] } else { &["mprotect"] };
    let over =
        |to: &str| mechanisms.iter().map(|by| format!("{CHECK} --transport {to} --faults {by}")).collect::<Vec<_>>();
    ["shm", "tcp"].into_iter().flat_map(over).collect()
}

#[test]
fn what_each_process_sets_for_itself_or_before_the_start_is_not_told() {
    for way in ways() {
        assert_finds(&Job::new(&way, program(), "clean").run(), 0, "");
    }
}

#[test]
fn threads_of_one_process_share_their_variables() {
    let done = Job::new("-n 1 -t 4 --heap 64M --check globals", program(), "wrong").run();
    done.assert_success();
    assert!(done.stderr.contains("finespun: --check globals: nothing found in "), "{done}");
}

#[test]
fn what_one_process_writes_and_another_reads_is_told_with_both_places() {
    let message = format!(
        "finespun: error E014: 4 global variables that are not shared are written in one process and read in another\n{}{}{}{}{WHY}",
        told("table", "table", "main", "wrong"),
        told("steps", "steps", "main", "wrong"),
        told("input", "input", "a library called from main", "wrong"),
        told("parameters", "parameters", "main", "wrong"),
    );
    for way in ways() {
        assert_finds(&Job::new(&way, program(), "wrong").run(), 14, &message);
    }
}

#[test]
fn the_first_twenty_are_named_and_the_others_counted() {
    let done = Job::new(CHECK, program(), "many").run();
    assert_eq!(done.code, Some(14), "{done}");
    let named = done.stderr.lines().filter(|line| line.contains("written by processor 0")).count();
    assert_eq!(named, 20, "{done}");
    assert!(done.stderr.starts_with("finespun: error E014: 30 global variables"), "{done}");
    assert!(done.stderr.contains("\n  and 10 more\n  why: "), "{done}");
}

#[test]
fn a_job_that_dies_of_it_says_both() {
    let done = Job::new(CHECK, program(), "crash").run();
    assert_eq!(done.code, Some(128 + 11), "{done}");
    let (death, mistake) = done.stderr.split_once(ONE).expect("two messages");
    assert!(death.starts_with("finespun: error E040 (node 1, processor 1): process "), "{done}");
    assert_eq!(mistake, told("table", "crash", "main", "crash") + WHY, "{done}");
}

#[test]
fn without_names_addresses_are_told() {
    let stripped = compile("checks/globals.c", "check-globals-stripped", &["-s"]);
    let done = Job::new(CHECK, &stripped, "crash").run();
    assert!(done.stderr.contains("  the variable at 0x"), "{done}");
    assert!(
        done.stderr.contains(" in a function without a name, read by processor 1 (node 1) in a function"),
        "{done}"
    );
}

#[test]
fn members_of_classes_are_told_by_their_names() {
    let source = root().join("tests/c/checks/globals.cpp");
    let program = fspcc::build("fspc++", &["-g", "-O0"], &[source], "check-globals-cpp");
    let done = Job::new(CHECK, &program, "").run();
    assert_eq!(done.code, Some(14), "{done}");
    let (variable, rest) = done.stderr.strip_prefix(ONE).expect("one variable").split_once(" (").expect("a place");
    assert_eq!(variable, "  `pool::Settings::factor`");
    assert!(rest.contains(" in main (") && rest.contains(" in work ("), "{done}");
}

#[test]
fn a_variable_of_a_treadmarks_program_that_is_not_distributed_is_told() {
    let program = tmk::compile("globals");
    let fine = Job::new(CHECK, &program, "").run();
    assert_finds(&fine, 0, "");
    let done = Job::new(CHECK, &program, "forget").run();
    assert_eq!(done.code, Some(14), "{done}");
    assert!(
        done.stderr.starts_with(&format!("{ONE}  `theta`: written by processor 0 (node 0) in main, read by")),
        "{done}"
    );
}

#[test]
fn where_variables_are_shared_there_is_nothing_to_check() {
    let source = root().join("tests/c/checks/globals.c");
    let program = fspcc::build("fspcc", &["--share-globals", "-std=c11"], &[source], "check-globals-shared");
    let done = Job::new("-n 2 --heap 64M --check globals", &program, "crash").run();
    done.assert_success();
    let note =
        "finespun: --check globals: the program's variables are shared (fspcc --share-globals): nothing to check\n";
    assert!(done.stderr.starts_with(note), "{done}");
}

/// Nothing of what a program does with signals, fork, threads and the kernel is another under the watch.
#[test]
fn a_watched_program_runs_as_any_other() {
    for name in ["signals", "fork_child", "records", "own_threads", "errno_kept"] {
        c_programs::first_run(name, "--check globals").assert_success();
    }
    Job::new(CHECK, &app("sor"), "--size 48 --iters 2 --verify").run().assert_success();
}
