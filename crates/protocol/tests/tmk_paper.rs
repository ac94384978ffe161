//! What is said of TreadMarks' lazy release consistency, sentence by sentence, on the tables.

use finespun_protocol::tmk::{Action, Event, Knowledge, Mode, Seen, Unit, covers};
use finespun_types::{Access, NodeId};

const ME: NodeId = NodeId(0);
const OTHER: NodeId = NodeId(1);

/// A copy at node 0 of three.
#[derive(Default)]
struct Copy {
    unit: Unit,
    writers: [Seen; 3],
}

impl Copy {
    fn on(&mut self, event: Event<'_>) -> Vec<Action> {
        let step = self.unit.on(ME, &mut self.writers, event).expect("a row");
        step.actions.as_slice().to_vec()
    }

    /// Written in an interval that has ended.
    fn owing() -> Self {
        let mut copy = Self::default();
        copy.on(Event::Fault { write: true });
        copy.on(Event::Close { index: 1, stamp: 1 });
        copy
    }
}

/// [Cashmere05 §4.1]: lazy release consistency delays and aggregates the propagation of data as far as possible.
#[test]
fn the_end_of_an_interval_sends_nothing_and_makes_no_diff() {
    let mut copy = Copy::default();
    assert_eq!(
        copy.on(Event::Fault { write: true }),
        [Action::MakeTwin, Action::ListDirty, Action::Protect(Access::Write)]
    );
    assert_eq!(copy.on(Event::Close { index: 1, stamp: 1 }), [Action::Protect(Access::Read)]);
    assert!(copy.unit.has_twin && copy.unit.owed == 1);
}

/// [Cashmere05 §1]: updates go to those that are found to be causally downstream, when they ask.
#[test]
fn a_diff_is_made_when_somebody_asks_for_it() {
    let mut copy = Copy::owing();
    let answer = copy.on(Event::AskDiffs { from: OTHER, after: 0, upto: 1 });
    let made = Action::MakeDiff { index: 1, stamp: 1, refresh: false };
    assert_eq!(answer, [made, Action::DropTwin, Action::SendDiffs { to: OTHER, after: 0, upto: 1 }]);
    let again = copy.on(Event::AskDiffs { from: NodeId(2), after: 0, upto: 1 });
    assert_eq!(again, [Action::SendDiffs { to: NodeId(2), after: 0, upto: 1 }]);
}

/// [Cashmere05 §4.1]: accumulated diffs. Ours are of all intervals that nobody has asked about in between.
#[test]
fn intervals_that_nobody_asks_about_share_a_twin_and_a_diff() {
    let mut copy = Copy::owing();
    assert_eq!(copy.on(Event::Fault { write: true }), [Action::ListDirty, Action::Protect(Access::Write)]);
    copy.on(Event::Close { index: 2, stamp: 5 });
    let answer = copy.on(Event::AskDiffs { from: OTHER, after: 0, upto: 2 });
    assert_eq!(answer[0], Action::MakeDiff { index: 2, stamp: 1, refresh: false });
}

/// [Cashmere05 §2.1]: copies are invalidated at an acquire, and only where the notices say so.
#[test]
fn a_notice_drops_the_mapping_and_the_next_fault_asks_every_writer_that_the_copy_lacks() {
    let mut copy = Copy::default();
    copy.on(Event::Fault { write: false });
    assert_eq!(copy.on(Event::Notice { from: OTHER, index: 3, stamp: 7 }), [Action::Protect(Access::None)]);
    copy.on(Event::Notice { from: NodeId(2), index: 1, stamp: 2 });
    assert_eq!(copy.on(Event::Fault { write: false }), [Action::AskDiffs]);
    assert_eq!((copy.unit.awaiting, copy.unit.mode), (2, Mode::AskingDiffs));
    assert_eq!(copy.on(Event::Diffs { from: OTHER, upto: 3 }), []);
    assert_eq!(copy.on(Event::Diffs { from: NodeId(2), upto: 1 }), [Action::Apply { twin: false }, Action::Wake]);
    assert_eq!(copy.on(Event::Fault { write: false }), [Action::Protect(Access::Read)]);
}

/// [Cashmere05 §1]: several processes may write separate portions of a page at the same time.
#[test]
fn diffs_that_come_while_the_open_interval_writes_go_to_the_twin_too() {
    let mut copy = Copy::default();
    copy.on(Event::Fault { write: true });
    copy.on(Event::Notice { from: OTHER, index: 1, stamp: 1 });
    copy.on(Event::Fault { write: true });
    assert_eq!(copy.on(Event::Diffs { from: OTHER, upto: 1 }), [Action::Apply { twin: true }, Action::Wake]);
}

/// [Cashmere05 §4.1]: notices are of what causally precedes; a stamp follows everything its node knew.
#[test]
fn an_interval_is_stamped_after_all_that_its_node_has_acquired() {
    let (mut seen, mut granted, mut known, mut told, mut clock) = ([0; 2], [0; 2], [0; 2], [0; 4], 0);
    let mut mine = Knowledge {
        me: ME,
        seen: &mut seen,
        granted: &mut granted,
        known: &mut known,
        told: &mut told,
        clock: &mut clock,
    };
    mine.heard(OTHER, &[0, 4]);
    mine.grant(&[0, 4]);
    assert!(!covers(mine.seen, &[0, 4]), "known, not obeyed yet");
    mine.acquired(&[0, 4], 9);
    assert_eq!(mine.ending(), (1, 10));
}

/// Collection: the last writer's copy is made complete first, an incomplete copy elsewhere is dropped.
#[test]
fn only_the_last_writer_keeps_an_incomplete_copy_and_completes_it() {
    let mut last = Copy::owing();
    last.on(Event::Notice { from: OTHER, index: 1, stamp: 1 });
    // Equal stamps: the node with the higher number is the last.
    assert_eq!(last.unit.last(), Some(OTHER));
    assert_eq!(last.on(Event::Keep { upto: &[1, 1, 0] }), []);
    last.on(Event::Collect { from: OTHER, index: 1, upto: &[1, 1, 0] });
    assert_eq!(last.unit.mode, Mode::Absent);
    let mut last = Copy::default();
    last.on(Event::Fault { write: true });
    last.on(Event::Notice { from: OTHER, index: 1, stamp: 1 });
    last.on(Event::Close { index: 1, stamp: 2 });
    assert_eq!(last.on(Event::Keep { upto: &[1, 1, 0] }), [Action::AskDiffs]);
}

/// A thread outside the barrier has brought a notice since. The copy has all that is collected, and what it lacks can still be asked for.
#[test]
fn a_copy_that_lacks_only_what_is_later_than_the_barrier_stays() {
    let mut copy = Copy::default();
    copy.on(Event::Fault { write: false });
    copy.on(Event::Notice { from: OTHER, index: 1, stamp: 1 });
    copy.on(Event::Fault { write: false });
    copy.on(Event::Diffs { from: OTHER, upto: 1 });
    copy.on(Event::Notice { from: OTHER, index: 4, stamp: 4 });
    copy.on(Event::Collect { from: OTHER, index: 1, upto: &[0, 2, 0] });
    assert_eq!(copy.unit.mode, Mode::Present);
    assert_eq!(copy.on(Event::Fault { write: false }), [Action::AskDiffs]);
}

/// A thread outside the barrier has ended an interval since: others will ask for its diff, so the copy must not be dropped.
#[test]
fn a_copy_written_later_than_the_barrier_is_completed_too() {
    let mut copy = Copy::owing();
    copy.on(Event::Notice { from: OTHER, index: 1, stamp: 1 });
    assert_eq!(copy.unit.last(), Some(OTHER));
    assert_eq!(copy.on(Event::Keep { upto: &[0, 1, 0] }), [Action::AskDiffs]);
}

/// A thread outside the barrier writes meanwhile. The twin has nothing of what is owed, so the page that is sent next needs the diff made.
#[test]
fn what_is_owed_stays_owed_while_the_open_interval_writes() {
    let mut copy = Copy::owing();
    copy.on(Event::Fault { write: true });
    assert_eq!(copy.on(Event::Collect { from: ME, index: 1, upto: &[1, 0, 0] }), []);
    let sent = copy.on(Event::AskBase { from: OTHER });
    let made = Action::MakeDiff { index: 1, stamp: 1, refresh: true };
    assert_eq!(sent, [made, Action::SendBase { to: OTHER, twin: true }]);
}
