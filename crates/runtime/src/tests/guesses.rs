//! What the policy guesses, and what becomes of the mappings: counted on small programs.

use std::ops::{Range, RangeInclusive};

use finespun_job::Transport;
use finespun_job::switches::{Prefetch, Refresh, Switches};
use finespun_sys::maps::Rights;
use finespun_types::Counter;

use super::made;
use super::small::{Made, Processor, Small};

const READ_ONLY: Rights = Rights { reads: true, writes: false };

/// In each of these rounds one processor stores to pages, then the other one loads them all.
fn rounds(job: &Small, pages: Range<u32>, rounds: RangeInclusive<u64>) {
    let [writer, reader] = &job.processors[..] else { panic!("two processors") };
    for round in rounds {
        writer.lock();
        pages.clone().for_each(|page| writer.store(page, 5, round));
        writer.unlock();
        reader.lock();
        pages.clone().for_each(|page| assert_eq!(reader.load(page, 5), round, "page {page}"));
        reader.unlock();
    }
}

/// How much a count grows.
fn grows(job: &Small, counter: Counter, body: impl FnOnce()) -> u64 {
    let before = job.counted(counter);
    body();
    job.counted(counter) - before
}

fn two(protocol: &'static str, switches: impl FnOnce(Switches) -> Switches) -> Small {
    let made = made(protocol, Transport::Shm, 2, 1);
    Small::new(Made { switches: switches(made.switches), ..made })
}

#[test]
fn a_page_that_is_read_in_each_interval_is_refreshed_and_faults_no_more() {
    let job = two("csm-2l", |switches| switches);
    rounds(&job, 0..4, 1..=10);
    assert!(job.counted(Counter::PagesRefreshed) > 0);
    let of_pages_refreshed = grows(&job, Counter::PagesRefreshed, || {
        let faults = grows(&job, Counter::ReadFaults, || rounds(&job, 0..4, 11..=18));
        assert!(faults < 16, "{faults} faults of 32 loads");
    });
    assert!(of_pages_refreshed > 16, "{of_pages_refreshed} of 32 pages");
}

#[test]
fn without_refreshing_each_page_is_closed_and_faults_again() {
    let job = two("csm-2l", |switches| Switches { refresh: Refresh::Off, prefetch: Prefetch::Off, ..switches });
    rounds(&job, 0..4, 1..=2);
    let closed = grows(&job, Counter::Invalidations, || {
        assert_eq!(grows(&job, Counter::ReadFaults, || rounds(&job, 0..4, 11..=18)), 32);
    });
    assert_eq!((closed, job.counted(Counter::PagesRefreshed)), (32, 0));
}

#[test]
fn pages_that_were_read_one_after_the_other_are_fetched_ahead_the_next_time() {
    for (protocol, faults_max) in [("csm-2l", 20), ("tmk", 20)] {
        let job = two(protocol, |switches| Switches { refresh: Refresh::Off, ..switches });
        rounds(&job, 0..128, 1..=1);
        let ahead = grows(&job, Counter::PagesAhead, || {
            let faults = grows(&job, Counter::ReadFaults, || rounds(&job, 0..128, 2..=2));
            assert!(faults <= faults_max, "{protocol}: {faults} faults of 128 loads");
        });
        assert!(ahead >= 128 - faults_max, "{protocol}: {ahead} pages");
    }
}

#[test]
fn nothing_is_fetched_ahead_where_the_user_forbids_it() {
    let job = two("csm-2l", |switches| Switches { prefetch: Prefetch::Off, refresh: Refresh::Off, ..switches });
    let faults = grows(&job, Counter::ReadFaults, || rounds(&job, 0..64, 1..=2));
    assert_eq!((faults, job.counted(Counter::PagesAhead)), (128, 0));
}

#[test]
fn an_acquire_counts_each_page_that_it_closes_once() {
    for protocol in ["csm-2l", "tmk"] {
        let job = two(protocol, |switches| Switches { refresh: Refresh::Off, prefetch: Prefetch::Off, ..switches });
        rounds(&job, 0..9, 1..=1);
        let [writer, reader] = &job.processors[..] else { panic!("two processors") };
        writer.lock();
        (0..9).for_each(|page| writer.store(page, 5, 77));
        writer.unlock();
        assert_eq!(grows(&job, Counter::Invalidations, || reader.synchronize()), 9, "{protocol}");
        assert!((0..9).all(|page| reader.rights(page) == Rights::NONE), "{protocol}");
    }
}

/// The second processor has a copy of each of these pages, so that none is exclusive.
fn shared(job: &Small, pages: Range<u32>) -> &Processor {
    rounds(job, pages, 1..=1);
    &job.processors[0]
}

#[test]
fn a_release_takes_the_right_to_write_and_leaves_the_right_to_read() {
    let job = two("csm-2l", |switches| switches);
    let writer = shared(&job, 10..20);
    writer.lock();
    for page in [10, 11, 12, 17] {
        writer.store(page, 9, 1);
        assert_eq!(writer.rights(page), Rights::ALL);
    }
    writer.unlock();
    assert!((10..20).all(|page| writer.rights(page) == READ_ONLY));
}

#[test]
fn a_page_that_is_written_in_one_interval_after_the_other_stays_writable() {
    let job = two("csm-2l", |switches| switches);
    let writer = shared(&job, 10..12);
    for value in 1..=3 {
        writer.lock();
        writer.store(10, 9, value);
        writer.unlock();
    }
    assert_eq!((writer.rights(10), writer.rights(11)), (Rights::ALL, READ_ONLY));
    assert!(job.counted(Counter::RightsKept) > 0);
    // It is compared, nothing has changed, and in the end the right goes.
    (0..20).for_each(|_| writer.synchronize());
    assert_eq!(writer.rights(10), READ_ONLY);
    assert!(job.counted(Counter::KeptInVain) > 0);
}

#[test]
fn what_a_node_has_written_and_not_released_survives_a_page_that_is_fetched_anew() {
    let job = Small::new(made("csm-2l", Transport::Shm, 2, 2));
    let [one, two, far, _] = &job.processors[..] else { panic!("four processors") };
    far.store(0, 0, 1);
    far.synchronize();
    one.synchronize();
    one.store(0, 100, 2);
    far.store(0, 200, 3);
    far.synchronize();
    // The other process of the node learns of the far store, and fetches over what the first one has in the frame.
    two.synchronize();
    assert_eq!((two.load(0, 200), one.load(0, 100)), (3, 2));
    one.synchronize();
    far.synchronize();
    assert_eq!((far.load(0, 100), far.load(0, 200)), (2, 3));
    assert_eq!(job.counted(Counter::IncomingDiffs), 1);
}
