//! `--check pointers`, after the fact: what processes have found in shared memory, in words.

use std::collections::BTreeMap;
use std::path::Path;

use finespun_errors::{Code, Place, Report};
use finespun_job::{Job, PrivatePointer};
use finespun_symbols::Symbols;

use crate::diagnosis::{Diagnosis, listed, who};

/// What was found in this job.
pub fn diagnose(found: &[PrivatePointer], job: &Job) -> Diagnosis {
    if job.nodes * job.views == 1 {
        return Diagnosis::note("--check pointers: the job has one process: nothing to check".to_owned());
    }
    let Some(first) = found.first() else {
        return Diagnosis::note("--check pointers: nothing found".to_owned());
    };
    let names = Symbols::read(Path::new(&first.program)).ok();
    // A word that several processes take for theirs is told once, by the first.
    let mut words = BTreeMap::new();
    for pointer in found {
        words.entry(pointer.address).or_insert(pointer);
    }
    let told = words.into_values().map(|pointer| line(pointer, names.as_ref(), job)).collect::<Vec<_>>();
    let what = match told.len() {
        1 => "a pointer to private memory stands in shared memory".to_owned(),
        count => format!("{count} pointers to private memory stand in shared memory"),
    };
    Diagnosis::report(Report { code: Code::PrivatePointer, place: Place::Launcher, what: listed(&what, &told) })
}

/// `` `jobs`+8 (tasks.c:12) holds 0x7ffd1c0a4a30, which is in the stack of processor 0 (node 0) ``.
fn line(pointer: &PrivatePointer, names: Option<&Symbols>, job: &Job) -> String {
    let variable = names.filter(|_| pointer.in_variable).and_then(|names| names.variable(pointer.address));
    let place = match variable {
        Some(variable) => variable.to_string(),
        None => format!("the word at {:#x}", pointer.address),
    };
    let who = who(pointer.processor, job);
    let target = match pointer.in_program {
        None => format!("in {} of {who}", pointer.memory),
        Some(address) => format!("{} in the process of {who} only", of_program(address, names)),
    };
    format!("{place} holds {:#x}, which is {target}", pointer.value)
}

/// Which of the program's own things it is.
fn of_program(address: u64, names: Option<&Symbols>) -> String {
    let Some(names) = names else { return "the program's own memory".to_owned() };
    if let Some(variable) = names.variable(address) {
        return format!("the private variable {variable}");
    }
    match names.instruction(address).function {
        Some(function) => format!("the function `{function}`"),
        None => "a constant of the program".to_owned(),
    }
}
