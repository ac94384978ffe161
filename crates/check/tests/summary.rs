//! What `finespun check csm-2l` prints.

use finespun_check::bugs::SEEDED;
use finespun_check::litmus::LITMUS;
use finespun_check::worlds::{WAYS, WORLDS};
use finespun_check::{Options, check_csm_2l};

#[test]
fn the_summary_covers_every_world_litmus_test_and_bug() {
    let mut lines = Vec::new();
    let worlds = &WORLDS[8..14]; // small ones
    let summary =
        check_csm_2l(Options { worlds, random_runs: 3, seed: 9 }, &mut |line| lines.push(line.to_owned())).unwrap();
    assert_eq!((summary.worlds, summary.litmus, summary.bugs), (WAYS.len() * worlds.len(), LITMUS.len(), SEEDED.len()));
    let pinned: usize = worlds.iter().flat_map(|world| world.states).sum();
    assert_eq!(summary.states, pinned);
    let named = |name: &str| lines.iter().any(|line| line.contains(name));
    assert!(worlds.iter().all(|world| named(world.name)) && LITMUS.iter().all(|litmus| named(litmus.name)));
    assert!(named("random runs from seed 9") && lines.last().unwrap().starts_with("covered: "));
}
