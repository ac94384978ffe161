//! Programs compiled on the spot that print their own addresses.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use super::{Instruction, Line, Symbols, Variable};

struct Program {
    symbols: Symbols,
    addresses: HashMap<String, u64>,
}

/// Compiled with these flags; what it prints.
fn program(source: &str, flags: &[&str]) -> Program {
    let compiler = if source.ends_with(".cpp") { "c++" } else { "cc" };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("program");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new(compiler).current_dir(here).args(flags).arg(source).arg("-o").arg(&file).status();
    assert!(compiled.expect("a compiler").success());
    let output = Command::new(&file).output().expect("runs");
    assert!(output.status.success());
    let addresses = String::from_utf8(output.stdout).expect("text");
    let line = |line: &str| {
        let (name, number) = line.split_once(' ').expect("a name and a number");
        (name.to_owned(), u64::from_str_radix(number, 16).expect("a number"))
    };
    Program { symbols: Symbols::read(&file).expect("readable"), addresses: addresses.lines().map(line).collect() }
}

impl Program {
    fn variable(&self, name: &str) -> Option<Variable> {
        self.symbols.variable(self.addresses[name])
    }

    /// As people see it.
    fn shown(&self, name: &str) -> String {
        self.variable(name).map_or_else(String::new, |variable| variable.to_string())
    }
}

const FIXED: [&str; 3] = ["-g", "-no-pie", "-O0"];

#[test]
fn a_variable_is_known_by_every_byte_of_it_and_by_its_line() {
    let program = program("tests/program.c", &FIXED);
    assert!(!program.symbols.is_position_independent());
    assert_eq!(program.shown("first"), "`waiting`+8 (tests/program.c:10)");
    assert_eq!(program.shown("third"), "`numbers`+8 (tests/program.c:11)");
    assert_eq!(program.shown("calls"), "`calls` (tests/program.c:14)");
    let numbers = program.variable("third").expect("a variable");
    assert_eq!(numbers.size, 32);
    assert!(!numbers.is_of_library);
    assert_eq!(program.symbols.variable(numbers.address + 32).filter(|found| found.name == "numbers"), None);
}

#[test]
fn an_instruction_is_known_by_its_function_and_line() {
    let program = program("tests/program.c", &FIXED);
    let call = program.symbols.instruction(program.addresses["here"] - 1);
    let line = Line { file: "tests/program.c".into(), line: 22 };
    assert_eq!(call, Instruction { function: Some("main".into()), line: Some(line) });
    assert_eq!(program.symbols.instruction(16), Instruction::default());
}

#[test]
fn inside_an_inlined_function_it_is_that_one() {
    let program = program("tests/program.c", &["-g", "-no-pie", "-O2"]);
    let main = program.addresses["main"];
    let functions = (main..main + 64).map(|address| program.symbols.instruction(address).function);
    assert!(functions.flatten().any(|name| name == "count"));
}

#[test]
fn a_copy_of_a_librarys_variable_is_told_from_the_programs_own() {
    let program = program("tests/program.c", &FIXED);
    let stdout = program.variable("stdout").expect("a variable");
    assert_eq!((stdout.name.as_str(), stdout.is_of_library), ("stdout", true));
}

#[test]
fn without_debugging_information_names_stay_and_lines_go() {
    let program = program("tests/program.c", &["-no-pie"]);
    assert_eq!(["first", "calls"].map(|name| program.shown(name)), ["`waiting`+8", "`calls`"]);
    let call = program.symbols.instruction(program.addresses["here"] - 1);
    assert_eq!(call.to_string(), "main");
}

#[test]
fn of_a_stripped_file_nothing_is_known() {
    let program = program("tests/program.c", &["-no-pie", "-s"]);
    assert_eq!(program.shown("first"), "");
    let call = program.symbols.instruction(program.addresses["here"] - 1);
    assert_eq!(call.to_string(), "a function without a name");
}

#[test]
fn names_of_cpp_have_their_namespaces_and_classes() {
    let program = program("tests/program.cpp", &FIXED);
    let shown = ["done", "size", "used"].map(|name| program.shown(name));
    assert_eq!(shown[0], "`work::done` (tests/program.cpp:5)");
    assert_eq!(shown[1], "`work::Pool::size` (tests/program.cpp:7)");
    assert_eq!(shown[2], "`work::Pool::used` (tests/program.cpp:8)");
    assert!(program.shown("last").starts_with("`int work::twice<int>(int)::last`"), "{}", program.shown("last"));
}

#[test]
fn what_is_no_executable_is_refused_with_a_reason() {
    let refused = Symbols::read(Path::new("/proc/self/status")).err().expect("an error");
    assert_eq!(refused.to_string(), "Unknown file magic");
}
