//! OpenMP programs, built by `fspcc -fopenmp` and started on nodes: right everywhere, on the processors of all nodes, and what is not served is
//! told when they are linked.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::support::{Job, built, protocols, root, succeed};

/// Programs, and sizes at which they are quick.
const PROGRAMS: [(&str, &str); 6] =
    [("schedules", "300"), ("reductions", "2000"), ("sections", "4"), ("tasks", "12"), ("exclusion", "6"), ("is", "S")];

fn folder() -> PathBuf {
    let folder = root().join("build/tests/openmp");
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}

/// The compiler driver, as its user would call it.
fn fspcc(flags: &[&str], source: &str, name: &str) -> Command {
    let mut command = Command::new(built("bin/fspcc"));
    command.args(flags).args(["-O2", "-Wall", "-Wextra", "-Werror"]).arg(root().join(source));
    command.arg("-o").arg(folder().join(name)).arg("-lm");
    command
}

/// Each program, once.
fn program(name: &str) -> &'static Path {
    static BUILT: OnceLock<Vec<(&str, PathBuf)>> = OnceLock::new();
    let build = |source: &str, name: &'static str| {
        succeed(&mut fspcc(&["-fopenmp"], source, name));
        (name, folder().join(name))
    };
    let built = BUILT.get_or_init(|| {
        let programs = PROGRAMS.map(|(name, _)| build(&format!("apps/omp/{name}.c"), name));
        let others = [build("apps/omp/ep.c", "ep"), build("tests/c/openmp/features.c", "features")];
        programs.into_iter().chain(others).collect()
    });
    built.iter().find(|(known, _)| *known == name).map(|(_, path)| path).expect("built")
}

#[track_caller]
fn verified(name: &str, arguments: &str, flags: &str) {
    let done = Job::new(&format!("--quiet {flags}"), program(name), arguments).run();
    done.assert_success();
    assert_eq!(done.stdout, format!("{name}: verified\n"), "{done}");
}

#[test]
fn openmp_programs_are_right_on_one_machine_with_the_compilers_own_library() {
    for (name, size) in PROGRAMS {
        let native = folder().join(format!("{name}.native"));
        let source = root().join(format!("apps/omp/{name}.c"));
        succeed(Command::new("cc").args(["-O2", "-fopenmp"]).arg(source).arg("-o").arg(&native).arg("-lm"));
        let output = succeed(Command::new(&native).arg(size).env("OMP_NUM_THREADS", "3"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{name}: verified\n"));
    }
}

#[test]
fn openmp_programs_are_right_on_any_nodes_under_every_protocol() {
    let mut turn = 0;
    for protocol in protocols() {
        for transport in &protocol.transports {
            for (name, size) in PROGRAMS {
                let layout = ["-n 4", "-n 1", "-n 2"][turn % 3];
                verified(name, size, &format!("{layout} --transport {transport} --protocol {}", protocol.name));
                turn += 1;
            }
        }
    }
}

#[test]
fn openmp_programs_are_right_with_several_processors_in_a_node() {
    for (turn, layout) in ["-n 2 -p 2", "-n 2 -t 2", "-n 1 -t 3", "-n 3 -p 2"].into_iter().enumerate() {
        for (name, size) in PROGRAMS {
            verified(name, size, &format!("{layout} --transport {}", ["shm", "tcp"][turn % 2]));
        }
    }
}

#[test]
fn a_kernel_of_nas_has_the_published_sums() {
    verified("ep", "S", "-n 4 --transport tcp --protocol tmk");
}

/// On its own: numbers in, numbers out.
#[test]
fn chunks_of_every_schedule_cover_the_loop() {
    let alone = folder().join("schedule");
    let sources = ["tests/c/openmp/schedule.c", "fspcc/openmp/schedule.c"].map(|source| root().join(source));
    succeed(Command::new("cc").args(["-O2", "-Wall", "-Wextra", "-Werror"]).args(sources).arg("-o").arg(&alone));
    assert_eq!(succeed(&mut Command::new(alone)).stdout, b"schedule: all right\n");
}

#[test]
fn every_call_does_what_openmp_says() {
    for transport in ["shm", "tcp"] {
        for layout in ["-n 1", "-n 2", "-n 2 -p 2"] {
            verified("features", "", &format!("{layout} --transport {transport}"));
        }
    }
    let alone = succeed(&mut Command::new(program("features")));
    assert_eq!(String::from_utf8_lossy(&alone.stdout), "features: verified\n");
}

/// A region's threads are the processors of the job, in the order of their numbers.
#[test]
fn a_region_runs_on_the_processors_of_all_nodes() {
    for layout in ["-n 2 -p 2", "-n 4", "-n 2 -t 2"] {
        let done = Job::new(&format!("--quiet {layout}"), program("features"), "places").run();
        done.assert_success();
        let each = if layout == "-n 4" { 1 } else { 2 };
        let expected = (0..4).map(|thread| format!("{thread} {thread} {}\n", thread / each)).collect::<String>();
        assert_eq!(done.stdout, expected, "{done}");
    }
}

#[test]
fn the_environment_says_how_many_threads_and_which_schedule() {
    let run = |name: &str, value: &str| {
        let done = Job::new("--quiet -n 2", program("features"), "settings").env(name, value).run();
        done.assert_success();
        (done.stdout, done.stderr)
    };
    let usual = "threads 2, schedule 2 1, dynamic 0, levels 1, limit 1024\n";
    assert_eq!(run("OMP_NUM_THREADS", "5").0, usual.replace("threads 2", "threads 5"));
    assert_eq!(run("OMP_NUM_THREADS", "3,2").0, usual.replace("threads 2", "threads 3"));
    assert_eq!(run("OMP_SCHEDULE", "guided, 7").0, usual.replace("2 1", "3 7"));
    assert_eq!(run("OMP_SCHEDULE", "monotonic:static").0, usual.replace("2 1", "1 0"));
    assert_eq!(run("OMP_DYNAMIC", "TRUE").0, usual.replace("dynamic 0", "dynamic 1"));
    assert_eq!(run("OMP_THREAD_LIMIT", "3").0, usual.replace("1024", "3"));
    assert_eq!(run("OMP_MAX_ACTIVE_LEVELS", "0").0, usual.replace("levels 1", "levels 0"));
    for (name, value) in [("OMP_NUM_THREADS", "many"), ("OMP_SCHEDULE", "dynamic,x"), ("OMP_DYNAMIC", "maybe")] {
        let (stdout, stderr) = run(name, value);
        assert_eq!(stdout, usual);
        assert_eq!(stderr, format!("finespun: {name}: \"{value}\" cannot be read: the usual value holds\n"));
    }
    assert!(run("OMP_DISPLAY_ENV", "true").1.contains("OMP_NUM_THREADS = '2'"));
}

/// Builds a program of one line of OpenMP that is expected not to be linked.
fn refused(construct: &str, name: &str, flags: &[&str]) -> Output {
    let source = folder().join(format!("{name}.c"));
    let program = format!("long a[100];\nint main(void)\n{{\n{construct}\n    return 0;\n}}\n");
    std::fs::write(&source, program).expect("writable");
    fspcc(flags, source.to_str().expect("a plain name"), name).output().expect("it starts")
}

#[test]
fn what_is_not_served_is_named_when_the_program_is_linked() {
    let target = "#pragma omp target map(tofrom: a)\n    a[0] = 1;";
    let output = refused(target, "target", &["-fopenmp"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("the program needs what is not served"), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.ends_with("GOMP_target_ext")), "{said}");
}

#[test]
fn libgomp_is_not_linked_and_where_it_is_a_warning_says_so() {
    let needed = succeed(Command::new("readelf").arg("-d").arg(program("features")));
    assert!(!String::from_utf8_lossy(&needed.stdout).contains("libgomp"));

    let object = folder().join("apart.o");
    let source = root().join("apps/omp/sections.c");
    succeed(Command::new("cc").args(["-O2", "-fopenmp", "-c"]).arg(source).arg("-o").arg(&object));
    let link = |flags: &[&str]| {
        let mut command = Command::new(built("bin/fspcc"));
        command.args(flags).arg(&object).arg("-o").arg(folder().join("apart"));
        let output = command.output().expect("it starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(link(&["--pthread"]).contains("the program uses OpenMP: compile and link it with -fopenmp"));
    let with_theirs = link(&["--pthread", "-lgomp"]);
    assert!(with_theirs.contains("warning: -lgomp: OpenMP regions run on one node only"), "{with_theirs}");
}
