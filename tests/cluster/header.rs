//! The headers, the library and pkg-config agree.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{Job, built, root, succeed};

fn headers() -> Vec<PathBuf> {
    let headers = headers_of("include/finespun");
    assert!(headers.len() >= 5, "{headers:?}");
    headers
}

fn headers_of(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("readable").flatten();
    let headers = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "h"));
    headers.collect()
}

/// Each header by itself, so that none needs another to be included first.
fn compile_each(compiler: &str, language: &str, flags: &[&str]) {
    for header in headers() {
        let mut command = Command::new(compiler);
        command.args(flags).args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", language]);
        succeed(command.arg("-I").arg(root().join("include")).arg("-include").arg(header).arg("/dev/null"));
    }
}

#[test]
fn every_header_is_strict_c11() {
    compile_each("cc", "c", &["-std=c11"]);
}

#[test]
fn every_header_is_cpp17() {
    compile_each("g++", "c++", &["-std=c++17"]);
}

fn declared() -> BTreeSet<String> {
    declared_in(headers())
}

/// The functions that headers declare: a name before a parenthesis, outside of comments and preprocessor lines.
fn declared_in(headers: Vec<PathBuf>) -> BTreeSet<String> {
    let texts = headers.into_iter().map(|header| fs::read_to_string(header).expect("readable"));
    let mut names = BTreeSet::new();
    for text in texts {
        let code =
            text.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code)).collect::<String>();
        let code = code.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
        let before_parentheses = code.split('(').map(str::to_owned);
        let words = before_parentheses.filter_map(|before| {
            let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
            word.starts_with("fsp_").then(|| word.to_owned())
        });
        names.extend(words);
    }
    names
}

/// The functions of ours that the library exports, and those that fspcc links into programs.
fn exported() -> BTreeSet<String> {
    let mut names =
        defined(Command::new("nm").args(["-D", "--defined-only"]).arg(built("lib/libfinespun.so")), |_| true);
    names.extend(of_fspcc());
    names
}

fn of_fspcc() -> BTreeSet<String> {
    let mut names = defined(
        Command::new("nm").args(["-g", "--defined-only"]).arg(built("lib/finespun/libfspprogram.a")),
        |kind| matches!(kind, "T" | "W"), // functions
    );
    // For the linker only; and what its own files call of each other, or its header of builtins.
    names.remove("fsp_program_constructor");
    let inside = declared_in(headers_of("fspcc"));
    assert!(inside.len() >= 10, "{inside:?}");
    names.retain(|name| !inside.contains(name) || declared().contains(name));
    names
}

/// Our names in what nm prints, of the kinds that count.
fn defined(nm: &mut Command, counts: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(&succeed(nm).stdout).into_owned();
    let names = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().filter(|kind| counts(kind)).and(words.next())
    });
    names
        .map(|name| name.split('@').next().unwrap_or(name).to_owned())
        .filter(|name| name.starts_with("fsp_"))
        .collect()
}

#[test]
fn every_declared_function_is_exported_and_every_exported_one_declared() {
    let (declared, exported) = (declared(), exported());
    assert!(declared.len() > 40, "{declared:?}");
    let missing = declared.difference(&exported).collect::<Vec<_>>();
    let secret = exported.difference(&declared).collect::<Vec<_>>();
    assert!(missing.is_empty() && secret.is_empty(), "declared only: {missing:?}; exported only: {secret:?}");
}

#[test]
fn the_static_library_has_every_function_too() {
    let output = succeed(Command::new("nm").args(["-g", "--defined-only"]).arg(built("lib/libfinespun.a")));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect::<BTreeSet<_>>();
    let of_fspcc = of_fspcc();
    let is_missing = |name: &String| !names.contains(name.as_str()) && !of_fspcc.contains(name);
    let missing = declared().into_iter().filter(is_missing).collect::<Vec<_>>();
    assert!(missing.is_empty(), "{missing:?}");
}

fn pkg_config(flags: &[&str]) -> Vec<String> {
    let folder = built("lib/pkgconfig");
    let output = succeed(Command::new("pkg-config").args(flags).arg("finespun").env("PKG_CONFIG_PATH", folder));
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

fn build_and_run_hello(compiler: &str, language: &[&str], libraries: Vec<String>) {
    let folder = TempDir::new().expect("a folder");
    let program = folder.path().join("hello");
    let mut command = Command::new(compiler);
    command.args(language).arg(root().join("examples/hello.c")).arg("-o").arg(&program);
    succeed(command.args(pkg_config(&["--cflags"])).args(["-x", "none"]).args(libraries));
    let done = Job::new("--quiet -n 2", &program, "").run();
    done.assert_success();
    assert!(done.stdout.contains("hello: 2 of 2 processors"), "{done}");
}

#[test]
fn a_program_built_by_pkg_config_runs() {
    build_and_run_hello("cc", &["-std=c11"], pkg_config(&["--libs"]));
}

#[test]
fn a_program_built_with_the_static_library_runs() {
    let libraries = pkg_config(&["--libs", "--static"]).into_iter();
    let libraries = libraries.map(|flag| if flag == "-lfinespun" { "-l:libfinespun.a".to_owned() } else { flag });
    build_and_run_hello("cc", &["-std=c11", "-rdynamic"], libraries.collect());
}

#[test]
fn a_cpp_program_runs() {
    let folder = TempDir::new().expect("a folder");
    let (source, program) = (folder.path().join("sum.cpp"), folder.path().join("sum"));
    let text = r#"
        #include <finespun/finespun.h>
        #include <iostream>
        #include <new>
        #include <vector>
        struct Sum { fsp_mutex_t mutex; long value; };
        static Sum *sum;
        static void add(void *shared) {
            auto *to = static_cast<Sum *>(shared);
            std::vector<long> numbers(100, 1);
            fsp_mutex_lock(&to->mutex);
            for (long number : numbers) to->value += number;
            fsp_mutex_unlock(&to->mutex);
        }
        int main(int argc, char **argv) {
            fsp_init(&argc, &argv);
            sum = new (fsp_calloc(1, sizeof(Sum))) Sum{};
            fsp_parallel(add, sum);
            std::cout << "sum " << sum->value << std::endl;
            return sum->value == 100 * fsp_processors() ? 0 : 1;
        }"#;
    fs::write(&source, text).expect("writable");
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-Wall", "-Wextra", "-Werror"]).arg(&source).arg("-o").arg(&program);
    succeed(command.args(pkg_config(&["--cflags", "--libs"])));
    let done = Job::new("--quiet -n 3", &program, "").run();
    done.assert_success();
    assert_eq!(done.stdout, "sum 300\n", "{done}");
}
