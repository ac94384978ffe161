//! What [Cashmere05 §2.3.2] says of home migration, one test for each claim, and what follows from it here, on the tables
//! themselves.

use finespun_protocol::cashmere::migration::{Copied, Entry, Migrating, Msg};
use finespun_protocol::cashmere::{Contents, Mode, Msg as Plain};
use finespun_protocol::page::{Action, Event, Outcome, Place, Protocol, Step};
use finespun_types::{NodeId, NodeSet, ViewId, ViewSet};

const HOME: NodeId = NodeId(0);
const ME: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);
const A: ViewId = ViewId(0);
const READ: Event<Msg> = Event::ReadFault { view: A, since: 1 };
const WRITE: Event<Msg> = Event::WriteFault { view: A, since: 1 };

/// One node: its copy and its entry, as a driver runs them, messages to itself at once.
struct Node {
    me: NodeId,
    now: u64,
    copied: Copied,
    entry: Entry,
    sent: Vec<(NodeSet, Msg, Contents)>,
    done: Vec<Action<Msg>>,
}

impl Node {
    fn new(me: NodeId) -> Self {
        Self { me, now: 0, copied: Copied::default(), entry: Entry::default(), sent: Vec::new(), done: Vec::new() }
    }

    fn on(&mut self, event: Event<Msg>) -> Outcome {
        self.now += 1;
        let place = Place { me: self.me, manager: HOME, fixed_home: Some(HOME) };
        let step = Step::of(|out| Migrating::on_unit(&mut self.copied, place, self.now, event, out))
            .expect("the table has a row");
        self.perform(step);
        step.outcome
    }

    fn recv(&mut self, from: NodeId, msg: Msg) {
        use finespun_protocol::page::{Message, Role};
        match msg.role() {
            Role::Home => {
                let step = Step::of(|out| Migrating::on_directory(&mut self.entry, self.me, from, msg, out))
                    .expect("the table has a row");
                self.perform(step);
            }
            Role::Copy => _ = self.on(Event::Recv { from, msg }),
            Role::Manager => unreachable!("the address fixes the home"),
        }
    }

    fn perform(&mut self, step: Step<Msg>) {
        for &action in step.actions.as_slice() {
            let Action::Send { to, msg, contents } = action else {
                self.done.push(action);
                continue;
            };
            if to == NodeSet::only(self.me) {
                self.recv(self.me, msg);
            } else {
                self.sent.push((to, msg, contents));
            }
        }
    }

    /// What it sent since the last time, without contents.
    fn sent(&mut self) -> Vec<(NodeSet, Msg)> {
        std::mem::take(&mut self.sent).into_iter().map(|(to, msg, _)| (to, msg)).collect()
    }

    fn did(&mut self, action: Action<Msg>) -> bool {
        std::mem::take(&mut self.done).contains(&action)
    }
}

fn to(node: NodeId, msg: Msg) -> Vec<(NodeSet, Msg)> {
    vec![(NodeSet::only(node), msg)]
}

fn set(nodes: &[NodeId]) -> NodeSet {
    nodes.iter().fold(NodeSet::EMPTY, |set, &node| set.with(node))
}

/// A home that two others have fetched the page from; its own view reads it if `reads`.
fn home_of_two(reads: bool) -> Node {
    let mut home = Node::new(HOME);
    if reads {
        home.on(READ);
        home.on(READ);
    }
    home.recv(ME, Msg::Plain(Plain::Fetch { write: false }));
    home.recv(OTHER, Msg::Plain(Plain::Fetch { write: false }));
    home.sent();
    home
}

/// A node with a current copy which others share.
fn sharer() -> Node {
    let mut node = Node::new(ME);
    node.on(READ);
    node.recv(HOME, Msg::Plain(Plain::Grant { exclusive: false, alone: false }));
    node.on(READ);
    node.sent();
    node.done.clear();
    node
}

/// A node that has asked for the home and got it.
fn new_home() -> Node {
    let mut node = sharer();
    node.on(WRITE);
    node.recv(HOME, Msg::Migrated { sharers: set(&[HOME, ME, OTHER]) });
    node.sent();
    node
}

/// The paper asks at a write fault; here at those where the other variants make a twin.
#[test]
fn a_write_fault_asks_for_the_home_instead_of_making_a_twin() {
    let mut node = sharer();
    assert_eq!(node.on(WRITE), Outcome::Wait);
    assert_eq!(node.sent(), to(HOME, Msg::Migrate));
    assert!(!node.did(Action::MakeTwin) && node.copied.asking);
}

#[test]
fn a_read_fault_does_not_ask() {
    let mut node = sharer();
    assert_eq!(node.on(READ), Outcome::Done);
    assert!(node.sent().is_empty());
}

/// The paper's one condition: nobody at the home writes when the request arrives.
#[test]
fn a_home_that_does_not_write_gives_itself_away_with_its_sharing_set() {
    let mut home = home_of_two(true);
    home.recv(ME, Msg::Migrate);
    assert_eq!(home.sent(), to(ME, Msg::Migrated { sharers: set(&[HOME, ME, OTHER]) }));
    assert_eq!((home.entry.moved_to(), home.copied.unit.home()), (Some(ME), Some(ME)));
}

#[test]
fn a_home_that_writes_stays() {
    let mut home = home_of_two(true);
    // It believes to be alone and asks itself for exclusive mode first.
    assert_eq!([home.on(WRITE), home.on(WRITE)], [Outcome::Wait, Outcome::Done]);
    home.recv(ME, Msg::Migrate);
    assert_eq!(home.sent(), to(ME, Msg::Stay));
    assert_eq!(home.entry.moved_to(), None);
    // Until its release, which takes the right to write and has told the others.
    home.on(Event::Flush { view: A, since: home.now, keep: false });
    home.recv(ME, Msg::Plain(Plain::NoticeAck));
    home.recv(OTHER, Msg::Plain(Plain::NoticeAck));
    home.recv(ME, Msg::Plain(Plain::Fetch { write: true }));
    home.sent();
    home.recv(ME, Msg::Migrate);
    assert_eq!(home.sent(), to(ME, Msg::Migrated { sharers: set(&[HOME, ME, OTHER]) }));
}

/// The frame of a sharer that misses a flush is no master copy.
#[test]
fn a_home_does_not_go_to_a_copy_that_misses_a_flush() {
    let mut home = home_of_two(true);
    home.recv(OTHER, Msg::Plain(Plain::Flush));
    home.sent();
    home.recv(ME, Msg::Migrate);
    assert_eq!(home.sent(), to(ME, Msg::Stay));
}

/// The page comes as any other does, by a fetch before: nothing but words is sent.
#[test]
fn no_page_moves_with_the_home() {
    let mut home = home_of_two(true);
    home.recv(ME, Msg::Migrate);
    assert!(home.sent.iter().all(|(_, _, contents)| *contents == Contents::Nothing));
}

/// What it is all for.
#[test]
fn the_new_home_writes_without_twin_and_releases_without_diff() {
    let mut node = new_home();
    assert!(node.did(Action::HomeMoved));
    assert_eq!(node.on(WRITE), Outcome::Done);
    assert!(!node.did(Action::MakeTwin) && !node.copied.unit.has_twin);
    node.on(Event::Flush { view: A, since: node.now, keep: false });
    let others = set(&[HOME, OTHER]);
    assert_eq!(node.sent, vec![(others, Msg::Plain(Plain::Notice), Contents::Nothing)], "to the old home too");
}

#[test]
fn a_node_that_is_refused_goes_on_with_a_twin_and_does_not_ask_again() {
    let mut node = sharer();
    node.on(WRITE);
    node.sent();
    node.recv(HOME, Msg::Stay);
    assert!(node.did(Action::HomeKept));
    assert_eq!(node.on(WRITE), Outcome::Done);
    assert!(node.did(Action::MakeTwin) && node.sent().is_empty());
}

/// The paper looks at its local copy of the directory entry; here, at what the home has said and sent since its last answer.
#[test]
fn a_home_that_seems_to_write_is_not_asked_until_it_has_answered_anew() {
    let mut node = sharer();
    node.recv(HOME, Msg::Plain(Plain::Notice));
    node.sent();
    assert_eq!(node.on(WRITE), Outcome::Done);
    assert!(node.did(Action::MakeTwin));
    node.on(Event::Flush { view: A, since: node.now, keep: false });
    node.recv(HOME, Msg::Plain(Plain::FlushAck(set(&[HOME, ME]))));
    node.sent();
    assert_eq!(node.on(WRITE), Outcome::Wait);
    assert_eq!(node.sent(), to(HOME, Msg::Migrate));
}

/// Else two writers could pass the home to and fro without ever storing.
#[test]
fn a_home_that_was_just_fetched_for_a_store_waits_for_the_store() {
    let mut node = new_home();
    node.recv(OTHER, Msg::Plain(Plain::Fetch { write: true }));
    node.sent();
    node.recv(OTHER, Msg::Migrate);
    assert_eq!(node.sent(), to(OTHER, Msg::Stay));
}

#[test]
fn the_old_home_is_a_sharer_like_others_if_a_view_maps_the_page_and_none_if_not() {
    let mut home = home_of_two(true);
    home.recv(ME, Msg::Migrate);
    assert_eq!((home.copied.unit.mode, home.copied.unit.mapped), (Mode::Shared, ViewSet::only(A)));
    home.recv(ME, Msg::Plain(Plain::Notice));
    home.on(Event::Invalidate { view: A });
    assert_eq!(home.copied.unit.mode, Mode::NoCopy, "it obeys notices now");

    let mut home = home_of_two(false);
    home.recv(ME, Msg::Migrate);
    assert_eq!(home.sent(), to(ME, Msg::Migrated { sharers: set(&[ME, OTHER]) }));
    assert_eq!(home.copied.unit.mode, Mode::NoCopy);
}

#[test]
fn a_former_home_passes_fetches_and_diffs_on_and_refuses_questions() {
    let mut home = home_of_two(true);
    home.recv(ME, Msg::Migrate);
    home.sent();
    home.recv(OTHER, Msg::Plain(Plain::Fetch { write: true }));
    home.recv(OTHER, Msg::Plain(Plain::Flush));
    let passed = std::mem::take(&mut home.sent);
    let (fetch, flush) = (Msg::FetchFor { of: OTHER, write: true }, Msg::FlushFor { of: OTHER });
    assert_eq!(passed, [(NodeSet::only(ME), fetch, Contents::Nothing), (NodeSet::only(ME), flush, Contents::Received)]);
    home.recv(OTHER, Msg::Plain(Plain::Upgrade));
    home.recv(OTHER, Msg::Migrate);
    home.recv(OTHER, Msg::Plain(Plain::Leave));
    let refused = Msg::Plain(Plain::UpgradeReply { granted: false });
    assert_eq!(home.sent(), [to(OTHER, refused), to(OTHER, Msg::Stay)].concat());
}

#[test]
fn what_is_passed_on_is_answered_to_its_sender_who_then_knows_the_home() {
    let mut home = new_home();
    home.on(WRITE);
    home.recv(HOME, Msg::FlushFor { of: OTHER });
    assert_eq!(home.sent(), to(OTHER, Msg::Plain(Plain::FlushAck(set(&[HOME, ME, OTHER])))));
    assert!(home.did(Action::ApplyUpdate));

    let mut asker = Node::new(OTHER);
    asker.on(READ);
    asker.recv(ME, Msg::Plain(Plain::Grant { exclusive: false, alone: false }));
    assert_eq!(asker.copied.unit.home(), Some(ME));
}

#[test]
fn of_two_requests_at_once_one_is_granted() {
    let mut home = home_of_two(true);
    home.recv(ME, Msg::Migrate);
    home.recv(OTHER, Msg::Migrate);
    let answers = home.sent();
    assert_eq!(answers[0].0, NodeSet::only(ME));
    assert_eq!(answers[1], (NodeSet::only(OTHER), Msg::Stay));
}

#[test]
fn a_home_that_comes_back_is_home_again() {
    let mut home = home_of_two(true);
    home.recv(ME, Msg::Migrate);
    home.on(WRITE);
    home.sent();
    assert!(!home.copied.asking, "the new home is about to write");
    home.on(Event::Flush { view: A, since: home.now, keep: false });
    home.recv(ME, Msg::Plain(Plain::FlushAck(set(&[HOME, ME]))));
    home.sent();
    home.on(WRITE);
    assert_eq!(home.sent(), to(ME, Msg::Migrate));
    home.recv(ME, Msg::Migrated { sharers: set(&[HOME, ME]) });
    assert_eq!((home.entry.moved_to(), home.copied.unit.home()), (None, Some(HOME)));
    assert_eq!(home.entry.directory.sharers, set(&[HOME, ME]));
}

/// A fetch goes the way of the hint, which the answer to the flush may change.
#[test]
fn a_fetch_waits_for_the_nodes_own_flush() {
    let mut node = sharer();
    node.recv(HOME, Msg::Plain(Plain::Notice));
    node.on(WRITE);
    node.on(Event::Flush { view: A, since: node.now, keep: false });
    node.sent();
    let other_view = Event::ReadFault { view: ViewId(1), since: node.now };
    assert_eq!(node.on(other_view), Outcome::Wait);
    assert!(node.sent().is_empty());
    node.recv(HOME, Msg::Plain(Plain::FlushAck(set(&[HOME, ME]))));
    assert_eq!(node.on(other_view), Outcome::Wait);
    assert_eq!(node.sent(), to(HOME, Msg::Plain(Plain::Fetch { write: false })));
}
