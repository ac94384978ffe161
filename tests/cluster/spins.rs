//! Waits that may never end, and what is said of them: `--check spins`, and without it a warning.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Done, Job, built, line_with, root, succeed};

const SOURCE: &str = "tests/c/spins/spins.c";

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compiled("-O2"))
}

fn compiled(optimisation: &str) -> PathBuf {
    let folder = root().join("build/tests");
    std::fs::create_dir_all(&folder).expect("writable");
    let program = folder.join(format!("spins{optimisation}"));
    let mut command = Command::new(built("bin/fspcc"));
    // From the project's folder, so that lines are named as they are here.
    command.current_dir(root()).args(["--pthread", "-g", optimisation, "-Wall", "-Wextra", "-Werror", SOURCE, "-o"]);
    succeed(command.arg(&program));
    program
}

/// `file:line` of the only line of the program with this text.
fn line(text: &str) -> String {
    format!("{SOURCE}:{}", line_with(SOURCE, text))
}

/// The line of the loop in a function: the next after its name and brace.
fn loop_in(function: &str) -> String {
    format!("{SOURCE}:{}", line_with(SOURCE, &format!("*{function}(void *none)")) + 2)
}

fn run(case: &str, transport: &str) -> Done {
    Job::new(&format!("--quiet -n 2 --transport {transport} --check spins=1"), program(), case).limit(30).run()
}

/// What is said of it, with addresses as `ADDRESS` and the time as `TIME`.
#[track_caller]
fn said(case: &str) -> Vec<String> {
    ["shm", "tcp"]
        .map(|transport| {
            let done = run(case, transport);
            done.assert_message("E024");
            assert_eq!((done.code, done.stdout.as_str()), (Some(24), ""), "{done}");
            let first = done.stderr.lines().next().expect("a line");
            let text =
                first.strip_prefix("finespun: error E024 (node 1, processor 1): ").unwrap_or_else(|| panic!("{done}"));
            let word = |word: &str| if word.starts_with("0x") { "ADDRESS".to_owned() } else { word.to_owned() };
            let text = text.split(' ').map(word).collect::<Vec<_>>().join(" ");
            let (before, after) = text.split_once(", for ").unwrap_or_else(|| panic!("{done}"));
            let (_, after) = after.split_once(" s so far").unwrap_or_else(|| panic!("{done}"));
            format!("{before}, for TIME{after}")
        })
        .to_vec()
}

#[track_caller]
fn says(case: &str, expected: &str) {
    assert_eq!(said(case), [expected, expected]);
}

#[test]
fn a_loop_that_reads_a_stale_flag_is_told_with_the_flag_and_what_its_writer_has() {
    let (flag, place) = (line("static volatile int ready;"), loop_in("wait_for_flag"));
    let expected = format!(
        "`ready` ({flag}) at ADDRESS is read again and again in wait_for_flag ({place}), for TIME; \
         it is 0 here, and 1 on node 0"
    );
    says("flag", &expected);
}

#[test]
fn a_word_of_the_heap_is_told_by_its_address() {
    let place = loop_in("wait_for_task");
    let expected = format!(
        "the word at ADDRESS in the shared heap is read again and again in wait_for_task ({place}), for TIME; \
         it is 0 here, and 5 on node 0"
    );
    says("task", &expected);
}

#[test]
fn a_loop_that_gives_up_its_core_in_each_turn_is_told_too() {
    for text in said("politely") {
        assert!(text.starts_with("`ready` (") && text.contains("in wait_politely ("), "{text}");
    }
}

#[test]
fn a_lock_made_of_an_atomic_instruction_is_told_where_another_node_has_left_it() {
    for text in said("lock") {
        assert!(text.starts_with("`taken` (") && text.ends_with("it is 1 here, and 0 on node 0"), "{text}");
    }
}

/// There the address of the word is loaded in each turn, from shared memory or from the stack.
#[test]
fn loops_are_seen_without_optimisation_too() {
    let program = compiled("-O0");
    for (case, word) in
        [("flag", "`ready` ("), ("task", "the word at 0x"), ("lock", "`taken` ("), ("through", "`ready` (")]
    {
        let done = Job::new("--quiet -n 2 --check spins=1", &program, case).limit(30).run();
        done.assert_message("E024");
        assert!(done.stderr.contains(&format!("(node 1, processor 1): {word}")), "{done}");
    }
}

#[test]
fn a_loop_out_of_which_the_compiler_took_the_load_is_told_as_empty() {
    for text in said("plain") {
        assert!(text.starts_with("nothing is read in the endless loop in wait_for_plain ("), "{text}");
    }
}

#[test]
fn computing_counting_and_waiting_for_private_memory_are_no_spins() {
    for (case, transport) in [("compute", "shm"), ("a_while", "tcp"), ("signal", "shm")] {
        let done = run(case, transport);
        done.assert_success();
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("spins: all ended\n", ""), "{done}");
    }
}

#[test]
fn nobody_is_told_where_nothing_can_be_stale_or_nothing_is_to_be_looked_for() {
    for flags in ["-n 1 -p 2 --check spins=1", "-n 2 --check spins=0"] {
        let done = Job::new(&format!("--quiet {flags}"), program(), "flag 2").limit(30).run();
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done}");
    }
}

#[test]
fn without_being_asked_it_is_a_warning_and_the_job_goes_on() {
    let done = Job::new("--quiet -n 2", program(), "flag 16").limit(40).run();
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "spins: main leaves\n"), "{done}");
    assert_eq!(done.stderr.matches("finespun: ").count(), 1, "once\n{done}");
    assert!(done.stderr.starts_with("finespun: warning E024 (node 1, processor 1): `ready` ("), "{done}");
    assert!(done.stderr.ends_with("\n  the job goes on, and the loop with it\n"), "{done}");
}
