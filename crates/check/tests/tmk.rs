//! The checker's world for `tmk`: every interleaving of the named worlds, random larger ones, litmus tests, seeded bugs.

use std::collections::BTreeSet;

use finespun_check::litmus::LITMUS;
use finespun_check::program::{Program, Shape};
use finespun_check::races;
use finespun_check::random::Random;
use finespun_check::tmk::explore::{explore, litmus, run};
use finespun_check::tmk::seeded::SEEDED;
use finespun_check::tmk::worlds::{WAYS, WORLDS};
use finespun_check::tmk::{Options, check_tmk};

/// More than any world has.
const STATES_MAX: usize = 500_000;

fn explore_all(way: usize) {
    let (form, grain) = WAYS[way];
    let mut wrong = Vec::new();
    for world in WORLDS {
        let rules = world.rules(form, grain).unwrap_or_else(|why| panic!("{}: {why}", world.name));
        let report = explore(&rules, STATES_MAX);
        assert!(report.violation.is_none(), "{}, {form:?} by {grain:?}: {}", world.name, report.violation.unwrap());
        if report.states != world.states[way] {
            wrong.push(format!("{}: {} states, not {}", world.name, report.states, world.states[way]));
        }
    }
    assert!(wrong.is_empty(), "{form:?} by {grain:?}: {wrong:#?}");
}

#[test]
fn messages_event_by_event_keep_every_sentence() {
    explore_all(0);
}

#[test]
fn messages_action_by_action_keep_every_sentence() {
    explore_all(1);
}

#[test]
fn direct_execution_keeps_every_sentence() {
    explore_all(2);
}

#[test]
fn no_named_world_has_a_data_race() {
    for world in WORLDS {
        let program = Program::parse(world.text).unwrap();
        for seed in 0..200 {
            let race = races::race(&program, &mut Random::new(seed));
            assert_eq!(race, None, "{}", world.name);
        }
    }
}

#[test]
fn every_litmus_test_has_only_the_outcomes_it_lists() {
    let wrong: Vec<String> = LITMUS.iter().filter_map(|test| litmus(test).err().map(|why| why.to_string())).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_seeded_bug_breaks_its_sentence() {
    let missed: Vec<String> = SEEDED.iter().filter_map(|seeded| seeded.find().err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert_eq!(SEEDED.iter().map(|seeded| seeded.bug).collect::<BTreeSet<_>>().len(), SEEDED.len());
}

fn run_all(shape: Shape, seeds: std::ops::Range<u64>) {
    for (form, grain) in WAYS {
        for seed in seeds.clone() {
            if let Err(violation) = run(shape, form, grain, seed) {
                panic!("{shape} {form:?} by {grain:?}: {violation}");
            }
        }
    }
}

#[test]
fn four_nodes_of_three_units_keep_every_sentence_and_end() {
    run_all(Shape { nodes: 4, views: 1, threads: 1, units: 3 }, 0..500);
}

#[test]
fn eight_nodes_keep_every_sentence_and_end() {
    run_all(Shape { nodes: 8, views: 1, threads: 1, units: 3 }, 0..200);
}

#[test]
fn views_of_two_threads_keep_every_sentence_and_end() {
    run_all(Shape { nodes: 3, views: 1, threads: 2, units: 2 }, 0..500);
}

#[test]
fn the_summary_covers_every_world_litmus_test_and_bug() {
    let mut lines = Vec::new();
    let worlds = &WORLDS[..2];
    let options = Options { worlds, random_runs: 3, seed: 9 };
    let summary = check_tmk(options, &mut |line| lines.push(line.to_owned())).unwrap();
    assert_eq!((summary.worlds, summary.litmus, summary.bugs), (WAYS.len() * 2, LITMUS.len(), SEEDED.len()));
    assert_eq!(summary.states, worlds.iter().flat_map(|world| world.states).sum::<usize>());
    assert!(lines.last().unwrap().starts_with("covered: "));
}
