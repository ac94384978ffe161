//! What Cashmere's tables have beyond the paper: twins at home, exclusive mode for the home when the last reader has left, and views
//! that keep their right to write from one release to the next.

mod copy;

use copy::{A, B, Copy, HOME, ME, OTHER};
use finespun_protocol::cashmere::{Action, Contents, Directory, Event, Mode, Msg, Outcome, Step};
use finespun_types::{Access, NodeSet, ViewId, ViewSet};

/// A whole flush, of which the home says that the other node shares the unit.
fn flush(copy: &mut Copy, view: ViewId, keep: bool) -> Step {
    let step = copy.on(Event::Flush { view, since: copy.now + 1, keep });
    copy.recv(HOME, Msg::FlushAck(NodeSet::only(copy.place.me).with(OTHER)));
    copy.recv(OTHER, Msg::NoticeAck);
    step
}

/// Words to the home.
fn send(msg: Msg) -> Action {
    Action::Send { to: NodeSet::only(HOME), msg, contents: Contents::Nothing }
}

fn flush_with(contents: Contents) -> Action {
    Action::Send { to: NodeSet::only(HOME), msg: Msg::Flush, contents }
}

#[test]
fn the_view_stays_on_the_dirty_list_and_the_twin_becomes_what_was_flushed() {
    let mut copy = Copy::written(ME);
    let expected =
        [Action::ListDirty(ViewSet::only(A)), Action::RightKept, flush_with(Contents::Diff { refresh: true })];
    assert_eq!(flush(&mut copy, A, true).actions.as_slice(), expected);
    assert!(copy.unit.writers.contains(A) && copy.unit.dirty.contains(A) && copy.unit.has_twin);
}

#[test]
fn a_release_that_does_not_keep_ends_it() {
    let mut copy = Copy::written(ME);
    flush(&mut copy, A, true);
    let last = flush(&mut copy, A, false);
    let expected = [Action::Protect { view: A, access: Access::Read }, flush_with(Contents::Diff { refresh: false })];
    assert_eq!(last.actions.as_slice(), expected);
    assert!(copy.unit.dirty.is_empty() && !copy.unit.has_twin);
}

#[test]
fn an_empty_diff_is_counted_and_leaves_the_right() {
    let mut copy = Copy::written(ME);
    flush(&mut copy, A, true);
    copy.on(Event::Flush { view: A, since: copy.now + 1, keep: true });
    let nothing = copy.on(Event::NothingChanged);
    assert_eq!(nothing.actions.as_slice(), [Action::FlushDone(A), Action::Wake, Action::KeptInVain]);
    assert!(copy.unit.writers.contains(A) && copy.unit.dirty.contains(A));
}

#[test]
fn at_home_a_twin_made_by_the_first_such_flush_tells_whether_anything_changed() {
    let mut copy = Copy::written(HOME);
    let first = flush(&mut copy, A, true);
    let expected =
        [Action::ListDirty(ViewSet::only(A)), Action::RightKept, Action::MakeTwin, flush_with(Contents::Nothing)];
    assert_eq!(first.actions.as_slice(), expected);
    let second = flush(&mut copy, A, true);
    assert!(second.actions.as_slice().contains(&flush_with(Contents::Diff { refresh: true })));
    let last = flush(&mut copy, A, false);
    assert!(
        last.actions.as_slice().contains(&flush_with(Contents::Diff { refresh: false })),
        "what was kept is compared"
    );
    assert!(!copy.unit.has_twin);
}

#[test]
fn at_home_the_end_of_exclusive_mode_makes_a_twin_and_who_has_not_written_since_tells_nobody() {
    let mut copy = Copy::written(HOME);
    copy.unit.mode = Mode::Exclusive;
    copy.unit.dirty = ViewSet::EMPTY;
    let broken = copy.recv(HOME, Msg::Break);
    let reply = Action::Send { to: NodeSet::only(HOME), msg: Msg::BreakReply, contents: Contents::Nothing };
    assert_eq!(broken.actions.as_slice(), [Action::ListDirty(ViewSet::only(A)), Action::MakeTwin, reply]);
    let flush = copy.on(Event::Flush { view: A, since: copy.now + 1, keep: false });
    assert!(flush.actions.as_slice().contains(&flush_with(Contents::Diff { refresh: false })));
    let nothing = copy.on(Event::NothingChanged);
    assert_eq!(nothing.actions.as_slice(), [Action::FlushDone(A), Action::Wake]);
    assert!(!copy.unit.has_twin && copy.unit.dirty.is_empty());
}

#[test]
fn the_home_asks_for_exclusive_mode_once_after_the_last_other_sharer_has_left() {
    let mut entry = Directory { sharers: NodeSet::only(HOME).with(ME).with(OTHER), ..Directory::default() };
    assert_eq!(Step::of(|out| entry.on(HOME, ME, Msg::Leave, out)).unwrap().actions.as_slice(), []);
    let last = Step::of(|out| entry.on(HOME, OTHER, Msg::Leave, out)).unwrap();
    assert_eq!(last.actions.as_slice(), [send(Msg::LeftAlone)]);
    let mut copy = Copy::shared(HOME);
    let shared = copy.write(A);
    assert!(!shared.actions.as_slice().contains(&send(Msg::Upgrade)), "others read it");
    let mut copy = Copy::shared(HOME);
    assert_eq!(copy.recv(HOME, Msg::LeftAlone).actions.as_slice(), []);
    assert_eq!(copy.write(A).actions.as_slice(), [send(Msg::Upgrade)]);
    copy.recv(HOME, Msg::UpgradeReply { granted: false });
    let refused = copy.write(A);
    assert_eq!(refused.outcome, Outcome::Done, "somebody came meanwhile: it asks no second time");
}

#[test]
fn the_only_sharer_keeps_nothing_for_exclusive_mode_costs_less() {
    let mut copy = Copy::written(ME);
    copy.on(Event::Flush { view: A, since: copy.now + 1, keep: true });
    copy.recv(HOME, Msg::FlushAck(NodeSet::only(ME)));
    let step = copy.on(Event::Flush { view: A, since: copy.now + 1, keep: true });
    assert!(step.actions.as_slice().contains(&Action::Protect { view: A, access: Access::Read }));
    copy.recv(HOME, Msg::FlushAck(NodeSet::only(ME)));
    assert_eq!(copy.on(Event::WriteFault { view: A, since: copy.now + 1 }).outcome, Outcome::Wait);
    assert_eq!(copy.unit.mode, Mode::Upgrading);
}

#[test]
fn a_notice_takes_the_mapping_and_what_is_owed_stays_owed() {
    let mut copy = Copy::written(ME);
    flush(&mut copy, A, true);
    copy.recv(OTHER, Msg::Notice);
    let step = copy.on(Event::Invalidate { view: A });
    assert_eq!(step.actions.as_slice(), [Action::Protect { view: A, access: Access::None }]);
    assert!(copy.unit.dirty.contains(A) && copy.unit.has_twin && copy.unit.writers.is_empty());
}

#[test]
fn a_view_that_has_lost_its_right_cannot_keep_it() {
    let mut copy = Copy::written(ME);
    copy.on(Event::WriteFault { view: B, since: copy.now + 1 });
    copy.recv(OTHER, Msg::Notice);
    copy.on(Event::Invalidate { view: B });
    let step = flush(&mut copy, B, true);
    assert_eq!(step.actions.as_slice(), [flush_with(Contents::Diff { refresh: true })], "A is dirty still");
    assert!(!copy.unit.dirty.contains(B));
}
