//! Every interleaving of small worlds in which mutexes migrate, messages in any order, and seeded bugs that must be caught.

mod world;

use finespun_sync::Thin;
use finespun_sync::migratory::{Action, Event, Message, Part, Place};
use finespun_types::{NodeId, NodeIndex};
use world::Step::{Await, Back, Enqueue, Leave, Lock, Put, Signal, SkipIfItem, Take, Try, Unlock};
use world::{LOCAL_MAX, Setting, Step, Store, explore};

const M: u64 = 0x2000_0000_0000;
const M2: u64 = 0x2000_0000_0008;
const C: u64 = 0x2000_0000_0010;

type Scripts = Vec<(NodeIndex, Vec<Step>)>;
type Bug = fn(Place, &Event, &Store, &mut Store, &mut Vec<Action>);

fn world(manager: NodeIndex, scripts: Scripts, bug: Bug) -> Result<usize, String> {
    explore(&setting(manager, scripts, bug), &[M, M2])
}

/// The same with a word beside each table.
fn world_with_words(manager: NodeIndex, scripts: Scripts, bug: Bug) -> Result<usize, String> {
    explore(&Setting { has_words: true, ..setting(manager, scripts, bug) }, &[M, M2])
}

fn setting(manager: NodeIndex, scripts: Scripts, bug: Bug) -> Setting {
    Setting { scripts, manager, local_max: LOCAL_MAX, has_words: false, is_late: false, bug }
}

/// How many states there are when nothing is wrong. With words beside the tables nothing is wrong either.
fn states(manager: NodeIndex, scripts: Scripts) -> usize {
    world_with_words(manager, scripts.clone(), |_, _, _, _, _| {}).unwrap_or_else(|why| panic!("with words: {why}"));
    world(manager, scripts, |_, _, _, _, _| {}).unwrap_or_else(|why| panic!("{why}"))
}

fn caught(scripts: Scripts, bug: Bug) -> String {
    world(0, scripts, bug).expect_err("the bug is caught")
}

fn section(mutex: u64) -> Vec<Step> {
    vec![Lock(mutex), Unlock(mutex)]
}

fn sections(mutex: u64, count: usize) -> Vec<Step> {
    section(mutex).repeat(count)
}

/// Two processors on node 1 and one on each other node.
fn two_beside_one() -> Scripts {
    vec![(1, sections(M, 2)), (1, sections(M, 2)), (2, sections(M, 2))]
}

fn consumers_and_producer() -> Scripts {
    let consume = vec![Lock(M), SkipIfItem(5), Enqueue(C), Unlock(M), Await, Lock(M), Back(5), Take, Unlock(M)];
    let produce = [Lock(M), Put, Signal(C), Unlock(M)];
    vec![(0, consume.clone()), (1, consume), (2, produce.repeat(2))]
}

fn tries() -> Scripts {
    vec![
        (0, vec![Try(M, 1), Unlock(M), Try(M, 1), Unlock(M)]),
        (1, vec![Lock(M), Unlock(M), Try(M, 1), Unlock(M)]),
        (1, vec![Try(M, 1), Unlock(M)]),
        (2, vec![Try(M, 1), Unlock(M), Lock(M), Unlock(M)]),
    ]
}

fn leaves() -> Scripts {
    let leave = vec![Lock(M), Leave(M)];
    vec![(1, leave.repeat(2)), (1, leave.clone()), (1, leave.clone()), (2, leave)]
}

#[test]
fn one_holds_it_at_a_time_wherever_its_manager_is() {
    let found = [0, 1, 2].map(|manager| states(manager, two_beside_one()));
    assert_eq!(found, [747, 723, 729]);
}

#[test]
fn four_nodes_queue_without_a_queue() {
    let scripts = (0..4).map(|node| (node, sections(M, 2))).collect();
    assert_eq!(states(0, scripts), 25_648);
}

#[test]
fn two_mutexes_do_not_mix() {
    let both = vec![Lock(M), Lock(M2), Unlock(M2), Unlock(M)];
    assert_eq!(states(1, vec![(0, both.clone()), (1, both), (2, sections(M2, 2))]), 1_388);
}

#[test]
fn catches_a_word_that_still_says_who_could_take_a_mutex_that_left() {
    let scripts = vec![(0, sections(M, 2)), (1, sections(M, 2))];
    let why = world_with_words(0, scripts, |_, event, before, after, _| {
        if let (Event::Receive(Message::Ask { .. }), Thin::Rests { .. }) = (event, before.thin) {
            after.thin = before.thin;
        }
    });
    let why = why.expect_err("the bug is caught");
    assert!(why.contains("both inside") || why.contains("which no processor of this node holds"), "{why}");
}

#[test]
fn two_locks_in_opposite_order_are_seen_to_hang() {
    let scripts =
        vec![(0, vec![Lock(M), Lock(M2), Unlock(M2), Unlock(M)]), (1, vec![Lock(M2), Lock(M), Unlock(M), Unlock(M2)])];
    assert!(world(0, scripts, |_, _, _, _, _| {}).is_err_and(|why| why.contains("waits for ever")));
}

#[test]
fn a_try_is_answered_and_never_refused_a_mutex_that_rests() {
    assert_eq!(states(1, tries()), 15_734);
}

#[test]
fn no_wake_up_of_a_condition_is_lost() {
    assert_eq!(states(2, consumers_and_producer()), 2_745);
}

#[test]
fn a_mutex_never_leaves_a_node_with_changes_unreleased() {
    assert_eq!(states(0, leaves()), 1_848);
}

/// The message of this kind is not sent.
fn lose(actions: &mut Vec<Action>, is_lost: fn(&Message) -> bool) {
    actions.retain(|action| match action {
        Action::Send { message, .. } => !is_lost(message),
        Action::Grant(_) => true,
    });
}

/// Events that an unlock is.
fn is_unlock(event: &Event) -> bool {
    matches!(event, Event::Unlock(_))
}

#[test]
fn catches_an_unlock_that_keeps_the_mutex_from_the_next_node() {
    let why = caught(two_beside_one(), |_, event, _, _, actions| {
        if is_unlock(event) {
            lose(actions, |message| matches!(message, Message::Own { .. }));
        }
    });
    assert!(why.contains("0 owners"), "{why}");
}

#[test]
fn catches_a_node_that_gives_the_mutex_and_keeps_it() {
    let why = caught(two_beside_one(), |_, event, before, after, actions| {
        if let (Event::Receive(Message::Forward { .. }), [Action::Send { .. }]) = (event, actions.as_slice()) {
            *after = before.clone();
        }
    });
    assert!(why.contains("2 owners"), "{why}");
}

#[test]
fn catches_a_manager_that_forgets_who_asked_last() {
    let why = caught(two_beside_one(), |_, event, before, after, _| {
        if let Event::Receive(Message::Ask { .. }) = event {
            *after = before.clone();
        }
    });
    assert!(why.contains("owners") || why.contains("no part in it"), "{why}");
}

#[test]
fn catches_a_second_request_of_a_node() {
    let why = caught(two_beside_one(), |at, event, before, _, actions| {
        let asks = before.clone().table().migratory(M).part == Part::Asking;
        if let (Event::Lock(_), true) = (event, asks) {
            let message = Message::Ask { node: at.me, trier: None };
            actions.push(Action::Send { to: at.manager, message });
        }
    });
    assert!(why.contains("requests of node 1 under way"), "{why}");
}

#[test]
fn catches_a_node_that_does_not_ask_again_for_those_left_behind() {
    let why = caught(two_beside_one(), |_, event, _, _, actions| {
        if is_unlock(event) {
            lose(actions, |message| matches!(message, Message::Ask { .. }));
        }
    });
    assert!(why.contains("waits for ever"), "{why}");
}

#[test]
fn catches_locals_that_go_first_without_bound() {
    let scripts = vec![(1, sections(M, 3)), (1, sections(M, 3)), (2, section(M))];
    let unbounded = Setting { local_max: u8::MAX, ..setting(0, scripts, |_, _, _, _, _| {}) };
    let why = explore(&unbounded, &[M]).expect_err("the bug is caught");
    assert!(why.contains("a node waits for 2 hand-overs"), "{why}");
}

#[test]
fn catches_a_mutex_for_nobody_that_is_not_passed_on() {
    let why = caught(tries(), |at, event, before, _, actions| {
        let next = before.clone().table().migratory(M).next;
        if let (Event::Receive(Message::Own { trier: None }), Some(_), 2) = (event, next, at.me.0) {
            lose(actions, |message| matches!(message, Message::Own { .. }));
        }
    });
    assert!(why.contains("0 owners"), "{why}");
}

#[test]
fn catches_a_try_that_succeeds_while_the_mutex_is_held() {
    let why = caught(tries(), |_, event, _, _, actions| {
        if let (Event::TryLock(_), [Action::Grant(grant)]) = (event, actions.as_mut_slice()) {
            grant.value = 1;
        }
    });
    assert!(why.contains("both inside") || why.contains("not inside") || why.contains("which"), "{why}");
}

#[test]
fn catches_a_try_that_is_not_told_that_it_failed() {
    let why = caught(tries(), |_, event, _, _, actions| {
        if let Event::Receive(Message::Forward { .. }) = event {
            actions.retain(|action| matches!(action, Action::Send { .. }));
        }
    });
    assert!(why.contains("waits for"), "{why}");
}

#[test]
fn catches_a_hand_over_without_release_to_another_node() {
    let why = caught(leaves(), |at, event, before, after, actions| {
        let next = before.clone().table().migratory(M).next;
        if let (Event::HandOver { who, .. }, [], Some(_)) = (event, actions.as_slice(), next) {
            let unlocked = after.table().on_migratory(M, at, &Event::Unlock(*who), &mut |action| actions.push(action));
            unlocked.expect("it holds the mutex");
        }
    });
    assert!(why.contains("not inside") || why.contains("nobody has released") || why.contains("no processor"), "{why}");
}

#[test]
fn catches_an_own_that_goes_to_the_manager_instead_of_the_next() {
    let why = caught(two_beside_one(), |at, _, _, _, actions| {
        for action in actions {
            if let Action::Send { to, message: Message::Own { .. } } = action
                && at.me != at.manager
            {
                *to = NodeId(0);
            }
        }
    });
    assert!(why.contains("no part in it") || why.contains("owners"), "{why}");
}
