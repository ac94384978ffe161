//! The litmus tests of `tests/litmus/`, in every form of the protocol.

use std::collections::BTreeSet;
use std::path::Path;

use finespun_check::driver::Form;
use finespun_check::litmus::LITMUS;
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

#[test]
fn every_file_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/litmus");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let names: BTreeSet<String> = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, LITMUS.iter().map(|litmus| litmus.name.to_owned()).collect());
}
