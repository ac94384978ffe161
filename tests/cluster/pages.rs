//! README.md and docs/tutorial.md can be pasted: their `sh` blocks run one after the other, in a folder where only `build` is there.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{built, root, succeed};

/// The blocks of a page, as one script. `make` has been run already.
fn script(page: &str) -> String {
    let text = fs::read_to_string(root().join(page)).expect("readable");
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```\n").next());
    format!("set -e\nmake() {{ test -x build/bin/finespun; }}\n{}", blocks.collect::<String>())
}

/// What all blocks of a page print.
fn pasted(page: &str) -> String {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join("build")).expect("writable");
    for part in ["bin", "lib", "include", "share", "apps"] {
        symlink(built(part), folder.path().join("build").join(part)).expect("writable");
    }
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script(page)).current_dir(folder.path()).env_remove("LD_LIBRARY_PATH");
    let output = shell.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{page}\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn the_readme_can_be_pasted() {
    let printed = pasted("README.md");
    assert_eq!(printed.matches(" processors: 499999500000\n").count(), 7, "{printed}");
    assert!(printed.contains("only the processor that locked a mutex may unlock it"), "{printed}");
}

#[test]
fn the_tutorial_can_be_pasted() {
    let printed = pasted("docs/tutorial.md");
    assert_eq!(printed.matches("a: 153847, e: 307693, z: 307692\n").count(), 3, "{printed}");
    assert!(printed.contains("write_notices"), "{printed}");
}

/// The last lines of docs/teaching.md say how each picture was drawn: `finespun check P --litmus FILE --outcome "VALUES" --svg PICTURE`.
#[test]
fn the_pictures_of_the_exercises_are_what_the_command_draws() {
    let page = fs::read_to_string(root().join("docs/teaching.md")).expect("readable");
    let (_, commands) = page.split_once("## The pictures\n").expect("it is there");
    let folder = TempDir::new().expect("a folder");
    let drawn = folder.path().join("drawn.svg");
    let mut count = 0;
    for line in commands.lines().filter_map(|line| line.strip_prefix("    finespun ")) {
        let (line, picture) = line.split_once(" --svg ").expect("it draws");
        let (words, outcome) = line.split_once(" --outcome ").expect("one outcome");
        let mut command = Command::new(built("bin/finespun"));
        command.args(words.split(' ')).args(["--outcome", outcome.trim_matches('"'), "--svg"]).arg(&drawn);
        succeed(command.current_dir(root()));
        let read = |path| fs::read_to_string(path).expect("readable");
        assert!(read(drawn.clone()) == read(root().join(picture)), "{picture} is not what {line} draws");
        count += 1;
    }
    assert_eq!(count, 3, "{commands}");
}
