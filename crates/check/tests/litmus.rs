//! The litmus tests of `tests/litmus/`, in every form of the protocol.

use std::collections::BTreeSet;
use std::path::Path;

use finespun_check::driver::{Form, Grain, Rules};
use finespun_check::explore::explore;
use finespun_check::litmus::LITMUS;
use finespun_check::program::{Guesses, Program};
use finespun_protocol::cashmere::Cashmere;

#[test]
fn every_litmus_test_has_the_outcomes_it_lists_and_no_other() {
    let wrong: Vec<String> = LITMUS
        .iter()
        .flat_map(|litmus| Form::ALL.map(|form| litmus.run::<Cashmere>(form)))
        .filter_map(|result| result.err().map(|why| why.to_string()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where loads race, a guess may bring an older page. In the other programs each load is compared with the last store.
#[test]
fn a_guess_adds_no_outcome_to_a_program_that_races() {
    let mut programs: Vec<Program> = LITMUS.iter().map(|litmus| Program::parse(litmus.text).unwrap()).collect();
    programs.retain(|program| program.racy);
    assert!(!programs.is_empty());
    for mut program in programs {
        program.guesses = (1, Guesses::Any);
        let allowed = program.allowed_under("lazy");
        for form in Form::ALL {
            let rules = Rules::<Cashmere> { program: program.clone(), form, grain: Grain::Event, bug: None };
            let report = explore(&rules, 1_000_000);
            assert!(report.violation.is_none(), "{}", report.violation.unwrap());
            assert!(report.outcomes.is_subset(&allowed), "{form:?}: {:?}", report.outcomes);
        }
    }
}

#[test]
fn every_file_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/litmus");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let names: BTreeSet<String> = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, LITMUS.iter().map(|litmus| litmus.name.to_owned()).collect());
}
