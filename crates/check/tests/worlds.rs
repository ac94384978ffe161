//! Every interleaving of every named world, and how many states each has.

use finespun_check::explore::explore;
use finespun_check::worlds::{WAYS, WORLDS};
use finespun_protocol::cashmere::Cashmere;

/// More than any world has.
const STATES_MAX: usize = 2_000_000;

fn explore_all(way: usize) {
    let (form, grain) = WAYS[way];
    let mut wrong = Vec::new();
    for world in WORLDS {
        let rules = world.rules::<Cashmere>(form, grain).unwrap_or_else(|why| panic!("{}: {why}", world.name));
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
fn direct_metadata_and_messages_event_by_event_keep_every_sentence() {
    explore_all(2);
}

#[test]
fn direct_metadata_and_messages_action_by_action_keep_every_sentence() {
    explore_all(3);
}

#[test]
fn direct_execution_event_by_event_keeps_every_sentence() {
    explore_all(4);
}

#[test]
fn direct_execution_action_by_action_keeps_every_sentence() {
    explore_all(5);
}
