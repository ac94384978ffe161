//! Home migration: every interleaving of small worlds, random larger ones, litmus tests, seeded bugs.

use finespun_check::cashmere::migration::{FORMS, PINNED, SEEDED};
use finespun_check::driver::{Form, Grain};
use finespun_check::explore::explore;
use finespun_check::litmus::LITMUS;
use finespun_check::program::Shape;
use finespun_check::{random, worlds};
use finespun_protocol::cashmere::migration::Migrating;

const GRAINS: [Grain; 2] = [Grain::Event, Grain::Action];

/// One form's part of the pinned numbers.
fn explore_all(form: Form) {
    let mut wrong = Vec::new();
    for (name, pinned) in PINNED {
        let world = worlds::named(name).unwrap();
        let place = FORMS.iter().position(|&other| other == form).unwrap();
        for (grain, pinned) in GRAINS.into_iter().zip(&pinned[2 * place..]) {
            let report = explore(&world.rules::<Migrating>(form, grain).unwrap(), 2_000_000);
            assert!(report.violation.is_none(), "{name}, {form:?} by {grain:?}: {}", report.violation.unwrap());
            if report.states != *pinned {
                wrong.push(format!("{name}, {form:?} by {grain:?}: {} states, not {pinned}", report.states));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_interleaving_by_messages_keeps_every_sentence() {
    explore_all(Form::None);
}

#[test]
fn every_interleaving_with_direct_metadata_keeps_every_sentence() {
    explore_all(Form::Ms);
}

#[test]
fn every_seeded_bug_breaks_its_sentence() {
    let missed: Vec<String> = SEEDED.iter().filter_map(|seeded| seeded.find().err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_litmus_test_has_the_outcomes_it_lists_and_no_other() {
    let results = LITMUS.iter().flat_map(|litmus| FORMS.map(|form| litmus.run::<Migrating>(form)));
    let wrong: Vec<String> = results.filter_map(|result| result.err().map(|why| why.to_string())).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn larger_worlds_at_random_keep_every_sentence_and_end() {
    for (nodes, views, threads, units) in [(4, 3, 1, 4), (8, 1, 1, 2), (3, 1, 2, 2), (2, 2, 2, 1)] {
        let shape = Shape { nodes, views, threads, units };
        for form in FORMS {
            for grain in GRAINS {
                for seed in 0..500 {
                    if let Err(violation) = random::run::<Migrating>(shape, form, grain, seed) {
                        panic!("{shape} {form:?} by {grain:?}: {violation}");
                    }
                }
            }
        }
    }
}
