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
    let made = succeed(command.arg(root().join("tests/c/pthread").join(source)).arg("-o").arg(&program));
    assert_eq!(String::from_utf8_lossy(&made.stderr), "", "nothing is left of atomic instructions");
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
            (build("atomic_waits.cpp", &["-std=c++20"]), "atomic waits: all right\n"),
            (build("handlers.c", &[]), "handlers: all right\n"),
        ]
    })
}

fn assert_right(flags: &str, programs: &[(PathBuf, &str)]) {
    for (program, said) in programs {
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
            assert_right(&format!("{layout} --protocol {protocol} --transport {transport}"), programs());
            turn += 1;
        }
    }
}

#[test]
fn atomic_operations_are_right_in_every_layout_and_where_mutexes_migrate() {
    let layouts = [
        "-n 1",
        "-n 1 -p 4",
        "-n 2 -t 2",
        "-n 3 --faults mprotect",
        "-n 2 --transport tcp --locks migratory",
        "-n 4 --locks migratory",
    ];
    // Two programs in each layout, and each program in at least two.
    let mut programs = programs().chunks(1).cycle();
    for flags in layouts {
        programs.by_ref().take(2).for_each(|program| assert_right(flags, program));
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

/// Of an object that `cc` made, and of one function in an archive.
#[test]
fn atomic_instructions_that_no_flag_made_calls_are_told_with_their_object_and_function() {
    let folder = folder();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("writable");
        path
    };
    let foreign = write(
        "foreign.c",
        "int push(int *word) { return __atomic_fetch_add(word, 1, 5); }\n\
         int pop(int *word) { return __atomic_exchange_n(word, 0, 5); }\n\
         void fence(void) { __atomic_thread_fence(5); }\n",
    );
    let main = write(
        "uses_foreign.c",
        "int push(int *), pop(int *); void fence(void); static int word;\n\
         int main(void) { fence(); return push(&word) + pop(&word); }\n",
    );
    let (object, archive, program) =
        (folder.join("foreign.o"), folder.join("libforeign.a"), folder.join("uses_foreign"));
    succeed(Command::new("cc").args(["-O2", "-c"]).arg(&foreign).arg("-o").arg(&object));
    _ = std::fs::remove_file(&archive);
    succeed(Command::new("ar").arg("rcs").arg(&archive).arg(&object));
    for (given, named) in [(&object, "foreign.o"), (&archive, "libforeign.a:foreign.o")] {
        let mut command = Command::new(built("bin/fspcc"));
        let made = succeed(command.args(["--pthread", "-O2"]).arg(&main).arg(given).arg("-o").arg(&program));
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        let lines = said.lines().collect::<Vec<_>>();
        let tells = |function: &str| {
            let tells =
                |line: &&&str| line.contains(&format!("{named}: ")) && line.contains(&format!(" in {function} "));
            lines.iter().filter(tells).count()
        };
        assert_eq!((lines.len(), tells("push"), tells("pop")), (2, 1, 1), "{said}");
    }
}

#[test]
fn a_futex_operation_that_is_not_served_is_an_error() {
    let (program, _) = programs().last().expect("the last one");
    let done = Job::new("--quiet -n 2", program, "requeue").run();
    done.assert_error("E013");
}

#[test]
fn a_static_variable_that_needs_itself_is_an_error() {
    let source = folder().join("recursion.cpp");
    let text = "int one(); int other() { return one(); }\n\
                int one() { static int value = other(); return value; }\n\
                int main() { return one(); }\n";
    std::fs::write(&source, text).expect("writable");
    let program = folder().join("recursion");
    succeed(Command::new(built("bin/fspc++")).args(["--pthread", "-O1"]).arg(&source).arg("-o").arg(&program));
    let done = Job::new("--quiet -n 2", &program, "").limit(20).run();
    done.assert_error("E022");
}
