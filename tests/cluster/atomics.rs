//! Atomic operations of C and C++, as programs of `fspcc --pthread` and `fspc++ --pthread` have them: right on all nodes under every kind of
//! protocol.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::support::{Job, built, root, succeed};

/// One protocol of each kind, with the transports it runs over.
const PROTOCOLS: [(&str, &[&str]); 5] = [
    ("csm-2l", &["shm", "tcp"]),
    ("csm-ms-mg", &["shm"]),
    ("tmk", &["shm", "tcp"]),
    ("strings-rc", &["shm", "tcp"]),
    ("strings-sc", &["shm", "tcp"]),
];

fn folder() -> PathBuf {
    let folder = root().join("build/tests/atomics");
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}

fn build(source: &str, flags: &[&str]) -> PathBuf {
    let program = folder().join(Path::new(source).file_stem().expect("a file"));
    let driver = if source.ends_with(".cpp") { "bin/fspc++" } else { "bin/fspcc" };
    let mut command = Command::new(built(driver));
    command.args(["--pthread", "-O2", "-Wall", "-Wextra", "-Werror"]).args(flags);
    succeed(command.arg(root().join("tests/c/pthread").join(source)).arg("-o").arg(&program));
    program
}

/// The programs and what they say when all is right.
fn programs() -> &'static [(PathBuf, &'static str)] {
    static BUILT: OnceLock<Vec<(PathBuf, &str)>> = OnceLock::new();
    BUILT.get_or_init(|| {
        vec![
            // A libatomic that the program names is not asked.
            (build("builtins.c", &["-latomic"]), "builtins: all right\n"),
            (build("atomics.c", &[]), "atomics: all right\n"),
            (build("atomic_classes.cpp", &["-std=c++20"]), "atomic classes: all right\n"),
        ]
    })
}

fn assert_right(flags: &str) {
    for (program, said) in programs() {
        let done = Job::new(&format!("--quiet {flags}"), program, "").run();
        done.assert_success();
        assert_eq!(done.stdout, *said, "{flags}\n{done}");
    }
}

#[test]
fn atomic_operations_are_right_under_every_kind_of_protocol() {
    let mut turn = 0;
    for (protocol, transports) in PROTOCOLS {
        for transport in transports {
            let layout = ["-n 2", "-n 4", "-n 2 -p 2"][turn % 3];
            assert_right(&format!("{layout} --protocol {protocol} --transport {transport}"));
            turn += 1;
        }
    }
}

#[test]
fn atomic_operations_are_right_in_every_layout_and_where_mutexes_migrate() {
    for flags in [
        "-n 1",
        "-n 1 -p 4",
        "-n 2 -t 2",
        "-n 3 --faults mprotect",
        "-n 2 --transport tcp --locks migratory",
        "-n 4 --locks migratory",
    ] {
        assert_right(flags);
    }
}

#[test]
fn programs_with_atomic_operations_run_without_a_launcher() {
    for (program, said) in programs() {
        let output = succeed(&mut Command::new(program));
        assert_eq!(String::from_utf8_lossy(&output.stdout), *said);
    }
}

/// A compiler that has atomic operations as instructions only, as clang does.
fn compiler_of_instructions() -> PathBuf {
    let path = folder().join("instructions-only-cc");
    let script = "#!/bin/sh\nfor word; do [ \"$word\" != -fno-inline-atomics ] || exit 1; done\nexec cc \"$@\"\n";
    std::fs::write(&path, script).expect("writable");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    path
}

fn by_instructions(flags: &[&str], output: &Path) -> Output {
    let mut command = Command::new(built("bin/fspcc"));
    command.arg("--pthread").arg(format!("-cc={}", compiler_of_instructions().display())).args(flags);
    command.arg(root().join("tests/c/pthread/atomics.c")).arg("-o").arg(output);
    command.output().expect("the compiler starts")
}

#[test]
fn c11_calls_are_served_without_help_of_the_compiler_and_it_is_said_what_is_not() {
    let program = folder().join("by_instructions");
    let compiled = by_instructions(&["-O2"], &program);
    let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
    assert!(compiled.status.success() && said.contains("warning") && said.contains("std::atomic"), "{said}");
    for transport in ["shm", "tcp"] {
        let done = Job::new(&format!("--quiet -n 3 --transport {transport}"), &program, "").run();
        done.assert_success();
        assert_eq!(done.stdout, "atomics: all right\n", "{done}");
    }
}

#[test]
fn without_help_of_the_compiler_an_atomic_variable_used_without_a_call_does_not_compile() {
    let compiled = by_instructions(&["-c", "-DBARE"], &folder().join("bare.o"));
    assert!(!compiled.status.success(), "it compiles");
    let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
    assert!(said.contains("atomics.c") && said.contains("error"), "{said}");
    build("atomics.c", &["-fsyntax-only", "-DBARE"]);
}
