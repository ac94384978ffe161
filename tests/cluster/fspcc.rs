//! Programs built by `fspcc`: their globals and malloc memory are shared, and the PARMACS macros do what such programs expect.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::support::{Done, Job, built, offers_userfaultfd, protocols, root, succeed};

const PARMACS: [&str; 3] = ["grid", "tasks", "sort"];

/// A compiler that is not installed is not tested.
fn is_installed(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output().is_ok();
    if !found {
        println!("skipped: {compiler} is not installed");
    }
    found
}

fn mechanisms() -> Vec<&'static str> {
    if offers_userfaultfd() { vec!["uffd", "mprotect"] } else { vec!["mprotect"] }
}

/// `driver FLAGS -o program sources`
pub fn build(driver: &str, flags: &[&str], sources: &[PathBuf], name: &str) -> PathBuf {
    let folder = root().join("build/tests/fspcc");
    fs::create_dir_all(&folder).expect("writable");
    let program = folder.join(name);
    let mut command = Command::new(built(&format!("bin/{driver}")));
    command.args(["-O2", "-Wall", "-Wextra", "-Werror"]).args(flags);
    succeed(command.args(sources).arg("-o").arg(&program).arg("-lm"));
    program
}

fn source(name: &str) -> PathBuf {
    root().join(name)
}

/// The PARMACS programs as a user's makefile builds them, once for each compiler and kind of m4.
fn parmacs_by_make(compiler: &str, m4_flags: &str) -> PathBuf {
    let folder = root().join(format!("build/tests/parmacs-{compiler}{m4_flags}"));
    fs::create_dir_all(&folder).expect("writable");
    let mut make = Command::new("make");
    make.args(["-s", "-B", "-C"]).arg(root().join("apps/parmacs"));
    make.arg(format!("CC={} --parmacs -cc={compiler}", built("bin/fspcc").display()));
    make.arg(format!("M4MACROS={}", built("share/finespun/c.m4.finespun").display()));
    make.arg(format!("M4FLAGS={m4_flags}")).arg(format!("OUT={}", folder.display()));
    succeed(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("CFLAGS"));
    folder
}

fn parmacs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| parmacs_by_make("cc", ""))
}

/// Each program has compared its result with its own sequential one, and its output came once, in order.
#[track_caller]
fn assert_verified(name: &str, done: &Done) {
    done.assert_success();
    let lines = done.stdout.lines().collect::<Vec<_>>();
    assert_eq!(lines.last(), Some(&format!("{name}: verified").as_str()), "{done}");
    assert_eq!(lines.len(), if name == "sort" { 2 } else { 3 }, "{done}");
}

fn run_parmacs(name: &str, flags: &str, processes: usize, more: &str) {
    let arguments = format!("-p {processes} {more}");
    assert_verified(name, &Job::new(&format!("--quiet {flags}"), &parmacs().join(name), &arguments).run());
}

/// Its makefiles name a compiler and a macro file of their own. A statement ends by G_MALLOC without a semicolon, a header with locks and
/// conditions comes before the environment, and a macro is made by `define`.
#[test]
fn a_suite_is_built_from_its_sources_as_they_are() {
    let folder = TempDir::new().expect("a folder");
    for file in fs::read_dir(root().join("tests/c/fspcc/suite")).expect("readable").flatten() {
        fs::copy(file.path(), folder.path().join(file.file_name())).expect("writable");
    }
    for m4 in ["m4 -Ulen -Uindex", "m4"] {
        let mut make = Command::new("make");
        make.args(["-s", "-B", "-C"]).arg(folder.path());
        make.arg(format!("CC={} --parmacs", built("bin/fspcc").display())).arg(format!("M4={m4}"));
        make.arg(format!("MACROS={}", built("share/finespun/c.m4.finespun").display()));
        succeed(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("CFLAGS"));
        for flags in ["-n 3", "-n 2 -p 2 --transport tcp"] {
            let done = Job::new(&format!("--quiet {flags}"), &folder.path().join("leaves"), "3").run();
            done.assert_success();
            assert_eq!(done.stdout, "leaves: 22140\n", "{done}");
        }
    }
}

#[test]
fn parmacs_programs_are_right_on_any_nodes_transport_and_mechanism() {
    for name in PARMACS {
        for mechanism in mechanisms() {
            for transport in ["shm", "tcp"] {
                for (nodes, processors) in [("-n 1", 1), ("-n 2", 2), ("-n 4", 4)] {
                    run_parmacs(name, &format!("{nodes} --transport {transport} --faults {mechanism}"), processors, "");
                }
            }
        }
    }
}

#[test]
fn parmacs_programs_are_right_under_every_protocol() {
    let mechanisms = mechanisms();
    let mut turn = 0;
    for protocol in protocols() {
        for transport in &protocol.transports {
            for name in PARMACS {
                let (nodes, processors) = [("-n 2", 2), ("-n 4", 4), ("-n 2 -p 2", 4)][turn % 3];
                let mechanism = mechanisms[turn / 3 % mechanisms.len()];
                let protocol = &protocol.name;
                let flags = format!("{nodes} --transport {transport} --protocol {protocol} --faults {mechanism}");
                run_parmacs(name, &flags, processors, if name == "grid" { "-n 34" } else { "" });
                turn += 1;
            }
            turn += 1;
        }
    }
}

#[test]
fn parmacs_programs_are_right_in_every_repetition() {
    let layouts = [("-n 2 -t 2", 4), ("-n 3", 3), ("-n 2 -p 2", 3), ("-n 4", 4), ("-n 1 -t 3", 3), ("-n 5", 2)];
    for (round, (layout, processors)) in layouts.into_iter().enumerate() {
        let transport = ["shm", "tcp"][round % 2];
        let flags = format!("{layout} --transport {transport}");
        run_parmacs("tasks", &flags, processors, &format!("-d 6 -s {round}"));
        run_parmacs("sort", &flags, processors, &format!("-n {} -s {round}", 1 + round * 7919));
        run_parmacs("grid", &flags, processors, &format!("-n {}", 20 + 3 * round));
    }
}

#[test]
fn a_parmacs_program_runs_alone_with_any_number_of_processes() {
    for name in PARMACS {
        for processes in ["1", "5"] {
            let mut command = Command::new(parmacs().join(name));
            let output = succeed(command.args(["-p", processes]));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.ends_with(&format!("{name}: verified\n")), "{text}");
        }
    }
}

#[test]
fn create_of_more_processes_than_processors_says_what_to_do() {
    let done = Job::new("--quiet -n 2", &parmacs().join("sort"), "-p 3").run();
    done.assert_error("E042");
    assert!(done.stderr.contains("finespun run -n"), "{done}");
}

#[test]
fn sources_of_splash_3_go_through_m4_with_its_prefix() {
    let folder = parmacs_by_make("cc", "-P");
    assert_verified("grid", &Job::new("--quiet -n 3", &folder.join("grid"), "-p 3 -n 30").run());
}

#[test]
fn clang_builds_them_too() {
    if !is_installed("clang") {
        return;
    }
    let folder = parmacs_by_make("clang", "");
    for name in PARMACS {
        for transport in ["shm", "tcp"] {
            let flags = format!("--quiet -n 2 -p 2 --transport {transport}");
            assert_verified(name, &Job::new(&flags, &folder.join(name), "-p 4").run());
        }
    }
}

#[test]
fn pauses_of_every_dialect_let_the_sort_through() {
    for dialect in 1..=4 {
        let define = format!("-DFSP_SPLASH={dialect}");
        let name = format!("sort{dialect}");
        let program = build("fspcc", &["--parmacs", &define], &[source("apps/parmacs/sort.c")], &name);
        assert_verified("sort", &Job::new("--quiet -n 2 -p 2", &program, "-p 4 -n 3000").run());
    }
}

#[test]
fn the_macros_mean_what_the_dialects_say() {
    let program = build("fspcc", &["--parmacs"], &[source("tests/c/fspcc/macros.c")], "macros");
    for flags in ["-n 1", "-n 4", "-n 2 -p 2 --transport tcp", "-n 2 -t 2"] {
        let done = Job::new(&format!("--quiet {flags}"), &program, if flags == "-n 1" { "1" } else { "4" }).run();
        done.assert_success();
        assert!(done.stdout.ends_with("macros: all holds\n"), "{done}");
    }
}

fn check_globals(compiler: &str) {
    let flags = ["--share-globals", "--share-malloc", &format!("-cc={compiler}")];
    let program = build("fspcc", &flags, &[source("tests/c/fspcc/globals.c")], &format!("globals-{compiler}"));
    succeed(Command::new(&program).args(["-x", "value"]));
    for mechanism in mechanisms() {
        for layout in ["-n 1", "-n 3", "-n 2 -p 2", "-n 2 -t 2"] {
            for transport in ["shm", "tcp"] {
                let flags = format!("--quiet {layout} --transport {transport} --faults {mechanism}");
                let done = Job::new(&flags, &program, "-x value").run();
                done.assert_success();
                assert_eq!(done.stdout, "globals: all holds\n", "{done}");
            }
        }
    }
}

#[test]
fn globals_and_malloc_memory_are_one_memory_on_all_nodes() {
    check_globals("cc");
}

#[test]
fn globals_and_malloc_memory_are_one_memory_on_all_nodes_with_clang() {
    if is_installed("clang") {
        check_globals("clang");
    }
}

#[test]
fn globals_are_one_memory_under_every_protocol() {
    let flags = ["--share-globals", "--share-malloc"];
    let program = build("fspcc", &flags, &[source("tests/c/fspcc/globals.c")], "globals-protocols");
    for protocol in protocols() {
        for transport in &protocol.transports {
            let flags = format!("--quiet -n 3 --transport {transport} --protocol {}", protocol.name);
            Job::new(&flags, &program, "-x value").run().assert_success();
        }
    }
}

#[test]
fn a_cpp_program_shares_containers_and_catches_on_every_node() {
    let program = build("fspc++", &["--parmacs", "-std=c++17"], &[source("tests/c/fspcc/classes.cpp")], "classes");
    for flags in ["-n 3", "-n 3 --transport tcp", "-n 1 -p 3", "-n 3 --faults mprotect"] {
        let done = Job::new(&format!("--quiet {flags}"), &program, "3").run();
        done.assert_success();
        assert_eq!(done.stdout, "cout works, 23\nclasses: all holds\n", "{done}");
    }
}

#[test]
fn a_program_of_several_objects_is_built_step_by_step() {
    let folder = TempDir::new().expect("a folder");
    let text = "extern int shared; int shared = 5;\n";
    fs::write(folder.path().join("one.c"), text).expect("writable");
    let text = r#"
        #include <finespun/finespun.h>
        extern int shared;
        static void add(void *unused) { (void)unused; static fsp_mutex_t mutex; fsp_mutex_lock(&mutex); shared++; fsp_mutex_unlock(&mutex); }
        int main(void) { fsp_parallel(add, 0); return shared == 5 + fsp_processors() ? 0 : 1; }"#;
    fs::write(folder.path().join("two.c"), text).expect("writable");
    let fspcc = || {
        let mut command = Command::new(built("bin/fspcc"));
        command.current_dir(folder.path()).env("FSPCC_FLAGS", "--share-globals");
        command
    };
    succeed(fspcc().args(["-c", "one.c"]));
    succeed(fspcc().args(["-c", "two.c", "-o", "second.o"]));
    succeed(fspcc().args(["one.o", "second.o", "-o", "both"]));
    Job::new("--quiet -n 3", &folder.path().join("both"), "").run().assert_success();
}

#[test]
fn show_prints_the_command_and_runs_nothing() {
    let show = |words: &[&str]| {
        let output = succeed(Command::new(built("bin/fspcc")).args(words).env_remove("FSPCC_CC"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let plain = show(&["-show", "-cc=gcc", "absent.c"]);
    assert!(plain.starts_with("gcc -I") && plain.contains("-lfinespun") && !plain.contains("wrap"), "{plain}");
    let globals = show(&["-show", "--share-globals", "absent.c"]);
    assert!(globals.contains("-no-pie") && globals.contains("globals.ld") && !globals.contains("wrap"), "{globals}");
    assert!(show(&["-show", "--parmacs", "absent.c"]).contains("-Wl,--wrap=malloc"));
    let compiled = show(&["-show", "--parmacs", "-c", "absent.c"]);
    assert!(compiled.contains("-fno-pie") && !compiled.contains("-lfinespun"), "{compiled}");
}

#[test]
fn what_cannot_be_shared_is_refused() {
    for wrong in ["-static", "-pie"] {
        let mut command = Command::new(built("bin/fspcc"));
        let output = command.args(["--share-globals", wrong, "absent.c"]).output().expect("it starts");
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(wrong));
    }
}

#[test]
fn a_parmacs_program_with_private_globals_is_told_to_share_them() {
    let program = build("fspcc", &["--share-malloc"], &[source("apps/parmacs/sort.c")], "sort-private");
    let done = Job::new("--quiet -n 2", &program, "-p 2").run();
    done.assert_error("E042");
    assert!(done.stderr.contains("--parmacs"), "{done}");
}

#[test]
fn exit_anywhere_ends_the_job_with_its_code_and_what_was_printed() {
    let folder = TempDir::new().expect("a folder");
    let text = r#"
        #include <finespun/parmacs.h>
        MAIN_ENV
        LOCKDEC(lock) static int ids, who; BARDEC(never)
        static void work(void) {
            LOCK(lock) int me = ids++; UNLOCK(lock)
            if (me == who) { printf("process gives up\n"); exit(7); }
            BARRIER(never, 3)
        }
        int main(int argc, char **argv) {
            who = argc > 1 ? atoi(argv[1]) : -1;
            if (who < 0) { printf("usage\n"); exit(5); }
            MAIN_INITENV()
            CREATE(work, 3)
            MAIN_END
        }"#;
    let (source, program) = (folder.path().join("exits.c"), folder.path().join("exits"));
    fs::write(&source, text).expect("writable");
    succeed(Command::new(built("bin/fspcc")).arg("--parmacs").arg(&source).arg("-o").arg(&program));
    for transport in ["shm", "tcp"] {
        for (argument, code, said) in
            [("", 5, "usage\n"), ("0", 7, "process gives up\n"), ("2", 7, "process gives up\n")]
        {
            let done = Job::new(&format!("--quiet -n 3 --transport {transport}"), &program, argument).run();
            assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(code), said, ""), "{done}");
        }
    }
}
