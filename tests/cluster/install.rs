//! `make install` into a folder of its own, programs built and run from there in each way that the documents name, `make uninstall`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::{built, root, succeed};

/// Where the test installs, below the temporary DESTDIR.
const PREFIX: &str = "/opt/finespun";

fn make(target: &str, destination: &Path) -> Command {
    let mut make = Command::new("make");
    make.args(["-s", target, &format!("PREFIX={PREFIX}"), &format!("DESTDIR={}", destination.display())]);
    make.current_dir(root()).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    make
}

/// Every file and folder below, with its path.
fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(all_below(&path));
        }
        found.push(path);
    }
    found
}

/// The installed tree, without what asks for another copy of Finespun.
struct Tree {
    _folder: TempDir,
    destination: PathBuf,
    work: PathBuf,
}

impl Tree {
    fn install() -> Self {
        built("bin/finespun");
        let folder = TempDir::new().expect("a folder");
        let (destination, work) = (folder.path().join("destination"), folder.path().join("work"));
        fs::create_dir_all(&work).expect("writable");
        succeed(&mut make("install", &destination));
        Self { _folder: folder, destination, work }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.destination.join(&PREFIX[1..]).join(name)
    }

    fn run(&self, program: &str) -> String {
        let mut command = Command::new(self.path("bin/finespun"));
        let output = succeed(command.args(["run", "-q", "-n", "2"]).arg(self.work.join(program)));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Which libfinespun a program is given by the loader.
    fn library_of(&self, program: &str) -> PathBuf {
        let output = succeed(Command::new("ldd").arg(self.work.join(program)));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.contains("libfinespun.so.0 => ")).expect("it is linked by its soname");
        let path = line.split_whitespace().nth(2).expect("a path");
        fs::canonicalize(path).expect("it is there")
    }

    fn cmake(&self, source: &str, variables: &[String]) {
        let source = root().join("tests/cmake").join(source);
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(source).arg("-B").arg(&self.work).args(variables);
        succeed(configure.env_remove("CMAKE_PREFIX_PATH").env_remove("CC").env_remove("CFLAGS"));
        succeed(Command::new("cmake").arg("--build").arg(&self.work).env_remove("MAKEFLAGS").env_remove("MAKELEVEL"));
    }
}

#[test]
fn programs_are_built_by_the_installed_files_alone_and_uninstall_leaves_none_of_them() {
    let tree = Tree::install();
    let library = fs::canonicalize(tree.path("lib/libfinespun.so.0")).expect("a link");

    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "finespun"]).env("PKG_CONFIG_PATH", tree.path("lib/pkgconfig"));
    let flags = String::from_utf8_lossy(&succeed(&mut flags).stdout).into_owned();
    let mut compile = Command::new("cc");
    compile.arg(root().join("examples/hello.c")).args(flags.split_whitespace());
    succeed(compile.arg("-o").arg(tree.work.join("by-pkg-config")));
    assert_eq!(tree.run("by-pkg-config").lines().count(), 3, "two greetings, and the sum");
    assert_eq!(tree.library_of("by-pkg-config"), library);

    tree.cmake(
        "package",
        &[
            format!("-DCMAKE_PREFIX_PATH={}", tree.path("").display()),
            format!("-DEXAMPLES={}", root().join("examples").display()),
        ],
    );
    assert_eq!(tree.run("hello").lines().count(), 3);
    assert_eq!(tree.library_of("hello"), library);
    assert_eq!(tree.run("treadmarks"), "2 processes\n");

    succeed(&mut make("uninstall", &tree.destination));
    assert_eq!(all_below(&tree.destination), Vec::<PathBuf>::new());
}

#[test]
fn a_cmake_project_of_threads_is_built_by_the_installed_driver_as_it_is() {
    let tree = Tree::install();
    tree.cmake(
        "fspcc",
        &[
            format!("-DCMAKE_C_COMPILER={}", tree.path("bin/fspcc").display()),
            "-DCMAKE_C_FLAGS=--pthread --share-stacks".to_owned(),
        ],
    );
    assert_eq!(tree.run("threads"), "sum 10\n");
}

#[test]
fn uninstall_takes_only_what_install_has_put_there() {
    let folder = TempDir::new().expect("a folder");
    let others =
        ["opt/finespun/bin/another", "opt/finespun/share/man/man1/another.1"].map(|name| folder.path().join(name));
    for other in &others {
        fs::create_dir_all(other.parent().expect("a folder")).expect("writable");
        fs::write(other, "").expect("writable");
    }
    let before = all_below(folder.path());
    // Twice: the second finds the first's files.
    succeed(&mut make("install", folder.path()));
    succeed(&mut make("install", folder.path()));
    succeed(&mut make("uninstall", folder.path()));
    assert_eq!(all_below(folder.path()), before);
    let again = make("uninstall", folder.path()).output().expect("it starts");
    assert!(
        !again.status.success() && String::from_utf8_lossy(&again.stderr).contains("nothing of Finespun is installed")
    );
}

#[test]
fn the_manual_has_a_page_for_each_subcommand() {
    let help = succeed(Command::new(built("bin/finespun")).arg("--help")).stdout;
    let help = String::from_utf8_lossy(&help).into_owned();
    let list = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a list");
    let names = list.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    for name in names {
        built(&format!("share/man/man1/finespun-{name}.1"));
    }
}
