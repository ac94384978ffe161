//! Every interleaving of small worlds, and seeded bugs that the search must catch.

mod script;
mod search;
mod world;

use finespun_sync::{Event, Grant, Thin};
use script::{Script, p};
use search::{Report, explore, explore_with_bug};
use world::{Bug, Delivery, Store};

const M: u64 = 0x2000_0000_0000;
const M2: u64 = 0x2000_0000_0008;
const C: u64 = 0x2000_0000_0010;
const B: u64 = 0x2000_0000_0018;
const F: u64 = 0x2000_0000_0020;

/// The states reached by direct execution, with a word beside the table, and by messages, when nothing is wrong.
fn states(scripts: &[Script]) -> (usize, usize, usize) {
    let all = [Delivery::Direct, Delivery::Quick, Delivery::Messages];
    let [direct, quick, messages] = all.map(|delivery| {
        let Report { states, violation } = explore(delivery, scripts);
        assert!(violation.is_none(), "{delivery:?}: {violation:#?}");
        states
    });
    (direct, quick, messages)
}

/// What the search says about a world with a bug.
fn caught(scripts: &[Script], bug: Bug) -> String {
    explore_with_bug(Delivery::Direct, scripts, bug).violation.expect("the bug is caught").0
}

fn three_sections() -> [Script; 3] {
    [p(0).section(M).section(M), p(1).section(M).section(M), p(2).section(M)]
}

fn consumers_and_producers() -> [Script; 3] {
    [p(0).consume(C, M), p(1).consume(C, M), p(2).produce(C, M).produce(C, M)]
}

fn two_rounds() -> [Script; 3] {
    [0, 1, 2].map(|who| p(who).arrive(B, 3).arrive(B, 3))
}

/// Processor 0 raises the flag in steps; when both others say so by another barrier, it is reset.
fn pipeline() -> [Script; 3] {
    [
        p(0).set(F, 1).set(F, 3).set(F, 2).arrive(B, 3).reset(F),
        p(1).wait(F, 1).wait(F, 2).read(F).arrive(B, 3),
        p(2).read(F).wait(F, 3).arrive(B, 3),
    ]
}

#[test]
fn a_mutex_excludes_and_serves_in_order() {
    assert_eq!(states(&three_sections()), (115, 954, 481));
}

#[test]
fn four_processors_share_two_mutexes() {
    let scripts = [
        p(0).lock(M).lock(M2).unlock(M2).unlock(M),
        p(1).lock(M).lock(M2).unlock(M).unlock(M2),
        p(2).section(M2),
        p(3).try_section(M).try_section(M2),
    ];
    assert_eq!(states(&scripts), (779, 10_397, 6_402));
}

#[test]
fn no_wake_up_is_lost_between_consumers_and_producers() {
    assert_eq!(states(&consumers_and_producers()), (525, 2_589, 2_801));
}

#[test]
fn a_broadcast_wakes_all() {
    let scripts = [p(0).consume(C, M), p(1).consume(C, M), p(2).put(M).put(M).broadcast(C)];
    assert_eq!(states(&scripts), (356, 1_627, 1_032));
}

fn one_gives_up() -> [Script; 3] {
    [p(0).wait_for_a_time(C, M), p(1).consume(C, M), p(2).produce(C, M)]
}

#[test]
fn who_gives_up_waiting_takes_no_wake_up_with_it() {
    assert_eq!(states(&one_gives_up()), (256, 1_452, 1_036));
}

#[test]
fn catches_a_signal_that_is_taken_for_the_end_of_the_time() {
    // Over messages the two can cross.
    let report = explore_with_bug(Delivery::Messages, &one_gives_up(), |event, _, _, grants| {
        if let Event::Leave { .. } = event {
            grants.iter_mut().for_each(|grant| grant.value = 1);
        }
    });
    let (why, _) = report.violation.expect("the bug is caught");
    assert!(why.contains("p1 waits for ever") || why.contains("nobody is in line"), "{why}");
}

#[test]
fn catches_a_waiter_that_stays_in_line_after_its_time() {
    let why = caught(&one_gives_up(), |event, before, after, _| {
        if let Event::Leave { .. } = event {
            *after = before.clone();
        }
    });
    assert!(why.contains("waits for nothing") || why.contains("p1 waits for ever") || why.contains("in use"), "{why}");
}

#[test]
fn rounds_of_a_barrier_never_mix() {
    assert_eq!(states(&two_rounds()), (21, 125, 65));
}

#[test]
fn one_arrival_may_stand_for_a_whole_node() {
    let scripts = [p(0).arrive_for(B, 5, 2).arrive_for(B, 5, 2), p(1).arrive_for(B, 5, 3).arrive_for(B, 5, 3)];
    assert_eq!(states(&scripts), (7, 29, 17));
}

#[test]
fn a_flag_only_grows_and_wakes_those_it_has_reached() {
    assert_eq!(states(&pipeline()), (145, 2_052, 1_496));
}

#[test]
fn two_locks_in_opposite_order_are_seen_to_hang() {
    let scripts = [p(0).lock(M).lock(M2).unlock(M2).unlock(M), p(1).lock(M2).lock(M).unlock(M).unlock(M2)];
    let (why, path) = explore(Delivery::Direct, &scripts).violation.expect("a deadlock");
    assert!(why.contains("waits for ever"), "{why}");
    assert_eq!(path.len(), 4, "{path:?}");
}

#[test]
fn an_unlock_before_the_queueing_loses_a_wake_up() {
    let scripts = [p(0).consume_unlocking_first(C, M), p(1).produce(C, M)];
    let (why, _) = explore(Delivery::Direct, &scripts).violation.expect("a lost wake-up");
    assert!(why.contains("p0 waits for ever"), "{why}");
}

#[test]
fn queueing_needs_its_acknowledgement_when_managers_differ() {
    let scripts = [p(0).consume(C, M), p(1).produce(C, M)];
    assert!(explore(Delivery::Messages, &scripts).violation.is_none());
    let (why, _) = explore(Delivery::MessagesUnacknowledged, &scripts).violation.expect("a lost wake-up");
    assert!(why.contains("p0 waits for ever"), "{why}");
}

#[test]
fn catches_an_unlock_that_grants_nobody() {
    let why = caught(&three_sections(), |event, _, _, grants| {
        if let Event::Unlock { .. } = event {
            grants.clear();
        }
    });
    assert!(why.contains("waits for ever"), "{why}");
}

#[test]
fn catches_an_unlock_that_leaves_the_queue_as_it_was() {
    let why = caught(&three_sections(), |event, before, after, grants| {
        if let (Event::Unlock { .. }, [_, ..]) = (event, grants.as_slice()) {
            *after = before.clone();
        }
    });
    assert!(why.contains("holds"), "{why}");
}

#[test]
fn catches_a_mutex_that_goes_to_the_youngest_waiter() {
    let why = caught(&three_sections(), |event, before, _, grants| {
        if let (Event::Unlock { .. }, [grant]) = (event, grants.as_mut_slice()) {
            let mut before = before.clone();
            let waits = |who: &u32| before.table().awaited_by(finespun_types::ProcessorId(*who)).is_some();
            let youngest = (0..3).filter(waits).find(|who| *who != grant.who.0);
            grant.who.0 = youngest.unwrap_or(grant.who.0);
        }
    });
    assert!(why.contains("out of turn"), "{why}");
}

#[test]
fn catches_a_lock_granted_while_held() {
    let why = caught(&three_sections(), |event, _, _, grants| {
        if let (Event::Lock { who, .. }, []) = (event, grants.as_slice()) {
            grants.push(Grant { who, value: 0 });
        }
    });
    assert!(why.contains("both inside") || why.contains("out of turn"), "{why}");
}

#[test]
fn catches_a_try_that_succeeds_while_the_mutex_is_held() {
    let why = caught(&[p(0).section(M), p(1).try_section(M)], |event, _, _, grants| {
        if let Event::TryLock { .. } = event {
            grants[0].value = 1;
        }
    });
    assert!(why.contains("both inside"), "{why}");
}

#[test]
fn catches_a_broadcast_that_wakes_one() {
    let scripts = [p(0).consume(C, M), p(1).consume(C, M), p(2).put(M).put(M).broadcast(C)];
    let why = caught(&scripts, |event, before, after, grants| {
        if let Event::Broadcast { condition } = event {
            instead(Event::Signal { condition }, before, after, grants);
        }
    });
    assert!(why.contains("waits for ever"), "{why}");
}

#[test]
fn catches_a_barrier_that_is_not_emptied() {
    let why = caught(&two_rounds(), |event, before, after, grants| {
        if let (Event::Arrive { .. }, [_, ..]) = (event, grants.as_slice()) {
            *after = before.clone();
        }
    });
    assert!(why.contains("left round 2 before") || why.contains("second time"), "{why}");
}

#[test]
fn catches_a_barrier_that_opens_one_early() {
    let why = caught(&two_rounds(), |event, before, after, grants| {
        let others_wait = before.clone().table().in_use() > 0;
        if let (Event::Arrive { barrier, count, who, weight }, true) = (event, others_wait && grants.is_empty()) {
            instead(Event::Arrive { barrier, count, who, weight: weight + 1 }, before, after, grants);
        }
    });
    assert!(why.contains("left round 1 before"), "{why}");
}

#[test]
fn catches_grants_in_reversed_order() {
    let why = caught(&two_rounds(), |_, _, _, grants| grants.reverse());
    assert!(why.contains("out of turn"), "{why}");
}

#[test]
fn catches_a_flag_whose_waiters_are_not_woken() {
    let why = caught(&pipeline(), |event, _, _, grants| {
        if let Event::SetFlag { .. } = event {
            grants.clear();
        }
    });
    assert!(why.contains("p1 was granted out of turn: [(p2, 3), (p1, 1)]"), "{why}");
}

#[test]
fn catches_a_flag_that_takes_a_smaller_value() {
    let why = caught(&pipeline(), |event, before, after, grants| {
        if let Event::SetFlag { flag, value: 2 } = event {
            instead(Event::ResetFlag { flag }, before, after, grants);
            *grants = after.on(event).unwrap_or_default();
        }
    });
    assert!(why.contains("fall") || why.contains("waits"), "{why}");
}

#[test]
fn a_word_taken_by_one_object_sends_the_others_of_its_place_to_the_table() {
    let scripts = [p(0).section(M).set(F, 1), p(1).section(M2).wait(F, 1), p(2).try_section(M).try_section(M2)];
    let (_, path) = explore(Delivery::Quick, &scripts).violation.expect("the flag stays");
    assert!(!path.is_empty());
    let scripts = [p(0).section(M).set(F, 1).arrive(B, 2).reset(F), p(1).section(M2).wait(F, 1).arrive(B, 2)];
    assert_eq!(states(&scripts), (60, 335, 1_266));
}

#[test]
fn catches_a_word_that_is_emptied_while_the_table_has_the_mutex() {
    let empties: Bug = |event, _, after, grants| {
        if let (Event::Lock { .. }, []) = (event, grants.as_slice()) {
            after.thin = Thin::Empty;
        }
    };
    let (why, _) = explore_with_bug(Delivery::Quick, &three_sections(), empties).violation.expect("the bug is caught");
    assert!(why.contains("both inside") || why.contains("out of turn"), "{why}");
}

#[test]
fn catches_a_flag_that_leaves_the_table_with_a_waiter_behind() {
    let scripts = [p(0).wait(F, 2).arrive(B, 2).reset(F), p(1).set(F, 1).set(F, 2).arrive(B, 2)];
    let leaves: Bug = |event, _, after, _| {
        if let (Event::SetFlag { flag, value: 1 }, Thin::Fat { .. }) = (event, after.thin) {
            after.thin = Thin::Flag { flag, value: 1 };
        }
    };
    let (why, _) = explore_with_bug(Delivery::Quick, &scripts, leaves).violation.expect("the bug is caught");
    assert!(why.contains("waits for ever"), "{why}");
}

/// The table took another event than it was given.
fn instead(event: Event, before: &Store, after: &mut Store, grants: &mut Vec<Grant>) {
    *after = before.clone();
    *grants = after.on(event).unwrap_or_default();
}
