//! A small world of nodes, each with its table, and of messages between them that arrive in any order at all.

use std::collections::{BTreeMap, HashSet, VecDeque};

use finespun_sync::migratory::{Action, Event, Message, Part, Place};
use finespun_sync::{Entry, Event as Object, Grant, Header, Quick, Table, Thin, Waiter, Word};
use finespun_types::{NodeId, NodeIndex, ProcessorId};

/// One step of a processor's script. Every step is a point where anything else may come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Lock(u64),
    /// `TryLock`, and skip so many steps if it fails.
    Try(u64, usize),
    Unlock(u64),
    /// An unlock that hands over inside the node where it may, and releases and unlocks where not.
    Leave(u64),
    /// `fsp_cond_wait`, its first half: queue for the condition.
    Enqueue(u64),
    /// Go on when the condition is signalled.
    Await,
    Signal(u64),
    /// Skip so many steps if there is an item.
    SkipIfItem(usize),
    /// Go back so many steps.
    Back(usize),
    Put,
    Take,
}

/// What does not change.
#[derive(Clone, Debug)]
pub struct Setting {
    /// By processor: its node, and what it does.
    pub scripts: Vec<(NodeIndex, Vec<Step>)>,
    pub manager: NodeIndex,
    pub local_max: u8,
    /// Is there a word beside each node's table? One for all mutexes.
    pub has_words: bool,
    /// Who comes has looked at the word before.
    pub is_late: bool,
    /// A broken table: it may alter what the event made of the memory, and the actions.
    pub bug: fn(Place, &Event, before: &Store, after: &mut Store, actions: &mut Vec<Action>),
}

/// A table's memory, and the word beside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    pub thin: Thin,
    header: Header,
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    waiters: Vec<Waiter>,
}

impl Store {
    pub fn table(&mut self) -> Table<'_> {
        Table::new(&mut self.header, &mut self.buckets, &mut self.entries, &mut self.waiters)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Doing {
    Running,
    /// Waits for the mutex; a try that fails skips so many steps.
    Waiting(u64, Option<usize>),
    /// It released, and unlocks next.
    Unlocking(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Processor {
    at: usize,
    doing: Doing,
    signalled: bool,
}

/// Something on its way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flight {
    To(NodeId, u64, Message),
    Grant(u64, Grant),
}

/// Everything that can change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    stores: Vec<Store>,
    processors: Vec<Processor>,
    /// A set in no order.
    flight: Vec<Flight>,
    inside: BTreeMap<u64, ProcessorId>,
    /// Mutexes handed over with changes that nobody has released since.
    unreleased: BTreeMap<u64, NodeId>,
    /// Hand-overs inside a node while another waits, in a row.
    passed: BTreeMap<u64, u8>,
    items: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum Move {
    Run(usize),
    /// The same, but what it does goes to the table even where the word would do: it had looked before.
    RunByTable(usize),
    Arrive(usize),
}

impl World {
    pub fn new(setting: &Setting) -> Self {
        let nodes = setting.scripts.iter().map(|(node, _)| *node).max().unwrap_or(0).max(setting.manager) + 1;
        let processors = setting.scripts.len();
        let store = Store {
            thin: Thin::Empty,
            header: Header::default(),
            buckets: vec![0],
            entries: vec![Entry::default(); 4],
            waiters: vec![Waiter::default(); processors],
        };
        Self {
            stores: vec![store; usize::from(nodes)],
            processors: vec![Processor { at: 0, doing: Doing::Running, signalled: false }; processors],
            flight: Vec::new(),
            inside: BTreeMap::new(),
            unreleased: BTreeMap::new(),
            passed: BTreeMap::new(),
            items: 0,
        }
    }

    fn moves(&self, setting: &Setting) -> Vec<Move> {
        let runs = (0..self.processors.len()).filter(|p| self.can_run(setting, *p)).map(Move::Run);
        let by_table = (0..self.processors.len()).filter(|p| setting.has_words && self.can_run(setting, *p));
        let runs = runs.chain(by_table.map(Move::RunByTable));
        runs.chain((0..self.flight.len()).map(Move::Arrive)).collect()
    }

    fn can_run(&self, setting: &Setting, p: usize) -> bool {
        let Processor { at, doing, signalled } = &self.processors[p];
        match (doing, setting.scripts[p].1.get(*at)) {
            (Doing::Waiting(..), _) => false,
            (Doing::Unlocking(_), _) => true,
            (Doing::Running, Some(Step::Await)) => *signalled,
            (Doing::Running, step) => step.is_some(),
        }
    }

    fn step(&mut self, setting: &Setting, next: Move) -> Result<(), String> {
        match next {
            Move::Run(p) => self.run(setting, p)?,
            Move::RunByTable(p) => {
                let without = Setting { is_late: true, ..setting.clone() };
                self.run(&without, p)?;
            }
            Move::Arrive(index) => match self.flight.swap_remove(index) {
                Flight::To(node, mutex, message) => self.present(setting, node, mutex, &Event::Receive(message))?,
                Flight::Grant(mutex, grant) => self.grant(mutex, grant)?,
            },
        }
        self.flight.sort_unstable();
        Ok(())
    }

    fn run(&mut self, setting: &Setting, p: usize) -> Result<(), String> {
        let who = ProcessorId(p as u32);
        let node = setting.scripts[p].0;
        if let Doing::Unlocking(mutex) = self.processors[p].doing {
            self.processors[p].doing = Doing::Running;
            return self.unlock(setting, node, mutex, who);
        }
        let step = setting.scripts[p].1[self.processors[p].at];
        self.processors[p].at += 1;
        match step {
            Step::Lock(mutex) => {
                self.processors[p].doing = Doing::Waiting(mutex, None);
                self.present(setting, NodeId(node), mutex, &Event::Lock(who))
            }
            Step::Try(mutex, skip) => {
                self.processors[p].doing = Doing::Waiting(mutex, Some(skip));
                self.present(setting, NodeId(node), mutex, &Event::TryLock(who))
            }
            Step::Unlock(mutex) => self.unlock(setting, node, mutex, who),
            Step::Leave(mutex) => self.leave(setting, p, mutex),
            Step::Enqueue(condition) => self.condition(Object::Enqueue { condition, who }),
            Step::Signal(condition) => self.condition(Object::Signal { condition }),
            Step::Await => {
                self.processors[p].signalled = false;
                Ok(())
            }
            Step::SkipIfItem(skip) => {
                self.processors[p].at += if self.items > 0 { skip } else { 0 };
                Ok(())
            }
            Step::Back(steps) => {
                self.processors[p].at -= steps + 1;
                Ok(())
            }
            Step::Put => {
                self.items += 1;
                Ok(())
            }
            Step::Take => {
                self.items = self.items.checked_sub(1).ok_or("an item was taken twice")?;
                Ok(())
            }
        }
    }

    /// The condition is managed by node 0, and known to be queued for at once.
    fn condition(&mut self, event: Object) -> Result<(), String> {
        let mut grants = Vec::new();
        let done = self.stores[0].table().on(event, &mut |grant| grants.push(grant));
        done.map_err(|error| format!("{event:?}: {error}"))?;
        for Grant { who, .. } in grants {
            self.processors[who.0 as usize].signalled = true;
        }
        Ok(())
    }

    /// The caller has released.
    fn unlock(&mut self, setting: &Setting, node: NodeIndex, mutex: u64, who: ProcessorId) -> Result<(), String> {
        self.assert_inside(mutex, who)?;
        self.inside.remove(&mutex);
        self.unreleased.remove(&mutex);
        self.present(setting, NodeId(node), mutex, &Event::Unlock(who))
    }

    /// A release by any processor of a node does that of all: the scope of a deferred one is the node.
    fn leave(&mut self, setting: &Setting, p: usize, mutex: u64) -> Result<(), String> {
        let (who, node) = (ProcessorId(p as u32), setting.scripts[p].0);
        let before = self.inside.clone();
        self.assert_inside(mutex, who)?;
        let first = setting.scripts.iter().position(|(of, _)| *of == node).unwrap_or(0) as u32;
        let end = setting.scripts.iter().rposition(|(of, _)| *of == node).unwrap_or(0) as u32 + 1;
        self.inside.remove(&mutex);
        self.present(setting, NodeId(node), mutex, &Event::HandOver { who, to: first..end })?;
        if self.inside.contains_key(&mutex) {
            self.unreleased.insert(mutex, NodeId(node));
        } else {
            self.inside = before;
            self.processors[p].doing = Doing::Unlocking(mutex);
        }
        Ok(())
    }

    fn present(&mut self, setting: &Setting, node: NodeId, mutex: u64, event: &Event) -> Result<(), String> {
        let at = Place { me: node, manager: NodeId(setting.manager), local_max: setting.local_max };
        let store = &mut self.stores[usize::from(node.0)];
        let before = store.clone();
        let mut actions = Vec::new();
        let word = Word::saying(store.thin);
        if setting.has_words && !setting.is_late {
            let quick = word.on_resting(mutex, event);
            store.thin = word.says();
            match quick {
                Quick::Granted(grant) => return self.grant(mutex, grant),
                Quick::Taken => return Ok(()),
                Quick::NotYet | Quick::ForTable => {}
            }
        }
        let note = &mut |action| actions.push(action);
        let done = if setting.has_words {
            store.table().on_migratory_beside(&word, mutex, &|_| at, event, note)
        } else {
            store.table().on_migratory(mutex, at, event, note)
        };
        store.thin = word.says();
        done.map_err(|error| format!("{node:?} {event:?}: {error}"))?;
        (setting.bug)(at, event, &before, store, &mut actions);
        self.count_bypasses(mutex, node, event, &actions)?;
        for action in actions {
            match action {
                Action::Grant(grant) if setting.scripts[grant.who.0 as usize].0 == node.0 => {
                    self.grant(mutex, grant)?
                }
                Action::Grant(grant) => {
                    self.assert_may_refuse(mutex, grant)?;
                    self.flight.push(Flight::Grant(mutex, grant));
                }
                Action::Send { to, message } => self.send(mutex, node, to, message)?,
            }
        }
        Ok(())
    }

    fn send(&mut self, mutex: u64, from: NodeId, to: NodeId, message: Message) -> Result<(), String> {
        if let Message::Own { .. } = message
            && self.unreleased.get(&mutex) == Some(&from)
        {
            return Err(format!("the mutex left {from:?} with changes that nobody has released"));
        }
        self.flight.push(Flight::To(to, mutex, message));
        Ok(())
    }

    /// No more than so many hand-overs inside a node while another node is known to wait.
    fn count_bypasses(&mut self, mutex: u64, node: NodeId, event: &Event, actions: &[Action]) -> Result<(), String> {
        let lock = self.stores[usize::from(node.0)].table().migratory(mutex);
        let is_unlock = matches!(event, Event::Unlock(_) | Event::HandOver { .. });
        let is_local = is_unlock && actions.iter().any(|action| matches!(action, Action::Grant(_)));
        let sends = actions.iter().any(|action| matches!(action, Action::Send { message: Message::Own { .. }, .. }));
        match (is_local && lock.next.is_some(), sends) {
            (true, false) => *self.passed.entry(mutex).or_default() += 1,
            (_, true) => drop(self.passed.remove(&mutex)),
            (false, false) => {}
        }
        match self.passed.get(&mutex) {
            Some(passed) if *passed > LOCAL_MAX => Err(format!("a node waits for {passed} hand-overs of another")),
            Some(_) | None => Ok(()),
        }
    }

    fn grant(&mut self, mutex: u64, grant: Grant) -> Result<(), String> {
        let p = grant.who.0 as usize;
        let Doing::Waiting(awaited, skip) = self.processors[p].doing else {
            return Err(format!("p{p} was granted something and waits for nothing"));
        };
        if awaited != mutex {
            return Err(format!("p{p} waits for another mutex"));
        }
        self.processors[p].doing = Doing::Running;
        match (skip, grant.value) {
            (Some(skip), 0) => {
                self.processors[p].at += skip;
                Ok(())
            }
            (None, _) | (Some(_), _) => match self.inside.insert(mutex, grant.who) {
                None => Ok(()),
                Some(other) => Err(format!("p{p} and {other:?} are both inside")),
            },
        }
    }

    /// A try is refused only while somebody holds the mutex, it is on its way, or others ask for it.
    fn assert_may_refuse(&self, mutex: u64, grant: Grant) -> Result<(), String> {
        let moves = self.flight.iter().any(|flight| matches!(flight, Flight::To(_, of, _) if *of == mutex));
        let is_try = matches!(self.processors[grant.who.0 as usize].doing, Doing::Waiting(_, Some(_)));
        match self.inside.contains_key(&mutex) || moves || grant.value != 0 || !is_try {
            true => Ok(()),
            false => Err(format!("{:?} was refused a mutex that was free", grant.who)),
        }
    }

    fn assert_inside(&self, mutex: u64, who: ProcessorId) -> Result<(), String> {
        match self.inside.get(&mutex) {
            Some(inside) if *inside == who => Ok(()),
            Some(_) | None => Err(format!("{who:?} is not inside")),
        }
    }

    /// The sentences that hold in every state.
    fn check(&mut self, setting: &Setting, mutexes: &[u64]) -> Result<(), String> {
        for &mutex in mutexes {
            let locks: Vec<_> = self.stores.iter_mut().map(|store| store.table().migratory(mutex)).collect();
            let flying = self.flight.iter().filter_map(|flight| match flight {
                Flight::To(_, of, message) if *of == mutex => Some(*message),
                Flight::To(..) | Flight::Grant(..) => None,
            });
            let messages: Vec<_> = flying.collect();
            let unused = locks[usize::from(setting.manager)].tail.is_none();
            let here = locks.iter().filter(|lock| matches!(lock.part, Part::Free | Part::Held(_))).count();
            let between = messages.iter().filter(|message| matches!(message, Message::Own { .. })).count();
            if here + between + usize::from(unused) != 1 {
                return Err(format!("{} owners of {mutex:#x}", here + between + usize::from(unused)));
            }
            for (node, lock) in locks.iter().enumerate() {
                let asks = messages.iter().filter(|message| match message {
                    Message::Ask { node: of, .. } | Message::Forward { node: of, .. } => usize::from(of.0) == node,
                    Message::Own { .. } => false,
                });
                let queued = locks.iter().filter(|lock| lock.next.is_some_and(|next| usize::from(next.0) == node));
                let under_way = asks.count() + queued.count();
                if under_way > usize::from(lock.part == Part::Asking) {
                    return Err(format!("{under_way} requests of node {node} under way, which is {:?}", lock.part));
                }
            }
            if unused != self.is_at_rest_by_the_books(&locks, &messages) && unused {
                return Err(format!("{mutex:#x} is unused at its manager, and somebody has a part in it"));
            }
        }
        Ok(())
    }

    fn is_at_rest_by_the_books(&self, locks: &[finespun_sync::migratory::Lock], messages: &[Message]) -> bool {
        let is_ask = |message: &Message| matches!(message, Message::Ask { .. });
        messages.iter().all(is_ask) && locks.iter().all(|lock| matches!(lock.part, Part::Elsewhere | Part::Asking))
    }

    fn check_end(&mut self, setting: &Setting) -> Result<(), String> {
        for (p, processor) in self.processors.iter().enumerate() {
            if processor.doing != Doing::Running || processor.at < setting.scripts[p].1.len() {
                return Err(format!("p{p} waits for ever, at step {}", processor.at));
            }
        }
        match self.unreleased.is_empty() {
            true => Ok(()),
            false => Err("changes were never released".into()),
        }
    }
}

/// The bound that every world of these tests has.
pub const LOCAL_MAX: u8 = 1;

/// Every interleaving: how many states there are, or the first violation.
pub fn explore(setting: &Setting, mutexes: &[u64]) -> Result<usize, String> {
    let first = World::new(setting);
    let mut seen = HashSet::from([first.clone()]);
    let mut queue = VecDeque::from([first]);
    while let Some(mut world) = queue.pop_front() {
        world.check(setting, mutexes)?;
        let moves = world.moves(setting);
        if moves.is_empty() {
            world.check_end(setting)?;
        }
        for next in moves {
            let mut after = world.clone();
            after.step(setting, next)?;
            if seen.insert(after.clone()) {
                queue.push_back(after);
            }
        }
    }
    Ok(seen.len())
}
