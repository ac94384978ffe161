//! The third world of the engine: whole jobs in virtual time, the engine's own transactions and steps with the tables of `protocol`,
//! `sync` and `heap`, over a modelled network. Random programs, a data oracle, liveness.
//!
//! ```text
//!   generate    a program from a seed: without data races, and it ends
//!   job         what happens next: processors, channels, threads that take mappings away; each step has a price
//!   processor   scripts: loads, stores, calls
//!   consistency what a fault, a release and an acquire wait on
//!   handlers    signal handlers, which store while their thread waits
//!   scene       what the engine asks of a world, on model memory
//!   objects     the tables of mutexes, conditions, barriers, flags, threads and the heap, at their managers
//!   network     delay, jitter, rate, order in each pair; it heals
//!   oracle      what a load must return; whether objects order what they should
//!   run         one seed; a failure made small
//!   lazy        tmk, with a job of its own
//!   seeded      wrong worlds, which must be found
//! ```
//!
//! `FINESPUN_RUNS=10000` takes so many seeds for each protocol, `FINESPUN_SEED=7` that one.

mod bugs;
mod clock;
mod consistency;
mod generate;
mod handlers;
mod job;
mod lazy;
mod memory;
mod network;
mod notes;
mod objects;
mod oracle;
mod processor;
mod program;
mod protocols;
mod random;
mod run;
mod scene;
mod seeded;

use finespun_protocol::cashmere::Cashmere;
use finespun_protocol::cashmere::broadcast::Broadcasting;
use finespun_protocol::cashmere::migration::Migrating;
use finespun_protocol::cashmere::variants::Variant;
use finespun_protocol::strings::invalidate::StringsSc;
use finespun_protocol::strings::update::StringsRc;

use crate::protocols::Subject;
use crate::run::{Plan, run};

/// Seeds for each protocol in the suite.
const RUNS: u64 = 300;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the seeds of a protocol.
fn simulate<P: Subject>(name: &'static str, variant: Variant, one_level: bool) {
    let plan = Plan { name, variant, one_level, bug: None };
    let (first, runs) = match number("FINESPUN_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("FINESPUN_RUNS").unwrap_or(RUNS)),
    };
    let mut steps = 0;
    for seed in first..first + runs {
        match run::<P>(&plan, seed) {
            Ok(ended) => steps += ended.steps,
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{name}: {runs} runs from seed {first}, {steps} steps");
}

macro_rules! simulated {
    ($($name:ident: $label:literal, $protocol:ty, $variant:ident, $one_level:literal;)*) => {
        $(
            #[test]
            fn $name() {
                simulate::<$protocol>($label, Variant::$variant, $one_level);
            }
        )*
    };
}

simulated! {
    csm_dms: "csm_dms", Cashmere, DMS, false;
    csm_ms: "csm_ms", Cashmere, MS, false;
    csm_s: "csm_s", Cashmere, S, false;
    csm_none: "csm_none", Cashmere, NONE, false;
    csm_1l_dms: "csm_1l_dms", Cashmere, DMS, true;
    csm_adb: "csm_adb", Broadcasting, MS, false;
    csm_1l_adb: "csm_1l_adb", Broadcasting, MS, true;
    csm_ms_mg: "csm_ms_mg", Migrating, MS, false;
    csm_none_mg: "csm_none_mg", Migrating, NONE, false;
    strings_rc_shm: "strings_rc_shm", StringsRc, DMS, false;
    strings_rc_tcp: "strings_rc_tcp", StringsRc, NONE, false;
    strings_sc_shm: "strings_sc_shm", StringsSc, DMS, false;
    strings_sc_tcp: "strings_sc_tcp", StringsSc, NONE, false;
}

#[test]
fn a_seed_replays_exactly() {
    let plan = Plan { name: "csm_none", variant: Variant::NONE, one_level: false, bug: None };
    let ended = |seed| run::<Cashmere>(&plan, seed).map_err(|failure| failure.broken);
    let first: Vec<_> = (0..20).map(ended).collect();
    assert_eq!(first, (0..20).map(ended).collect::<Vec<_>>());
    let different: std::collections::BTreeSet<_> = first.iter().flatten().map(|ended| ended.hash).collect();
    assert_eq!(different.len(), 20, "each seed is another run");
}
