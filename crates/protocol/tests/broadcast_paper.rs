//! What [Cashmere05 §2.3.3] says of adaptive broadcast, one test for each claim, on the tables themselves.

use finespun_protocol::cashmere::broadcast::{Broadcasting, Entry, Msg, Readers};
use finespun_protocol::cashmere::{Contents, Directory, Mode, Msg as Plain, Phase, Unit};
use finespun_protocol::page::{Action, Buffers, Event, Place, Protocol, Step};
use finespun_types::{NodeId, NodeSet, ViewId};

const HOME: NodeId = NodeId(0);
const ME: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);
const THIRD: NodeId = NodeId(3);
const A: ViewId = ViewId(0);
const FETCH: Msg = Msg::Plain(Plain::Fetch { write: false });
const FLUSH: Msg = Msg::Plain(Plain::Flush);
const FREE: Buffers = Buffers { held: false, interval: 0 };
const HELD: Buffers = Buffers { held: true, interval: 0 };

/// What the home does with a message.
fn home(entry: &mut Entry, buffers: Buffers, from: NodeId, msg: Msg) -> Vec<Action<Msg>> {
    let step = Step::of(|out| Broadcasting::on_directory_seeing(entry, buffers, HOME, from, msg, out))
        .expect("the table has a row");
    step.actions.as_slice().to_vec()
}

fn at(interval: u32) -> Buffers {
    Buffers { held: false, interval }
}

fn send(to: &[NodeId], msg: Msg, contents: Contents) -> Action<Msg> {
    Action::Send { to: to.iter().fold(NodeSet::EMPTY, |set, &node| set.with(node)), msg, contents }
}

fn announced(to: &[NodeId]) -> Action<Msg> {
    send(to, Msg::Announced, Contents::Nothing)
}

fn granted(to: NodeId, alone: bool) -> Action<Msg> {
    send(&[to], Msg::Plain(Plain::Grant { exclusive: false, alone }), Contents::Released)
}

/// A copy away from home, whose clock stands still between events that do not matter here.
fn copy(unit: &mut Unit, buffers: Buffers, now: u64, event: Event<Msg>) -> Step<Msg> {
    let place = Place { me: ME, manager: HOME, fixed_home: Some(HOME) };
    Step::of(|out| Broadcasting::on_unit_seeing(unit, buffers, place, now, event, out)).expect("the table has a row")
}

fn recv(msg: Msg) -> Event<Msg> {
    Event::Recv { from: HOME, msg }
}

/// A copy whose only view has read it.
fn shared() -> Unit {
    let mut unit = Unit::default();
    copy(&mut unit, FREE, 1, Event::ReadFault { view: A, since: 1 });
    copy(&mut unit, FREE, 2, recv(Msg::Plain(Plain::Grant { exclusive: false, alone: false })));
    copy(&mut unit, FREE, 3, Event::ReadFault { view: A, since: 1 });
    unit
}

/// Several requests in one interval of the home.
#[test]
fn the_second_node_that_asks_in_an_interval_makes_the_page_widely_read() {
    let mut entry = Entry::default();
    assert_eq!(home(&mut entry, at(7), ME, FETCH), [granted(ME, true)]);
    assert_eq!(home(&mut entry, at(7), OTHER, FETCH), [Action::Broadcast, announced(&[OTHER])]);
    assert_eq!(home(&mut entry, Buffers { held: true, interval: 7 }, THIRD, FETCH), [announced(&[THIRD])]);
}

/// Two or more requests in the interval before, and no older ones.
#[test]
fn two_requests_in_the_interval_before_make_the_first_one_broadcast() {
    let mut entry = Entry::default();
    home(&mut entry, at(7), ME, FETCH);
    home(&mut entry, at(7), OTHER, FETCH);
    let mut later = entry;
    assert_eq!(home(&mut entry, at(8), THIRD, FETCH), [Action::Broadcast, announced(&[THIRD])]);
    assert_eq!(home(&mut later, at(9), THIRD, FETCH), [granted(THIRD, false)]);
}

/// Simultaneous requests: those that wait for one answer.
#[test]
fn nodes_that_wait_for_an_owner_together_are_sent_to_one_buffer() {
    let mut entry = Entry::default();
    home(&mut entry, at(1), ME, Msg::Plain(Plain::Fetch { write: true }));
    assert_eq!(entry.directory.phase, Phase::Owned);
    home(&mut entry, at(5), OTHER, FETCH);
    home(&mut entry, at(9), THIRD, FETCH);
    let answer = home(&mut entry, at(9), ME, Msg::Plain(Plain::BreakReply));
    assert_eq!(answer, [Action::Install, Action::Broadcast, announced(&[OTHER, THIRD])]);
    assert_eq!(entry.directory, Directory { sharers: NodeSet::only(ME), ..Directory::default() });
}

#[test]
fn one_node_that_waits_for_an_owner_gets_the_page_by_message() {
    let mut entry = Entry::default();
    home(&mut entry, at(1), ME, Msg::Plain(Plain::Fetch { write: true }));
    home(&mut entry, at(9), OTHER, FETCH);
    home(&mut entry, at(9), HOME, FETCH);
    let grant = Msg::Plain(Plain::Grant { exclusive: false, alone: false });
    let answer = home(&mut entry, at(9), ME, Msg::Plain(Plain::BreakReply));
    assert_eq!(answer, [Action::Install, send(&[HOME, OTHER], grant, Contents::Released)]);
}

#[test]
fn a_node_that_asks_twice_is_one_reader_and_the_home_is_none() {
    let mut entry = Entry::default();
    home(&mut entry, FREE, ME, FETCH);
    assert_eq!(home(&mut entry, FREE, HOME, FETCH), [granted(HOME, false)]);
    assert_eq!(home(&mut entry, FREE, ME, FETCH), [granted(ME, false)]);
    assert_eq!(entry.readers, Readers { asked: NodeSet::only(ME), ..Readers::default() });
}

/// Invalidated at a release if modified, when the home's directory is updated: before anybody is told.
#[test]
fn a_flush_drops_the_buffer_before_its_diff_is_applied_and_answered() {
    let mut entry = Entry::default();
    home(&mut entry, FREE, ME, FETCH);
    let actions = home(&mut entry, HELD, ME, FLUSH);
    assert_eq!(actions[..2], [Action::DropBuffer, Action::ApplyUpdate]);
    assert!(matches!(actions[2], Action::Send { msg: Msg::Plain(Plain::FlushAck(_)), .. }));
    home(&mut entry, FREE, HOME, FETCH);
    assert_eq!(home(&mut entry, HELD, HOME, FLUSH)[0], Action::DropBuffer);
    assert_eq!(home(&mut entry, FREE, HOME, FLUSH).len(), 1, "there is none to drop");
}

/// What an owner stores passes no directory.
#[test]
fn a_unit_that_becomes_exclusive_has_no_buffer() {
    let mut entry = Entry::default();
    home(&mut entry, FREE, ME, FETCH);
    assert_eq!(home(&mut entry, HELD, ME, Msg::Plain(Plain::Upgrade))[0], Action::DropBuffer);
    assert_eq!(entry.directory.phase, Phase::Owned);
    assert_eq!(home(&mut entry, FREE, OTHER, Msg::Look), [send(&[OTHER], Msg::NoBuffer, Contents::Nothing)]);

    let mut entry = Entry::default();
    let actions = home(&mut entry, HELD, ME, Msg::Plain(Plain::Fetch { write: true }));
    assert_eq!(actions[0], Action::DropBuffer);
    assert_eq!(entry.directory.phase, Phase::Owned);
}

/// Buffers are looked at before the home is asked.
#[test]
fn a_fault_looks_into_the_buffer_and_sends_no_message() {
    let mut unit = Unit::default();
    let step = copy(&mut unit, HELD, 1, Event::ReadFault { view: A, since: 1 });
    assert_eq!(step.actions.as_slice(), [send(&[HOME], Msg::Look, Contents::Nothing)]);
    let step = copy(&mut unit, HELD, 2, recv(Msg::Buffered { alone: false }));
    assert_eq!(step.actions.as_slice(), [Action::Install, Action::Wake]);
    assert_eq!((unit.mode, unit.updated), (Mode::Shared, 1), "as new as the question");
}

#[test]
fn whoever_takes_the_page_is_a_sharer_that_misses_nothing() {
    let mut entry = Entry::default();
    home(&mut entry, FREE, ME, FETCH);
    home(&mut entry, FREE, OTHER, FETCH);
    home(&mut entry, FREE, OTHER, Msg::Look);
    entry.directory.stale = NodeSet::only(OTHER);
    assert_eq!(
        home(&mut entry, HELD, OTHER, Msg::Look),
        [send(&[OTHER], Msg::Buffered { alone: false }, Contents::Received)]
    );
    assert_eq!(entry.directory.sharers, NodeSet::only(ME).with(OTHER));
    assert_eq!((entry.directory.stale, entry.readers.announced), (NodeSet::EMPTY, NodeSet::EMPTY));
}

/// The look would overtake the flush, and the page undo the store.
#[test]
fn a_node_with_a_flush_under_way_asks_the_home() {
    let mut unit = shared();
    copy(&mut unit, FREE, 4, Event::WriteFault { view: A, since: 4 });
    copy(&mut unit, FREE, 5, Event::Flush { view: A, since: 5, keep: false });
    copy(&mut unit, FREE, 6, Event::Recv { from: OTHER, msg: Msg::Plain(Plain::Notice) });
    copy(&mut unit, FREE, 7, Event::Invalidate { view: A });
    let step = copy(&mut unit, HELD, 8, Event::ReadFault { view: A, since: 8 });
    assert_eq!(step.actions.as_slice(), [send(&[HOME], FETCH, Contents::Nothing)]);
}

#[test]
fn a_page_from_a_buffer_is_merged_with_unflushed_stores() {
    let mut unit = shared();
    copy(&mut unit, FREE, 4, Event::WriteFault { view: A, since: 4 });
    copy(&mut unit, FREE, 5, Event::Recv { from: OTHER, msg: Msg::Plain(Plain::Notice) });
    copy(&mut unit, FREE, 6, Event::Invalidate { view: A });
    let step = copy(&mut unit, HELD, 7, Event::ReadFault { view: A, since: 7 });
    assert_eq!(step.actions.as_slice(), [send(&[HOME], Msg::Look, Contents::Nothing)]);
    let step = copy(&mut unit, HELD, 8, recv(Msg::Buffered { alone: false }));
    assert_eq!(step.actions.as_slice(), [Action::Merge, Action::Wake]);
}

/// Nobody is sent from message to buffer and back for ever.
#[test]
fn a_node_that_finds_the_announced_buffer_empty_gets_the_page_by_message() {
    let (mut unit, mut entry) = (Unit::default(), Entry::default());
    home(&mut entry, FREE, OTHER, FETCH);
    copy(&mut unit, FREE, 1, Event::ReadFault { view: A, since: 1 });
    assert_eq!(home(&mut entry, FREE, ME, FETCH), [Action::Broadcast, announced(&[ME])]);
    assert_eq!(
        copy(&mut unit, FREE, 2, recv(Msg::Announced)).actions.as_slice(),
        [send(&[HOME], Msg::Look, Contents::Nothing)]
    );
    assert_eq!(home(&mut entry, FREE, ME, Msg::Look), [send(&[ME], Msg::NoBuffer, Contents::Nothing)]);
    assert_eq!(
        copy(&mut unit, HELD, 3, recv(Msg::NoBuffer)).actions.as_slice(),
        [send(&[HOME], FETCH, Contents::Nothing)]
    );
    assert_eq!(home(&mut entry, HELD, ME, FETCH), [granted(ME, false)]);
    assert_eq!(entry.readers.announced, NodeSet::EMPTY);
}

#[test]
fn a_writer_that_can_have_the_page_alone_is_sent_to_no_buffer() {
    let mut entry = Entry::default();
    home(&mut entry, FREE, ME, FETCH);
    home(&mut entry, FREE, ME, Msg::Plain(Plain::Leave));
    let exclusive = Msg::Plain(Plain::Grant { exclusive: true, alone: true });
    assert_eq!(
        home(&mut entry, FREE, OTHER, Msg::Plain(Plain::Fetch { write: true })),
        [send(&[OTHER], exclusive, Contents::Released)]
    );
}
