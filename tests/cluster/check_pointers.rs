//! `--check pointers`: which words of shared memory are told, in which words, and which are good.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::fspcc;
use crate::support::{Done, Job, app, compile, line_with, offers_userfaultfd, root};

const CHECK: &str = "-q -n 2 --heap 64M --check pointers";
const ONE: &str = "finespun: error E015: a pointer to private memory stands in shared memory\n";
const WHY: &str = concat!(
    "  why: at that address other processes have something else, or nothing: the pointer is good only where it was stored\n",
    "  fix: let it point to shared memory: fsp_malloc, or what `fspcc --share-globals --share-malloc --share-stacks` shares\n",
    "  more: finespun explain E015\n",
);

/// A position-independent executable with private globals.
fn plain() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM
        .get_or_init(|| compile("checks/pointers.c", "check-pointers", &["-g", "-O0", "-std=gnu11", "-fpie", "-pie"]))
}

/// At a fixed address, with shared globals and malloc.
fn sharing() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = root().join("tests/c/checks/pointers.c");
        fspcc::build("fspcc", &["--share-globals", "--share-malloc", "-g", "-O0"], &[source], "check-pointers-sharing")
    })
}

fn line(text: &str) -> String {
    let source = "tests/c/checks/pointers.c";
    format!("{}:{}", root().join(source).display(), line_with(source, text))
}

/// One word is told, with this place and this target; its own value is another in each run.
fn assert_tells(done: &Done, place: &str, target: &str) {
    assert_eq!(done.code, Some(15), "{done}");
    let told = done.stderr.strip_prefix(ONE).and_then(|rest| rest.strip_suffix(WHY)).expect("the whole message");
    let (before, rest) = told.split_once(" holds 0x").expect("a value");
    let (_, after) = rest.split_once(", which is ").expect("a target");
    assert!(before.starts_with(&format!("  {place}")), "{done}");
    assert_eq!(after, format!("{target}\n"), "{done}");
}

fn assert_silent(done: &Done) {
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done}");
}

#[test]
fn pointers_to_shared_memory_and_numbers_are_good() {
    let mechanisms: &[&str] = if offers_userfaultfd() { &["uffd", "mprotect"] } else { &["mprotect"] };
    for protocol in ["csm-2l", "strings-rc", "strings-sc", "tmk"] {
        for faults in mechanisms {
            for program in [plain(), sharing()] {
                assert_silent(
                    &Job::new(&format!("{CHECK} --protocol {protocol} --faults {faults}"), program, "").run(),
                );
            }
        }
    }
    assert_silent(&Job::new(CHECK, &app("sor"), "--size 48 --iters 2 --verify").run());
}

#[test]
fn a_pointer_to_private_memory_is_told_with_what_it_points_to() {
    let variable =
        format!("the private variable `kept` ({}) in the process of processor 0 (node 0) only", line("int kept;"));
    for (kind, target) in [
        ("stack", "in the stack of processor 0 (node 0)"),
        ("malloc", "in malloc memory, or a thread's stack, of processor 0 (node 0)"),
        ("library", "in libc.so.6 of processor 0 (node 0)"),
        ("global", &variable),
        ("function", "the function `twice` in the process of processor 0 (node 0) only"),
        ("constant", "a constant of the program in the process of processor 0 (node 0) only"),
    ] {
        for way in
            ["", "--transport tcp --protocol strings-rc", "--transport tcp --protocol tmk", "--protocol strings-sc"]
        {
            let done = Job::new(&format!("{CHECK} {way}"), plain(), kind).run();
            assert_tells(&done, "the word at 0x20000", target);
        }
    }
}

#[test]
fn what_is_shared_or_at_a_fixed_address_is_good() {
    for kind in ["library", "global", "function", "constant"] {
        assert_silent(&Job::new(CHECK, sharing(), kind).run());
    }
    assert_tells(
        &Job::new(CHECK, sharing(), "stack").run(),
        "the word at 0x20000",
        "in the stack of processor 0 (node 0)",
    );
}

#[test]
fn a_shared_variable_is_told_by_its_name() {
    let done = Job::new(CHECK, sharing(), "slot").run();
    assert_tells(&done, &format!("`slot` ({})", line("void *slot;")), "in the stack of processor 0 (node 0)");
}

#[test]
fn a_job_of_one_process_has_nothing_to_check() {
    let done = Job::new("-n 1 -t 2 --heap 64M --check pointers", plain(), "stack").run();
    done.assert_success();
    assert!(
        done.stderr.starts_with("finespun: --check pointers: the job has one process: nothing to check\n"),
        "{done}"
    );
}
