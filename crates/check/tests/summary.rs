//! What `finespun check` prints.

use finespun_check::cashmere::bugs::SEEDED;
use finespun_check::driver::Form;
use finespun_check::litmus::LITMUS;
use finespun_check::worlds::{WAYS, WORLDS};
use finespun_check::{Options, check_cashmere};

#[test]
fn the_summary_covers_every_world_litmus_test_and_bug() {
    let mut lines = Vec::new();
    let worlds = &WORLDS[8..14]; // small ones
    let summary = check_cashmere(Options { worlds, random_runs: 3, seed: 9, forms: &Form::ALL }, &mut |line| {
        lines.push(line.to_owned())
    })
    .unwrap();
    assert_eq!((summary.worlds, summary.litmus, summary.bugs), (WAYS.len() * worlds.len(), LITMUS.len(), SEEDED.len()));
    let pinned: usize = worlds.iter().flat_map(|world| world.states).sum();
    assert_eq!(summary.states, pinned);
    let named = |name: &str| lines.iter().any(|line| line.contains(name));
    assert!(worlds.iter().all(|world| named(world.name)) && LITMUS.iter().all(|litmus| named(litmus.name)));
    assert!(named("random runs from seed 9") && lines.last().unwrap().starts_with("covered: "));
}

#[test]
fn a_summary_of_one_form_covers_no_other() {
    let mut text = String::new();
    let worlds = &WORLDS[14..15];
    let options = Options { worlds, random_runs: 1, seed: 9, forms: &[Form::Ms] };
    let summary = check_cashmere(options, &mut |line| text += &format!("{line}\n")).unwrap();
    assert_eq!((summary.worlds, summary.states), (2, worlds[0].states[2] + worlds[0].states[3]));
    assert_eq!(summary.bugs, SEEDED.iter().filter(|seeded| seeded.form == Form::Ms).count());
    assert!(text.contains("MS,   by event") && !text.contains("None,") && !text.contains("DMS,"));
}
