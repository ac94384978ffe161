//! `--pin`: the core of each processor, as the kernel tells it.

use std::fs;
use std::path::PathBuf;

use crate::support::{Done, Job, compile};

/// Tests run side by side: each has a file of its own.
fn program(name: &str) -> PathBuf {
    compile("pins.c", name, &[])
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
