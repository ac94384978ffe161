//! What the command explains without a job.

use std::fs;
use std::process::Command;

use crate::support::{Job, built, root, succeed};

/// The numbers in the catalogue's list.
fn numbers() -> Vec<String> {
    let done = Job::command(&["explain"]).run();
    done.assert_success();
    done.stdout.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn every_number_is_explained_with_what_to_do_and_the_exit_code() {
    let numbers = numbers();
    assert!(numbers.len() > 15, "{numbers:?}");
    for number in numbers {
        let done = Job::command(&["explain", &number]).run();
        done.assert_success();
        assert!(done.stdout.starts_with(&format!("{number}: ")), "{done}");
        for part in ["What to do: ", "Exit code:  "] {
            assert!(done.stdout.contains(part), "{done}");
        }
        assert!(done.stdout.lines().count() >= 5, "a longer explanation\n{done}");
    }
}

#[test]
fn every_status_of_the_c_api_has_its_number_in_the_catalogue() {
    let numbers = numbers();
    let header = fs::read_to_string(root().join("include/finespun/base.h")).expect("readable");
    let statuses = header.lines().filter_map(|line| {
        let (name, rest) = line.trim().strip_prefix("FSP_")?.split_once(" = ")?;
        let number = rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()?;
        Some((name, number))
    });
    let statuses = statuses.filter(|(name, _)| !["OK", "BUSY"].contains(name)).collect::<Vec<_>>();
    assert!(statuses.len() > 8, "{statuses:?}");
    for (name, number) in statuses {
        assert!(numbers.contains(&format!("E{number:03}")), "FSP_{name} = {number}");
    }
}

#[test]
fn an_unknown_number_is_a_usage_error() {
    for unknown in ["E999", "", "banana"] {
        let done = Job::command(&["explain", unknown]).run();
        done.assert_error("E001");
        assert_eq!(done.code, Some(2), "{done}");
    }
}

#[test]
fn the_doctor_has_a_line_for_every_subject() {
    let done = Job::command(&["doctor"]).run();
    done.assert_success();
    for subject in ["faults", "mappings", "job memory", "address window", "memory", "cores", "diffs", "TCP loopback"] {
        let lines = done.stdout.lines().filter(|line| {
            let line = line.trim_start();
            let said = line.strip_prefix("ok").or_else(|| line.strip_prefix("warn"));
            said.is_some_and(|said| said.trim_start().starts_with(&format!("{subject}:")))
        });
        assert_eq!(lines.count(), 1, "{subject}\n{done}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let finespun = built("bin/finespun");
    for what in ["doctor", "explain", "explain E041", "--help"] {
        let line = format!("set -o pipefail; {} {what} | true", finespun.display());
        succeed(Command::new("bash").args(["-c", &line]));
    }
}
