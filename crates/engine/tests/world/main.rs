//! The third world of the engine: whole jobs in virtual time, the engine's own transactions and steps with the tables of `protocol`,
//! `sync` and `heap`, over a modelled network. Random programs, a data oracle, liveness.
//!
//! ```text
//!   generate    a program from a seed: without data races, and it ends
//!   job         what happens next: processors, channels, threads that take mappings away; each step has a price
//!   processor   scripts: loads, stores, calls
//!   engine      what a job asks of the engine of memory consistency; there are two: home, with any page protocol, and lazy, with tmk
//!   handlers    signal handlers, which store while their thread waits
//!   memory      pages, diffs, locks
//!   objects     the tables of mutexes, conditions, barriers, flags, threads and the heap, at their managers
//!   network     delay, jitter, rate, order in each pair; it heals
//!   oracle      what a load must return; whether objects order what they should
//!   run         one seed; a failure made small
//!   seeded      wrong worlds, which must be found
//! ```
//!
//! `FINESPUN_RUNS=10000` takes so many seeds for each protocol, `FINESPUN_SEED=7` that one.

mod bugs;
mod clock;
mod engine;
mod generate;
mod handlers;
mod home;
mod job;
mod lazy;
mod memory;
mod network;
mod notes;
mod objects;
mod oracle;
mod processor;
mod program;
mod random;
mod run;
mod seeded;

use finespun_protocol::cashmere::Cashmere;
use finespun_protocol::cashmere::broadcast::Broadcasting;
use finespun_protocol::cashmere::migration::Migrating;
use finespun_protocol::cashmere::variants::Variant;
use finespun_protocol::strings::invalidate::StringsSc;
use finespun_protocol::strings::update::StringsRc;

use crate::engine::Engine;
use crate::home::Home;
use crate::lazy::Lazy;
use crate::run::{Levels, Plan, run};

/// Seeds for each protocol in the suite.
const RUNS: u64 = 300;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the seeds of a protocol.
fn simulate<E: Engine>(name: &'static str, variant: Variant, levels: Levels) {
    let plan = Plan { name, variant, levels, bug: None };
    let (first, runs) = match number("FINESPUN_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("FINESPUN_RUNS").unwrap_or(RUNS)),
    };
    let mut steps = 0;
    for seed in first..first + runs {
        match run::<E>(&plan, seed) {
            Ok(ended) => steps += ended.steps,
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{name}: {runs} runs from seed {first}, {steps} steps");
}

macro_rules! simulated {
    ($($name:ident: $label:literal, $engine:ty, $variant:ident, $levels:ident;)*) => {
        $(
            #[test]
            fn $name() {
                simulate::<$engine>($label, Variant::$variant, Levels::$levels);
            }
        )*
    };
}

simulated! {
    csm_dms: "csm_dms", Home<Cashmere>, DMS, Two;
    csm_ms: "csm_ms", Home<Cashmere>, MS, Two;
    csm_s: "csm_s", Home<Cashmere>, S, Two;
    csm_none: "csm_none", Home<Cashmere>, NONE, Two;
    csm_1l_dms: "csm_1l_dms", Home<Cashmere>, DMS, One;
    csm_adb: "csm_adb", Home<Broadcasting>, MS, Two;
    csm_1l_adb: "csm_1l_adb", Home<Broadcasting>, MS, One;
    csm_ms_mg: "csm_ms_mg", Home<Migrating>, MS, Two;
    csm_none_mg: "csm_none_mg", Home<Migrating>, NONE, Two;
    strings_rc_shm: "strings_rc_shm", Home<StringsRc>, DMS, Two;
    strings_rc_tcp: "strings_rc_tcp", Home<StringsRc>, NONE, Two;
    strings_sc_shm: "strings_sc_shm", Home<StringsSc>, DMS, Two;
    strings_sc_tcp: "strings_sc_tcp", Home<StringsSc>, NONE, Two;
    tmk_shm: "tmk_shm", Lazy, DMS, Threads;
    tmk_tcp: "tmk_tcp", Lazy, NONE, Threads;
}

fn replays_exactly<E: Engine>(levels: Levels) {
    let plan = Plan { name: "none", variant: Variant::NONE, levels, bug: None };
    let ended = |seed| run::<E>(&plan, seed).map_err(|failure| failure.broken);
    let first: Vec<_> = (0..20).map(ended).collect();
    assert_eq!(first, (0..20).map(ended).collect::<Vec<_>>());
    let different: std::collections::BTreeSet<_> = first.iter().flatten().map(|ended| ended.hash).collect();
    assert_eq!(different.len(), 20, "each seed is another run");
}

#[test]
fn a_seed_replays_exactly() {
    replays_exactly::<Home<Cashmere>>(Levels::Two);
    replays_exactly::<Lazy>(Levels::Threads);
}
