//! What [Cashmere05 §2.1] and [Cashmere05 §2.3.1] say of the protocol, one test for each claim, on the tables
//! themselves. The tests stand in for the driver: they present events and read the actions.

mod copy;

use copy::{A, B, Copy, GRANT, HOME, ME, OTHER};
use finespun_protocol::cashmere::sync::release_began;
use finespun_protocol::cashmere::{Action, Contents, Directory, Event, Homes, Mode, Msg, Outcome, Phase, Step};
use finespun_types::{Access, NodeId, NodeSet, ViewId, ViewSet};

fn send(to: NodeId, msg: Msg, contents: Contents) -> Action {
    Action::Send { to: NodeSet::only(to), msg, contents }
}

fn right(view: ViewId, access: Access) -> Action {
    Action::Protect { view, access }
}

fn sends(step: &Step, wanted: impl Fn(Msg) -> bool) -> bool {
    step.actions.as_slice().iter().any(|action| matches!(action, Action::Send { msg, .. } if wanted(*msg)))
}

fn has(step: &Step, action: Action) -> bool {
    step.actions.as_slice().contains(&action)
}

fn nodes(all: &[NodeId]) -> NodeSet {
    all.iter().fold(NodeSet::EMPTY, |set, &node| set.with(node))
}

/// Every page has one home, the first node that touches it [§2.1, §2.3.1.1].
#[test]
fn the_first_node_to_touch_a_page_becomes_its_home() {
    let mut homes = Homes::default();
    assert_eq!(
        Step::of(|out| homes.on(OTHER, Msg::AskHome, out)).unwrap().actions.as_slice(),
        [send(OTHER, Msg::HomeIs(OTHER), Contents::Nothing)]
    );
    assert_eq!(
        Step::of(|out| homes.on(ME, Msg::AskHome, out)).unwrap().actions.as_slice(),
        [send(ME, Msg::HomeIs(OTHER), Contents::Nothing)]
    );
    assert_eq!(homes.home(), Some(OTHER));
}

/// The home's frame is the master copy [§2.1].
#[test]
fn the_home_has_the_master_copy_and_needs_no_twin_and_no_diff() {
    let mut home = Copy::written(HOME);
    assert!(!home.unit.has_twin && home.unit.is_current(HOME));
    assert!(has(&home.flush(A), send(HOME, Msg::Flush, Contents::Nothing)));
}

/// A release brings the changes to the master copy and tells the sharers that their copies are old [§2.1].
#[test]
fn a_release_updates_the_master_copy_and_then_sends_invalidations() {
    let mut copy = Copy::written(ME);
    let flush = copy.flush(A);
    assert!(has(&flush, send(HOME, Msg::Flush, Contents::Diff { refresh: false })));
    assert!(!sends(&flush, |msg| msg == Msg::Notice), "not before the home has the diff");

    let sharers = nodes(&[ME, OTHER]);
    let mut directory = Directory { sharers, ..Directory::default() };
    let applied = Step::of(|out| directory.on(HOME, ME, Msg::Flush, out)).expect("a sharer may flush");
    let ack = Msg::FlushAck(sharers);
    assert_eq!(applied.actions.as_slice(), [Action::ApplyUpdate, send(ME, ack, Contents::Nothing)]);
    assert_eq!(copy.recv(HOME, ack).actions.as_slice(), [send(OTHER, Msg::Notice, Contents::Nothing)]);
}

/// A sharer obeys at its own next acquire, and fetches only when it then touches the page [§2.1].
#[test]
fn an_invalidation_waits_for_the_acquire_and_the_update_for_the_next_access() {
    let mut copy = Copy::shared(ME);
    let listed = [Action::ListNotice(ViewSet::only(A)), send(OTHER, Msg::NoticeAck, Contents::Nothing)];
    assert_eq!(copy.recv(OTHER, Msg::Notice).actions.as_slice(), listed);
    assert!(copy.unit.mapped.contains(A), "readable until the acquire");
    let acquire = copy.acquire(A);
    assert!(has(&acquire, right(A, Access::None)) && !sends(&acquire, |msg| matches!(msg, Msg::Fetch { .. })));
    assert_eq!(copy.read(A).actions.as_slice(), [send(HOME, Msg::Fetch { write: false }, Contents::Nothing)]);
}

/// Several processors may write one page at a time; their changes meet at the home [§2.1].
#[test]
fn two_nodes_write_a_page_at_once_and_the_home_applies_both_diffs() {
    let sharers = nodes(&[ME, OTHER]);
    let mut directory = Directory { sharers, ..Directory::default() };
    for writer in [ME, OTHER] {
        assert_eq!(Copy::written(writer).unit.mode, Mode::Shared);
        assert!(has(
            &Step::of(|out| directory.on(HOME, writer, Msg::Flush, out)).expect("a sharer may flush"),
            Action::ApplyUpdate
        ));
    }
    assert_eq!((directory.phase, directory.sharers), (Phase::Shared, sharers));
}

/// An acquire obeys every notice that has come, whatever it follows [§2.1]: it names no lock and no releaser.
#[test]
fn any_acquire_obeys_the_invalidations_of_all_releasers() {
    let mut copy = Copy::shared(ME);
    copy.recv(OTHER, Msg::Notice);
    let second = copy.recv(NodeId(3), Msg::Notice);
    assert_eq!(second.actions.as_slice(), [send(NodeId(3), Msg::NoticeAck, Contents::Nothing)], "listed already");
    assert!(has(&copy.acquire(A), right(A, Access::None)));
}

/// A fault puts the node in the sharing set and brings the home's copy [§2.1].
#[test]
fn a_fault_enters_the_sharing_set_and_brings_the_page_from_the_home() {
    let mut directory = Directory { sharers: nodes(&[HOME]), ..Directory::default() };
    let granted = Step::of(|out| directory.on(HOME, ME, Msg::Fetch { write: false }, out)).expect("anybody may fetch");
    assert_eq!(directory.sharers, nodes(&[HOME, ME]));
    assert_eq!(granted.actions.as_slice(), [send(ME, GRANT, Contents::Released)]);
    let mut copy = Copy::at(ME);
    copy.read(A);
    assert_eq!(copy.recv(HOME, GRANT).actions.as_slice(), [Action::Install, Action::Wake]);
}

/// A write fault makes a twin and puts the page on the dirty list [§2.1].
#[test]
fn a_write_fault_makes_a_twin_and_enters_the_dirty_list_before_the_view_may_write() {
    let expected = [Action::MakeTwin, Action::ListDirty(ViewSet::only(A)), right(A, Access::Write)];
    assert_eq!(Copy::shared(ME).write(A).actions.as_slice(), expected);
}

/// A page with one sharer goes into exclusive mode: no twin, no dirty list [§2.1].
#[test]
fn a_page_of_one_node_goes_into_exclusive_mode_without_twin_or_dirty_list() {
    let mut directory = Directory::default();
    let granted = Step::of(|out| directory.on(HOME, ME, Msg::Fetch { write: true }, out)).expect("anybody may fetch");
    assert!(sends(&granted, |msg| msg == Msg::Grant { exclusive: true, alone: true }));
    assert_eq!(directory.owner(), Some(ME));
    let unit = Copy::exclusive(ME).unit;
    assert_eq!((unit.mode, unit.has_twin, unit.dirty), (Mode::Exclusive, false, ViewSet::EMPTY));
    assert!(unit.writers.contains(A));
}

/// The same for a page that the only sharer has read before: it asks, without moving the page.
#[test]
fn the_only_sharer_is_upgraded_without_a_page() {
    let mut copy = Copy::at(ME);
    copy.read(A);
    copy.recv(HOME, Msg::Grant { exclusive: false, alone: true });
    copy.read(A);
    assert_eq!(copy.write(A).actions.as_slice(), [send(HOME, Msg::Upgrade, Contents::Nothing)]);
    let reply = copy.recv(HOME, Msg::UpgradeReply { granted: true });
    assert_eq!(reply.actions.as_slice(), [Action::EnteredExclusive, Action::Wake]);
    assert_eq!(copy.write(A).actions.as_slice(), [right(A, Access::Write)]);
}

/// Exclusive mode costs nothing more until another node asks [§2.1].
#[test]
fn an_exclusive_page_costs_nothing_until_another_sharer_emerges() {
    let mut copy = Copy::exclusive(ME);
    assert_eq!(copy.write(B).actions.as_slice(), [right(B, Access::Write)]);
    let both = ViewSet::only(A).with(B);
    let expected = [Action::ListDirty(both), Action::MakeTwin, send(HOME, Msg::BreakReply, Contents::Twin)];
    assert_eq!(copy.recv(HOME, Msg::Break).actions.as_slice(), expected);
    assert_eq!((copy.unit.mode, copy.unit.dirty), (Mode::Shared, both));
}

/// A release takes away the right to write [§2.1]. The paper does so after the diff, here the right goes first: a store
/// after the diff was read must fault.
#[test]
fn a_release_takes_the_right_to_write_before_the_diff_is_read() {
    let expected = [right(A, Access::Read), send(HOME, Msg::Flush, Contents::Diff { refresh: false })];
    assert_eq!(Copy::written(ME).flush(A).actions.as_slice(), expected);
}

/// The sharing set gets the write notices [§2.1]: all but the releaser, and the home, whose frame has the changes.
#[test]
fn write_notices_go_to_the_sharing_set_without_releaser_and_home() {
    let mut copy = Copy::written(ME);
    copy.flush(A);
    let to = nodes(&[OTHER, NodeId(3)]);
    let step = copy.recv(HOME, Msg::FlushAck(to.with(ME).with(HOME)));
    assert_eq!(step.actions.as_slice(), [Action::Send { to, msg: Msg::Notice, contents: Contents::Nothing }]);
}

/// Notices wait in a list until the processor's next acquire, which drops the mappings they name [§2.1].
#[test]
fn each_view_that_maps_the_page_obeys_a_notice_at_its_own_acquire() {
    let mut copy = Copy::shared(ME);
    copy.read(B);
    assert!(has(&copy.recv(OTHER, Msg::Notice), Action::ListNotice(ViewSet::only(A).with(B))));
    copy.acquire(A);
    assert_eq!(copy.unit.mapped, ViewSet::only(B));
}

/// But not a mapping of a frame that another processor of the node has meanwhile brought up to date [§2.1].
#[test]
fn a_page_that_another_processor_of_the_node_updated_stays_mapped() {
    let mut copy = Copy::shared(ME);
    copy.read(B);
    copy.recv(OTHER, Msg::Notice);
    copy.acquire(A);
    copy.read(A);
    copy.recv(HOME, GRANT);
    assert_eq!(copy.acquire(B).actions.as_slice(), []);
    assert!(copy.unit.mapped.contains(B));
}

/// A copy updated after the last notice came needs no fetch [§2.1].
#[test]
fn a_fetch_is_skipped_when_the_last_update_is_later_than_the_last_notice() {
    let mut copy = Copy::shared(ME);
    assert_eq!(copy.read(B).actions.as_slice(), [Action::FetchSkipped, right(B, Access::Read)]);
    copy.recv(OTHER, Msg::Notice);
    assert!(sends(&copy.read(ViewId(2)), |msg| matches!(msg, Msg::Fetch { .. })));
}

/// When a copy was updated is when the page was asked for [§2.1 leaves it open]: what was flushed after that is missing.
#[test]
fn a_notice_that_overtakes_the_page_makes_the_page_old_when_it_arrives() {
    let mut copy = Copy::at(ME);
    copy.read(A);
    copy.recv(OTHER, Msg::Notice);
    copy.recv(HOME, GRANT);
    assert!(!copy.unit.is_current(ME));
    assert_eq!(copy.read(A).outcome, Outcome::Done, "new enough for the fault that asked");
    assert!(has(&copy.acquire(A), right(A, Access::None)));
}

/// ... but not for a view whose other thread acquired meanwhile: it must not find an old page mapped. (Views with several
/// threads are ours, not the paper's.)
#[test]
fn an_acquire_while_a_fault_waits_makes_it_fetch_again() {
    let mut copy = Copy::at(ME);
    copy.read(A);
    copy.recv(HOME, GRANT);
    assert!(has(&copy.recv(OTHER, Msg::Notice), Action::ListNotice(ViewSet::only(A))), "listed though not mapped yet");
    copy.acquire(A);
    assert!(sends(&copy.read(A), |msg| matches!(msg, Msg::Fetch { .. })));
}

/// The processors of a node share a frame; only sharing between nodes costs anything [§2.1].
#[test]
fn a_second_writer_of_the_node_sends_nothing_and_needs_no_second_twin() {
    let step = Copy::written(ME).write(B);
    assert_eq!(step.actions.as_slice(), [Action::ListDirty(ViewSet::only(B)), right(B, Access::Write)]);
}

/// Two processors of a node that need one page cause one fetch [§2.1].
#[test]
fn two_faults_of_a_node_share_one_fetch() {
    let mut copy = Copy::at(ME);
    assert!(sends(&copy.read(A), |msg| matches!(msg, Msg::Fetch { .. })));
    let second = copy.read(B);
    assert_eq!((second.outcome, second.actions.as_slice()), (Outcome::Wait, [].as_slice()));
    copy.recv(HOME, GRANT);
    assert_eq!((copy.read(A).outcome, copy.read(B).outcome), (Outcome::Done, Outcome::Done));
}

/// The same for flushes: one that began after a release began has all that this release owes.
#[test]
fn two_releases_of_a_node_share_one_flush() {
    let mut copy = Copy::written(ME);
    copy.write(B);
    copy.now += 1;
    let since = release_began(copy.now, false);
    assert!(sends(&copy.on(Event::Flush { view: A, since, keep: false }), |msg| msg == Msg::Flush));
    assert_eq!(copy.on(Event::Flush { view: B, since, keep: false }).outcome, Outcome::Wait, "until the first is done");
    copy.recv(HOME, Msg::FlushAck(nodes(&[ME])));
    let second = copy.on(Event::Flush { view: B, since, keep: false });
    assert_eq!(second.outcome, Outcome::Done);
    assert!(has(&second, Action::FlushSkipped) && !sends(&second, |msg| msg == Msg::Flush));
}

/// The two-way diff: what differs between the page that came and the twin goes to both frame and twin, nothing else
/// does [§2.1].
#[test]
fn an_update_beside_local_writers_is_an_incoming_diff_and_shoots_down_no_mapping() {
    let mut copy = Copy::written(ME);
    copy.recv(OTHER, Msg::Notice);
    copy.read(B);
    assert_eq!(copy.recv(HOME, GRANT).actions.as_slice(), [Action::Merge, Action::Wake]);
    assert!(copy.unit.writers.contains(A), "the writer goes on writing");
}

/// The twin is kept up to date so that a node flushes its own changes only [§2.1]: beside other local writers, it becomes
/// what was sent.
#[test]
fn a_flush_beside_other_local_writers_keeps_the_twin_refreshed() {
    let mut copy = Copy::written(ME);
    copy.write(B);
    assert!(has(&copy.flush(A), send(HOME, Msg::Flush, Contents::Diff { refresh: true })));
    assert!(copy.unit.has_twin);
}

/// A release is over when its diffs are complete [§2.3.1.1]; with messages, acknowledgments tell [§2.3.1].
#[test]
fn a_release_is_complete_only_when_home_and_sharers_have_answered() {
    let mut copy = Copy::written(ME);
    assert_eq!(copy.flush(A).outcome, Outcome::Begun);
    let done = Action::FlushDone(A);
    assert!(!has(&copy.recv(HOME, Msg::FlushAck(nodes(&[ME, OTHER, NodeId(3)]))), done));
    assert!(!has(&copy.recv(OTHER, Msg::NoticeAck), done));
    assert!(has(&copy.recv(NodeId(3), Msg::NoticeAck), done));
}

/// Only an invalidated page needs a directory message of its own [§2.3.1.3].
#[test]
fn the_only_message_for_the_directory_alone_is_sent_when_the_last_mapping_goes() {
    let mut copy = Copy::shared(ME);
    copy.read(B);
    copy.recv(OTHER, Msg::Notice);
    assert!(!sends(&copy.acquire(A), |msg| msg == Msg::Leave));
    assert!(sends(&copy.acquire(B), |msg| msg == Msg::Leave));
}
