//! The driver of the live memory below whole jobs: faults, releases and acquires of several nodes, in one process, without programs.

mod contended;
mod guesses;
mod memory;
mod random;
mod small;

use finespun_job::Transport;
use finespun_job::protocols::PROTOCOLS;
use finespun_job::switches::{Prefetch, Refresh, Rewrites, Switches};
use finespun_protocol::Family;
use finespun_types::Counter;

use random::Program;
use small::{Made, Small};

/// A job of a protocol, with the switches that it has when nothing else is said.
fn made(protocol: &'static str, transport: Transport, nodes: u32, views: u32) -> Made {
    let named = PROTOCOLS.iter().find(|named| named.name == protocol).expect("a protocol of ours");
    let views = if named.one_level { 1 } else { views };
    Made {
        protocol,
        transport,
        nodes,
        views,
        several_threads: false,
        switches: Switches::of(named.family),
        delay: None,
    }
}

/// A random program in each of these jobs; says which, and its seed, if it goes wrong.
fn run_all(jobs: impl IntoIterator<Item = Made>, seeds: std::ops::Range<u64>) {
    for made in jobs {
        for seed in seeds.clone() {
            eprintln!("seed {seed} of {made:?}");
            Program::new(&Small::new(made), seed).run(7, 40);
        }
    }
}

/// The protocols that run over a transport. Under strings-sc mappings are revoked by a thread of each process while others run.
fn protocols(transport: Transport) -> impl Iterator<Item = &'static str> {
    let runs = PROTOCOLS.iter().filter(move |named| named.over(transport).is_some());
    runs.filter(|named| named.family != Family::StringsSc).map(|named| named.name)
}

#[test]
fn a_store_is_seen_by_a_processor_that_locks_after_the_unlock() {
    let job = Small::new(made("csm-2l", Transport::Shm, 2, 1));
    let [writer, reader] = &job.processors[..] else { panic!("two processors") };
    writer.lock();
    writer.store(3, 7, 11);
    writer.unlock();
    reader.lock();
    assert_eq!(reader.load(3, 7), 11);
    reader.unlock();
    assert_eq!((job.counted(Counter::ReadFaults), job.counted(Counter::WriteFaults)), (1, 1));
}

#[test]
fn random_programs_load_what_was_stored_last_under_every_protocol_over_shm() {
    run_all(protocols(Transport::Shm).map(|name| made(name, Transport::Shm, 3, 2)), 0..2);
}

#[test]
fn random_programs_load_what_was_stored_last_under_every_protocol_over_tcp() {
    run_all(protocols(Transport::Tcp).map(|name| made(name, Transport::Tcp, 3, 2)), 0..1);
}

#[test]
fn random_programs_load_what_was_stored_last_where_messages_are_delayed() {
    let delayed = |name| Made { delay: Some(5), ..made(name, Transport::Tcp, 3, 1) };
    run_all(["csm-2l", "csm-none-mg", "strings-rc", "tmk"].map(delayed), 30..31);
}

#[test]
fn random_programs_load_what_was_stored_last_in_processes_with_several_threads() {
    let several = |name| Made { several_threads: true, ..made(name, Transport::Shm, 2, 2) };
    run_all(["csm-2l", "strings-rc", "tmk"].map(several), 10..12);
}

#[test]
fn random_programs_load_what_was_stored_last_without_any_guess() {
    let switches =
        Switches { prefetch: Prefetch::Off, refresh: Refresh::Off, rewrites: Rewrites::Fault, ..Switches::DEFAULT };
    run_all(["csm-2l", "tmk"].map(|name| Made { switches, ..made(name, Transport::Shm, 3, 1) }), 20..22);
}
