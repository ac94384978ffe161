//! Random runs without end: `soak SEED SECONDS`. Prints the first violation, or how many runs kept every sentence.

use std::time::{Duration, Instant};

use finespun_check::cashmere::{broadcast, migration};
use finespun_check::driver::{Form, Grain};
use finespun_check::program::Shape;
use finespun_check::random;
use finespun_check::subject::Subject;
use finespun_check::worlds::WAYS;
use finespun_protocol::cashmere::Cashmere;
use finespun_protocol::cashmere::broadcast::Broadcasting;
use finespun_protocol::cashmere::migration::Migrating;

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("numbers"));
    let (first, seconds) = (args.next().unwrap_or(1), args.next().unwrap_or(60));
    let (clock, mut seed, mut steps) = (Instant::now(), first, 0);
    while clock.elapsed() < Duration::from_secs(seconds) {
        // The shape comes from the seed too: 2 to 5 nodes, 1 to 3 views, 1 or 2 threads, 1 to 4 units.
        let pick = |shift: u64, bound: u64| ((seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) % bound) as usize;
        let (nodes, views) = (2 + pick(20, 4), 1 + pick(28, 3));
        let threads = if nodes * views <= 8 { 1 + pick(36, 2) } else { 1 };
        let shape = Shape { nodes, views, threads, units: 1 + pick(44, 4) };
        steps += WAYS.iter().map(|&(form, grain)| run::<Cashmere>(shape, form, grain, seed)).sum::<usize>();
        let of_broadcast = WAYS.iter().filter(|(form, _)| *form == broadcast::FORM);
        steps += of_broadcast.map(|&(form, grain)| run::<Broadcasting>(shape, form, grain, seed)).sum::<usize>();
        let of_migration = WAYS.iter().filter(|(form, _)| migration::FORMS.contains(form));
        steps += of_migration.map(|&(form, grain)| run::<Migrating>(shape, form, grain, seed)).sum::<usize>();
        seed += 1;
    }
    println!(
        "{} programs from seed {first}, {} runs, {steps} steps: every sentence held",
        seed - first,
        (WAYS.len() as u64 + 2 + 4) * (seed - first)
    );
}

/// One run; tells how many steps it had.
fn run<P: Subject>(shape: Shape, form: Form, grain: Grain, seed: u64) -> usize {
    random::run::<P>(shape, form, grain, seed).unwrap_or_else(|violation| {
        println!("{shape} {form:?} by {grain:?}: {violation}");
        std::process::exit(1);
    })
}
