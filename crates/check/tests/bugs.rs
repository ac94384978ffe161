//! A checker that never fails proves nothing: every seeded bug is caught, by the sentence that names it.

use std::collections::BTreeSet;

use finespun_check::cashmere::bugs::SEEDED;

#[test]
fn every_seeded_bug_breaks_its_sentence() {
    let missed: Vec<String> = SEEDED.iter().filter_map(|seeded| seeded.find().err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_violation_tells_the_run_that_leads_to_it() {
    let violation = SEEDED[0].find().unwrap();
    assert!(!violation.trace.is_empty() && violation.trace.len() >= violation.steps);
    assert!(violation.trace.iter().any(|line| line.contains("--WriteFault(v0)-->")), "{violation}");
}

#[test]
fn no_bug_is_seeded_twice_at_one_place() {
    let places: BTreeSet<_> = SEEDED.iter().map(|seeded| (seeded.name(), seeded.world, seeded.form)).collect();
    assert_eq!(places.len(), SEEDED.len());
}
