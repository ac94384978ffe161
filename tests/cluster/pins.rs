//! `--pin`: the core of each processor, as the kernel tells it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{Done, Job, built, compile, root, succeed};

/// Tests run side by side: each has a file of its own.
fn program(name: &str) -> PathBuf {
    compile("launch/pins.c", name, &[])
}

/// The cores that this test may use, and so its jobs: `0-1` is two.
fn usable() -> (String, Vec<u32>) {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("listed").trim();
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u32>().expect("a number");
        number(first)..=number(last)
    };
    (list.to_owned(), list.split(',').flat_map(range).collect())
}

fn cores_by_processor(done: &Done) -> Vec<String> {
    done.assert_success();
    let of = |(number, line): (usize, &str)| {
        let cores = line.strip_prefix(&format!("processor {number}: ")).unwrap_or_else(|| panic!("{done}"));
        cores.to_owned()
    };
    done.stdout.lines().enumerate().map(of).collect()
}

#[test]
fn each_processor_stays_on_its_core() {
    let program = program("pins");
    let (all, cores) = usable();
    let [first, .., last] = cores.as_slice() else { return }; // one core: the next test says what happens
    for shape in ["-n 2", "-p 2", "-t 2", "-n 2 --transport tcp", "-n 2 --protocol csm-1l-dms", "-n 2 --protocol tmk"] {
        let run = |pin: &str| cores_by_processor(&Job::new(&format!("{shape} --quiet {pin}"), &program, "").run());
        assert_eq!(run("--pin cores"), [cores[0].to_string(), cores[1].to_string()], "{shape}");
        assert_eq!(run(&format!("--pin {last},{first}")), [last.to_string(), first.to_string()], "{shape}");
        assert_eq!(run("--pin none"), [all.clone(), all.clone()], "{shape}");
    }
}

#[test]
fn too_few_cores_end_the_job_before_it_begins() {
    let program = program("pins-refused");
    let (all, cores) = usable();
    let list = cores[0];
    for (flags, why) in [
        ("-p 32 -t 32 --pin cores".to_owned(), format!("({all}), too few for 1024 processors")),
        (format!("-n 2 --pin {list}"), format!("1 core ({list}), too few for 2 processors")),
        ("--pin 1023".to_owned(), "--pin names core 1023, and finespun may use".to_owned()),
        (format!("--cores one --pin {list}"), "expected one of them".to_owned()),
    ] {
        let done = Job::new(&flags, &program, "").run();
        done.assert_error("E001");
        assert!(done.stderr.contains(&why), "{done}");
    }
}

/// What `finespun bench` compares with: the same program on native threads, pinned as `--pin cores` pins.
#[test]
fn native_threads_are_pinned_as_processors_are() {
    let (all, cores) = usable();
    let [first, second, ..] = cores.as_slice() else { return };
    let native = built("lib").with_file_name("tests").join("pins-native");
    let source = |path: &str| root().join(path);
    succeed(Command::new("cc").args(["-O2", "-std=c11", "-o"]).arg(&native).arg("-I").arg(source("include")).args([
        source("tests/c/launch/pins.c"),
        source("benches/native/native.c"),
        "-lpthread".into(),
    ]));
    for (pin, expected) in [("cores", [first.to_string(), second.to_string()]), ("none", [all.clone(), all])] {
        let output = succeed(Command::new(&native).env("FINESPUN_THREADS", "2").env("FINESPUN_PIN", pin));
        let text = String::from_utf8(output.stdout).expect("text");
        assert_eq!(text, format!("processor 0: {}\nprocessor 1: {}\n", expected[0], expected[1]));
    }
}
