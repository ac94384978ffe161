//! Strings' two protocols: every interleaving of every named world, litmus tests, random worlds, and the seeded bugs.

use finespun_check::driver::Form;
use finespun_check::explore::explore;
use finespun_check::litmus::LITMUS;
use finespun_check::program::Shape;
use finespun_check::random;
use finespun_check::seeded::Seeded;
use finespun_check::strings::{Counted, WAYS, invalidate, update};
use finespun_check::subject::Subject;
use finespun_protocol::strings::invalidate::StringsSc;
use finespun_protocol::strings::update::StringsRc;

const STATES_MAX: usize = 2_000_000;

fn explore_all<P: Subject>(worlds: &[Counted]) {
    let mut wrong = Vec::new();
    for world in worlds {
        let states = WAYS.map(|(form, grain)| {
            let rules = world.rules::<P>(form, grain).unwrap_or_else(|why| panic!("{}: {why}", world.world));
            let report = explore(&rules, STATES_MAX);
            assert!(
                report.violation.is_none(),
                "{}, {form:?} by {grain:?}: {}",
                world.world,
                report.violation.unwrap()
            );
            report.states
        });
        if states != world.states {
            wrong.push(format!("{}: {states:?}, not {:?}", world.world, world.states));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn litmus<P: Subject>() {
    let runs = LITMUS.iter().flat_map(|litmus| [Form::None, Form::Dms].map(|form| litmus.run::<P>(form)));
    let wrong: Vec<String> = runs.filter_map(|result| result.err().map(|why| why.to_string())).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn run_randomly<P: Subject>(seeds: std::ops::Range<u64>) {
    for shape in [
        Shape { nodes: 4, views: 3, threads: 1, units: 4 },
        Shape { nodes: 3, views: 1, threads: 2, units: 2 },
        Shape { nodes: 8, views: 1, threads: 1, units: 2 },
    ] {
        for (form, grain) in WAYS {
            for seed in seeds.clone() {
                if let Err(violation) = random::run::<P>(shape, form, grain, seed) {
                    panic!("{shape} {form:?} by {grain:?}: {violation}");
                }
            }
        }
    }
}

fn find_all<P: Subject>(seeded: &[Seeded<P>]) {
    let missed: Vec<String> = seeded.iter().filter_map(|seeded| seeded.find().err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn updates_keep_every_sentence() {
    explore_all::<StringsRc>(update::COUNTED);
}

#[test]
fn invalidations_keep_every_sentence_and_every_load_returns_the_last_store() {
    explore_all::<StringsSc>(invalidate::COUNTED);
}

#[test]
fn updates_have_the_outcomes_that_the_litmus_tests_list() {
    litmus::<StringsRc>();
}

#[test]
fn invalidations_forbid_what_only_release_consistency_allows() {
    litmus::<StringsSc>();
}

#[test]
fn random_worlds_keep_every_sentence_under_updates_and_end() {
    run_randomly::<StringsRc>(0..150);
}

#[test]
fn random_worlds_keep_every_sentence_under_invalidations_and_end() {
    run_randomly::<StringsSc>(0..100);
}

#[test]
fn every_seeded_bug_of_the_updates_breaks_its_sentence() {
    find_all(update::SEEDED);
}

#[test]
fn every_seeded_bug_of_the_invalidations_breaks_its_sentence() {
    find_all(invalidate::SEEDED);
}
