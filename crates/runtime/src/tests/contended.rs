//! Processors that run at the same time, each in a thread of its own: who comes to a lock when is the machine's.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::abort;

use finespun_job::Transport;
use finespun_job::switches::{Barrier, Switches};

use super::small::{Made, Processor, Small};
use super::{made, protocols};

/// Runs each processor in a thread, and waits for all.
fn run(job: &Small, body: impl Fn(usize, &Processor) + Sync) {
    std::thread::scope(|scope| {
        for (number, processor) in job.processors.iter().enumerate() {
            let body = &body;
            scope.spawn(move || {
                let ended = catch_unwind(AssertUnwindSafe(|| body(number, processor)));
                // The others would wait for it for ever.
                if let Err(panic) = ended {
                    let what = panic.downcast_ref::<String>();
                    let _ = writeln!(io::stderr(), "processor {number} of {:?}: {what:?}", processor.cluster.job);
                    abort();
                }
            });
        }
    });
}

/// Each processor adds to counters under the mutex, and stores to words of its own beside them, also outside.
fn counts_well(made: Made) {
    const ROUNDS: u64 = 12;
    let job = Small::new(made);
    run(&job, |number, processor| {
        for round in 1..=ROUNDS {
            processor.store(3, 100 + number, round);
            processor.lock();
            for page in [0, 3, 600] {
                let count = processor.load(page, 0);
                processor.store(page, 0, count + 1);
            }
            processor.unlock();
            assert_eq!(processor.load(3, 100 + number), round, "{made:?}: its own word");
        }
    });
    let all = job.processors.len() as u64;
    for (number, processor) in job.processors.iter().enumerate() {
        processor.synchronize();
        assert_eq!([0, 3, 600].map(|page| processor.load(page, 0)), [ROUNDS * all; 3], "{made:?}: processor {number}");
        assert!((0..all).all(|other| processor.load(3, 100 + other as usize) == ROUNDS), "{made:?}");
    }
}

#[test]
fn a_counter_under_a_mutex_loses_no_count_over_shm() {
    protocols(Transport::Shm).for_each(|name| counts_well(made(name, Transport::Shm, 2, 2)));
}

#[test]
fn a_counter_under_a_mutex_loses_no_count_over_tcp() {
    protocols(Transport::Tcp).for_each(|name| counts_well(made(name, Transport::Tcp, 2, 2)));
}

/// In each round each processor stores to words of its own, which lie beside those of the others, and sees theirs behind the barrier.
fn rounds_go_well(made: Made) {
    let job = Small::new(made);
    let all = job.processors.len();
    run(&job, |number, processor| {
        for round in 1..=8 {
            for page in [1, 2, 513, 1030] {
                processor.store(page, 64 * number + 7, round);
                processor.store(page, 64 * number + 8, round * page as u64);
            }
            processor.meet();
            for page in [1, 2, 513, 1030] {
                let seen: Vec<_> = (0..all).map(|other| processor.load(page, 64 * other + 7)).collect();
                assert_eq!(seen, vec![round; all], "{made:?}: page {page}");
                let other = (number + round as usize) % all;
                assert_eq!(processor.load(page, 64 * other + 8), round * page as u64, "{made:?}: page {page}");
            }
            processor.meet();
        }
    });
}

#[test]
fn what_is_stored_before_a_barrier_is_seen_behind_it_over_shm() {
    protocols(Transport::Shm).for_each(|name| rounds_go_well(made(name, Transport::Shm, 2, 2)));
}

#[test]
fn what_is_stored_before_a_barrier_is_seen_behind_it_over_tcp() {
    protocols(Transport::Tcp).for_each(|name| rounds_go_well(made(name, Transport::Tcp, 3, 1)));
    let flat = |made: Made| Made { switches: Switches { barrier: Barrier::Flat, ..made.switches }, ..made };
    rounds_go_well(flat(made("csm-2l", Transport::Tcp, 2, 2)));
    rounds_go_well(flat(made("tmk", Transport::Tcp, 3, 1)));
}
