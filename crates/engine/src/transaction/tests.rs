//! A toy protocol and a world that writes down what it is asked: the order of locks, tables and actions.

use std::format;
use std::string::String;
use std::vec::Vec;

use finespun_protocol::page::{Class, Effect, Place, Time};
use finespun_types::{Access, ViewId};

use super::*;

const VIEW: ViewId = ViewId(0);
const ME: NodeId = NodeId(1);
const HOME: NodeId = NodeId(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Word {
    /// To the home, which answers.
    Ask,
    Answer,
    /// To all, the sender as well; each answers.
    Tell,
    Told,
    /// To the home, with the diff.
    Diff,
    /// To the manager.
    Who,
    /// To the node itself, without end.
    Deeper,
    /// Answered by more messages between equals than fit.
    Flood(u8),
    /// Answered by a diff, as if it were a flush.
    Again,
    /// No table has a row for it.
    Unknown,
}

impl Message for Word {
    fn role(self) -> Role {
        match self {
            Self::Ask | Self::Diff => Role::Home,
            Self::Who => Role::Manager,
            Self::Answer | Self::Tell | Self::Told | Self::Deeper | Self::Flood(_) | Self::Again | Self::Unknown => {
                Role::Copy
            }
        }
    }

    fn class(self) -> Class {
        Class::Data
    }

    fn is_between_equals(self) -> bool {
        matches!(self, Self::Tell | Self::Told | Self::Flood(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Toy;

fn send(to: NodeSet, msg: Word, contents: Contents) -> Action<Word> {
    Action::Send { to, msg, contents }
}

fn to(node: NodeId, msg: Word) -> Action<Word> {
    send(NodeSet::only(node), msg, Contents::Nothing)
}

fn everywhere() -> NodeSet {
    NodeSet::only(HOME).with(ME).with(NodeId(2))
}

impl Protocol for Toy {
    type Msg = Word;
    type Unit = u8;
    type Directory = u8;
    type Manager = u8;
    type Impossible = Word;

    fn on_unit(
        _: &mut u8,
        place: Place,
        _: Time,
        event: Event<Word>,
        out: &mut Actions<Word>,
    ) -> Result<Outcome, Word> {
        Ok(match event {
            Event::ReadFault { .. } => out.wait(&[to(HOME, Word::Ask), Action::MakeTwin]),
            Event::WriteFault { .. } => out.wait(&[send(everywhere(), Word::Tell, Contents::Twin), Action::MakeTwin]),
            Event::Flush { .. } => {
                let diff = Contents::Diff { refresh: false };
                out.done(&[send(NodeSet::only(HOME), Word::Diff, diff), Action::DropTwin])
            }
            Event::Recv { msg: Word::Again, .. } => {
                out.done(&[send(NodeSet::only(HOME), Word::Diff, Contents::Diff { refresh: true })])
            }
            Event::NothingChanged => out.done(&[Action::FlushDone(VIEW)]),
            Event::Invalidate { .. } => out.done(&[to(NodeId(2), Word::Who), to(HOME, Word::Unknown)]),
            Event::Recv { msg: Word::Answer, .. } => out.done(&[Action::Install, Action::Wake]),
            Event::Recv { msg: Word::Tell, from } => out.done(&[Action::ApplyUpdate, to(from, Word::Told)]),
            Event::Recv { msg: Word::Deeper, .. } => out.done(&[to(place.me, Word::Deeper), Action::Wake]),
            Event::Recv { msg: Word::Flood(first), .. } => {
                let more: Vec<_> = (1..=4).map(|next| to(NodeId(2), Word::Flood(first + next))).collect();
                out.done(&more)
            }
            Event::Recv { msg: Word::Told, .. } => out.done(&[Action::Wake]),
            Event::Recv { msg: unknown, .. } => return Err(unknown),
        })
    }

    fn on_directory(
        _: &mut u8,
        home: NodeId,
        from: NodeId,
        msg: Word,
        out: &mut Actions<Word>,
    ) -> Result<Outcome, Word> {
        let outcome = match msg {
            Word::Ask if from != home => {
                out.done(&[Action::EnteredExclusive, send(NodeSet::only(from), Word::Answer, Contents::Frame)])
            }
            Word::Diff => out.done(&[Action::ApplyUpdate]),
            Word::Ask
            | Word::Answer
            | Word::Tell
            | Word::Told
            | Word::Who
            | Word::Deeper
            | Word::Flood(_)
            | Word::Again
            | Word::Unknown => return Err(msg),
        };
        Ok(outcome)
    }

    fn on_manager(_: &mut u8, _: NodeId, _: Word, _: &mut Actions<Word>) -> Result<Outcome, Word> {
        Ok(Outcome::Done)
    }

    fn home(_: &u8) -> Option<NodeId> {
        Some(HOME)
    }

    fn managed_home(_: &u8) -> Option<NodeId> {
        Some(HOME)
    }

    fn access(_: &u8, _: ViewId) -> Access {
        Access::None
    }
}

/// Writes down what it is asked. Its payloads are letters.
struct Diary {
    lines: Vec<String>,
    locked: NodeSet,
    way: Route,
    diff_is_empty: bool,
    entry: u8,
}

impl Diary {
    fn new(way: Route) -> Self {
        Self { lines: Vec::new(), locked: NodeSet::EMPTY, way, diff_is_empty: false, entry: 0 }
    }

    fn write(&mut self, line: String) {
        self.lines.push(line);
    }
}

impl World for Diary {
    type Protocol = Toy;
    type Payload = char;
    const NOTHING: char = '-';

    fn place(&self, me: NodeId) -> Place {
        Place { me, manager: HOME, fixed_home: None }
    }

    fn route(&self, msg: Word) -> Route {
        match self.way {
            Route::Inside if msg.is_between_equals() => Route::Later,
            way @ (Route::Inside | Route::Later | Route::Away) => way,
        }
    }

    fn lock(&mut self, node: NodeId) -> bool {
        let takes = !self.locked.contains(node);
        if takes {
            self.write(format!("{node:?} lock"));
        }
        self.locked = self.locked.with(node);
        takes
    }

    fn unlock(&mut self, node: NodeId) {
        assert!(self.locked.contains(node));
        self.locked = self.locked.without(node);
        self.write(format!("{node:?} unlock"));
    }

    fn tick(&mut self, node: NodeId) -> Time {
        assert!(self.locked.contains(node));
        1
    }

    fn copy(&mut self, node: NodeId) -> &mut u8 {
        self.write(format!("{node:?} copy"));
        &mut self.entry
    }

    fn directory(&mut self, home: NodeId) -> &mut u8 {
        self.write(format!("{home:?} home"));
        &mut self.entry
    }

    fn manager(&mut self, manager: NodeId) -> &mut u8 {
        self.write(format!("{manager:?} manager"));
        &mut self.entry
    }

    fn perform(&mut self, node: NodeId, effect: Effect, received: char) {
        assert!(self.locked.contains(node));
        self.write(format!("{node:?} {effect:?} {received}"));
    }

    fn contents(&mut self, _: NodeId, _: NodeSet, contents: Contents, received: char) -> Option<char> {
        Some(match contents {
            Contents::Nothing => '-',
            Contents::Frame => 'f',
            Contents::Twin | Contents::Released => 't',
            Contents::Diff { .. } if self.diff_is_empty => return None,
            Contents::Diff { .. } => 'd',
            Contents::Received => received,
        })
    }

    fn send(&mut self, from: NodeId, to: NodeId, msg: Word, payload: char) {
        self.write(format!("{from:?} sends {to:?} {msg:?} {payload}"));
    }

    fn pass(&mut self, from: NodeId, to: NodeId, msg: Word, payload: char) {
        self.write(format!("{from:?} tells {to:?} {msg:?} {payload}"));
    }

    fn impossible(&mut self, node: NodeId, what: &Word) -> Outcome {
        self.write(format!("{node:?} impossible {what:?}"));
        Outcome::Done
    }

    fn overflow(&mut self, limit: Limit) {
        self.write(format!("{limit:?} overflow"));
    }
}

type Doings = Transaction<Toy, char>;

/// All that an event brings about, with the messages that leave on such a route.
fn doings(way: Route, event: Event<Word>) -> (Outcome, Vec<String>) {
    finished(Diary::new(way), |doings, diary| doings.present(diary, ME, event))
}

fn finished<T>(mut diary: Diary, begin: impl FnOnce(&mut Doings, &mut Diary) -> T) -> (T, Vec<String>) {
    let mut doings = Doings::new();
    let result = begin(&mut doings, &mut diary);
    doings.run(&mut diary);
    assert!(!doings.is_inside() && diary.locked.is_empty(), "no handler runs, so no lock is held");
    diary.write("outside".into());
    doings.finish(&mut diary);
    assert!(doings.is_over() && diary.locked.is_empty());
    (result, diary.lines)
}

#[test]
fn a_nested_handler_ends_before_the_action_behind_its_message() {
    let (outcome, lines) = doings(Route::Inside, Event::ReadFault { view: VIEW, since: 0 });
    assert_eq!(outcome, Outcome::Wait);
    let expected = [
        "n1 lock",
        "n1 copy",
        "n1 tells n0 Ask -",
        "n0 lock",
        "n0 home",
        "n0 EnteredExclusive -",
        "n0 tells n1 Answer f",
        "n1 copy",
        "n1 Install f",
        "n1 Wake f",
        "n0 unlock",
        "n1 MakeTwin -",
        "n1 unlock",
        "outside",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn what_goes_between_equals_is_handled_when_no_lock_is_held() {
    let (_, lines) = doings(Route::Inside, Event::WriteFault { view: VIEW, since: 0 });
    let expected = [
        "n1 lock",
        "n1 copy",
        "n1 tells n0 Tell t",
        "n1 tells n2 Tell t",
        // To the node itself at once.
        "n1 copy",
        "n1 ApplyUpdate t",
        "n1 copy",
        "n1 Wake -",
        "n1 MakeTwin -",
        "n1 unlock",
        "outside",
        "n0 lock",
        "n0 copy",
        "n0 ApplyUpdate t",
        "n0 tells n1 Told -",
        "n0 unlock",
        "n2 lock",
        "n2 copy",
        "n2 ApplyUpdate t",
        "n2 tells n1 Told -",
        "n2 unlock",
        // Two answers, in the order in which they were put aside.
        "n1 lock",
        "n1 copy",
        "n1 Wake -",
        "n1 unlock",
        "n1 lock",
        "n1 copy",
        "n1 Wake -",
        "n1 unlock",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_message_leaves_and_the_sender_handles_its_own_at_once() {
    let (_, lines) = doings(Route::Away, Event::WriteFault { view: VIEW, since: 0 });
    let expected = [
        "n1 lock",
        "n1 copy",
        "n1 sends n0 Tell t",
        "n1 sends n2 Tell t",
        "n1 copy",
        "n1 ApplyUpdate t",
        "n1 copy",
        "n1 Wake -",
        "n1 MakeTwin -",
        "n1 unlock",
        "outside",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_empty_diff_is_not_sent_and_its_receiver_not_locked() {
    let event = Event::Flush { view: VIEW, since: 0, keep: false };
    let diary = Diary { diff_is_empty: true, ..Diary::new(Route::Inside) };
    let (_, lines) = finished(diary, |doings, diary| doings.present(diary, ME, event));
    let expected = ["n1 lock", "n1 copy", "n1 copy", "n1 FlushDone(v0) -", "n1 DropTwin -", "n1 unlock", "outside"];
    assert_eq!(lines, expected);
    let (_, lines) = doings(Route::Inside, event);
    assert!(lines.contains(&"n0 ApplyUpdate d".into()), "{lines:?}");
}

#[test]
fn a_lock_that_the_driver_has_is_not_given_back() {
    let diary = Diary { locked: NodeSet::only(ME), ..Diary::new(Route::Inside) };
    let mut doings = Doings::new();
    let mut diary = diary;
    for _ in 0..2 {
        doings.present(&mut diary, ME, Event::ReadFault { view: VIEW, since: 0 });
        doings.run(&mut diary);
    }
    assert_eq!(diary.locked, NodeSet::only(ME));
    assert!(!diary.lines.iter().any(|line| line.starts_with("n1 lock") || line.starts_with("n1 unlock")));
    assert_eq!(diary.lines.iter().filter(|line| *line == "n0 unlock").count(), 2);
}

#[test]
fn what_comes_next_can_be_seen_before_it_is_done() {
    let (mut doings, mut diary) = (Doings::new(), Diary::new(Route::Inside));
    assert_eq!(doings.next(), Next::Nothing);
    doings.present(&mut diary, ME, Event::ReadFault { view: VIEW, since: 0 });
    assert_eq!(doings.next(), Next::Act(ME, &to(HOME, Word::Ask)));
    assert_eq!(doings.wants(|_| Route::Inside), Some(HOME));
    assert_eq!(doings.wants(|_| Route::Away), None);
    doings.step(&mut diary);
    assert!(doings.is_at(HOME) && doings.is_at(ME) && !doings.is_at(NodeId(2)));
    assert_eq!((doings.sender(), doings.next()), (Some(ME), Next::Act(HOME, &Action::EnteredExclusive)));
    doings.run(&mut diary);
    assert_eq!(doings.next(), Next::Nothing);

    doings.deliver(&mut diary, NodeId(2), ME, Word::Tell, 'x');
    doings.run(&mut diary);
    assert_eq!(doings.next(), Next::Later(ME, NodeId(2), Word::Told));
    assert_eq!(doings.wants(|_| Route::Inside), Some(NodeId(2)));
    assert!(!doings.is_inside() && !doings.is_over());
}

#[test]
fn the_manager_answers_from_its_own_entry_and_a_missing_row_is_told() {
    let (_, lines) = doings(Route::Inside, Event::Invalidate { view: VIEW });
    assert!(lines.contains(&"n2 manager".into()), "{lines:?}");
    assert!(lines.contains(&"n0 impossible Unknown".into()), "{lines:?}");
}

#[test]
fn what_does_not_fit_is_told_and_left_out() {
    let handlers = finished(Diary::new(Route::Inside), |doings, diary| {
        doings.deliver(diary, ME, ME, Word::Deeper, '-');
    });
    let told = |lines: &[String], line: &str| lines.iter().filter(|&there| there == line).count();
    assert_eq!(told(&handlers.1, "Handlers overflow"), 1);
    assert_eq!(told(&handlers.1, "n1 Wake -"), HANDLERS_MAX);

    let actions = finished(Diary::new(Route::Inside), |doings, diary| {
        doings.present(diary, ME, Event::NothingChanged);
        for _ in 0..3 {
            doings.deliver(diary, ME, ME, Word::Flood(0), '-');
        }
    });
    assert!(told(&actions.1, "Actions overflow") > 0, "thirteen actions for twelve places");

    let aside = finished(Diary::new(Route::Inside), |doings, diary| {
        for first in [0, 10] {
            doings.deliver(diary, ME, ME, Word::Flood(first), '-');
            doings.run(diary);
        }
        diary.lines.clone()
    });
    assert_eq!(told(&aside.0, "Aside overflow"), 2, "eight messages for six places");
}

#[test]
fn a_diff_is_made_once_and_only_for_a_flush() {
    let flush = Event::Flush { view: VIEW, since: 0, keep: false };
    let ((), lines) = finished(Diary::new(Route::Inside), |doings, diary| {
        doings.present(diary, ME, flush);
        doings.run(diary);
        doings.deliver(diary, HOME, ME, Word::Again, '-');
    });
    let told = |line: &str| lines.iter().filter(|&there| there == line).count();
    assert_eq!((told("n0 ApplyUpdate d"), told("Diffs overflow")), (1, 1), "{lines:?}");

    let ((), lines) = finished(Diary::new(Route::Inside), |doings, diary| {
        doings.deliver(diary, HOME, ME, Word::Again, '-');
    });
    assert!(lines.contains(&"Diffs overflow".into()) && !lines.contains(&"n0 ApplyUpdate d".into()), "{lines:?}");
}

#[test]
fn only_what_is_left_to_do_is_hashed() {
    let hash = |doings: &Doings| {
        let mut hasher = std::hash::DefaultHasher::new();
        doings.hash(&mut hasher);
        hasher.finish()
    };
    let (mut doings, mut diary) = (Doings::new(), Diary::new(Route::Inside));
    let fresh = hash(&doings);
    doings.present(&mut diary, ME, Event::WriteFault { view: VIEW, since: 0 });
    assert_ne!(hash(&doings), fresh);
    doings.run(&mut diary);
    assert_ne!(hash(&doings), fresh, "messages are put aside");
    while !doings.is_over() && diary.lines.len() < 1_000 {
        doings.step(&mut diary);
    }
    assert_eq!(hash(&doings), fresh);
}
