//! Adaptive broadcast: every interleaving of small worlds, random larger ones, litmus tests, seeded bugs.

use finespun_check::cashmere::broadcast::{PINNED, SEEDED};
use finespun_check::driver::{Form, Grain};
use finespun_check::explore::explore;
use finespun_check::litmus::LITMUS;
use finespun_check::program::Shape;
use finespun_check::{Options, check_broadcast, random, worlds};
use finespun_protocol::cashmere::broadcast::Broadcasting;

const GRAINS: [Grain; 2] = [Grain::Event, Grain::Action];

#[test]
fn every_interleaving_keeps_every_sentence() {
    let mut wrong = Vec::new();
    for (name, pinned) in PINNED {
        let world = worlds::named(name).unwrap();
        for (grain, pinned) in GRAINS.into_iter().zip(pinned) {
            let report = explore(&world.rules::<Broadcasting>(Form::Ms, grain).unwrap(), 2_000_000);
            assert!(report.violation.is_none(), "{name}, by {grain:?}: {}", report.violation.unwrap());
            if report.states != *pinned {
                wrong.push(format!("{name}, by {grain:?}: {} states, not {pinned}", report.states));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_seeded_bug_breaks_its_sentence() {
    let missed: Vec<String> = SEEDED.iter().filter_map(|seeded| seeded.find().err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_litmus_test_has_the_outcomes_it_lists_and_no_other() {
    let results = LITMUS.iter().map(|litmus| litmus.run::<Broadcasting>(Form::Ms));
    let wrong: Vec<String> = results.filter_map(|result| result.err().map(|why| why.to_string())).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn larger_worlds_at_random_keep_every_sentence_and_end() {
    for (nodes, views, threads, units) in [(4, 3, 1, 4), (8, 1, 1, 2), (3, 1, 2, 2), (2, 2, 2, 1)] {
        let shape = Shape { nodes, views, threads, units };
        for grain in GRAINS {
            for seed in 0..800 {
                if let Err(violation) = random::run::<Broadcasting>(shape, Form::Ms, grain, seed) {
                    panic!("{shape} by {grain:?}: {violation}");
                }
            }
        }
    }
}

#[test]
fn the_summary_covers_every_world_litmus_test_and_bug() {
    let mut lines = Vec::new();
    let options = Options { random_runs: 3, ..Options::default() };
    let summary = check_broadcast(options, &mut |line| lines.push(line.to_owned())).unwrap();
    assert_eq!((summary.worlds, summary.litmus, summary.bugs), (2 * PINNED.len(), LITMUS.len(), SEEDED.len()));
    assert_eq!(summary.states, PINNED.iter().flat_map(|(_, states)| states).sum());
    assert!(lines.last().unwrap().starts_with("covered: "));
}
