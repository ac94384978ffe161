//! The small C programs in `tests/c`: each says in its head how it is run and what must come of it.
//!
//! ```text
//! /* ...
//!  * run: -n 2 --transport tcp           flags of `finespun run`: this run must end well
//!  * run: -n 2 -- touch                  after `--` arguments of the program
//!  * expect: E051                        the run above must say this error, once, instead
//!  * exit: 51                            and end with this exit code
//!  */
//! ```

use std::fs;
use std::path::Path;

use crate::support::{Done, Job, compile, root};

/// One run, and what must come of it if it is not a good end.
struct Run {
    line: String,
    error: Option<String>,
    exit: Option<String>,
}

/// The runs that a program's head asks for.
fn runs(source: &Path) -> Vec<Run> {
    let text = fs::read_to_string(source).expect("readable");
    let head = text.split("*/").next().expect("there is always a first part");
    let mut runs: Vec<Run> = Vec::new();
    for line in head.lines().map(|line| line.trim_start_matches(['/', '*', ' ']).trim()) {
        if let Some(line) = line.strip_prefix("run:") {
            runs.push(Run { line: line.trim().to_owned(), error: None, exit: None });
        } else if let Some(number) = line.strip_prefix("expect:") {
            let run = runs.last_mut().expect("expect: follows run:");
            run.error = Some(number.trim().to_owned());
        } else if let Some(code) = line.strip_prefix("exit:") {
            let run = runs.last_mut().expect("exit: follows run:");
            run.exit = Some(code.trim().to_owned());
        }
    }
    runs
}

/// The first run of one of the programs, with more flags.
pub fn first_run(name: &str, flags: &str) -> Done {
    let first = runs(&root().join(format!("tests/c/{name}.c"))).remove(0);
    let program = compile(&format!("{name}.c"), &format!("{name}-more"), &[]);
    Job::new(&format!("--quiet {} {flags}", first.line), &program, "").run()
}

fn check(source: &Path) {
    let name = source.file_stem().and_then(|name| name.to_str()).expect("a plain name");
    let runs = runs(source);
    assert!(!runs.is_empty(), "{name}.c does not say how to run it");
    let program = compile(&format!("{name}.c"), name, &[]);
    for Run { line, error, exit } in runs {
        let (flags, args) = line.split_once(" -- ").unwrap_or((&line, ""));
        let done = Job::new(&format!("--quiet {flags}"), &program, args).run();
        match error {
            Some(number) => done.assert_message(&number),
            None => done.assert_success(),
        }
        if let Some(code) = exit {
            assert_eq!(done.code.map(|code| code.to_string()), Some(code), "{done}");
        }
    }
}

fn check_all(is_ours: impl Fn(usize) -> bool) {
    let entries = fs::read_dir(root().join("tests/c")).expect("readable").flatten().map(|entry| entry.path());
    let mut sources = entries.filter(|path| path.extension().is_some_and(|end| end == "c")).collect::<Vec<_>>();
    sources.sort();
    let ours = sources.iter().enumerate().filter(|(number, _)| is_ours(*number));
    let failures = ours.filter_map(|(_, source)| {
        let checked = std::panic::catch_unwind(|| check(source));
        checked.is_err().then(|| source.display().to_string())
    });
    let failures = failures.collect::<Vec<_>>();
    assert!(failures.is_empty(), "these did not do what their heads say (see above): {failures:#?}");
}

#[test]
fn every_c_program_does_what_its_head_says() {
    check_all(|number| number % 2 == 0);
}

#[test]
fn every_other_c_program_does_what_its_head_says() {
    check_all(|number| number % 2 == 1);
}
