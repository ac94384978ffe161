//! Ordinary pthread programs, built by `fspcc --pthread` and started on nodes: right everywhere, and their mistakes told.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Job, built, compile, line_with, offers_userfaultfd, protocols, root, succeed};

const PROGRAMS: [&str; 3] = ["pipeline", "quicksort", "table"];

fn mechanisms() -> Vec<&'static str> {
    if offers_userfaultfd() { vec!["uffd", "mprotect"] } else { vec!["mprotect"] }
}

/// A source as its user would build it.
fn build(source: &str, flags: &[&str]) -> PathBuf {
    let folder = root().join("build/tests/pthread");
    std::fs::create_dir_all(&folder).expect("writable");
    let name = Path::new(source).file_stem().expect("a file");
    let program = folder.join(name);
    let mut command = Command::new(built("bin/fspcc"));
    command.args(["--pthread", "-O2", "-Wall", "-Wextra", "-Werror"]).args(flags);
    succeed(command.arg(root().join(source)).arg("-o").arg(&program));
    program
}

/// Each program, once.
fn program(name: &str) -> &'static Path {
    static BUILT: OnceLock<Vec<(&str, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let programs = PROGRAMS.map(|name| (name, build(&format!("apps/pthread/{name}.c"), &[])));
        let tests = ["features", "misuse"].map(|name| (name, build(&format!("tests/c/pthread/{name}.c"), &[])));
        programs.into_iter().chain(tests).collect()
    });
    built.iter().find(|(known, _)| *known == name).map(|(_, path)| path).expect("built")
}

/// What the program says when it is built for this machine alone.
fn native(name: &str, arguments: &str) -> String {
    native_of(&format!("apps/pthread/{name}.c"), arguments)
}

fn native_of(source: &str, arguments: &str) -> String {
    let folder = tempfile::TempDir::new().expect("a folder");
    let (alone, source) = (folder.path().join("alone"), root().join(source));
    succeed(Command::new("cc").args(["-O2", "-pthread"]).arg(source).arg("-o").arg(&alone));
    let output = succeed(Command::new(&alone).args(arguments.split_whitespace()));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn verified(name: &str, flags: &str, arguments: &str) -> String {
    let done = Job::new(&format!("--quiet {flags}"), program(name), arguments).run();
    done.assert_success();
    assert_eq!(done.stdout.lines().last(), Some(&*format!("{name}: verified")), "{done}");
    done.stdout
}

#[test]
fn pthread_programs_are_right_on_any_nodes_transport_and_mechanism() {
    for name in PROGRAMS {
        let alone = native(name, "");
        for mechanism in mechanisms() {
            for transport in ["shm", "tcp"] {
                for nodes in ["-n 1", "-n 2", "-n 4"] {
                    let found = verified(name, &format!("{nodes} --transport {transport} --faults {mechanism}"), "");
                    assert!(name == "table" || found == alone, "as on one machine: {found}{alone}");
                }
            }
        }
    }
}

#[test]
fn pthread_programs_are_right_under_every_protocol() {
    let mechanisms = mechanisms();
    let mut turn = 0;
    for protocol in protocols() {
        for transport in &protocol.transports {
            for (name, size) in PROGRAMS.into_iter().zip(["-b 60", "-n 6000", "-o 120"]) {
                let layout = ["-n 2", "-n 4", "-n 2 -p 2"][turn % 3];
                let mechanism = mechanisms[turn / 3 % mechanisms.len()];
                let protocol = &protocol.name;
                let flags = format!("{layout} --transport {transport} --protocol {protocol} --faults {mechanism}");
                verified(name, &flags, &format!("{size} -s {turn}"));
                turn += 1;
            }
            turn += 1;
        }
    }
}

#[test]
fn pthread_programs_are_right_with_more_and_fewer_threads_than_processors() {
    let layouts = ["-n 2 -t 2", "-n 3", "-n 2 -p 2", "-n 4", "-n 1 -t 3", "-n 5", "-n 1 -p 3"];
    for (round, layout) in layouts.into_iter().enumerate() {
        let flags = format!("{layout} --transport {}", ["shm", "tcp"][round % 2]);
        let threads = [1, 3, 7, 12][round % 4];
        verified("pipeline", &flags, &format!("-b 50 -t {threads} -s {round}"));
        verified("quicksort", &flags, &format!("-n {} -t {threads} -s {round}", 1 + round * 1700));
        verified("table", &flags, &format!("-o 80 -t {threads} -s {round}"));
    }
}

#[test]
fn every_call_does_what_posix_says_on_any_nodes() {
    for mechanism in mechanisms() {
        for transport in ["shm", "tcp"] {
            for layout in ["-n 1", "-n 2", "-n 3 -p 2", "-n 2 -t 2"] {
                let flags = format!("--quiet {layout} --transport {transport} --faults {mechanism}");
                let done = Job::new(&flags, program("features"), "").run();
                done.assert_success();
                assert_eq!(done.stdout, "features: all right\n", "{done}");
            }
        }
    }
}

#[test]
fn every_call_does_what_posix_says_where_mutexes_migrate() {
    for transport in ["shm", "tcp"] {
        let flags = format!("--quiet -n 3 --locks migratory --transport {transport}");
        let done = Job::new(&flags, program("features"), "").run();
        done.assert_success();
        assert_eq!(done.stdout, "features: all right\n", "{done}");
    }
}

#[test]
fn threads_of_cpp_run_on_any_nodes() {
    let folder = root().join("build/tests/pthread");
    std::fs::create_dir_all(&folder).expect("writable");
    let program = folder.join("classes");
    let mut command = Command::new(built("bin/fspc++"));
    command.args(["--pthread", "-O2", "-std=c++17", "-Wall", "-Wextra", "-Werror"]);
    succeed(command.arg(root().join("tests/c/pthread/classes.cpp")).arg("-o").arg(&program));
    for transport in ["shm", "tcp"] {
        for layout in ["-n 1", "-n 3", "-n 2 -p 2", "-n 2 --faults mprotect"] {
            let done = Job::new(&format!("--quiet {layout} --transport {transport}"), &program, "").run();
            done.assert_success();
            assert_eq!(done.stdout, "classes: all right\n", "{done}");
        }
    }
}

#[test]
fn a_pthread_program_runs_without_a_launcher() {
    for name in PROGRAMS {
        let output = succeed(&mut Command::new(program(name)));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.ends_with(&format!("{name}: verified\n")), "{text}");
    }
    let output = succeed(&mut Command::new(program("features")));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "features: all right\n");
}

#[test]
fn main_may_end_by_pthread_exit_and_the_job_ends_with_the_last_thread() {
    for transport in ["shm", "tcp"] {
        let flags = format!("--quiet -n 2 --transport {transport}");
        let done = Job::new(&flags, program("features"), "exit").run();
        done.assert_success();
        assert_eq!(done.stdout, "features: all ended\n", "{done}");
    }
}

/// A mistake of a thread that is on node 1.
fn ends_with(number: &str, case: &str) {
    for transport in ["shm", "tcp"] {
        let flags = format!("--quiet -n 3 --transport {transport}");
        let done = Job::new(&flags, program("misuse"), case).limit(20).run();
        done.assert_error(number);
        assert!(done.stderr.contains("(node 1, processor 1)"), "it names who\n{done}");
        assert_eq!(done.stdout, "", "{done}");
    }
}

macro_rules! mistakes {
    ($($name:ident: $case:literal => $number:literal,)*) => { $(
        #[test]
        fn $name() {
            ends_with($number, $case);
        }
    )* };
}

mistakes! {
    a_mutex_on_a_stack_is_an_error: "mutex_on_stack" => "E011",
    a_condition_variable_on_a_stack_is_an_error: "condition_on_stack" => "E011",
    a_barrier_on_a_stack_is_an_error: "barrier_on_stack" => "E011",
    a_semaphore_on_a_stack_is_an_error: "semaphore_on_stack" => "E011",
    an_argument_on_a_stack_is_an_error: "argument_on_stack" => "E012",
    a_thread_local_argument_is_an_error: "argument_of_thread" => "E012",
    unlocking_anothers_mutex_is_an_error: "unlock_foreign" => "E020",
    unlocking_anothers_rwlock_is_an_error: "unlock_rwlock" => "E020",
    locking_a_normal_mutex_twice_is_an_error: "relock" => "E022",
    a_barrier_that_was_not_initialised_is_an_error: "unmade_barrier" => "E005",
    joining_twice_is_an_error: "join_twice" => "E005",
    joining_a_detached_thread_is_an_error: "join_detached" => "E005",
    cancelling_another_thread_is_an_error: "cancel" => "E013",
    a_named_semaphore_is_an_error: "named_semaphore" => "E013",
    a_crash_of_a_thread_is_an_error: "crash" => "E040",
}

#[test]
fn private_objects_are_told_with_the_memory_they_are_in() {
    let done = Job::new("--quiet -n 3", program("misuse"), "mutex_on_stack").run();
    assert!(done.stderr.contains("the mutex at 0x") && done.stderr.contains("stack"), "{done}");
    let done = Job::new("--quiet -n 3", program("misuse"), "argument_on_stack").run();
    assert!(done.stderr.contains("pthread_create: the argument 0x") && done.stderr.contains("stack"), "{done}");
}

#[test]
fn objects_on_stacks_work_in_a_job_of_one_process() {
    for case in ["mutex_on_stack", "condition_on_stack", "barrier_on_stack", "semaphore_on_stack", "argument_on_stack"]
    {
        let done = Job::new("--quiet -n 1 -t 2", program("misuse"), case).run();
        done.assert_success();
        assert_eq!(done.stdout, "nothing was noticed\n", "{done}");
    }
}

/// Their offsets, ends, redirections too; and the current directory and the umask.
#[test]
fn descriptors_are_the_programs_whichever_thread_uses_them() {
    let program = build("tests/c/pthread/files.c", &[]);
    for transport in ["shm", "tcp"] {
        for layout in ["-n 1", "-n 2", "-n 4", "-n 2 -p 2", "-n 2 -t 2"] {
            let flags = format!("--quiet {layout} --transport {transport}");
            let mut running = Job::new(&flags, &program, "abcdefghijklmnop").start();
            running.input.as_mut().expect("a pipe").write_all(b"abcdefghijklmnop").expect("a pipe has room");
            let done = running.wait();
            done.assert_success();
            assert_eq!(done.stdout, "files: all right\n", "{done}");
        }
    }
}

/// With the values of the C library: of random numbers, of the environment, of times.
#[test]
fn what_the_c_library_keeps_for_a_program_is_one_for_all_its_threads() {
    let source = "tests/c/pthread/state.c";
    let (program, alone) = (build(source, &[]), native_of(source, "hello"));
    for transport in ["shm", "tcp"] {
        for layout in ["-n 1", "-n 2", "-n 4", "-n 2 -p 2"] {
            let done = Job::new(&format!("--quiet {layout} --transport {transport}"), &program, "hello").run();
            done.assert_success();
            assert_eq!(done.stdout, alone, "{done}");
        }
    }
}

/// What is opened, written and read anywhere is one stream; standard input, too, be it a file or a pipe.
#[test]
fn streams_are_the_programs_whichever_thread_uses_them() {
    let source = "tests/c/pthread/streams.c";
    let program = build(source, &["-g", "--share-stacks"]);
    let numbers = (0..15).map(|number| format!("{number}\n")).collect::<String>();
    for flags in ["-n 1", "-n 2", "-n 4", "-n 2 -p 2", "-n 4 --transport tcp", "-n 2 --protocol tmk"] {
        let mut running = Job::new(&format!("--quiet {flags}"), &program, "input").start();
        running.input.as_mut().expect("a pipe").write_all(numbers.as_bytes()).expect("a pipe has room");
        let done = running.wait();
        done.assert_success();
        assert_eq!(done.stdout, "streams: all right\n", "{done}");
    }
    let done = Job::new("--quiet -n 1", &program, "pipe").run();
    done.assert_success();
    let done = Job::new("--quiet -n 2", &program, "pipe").run();
    done.assert_error("E017");
    let line = line_with(source, "fgets(text, ROOM, stream)");
    assert!(done.stderr.contains(&format!("streams.c:{line})")), "{done}");
}

#[test]
fn objects_of_the_cpp_library_are_the_programs() {
    let folder = root().join("build/tests/pthread");
    std::fs::create_dir_all(&folder).expect("writable");
    let (program, file) = (folder.join("objects"), folder.join("objects.txt"));
    let mut command = Command::new(built("bin/fspc++"));
    command.args(["--pthread", "--share-stacks", "-O2", "-std=c++17", "-Wall", "-Wextra", "-Werror"]);
    succeed(command.arg(root().join("tests/c/pthread/objects.cpp")).arg("-o").arg(&program));
    for (flags, processors) in [("-n 1", 1), ("-n 2", 2), ("-n 4", 4), ("-n 4 --transport tcp", 4)] {
        let arguments = format!("{} input {processors}", file.display());
        let mut running = Job::new(&format!("--quiet {flags}"), &program, &arguments).start();
        running.input.as_mut().expect("a pipe").write_all(b"1\n2\n3\n4\n5\n6\n7\n8\n").expect("a pipe has room");
        let done = running.wait();
        done.assert_success();
        assert_eq!(done.stdout, "objects: all right\n", "{done}");
    }
}

/// What was registered in any thread runs once, in reverse order; the job has the program's code and no message.
#[test]
fn a_program_ends_as_on_one_machine_wherever_it_ends() {
    let program = build("tests/c/pthread/ends.c", &[]);
    let registered = |code: i32| format!("third {code} argument\nsecond\nfirst\n");
    for flags in ["-n 1", "-n 2", "-n 4 --transport tcp"] {
        for (how, code, said) in [
            ("return", 6, registered(6)),
            ("exit", 3, registered(3)),
            ("_exit", 4, String::new()),
            ("_Exit", 0, String::new()),
            ("quick_exit", 5, "second\nfirst\n".to_owned()),
        ] {
            let done = Job::new(&format!("--quiet {flags}"), &program, how).limit(20).run();
            assert_eq!(
                (done.code, done.stdout.as_str(), done.stderr.as_str()),
                (Some(code), said.as_str(), ""),
                "{done}"
            );
        }
    }
}

#[test]
fn signals_reach_threads_of_other_processes() {
    let program = build("tests/c/pthread/ends.c", &[]);
    for flags in ["-n 1", "-n 2", "-n 4 --transport tcp"] {
        let done = Job::new(&format!("--quiet {flags}"), &program, "signals").limit(20).run();
        done.assert_success();
        assert_eq!(done.stdout, "waited\nhandled\n".repeat(3), "{done}");
    }
}

#[test]
fn mapped_files_and_memory_are_the_programs() {
    let source = "tests/c/pthread/mapped.c";
    let program = build(source, &["-g"]);
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("file");
    for flags in ["-n 1", "-n 2", "-n 4", "-n 2 --transport tcp", "-n 4 --transport tcp", "-n 2 --protocol tmk"] {
        std::fs::write(&file, "abc").expect("written");
        let done = Job::new(&format!("--quiet {flags}"), &program, file.to_str().expect("plain")).run();
        done.assert_success();
        assert_eq!(done.stdout, "mapped: all right\n", "{done}");
        assert_eq!(std::fs::read_to_string(&file).expect("readable"), "xyc", "{done}");
    }
    let done = Job::new("--quiet -n 2", &program, "twice").run();
    done.assert_error("E056");
    let line = line_with(source, "MAP_SHARED, file, 0) != MAP_FAILED");
    assert!(done.stderr.contains(&format!("mapped.c:{line})")), "{done}");
}

#[test]
fn exit_in_any_thread_ends_the_job_with_its_code_and_no_message() {
    for transport in ["shm", "tcp"] {
        for (case, code, said) in [
            ("exit_7", 7, "last words\n"),
            ("exit_0", 0, "last words\n"),
            ("leave", 0, "main leaves\n"),
            ("leave_3", 3, "main leaves\n"),
        ] {
            let flags = format!("--quiet -n 3 --transport {transport}");
            let done = Job::new(&flags, program("misuse"), case).limit(20).run();
            assert_eq!((done.code, done.stderr.as_str(), done.stdout.as_str()), (Some(code), "", said), "{done}");
        }
    }
}

/// Without the driver: the header in place of the C library's, and objects from fsp_malloc.
#[test]
fn the_header_alone_serves_objects_of_the_shared_heap() {
    let program = compile("pthread/header.c", "pthread-header", &["-std=gnu11"]);
    for transport in ["shm", "tcp"] {
        for layout in ["-n 1", "-n 3", "-n 2 -p 2"] {
            let done = Job::new(&format!("--quiet {layout} --transport {transport}"), &program, "").run();
            done.assert_success();
            assert_eq!(done.stdout, "header: all right\n", "{done}");
        }
    }
}

/// The three lists of calls are one: what the library has, what the linker is told, what the header renames.
#[test]
fn the_driver_and_the_header_name_what_the_library_has() {
    let symbols = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(built("lib/libfinespun.so")));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let names = symbols.lines().filter_map(|line| line.split_whitespace().nth(2)?.strip_prefix("__wrap_"));
    let mut library = names.map(str::to_owned).collect::<Vec<_>>();
    library.sort();
    let words = |path: PathBuf, keep: fn(&str) -> Option<&str>| {
        let text = std::fs::read_to_string(path).expect("readable");
        let mut words = text.lines().filter_map(keep).map(str::to_owned).collect::<Vec<_>>();
        words.sort();
        words
    };
    let linker = words(built("lib/finespun/pthread.wraps"), |line| (!line.is_empty()).then_some(line));
    let header = words(root().join("include/finespun/pthread_names.h"), |line| {
        line.strip_prefix("#pragma redefine_extname ")?.split(' ').next()
    });
    assert_eq!((&linker, &header), (&library, &library));
    assert!(library.len() > 80);
}
