//! Adaptive broadcast: every interleaving of small worlds, random larger ones, litmus tests, seeded bugs.

use finespun_check::cashmere::broadcast::{PINNED, SEEDED};
use finespun_check::driver::{Form, Grain};
use finespun_check::litmus::LITMUS;
use finespun_check::program::Shape;
use finespun_check::{Options, check_broadcast, random};
use finespun_protocol::cashmere::broadcast::Broadcasting;

const GRAINS: [Grain; 2] = [Grain::Event, Grain::Action];

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

/// The summary ends at the first world with another number of states, at the first violation, and at a bug that is not caught.
#[test]
fn every_interleaving_keeps_every_sentence_and_every_seeded_bug_breaks_its_own() {
    let mut lines = Vec::new();
    let options = Options { random_runs: 3, ..Options::default() };
    let checked = check_broadcast(options, &mut |line| lines.push(line.to_owned()));
    let summary = checked.unwrap_or_else(|violation| panic!("{violation}"));
    assert_eq!((summary.worlds, summary.litmus, summary.bugs), (2 * PINNED.len(), LITMUS.len(), SEEDED.len()));
    assert_eq!(summary.states, PINNED.iter().flat_map(|(_, states)| states).sum());
    assert!(lines.last().unwrap().starts_with("covered: "));
}
