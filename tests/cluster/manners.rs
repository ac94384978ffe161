//! Two mistakes in every manner of writing a program, each with its whole message.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Job, built, line_with, root, succeed, without_addresses};

const SOURCE: &str = "tests/c/misuse/manners.c";
const E011: &str = "
  why: threads of this program run in several processes, and an object in private memory is another one in each
  fix: build with `fspcc --pthread --share-stacks`, which shares them all, or put the object where fsp_malloc says
  more: finespun explain E011
";
const E021: &str = "
  why: all processors must give a barrier the same count
  fix: pass the same count everywhere; fsp_barrier_all needs none
  more: finespun explain E021
";

fn program(manner: &str, flags: &[&str]) -> PathBuf {
    let folder = root().join("build/tests");
    std::fs::create_dir_all(&folder).expect("writable");
    let program = folder.join(format!("manners-{manner}"));
    let mut command = Command::new(built("bin/fspcc"));
    // From the project's folder, so that lines are named as they are here.
    command.current_dir(root()).args(["-g", "-O2", "-w", SOURCE, "-o"]).arg(&program).args(flags);
    succeed(&mut command);
    program
}

/// Runs the case on two nodes over both transports: the message of each, with addresses as `ADDRESS`.
fn said(program: &std::path::Path, case: &str) -> Vec<String> {
    said_on(2, program, case)
}

fn said_on(nodes: u32, program: &std::path::Path, case: &str) -> Vec<String> {
    let say = |transport| {
        let done = Job::new(&format!("--quiet -n {nodes} --transport {transport}"), program, case).limit(20).run();
        assert_eq!(done.stderr.matches("finespun: error E").count(), 1, "one message\n{done}");
        without_addresses(&done.stderr)
    };
    ["shm", "tcp"].map(say).to_vec()
}

#[track_caller]
fn says(program: &std::path::Path, case: &str, expected: &str) {
    for text in said(program, case) {
        assert_eq!(text, expected);
    }
}

/// Who comes first is not said.
#[track_caller]
fn says_that_counts_differ(nodes: u32, program: &std::path::Path, barrier: &str) {
    for text in said_on(nodes, program, "barrier") {
        let message = |who: u32, count: u32, first: u32| {
            format!(
                "finespun: error E021 (node {who}, processor {who}): arrival at the barrier at {barrier} with a count of \
                 {count}, where the first of this round gave {first}{E021}"
            )
        };
        let expected =
            [(0, 2, 3), (1, 3, 2), (1, 2, 3), (0, 3, 2)].map(|(who, count, first)| message(who, count, first));
        assert!(expected.contains(&text), "{text}");
    }
}

fn line(text: &str) -> String {
    format!("{SOURCE}:{}", line_with(SOURCE, text))
}

#[test]
fn with_the_fsp_calls() {
    let program = program("fsp", &[]);
    let global = line("static fsp_mutex_t lock");
    let expected = format!(
        "finespun: error E011 (node 1, processor 1): the mutex at ADDRESS, `lock` ({global}), is private memory of process 1 \
         (a global or static variable){E011}"
    );
    says(&program, "lock", &expected);
    says_that_counts_differ(2, &program, "ADDRESS");
}

#[test]
fn with_the_parmacs_macros() {
    let program = program("parmacs", &["--parmacs", "-DPARMACS"]);
    for text in said(&program, "lock") {
        let mistake = ["node 0, processor 0", "node 1, processor 1"].into_iter().zip([0, 1]).any(|(who, process)| {
            text == format!(
                "finespun: error E011 ({who}): the mutex at ADDRESS is private memory of process {process} (the stack){E011}"
            )
        });
        assert!(mistake, "{text}");
    }
    let global = line("BARDEC(meeting)");
    says_that_counts_differ(3, &program, &format!("ADDRESS, `meeting` ({global}),"));
    let too_many = "finespun: error E042 (node 1, processor 1): BARRIER waits for 3 processes, but the job has 2 processors: so \
                    many can never come. Give the number of processes, or start it with more (finespun run -n NODES -p PROCESSES)
  why: the program ended the job by fsp_abort
  fix: see the message: it is the program's own
  more: finespun explain E042
";
    for text in said(&program, "barrier") {
        // Who comes second asks for three.
        assert_eq!(text.replace("node 0, processor 0", "node 1, processor 1"), too_many);
    }
}

#[test]
fn with_pthreads_and_with_threads_of_c11() {
    for (manner, define) in [("pthread", "-DPTHREAD"), ("c11", "-DC11")] {
        let program = program(manner, &["--pthread", define]);
        let expected = format!(
            "finespun: error E011 (node 1, processor 1): the mutex at ADDRESS is private memory of process 1 (the thread's \
             stack){E011}"
        );
        says(&program, "lock", &expected);
    }
}

/// Locks are numbers, and barriers take everybody: what is left to get wrong.
#[test]
fn with_the_calls_of_treadmarks() {
    let include = format!("-I{}", root().join("include/finespun/compat").display());
    let library = built("lib/libfinespun_tmk.a");
    let program = program("tmk", &["-DTMK", &include, library.to_str().expect("a plain name")]);
    says(
        &program,
        "lock",
        "finespun: error E042 (node 1, processor 1): Tmk_lock_acquire: lock 5000; locks are numbered 0 to 4095
  why: the program ended the job by fsp_abort
  fix: see the message: it is the program's own
  more: finespun explain E042
",
    );
    for text in said(&program, "barrier") {
        let ends = "finespun: error E041 (node 1, processor 1): the program ended here while other processors wait at";
        let waits =
            "finespun: error E041 (node 0, processor 0): this processor waits at fsp_barrier_all for others whose";
        assert!(text.starts_with(ends) || text.starts_with(waits), "{text}");
        assert!(text.contains("  why: other processors wait for one that has ended\n"), "{text}");
    }
}
