//! The worked ports of docs/porting.md: each program as it was, built for the system it was written for; and after its diff, built
//! and run as the page says. Both give the same result.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Job, built, root, succeed};

/// Folder under `examples/ports`, program, how it is told the number of processes there.
const PORTS: [(&str, &str, &str); 3] =
    [("parmacs", "nbody", "-p"), ("pthread", "histogram", "-t"), ("treadmarks", "floyd", "")];

/// A copy of a port's files, without what others have built there.
fn copy(port: &str, of: &str) -> PathBuf {
    let folder = root().join("build/tests/ports").join(format!("{port}-{of}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("writable");
    for entry in fs::read_dir(root().join("examples/ports").join(port)).expect("it is there") {
        let path = entry.expect("readable").path();
        fs::copy(&path, folder.join(path.file_name().expect("a file"))).expect("writable");
    }
    folder
}

fn make(folder: &Path, words: &[String]) {
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(folder).args(words);
    make.env("PATH", format!("{}:{}", built("bin").display(), std::env::var("PATH").expect("there is one")));
    succeed(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("CFLAGS").env_remove("FSPCC_FLAGS"));
}

/// A library of TreadMarks' calls on the memory of one machine, where its users would have had TreadMarks: it is no longer given away.
fn treadmarks() -> PathBuf {
    let folder = root().join("build/tests/ports/Tmk");
    for part in ["include", "lib"] {
        fs::create_dir_all(folder.join(part)).expect("writable");
    }
    let object = folder.join("lib/tmk.o");
    let include = root().join("include");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-std=c11", "-c"]).arg(root().join("tests/tmk/reference.c"));
    succeed(compile.arg(format!("-I{}", include.display())).arg("-o").arg(&object));
    succeed(Command::new("ar").arg("rcs").arg(folder.join("lib/libTmk.a")).arg(&object));
    fs::write(folder.join("include/Tmk.h"), format!("#include \"{}/finespun/tmk.h\"\n", include.display()))
        .expect("writable");
    folder
}

/// What the program said before it was ported, with three processes or threads.
fn before(port: &str, program: &str, flag: &str) -> String {
    let folder = copy(port, "before");
    let more = if port == "treadmarks" { vec![format!("TMK={}", treadmarks().display())] } else { Vec::new() };
    make(&folder, &more);
    let mut run = Command::new(folder.join(program));
    if !flag.is_empty() {
        run.args([flag, "3"]);
    }
    let output = succeed(run.env("TMK_REFERENCE_PROCESSES", "3"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The ported program, built once.
fn after(port: &str, program: &str) -> PathBuf {
    let folder = copy(port, "after");
    succeed(Command::new("patch").args(["-s", "-p1", "-i", "port.diff"]).current_dir(&folder));
    let home = built("bin").parent().expect("a folder").display().to_string();
    make(&folder, &[format!("FINESPUN={home}")]);
    folder.join(program)
}

fn ported(port: &str) -> &'static Path {
    static BUILT: OnceLock<Vec<(&str, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| PORTS.map(|(port, program, _)| (port, after(port, program))).into());
    built.iter().find(|(known, _)| *known == port).map(|(_, path)| path).expect("built")
}

#[test]
fn a_ported_program_gives_the_results_that_it_gave_before() {
    for (port, program, flag) in PORTS {
        let expected = before(port, program, flag);
        assert!(expected.starts_with(&format!("{program}: ")), "{expected}");
        for transport in ["shm", "tcp"] {
            for layout in ["-n 3", "-n 4", "-n 2 -p 2", "-n 3 --faults mprotect --protocol strings-rc"] {
                let arguments = if flag.is_empty() { String::new() } else { format!("{flag} 3") };
                let flags = format!("--quiet {layout} --transport {transport}");
                let done = Job::new(&flags, ported(port), &arguments).run();
                done.assert_success();
                assert_eq!(done.stdout, expected, "{done}");
            }
        }
    }
}

#[test]
fn the_page_shows_the_diffs_as_they_are() {
    let page = fs::read_to_string(root().join("docs/porting.md")).expect("readable");
    for (port, _, _) in PORTS {
        let path = root().join("examples/ports").join(port).join("port.diff");
        let diff = fs::read_to_string(path).expect("readable");
        assert!(page.contains(&format!("```diff\n{diff}```\n")), "{port}: docs/porting.md shows another diff");
    }
}

#[test]
fn a_program_of_the_macros_is_one_for_one_machine_too() {
    let folder = root().join("build/tests/ports/grid");
    fs::create_dir_all(&folder).expect("writable");
    let macros = root().join("examples/ports/parmacs/c.m4.pthreads");
    let text = succeed(Command::new("m4").arg(macros).arg(root().join("apps/parmacs/grid.C"))).stdout;
    fs::write(folder.join("grid.c"), text).expect("writable");
    let program = folder.join("grid");
    succeed(Command::new("cc").args(["-O2", "-pthread"]).arg(folder.join("grid.c")).arg("-o").arg(&program).arg("-lm"));
    let output = succeed(Command::new(&program).args(["-p", "3", "-n", "30"]));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("grid: verified\n"));
}

#[test]
fn treadmarks_programs_share_no_globals() {
    let mut command = Command::new(built("bin/fspcc"));
    let output = command.args(["--tmk", "--pthread", "absent.c"]).output().expect("it starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--tmk: each process"));
}
