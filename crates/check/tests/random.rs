//! Larger worlds at random. A failure prints its seed; `random::run` with that seed repeats it.

use finespun_check::program::Shape;
use finespun_check::random;
use finespun_check::worlds::WAYS;
use finespun_protocol::cashmere::Cashmere;

fn run_all(shape: Shape, seeds: std::ops::Range<u64>) {
    for (form, grain) in WAYS {
        for seed in seeds.clone() {
            if let Err(violation) = random::run::<Cashmere>(shape, form, grain, seed) {
                panic!("{shape} {form:?} by {grain:?}: {violation}");
            }
        }
    }
}

#[test]
fn four_nodes_of_three_views_and_four_units_keep_every_sentence_and_end() {
    run_all(Shape { nodes: 4, views: 3, threads: 1, units: 4 }, 0..500);
}

#[test]
fn views_of_two_threads_keep_every_sentence_and_end() {
    run_all(Shape { nodes: 3, views: 1, threads: 2, units: 2 }, 0..2_500);
    run_all(Shape { nodes: 2, views: 2, threads: 2, units: 1 }, 0..1_500);
}

#[test]
fn many_nodes_of_one_view_keep_every_sentence_and_end() {
    run_all(Shape { nodes: 8, views: 1, threads: 1, units: 2 }, 0..500);
}

#[test]
fn a_seed_repeats_its_run() {
    let shape = Shape { nodes: 3, views: 2, threads: 1, units: 2 };
    let steps =
        |seed| random::run::<Cashmere>(shape, WAYS[1].0, WAYS[1].1, seed).map_err(|violation| violation.sentence);
    assert_eq!(steps(7), steps(7));
    assert_ne!(steps(7), steps(8));
}
