//! A job of `tmk` in virtual time.

use std::collections::BTreeMap;

use finespun_engine::lazy::Collection;
use finespun_protocol::tmk::{Event, Outcome, raise};
use finespun_sync::Event as Ask;
use finespun_types::{Access, NodeId, ProcessorId};

use super::Bug;
use super::node::{Interval, KEPT, Letter, Node};
use super::program::{LOCKS, Op, Program};
use crate::clock::{Moment, Queue, Task};
use crate::job::{Broken, ENDS};
use crate::memory::Page;
use crate::network::{Model, Network};
use crate::objects::{Stripe, address};
use crate::oracle::{Carrier, Oracle};
use crate::random::Random;
use crate::scene::ROW;

/// The barrier of all, and the meetings of a collection: numbers behind the mutexes'.
const ALL: u8 = LOCKS as u8;
const MEETINGS: [u8; 2] = [ALL + 1, ALL + 2];
/// In so many steps every job ends.
const STEPS_MAX: u64 = 400_000;

/// Contents of a message.
const BYTES: usize = 64;

type News = Vec<(usize, Interval)>;

#[derive(Clone, Debug)]
enum Packet {
    Unit(usize, Letter),
    Ask(Ask, Vec<u32>, News),
    Grant(u64, Vec<u32>, News),
}

/// What a processor is about.
#[derive(Clone, Debug)]
enum Doing {
    Script,
    Fault(usize, bool),
    Closing(Vec<usize>, (u32, u32)),
    Waiting,
    Acquiring(Vec<(usize, NodeId, u32, u32)>, Vec<u32>),
    /// Units whose copies are still to be kept.
    Keeping(usize),
    Dropping(Vec<(usize, NodeId, u32)>),
}

struct Processor {
    next: usize,
    doing: Doing,
    /// The time of the barrier that it collects at, and what comes next.
    collects: Option<(Vec<u32>, Collection)>,
}

pub struct Job<'p> {
    program: &'p Program,
    random: Random,
    bug: Option<Bug>,
    /// Every barrier collects.
    collects: bool,
    now: Moment,
    pub steps: u64,
    queue: Queue,
    network: Network<Packet>,
    nodes: Vec<Node>,
    processors: Vec<Processor>,
    stripes: Vec<Stripe>,
    /// By object: what its releasers knew.
    times: BTreeMap<u64, Vec<u32>>,
    oracle: Oracle,
    pub broken: Option<Broken>,
}

impl<'p> Job<'p> {
    pub fn new(program: &'p Program, mut random: Random, bug: Option<Bug>) -> Self {
        let nodes = program.scripts.len();
        let mut queue = Queue::new(nodes + nodes * nodes);
        (0..nodes).for_each(|task| queue.put(0, task));
        let mut oracle = Oracle::new(nodes, usize::from(ALL) + 1, false, true);
        (0..program.units).for_each(|_| oracle.grow());
        Self {
            program,
            bug,
            collects: random.once_in(2),
            now: 0,
            steps: 0,
            queue,
            network: Network::new(Model::random(&mut random), nodes, &mut random),
            nodes: (0..nodes).map(|me| Node::new(me, nodes, program.units)).collect(),
            processors: (0..nodes).map(|_| Processor { next: 0, doing: Doing::Script, collects: None }).collect(),
            stripes: (0..nodes).map(|_| Stripe::new(nodes)).collect(),
            times: BTreeMap::new(),
            oracle,
            broken: None,
            random,
        }
    }

    /// Runs until nothing can happen any more, or a sentence breaks.
    pub fn run(&mut self) {
        while self.broken.is_none() {
            let Some((now, task)) = self.queue.next() else { break };
            self.now = now;
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return self.fail(ENDS, format!("{STEPS_MAX} steps"));
            }
            match task.checked_sub(self.nodes.len()) {
                None => self.go_on(task),
                Some(channel) => self.deliver(task, channel / self.nodes.len(), channel % self.nodes.len()),
            }
        }
        let unfinished = (0..self.nodes.len()).find(|who| self.op(*who).is_some());
        if let Some(who) = unfinished {
            self.fail(ENDS, format!("p{who} {:?}", self.processors[who].doing));
        }
    }

    fn fail(&mut self, sentence: &'static str, detail: String) {
        self.broken.get_or_insert(Broken { sentence, detail });
    }

    fn op(&self, who: usize) -> Option<Op> {
        self.program.scripts[who].get(self.processors[who].next).copied()
    }

    fn put(&mut self, task: Task) {
        let price = 1 + self.random.below(100) as u64;
        self.queue.put(self.now + price, task);
    }

    fn send(&mut self, from: usize, to: usize, packet: Packet) {
        let arrives = self.network.send(self.now, (from, to), BYTES, packet, &mut self.random);
        self.queue.put(arrives, self.nodes.len() * (1 + from) + to);
    }

    fn deliver(&mut self, task: Task, from: usize, to: usize) {
        match self.network.next(from, to) {
            None => return,
            Some(arrives) if arrives > self.now => return self.queue.put(arrives, task),
            Some(_) => {}
        }
        if let Some(packet) = self.network.take(from, to) {
            self.receive(from, to, packet);
        }
        if let Some(arrives) = self.network.next(from, to) {
            self.queue.put(arrives.max(self.now + 1), task);
        }
    }

    fn receive(&mut self, from: usize, to: usize, packet: Packet) {
        let sender = NodeId::of(from);
        match packet {
            Packet::Unit(unit, letter) => {
                let _ = match letter {
                    Letter::AskDiffs(after, upto) => {
                        self.present(to, unit, Event::AskDiffs { from: sender, after, upto }, None)
                    }
                    Letter::AskBase => self.present(to, unit, Event::AskBase { from: sender }, None),
                    Letter::NoBase(last, stamp) => self.present(to, unit, Event::NoBase { last, stamp }, None),
                    Letter::Base(page, applied) => {
                        self.present(to, unit, Event::Base { applied: &applied }, Some(page))
                    }
                    Letter::Diffs(diffs) => {
                        let upto = diffs.last().map_or(0, |last| last.index);
                        self.nodes[to].copies[unit].came.extend(diffs);
                        self.present(to, unit, Event::Diffs { from: sender, upto }, None)
                    }
                };
            }
            Packet::Ask(ask, time, news) => {
                self.nodes[to].hear(from, &time, news);
                self.serve(to, ask, &time);
            }
            Packet::Grant(object, time, news) => {
                self.nodes[to].hear(from, &time, news);
                self.granted(to, object, time);
            }
        }
    }

    fn present(&mut self, node: usize, unit: usize, event: Event<'_>, page: Option<Page>) -> Outcome {
        match self.nodes[node].present(unit, event, page, self.bug) {
            Err(Ok(impossible)) => self.fail(ROW, format!("n{node} u{unit} {impossible:?}")),
            Err(Err(what)) => self.fail(KEPT, what),
            Ok(presented) => {
                let wakes = presented.wakes && self.bug != Some(Bug::NoWake);
                for (to, letter) in presented.letters {
                    self.send(node, to, Packet::Unit(unit, letter));
                }
                if wakes {
                    self.put(node);
                }
                return presented.outcome;
            }
        }
        Outcome::Wait
    }

    // ---- objects ----------------------------------------------------------------------------------------------------

    /// Tells an object's manager, or asks it, with what the node knows.
    fn ask(&mut self, who: usize, ask: Ask) {
        let (to, time) = (ask.object() as usize / 64 % self.nodes.len(), self.nodes[who].seen.clone());
        if to == who {
            return self.serve(to, ask, &time);
        }
        let news = self.nodes[who].news(to, &time);
        self.send(who, to, Packet::Ask(ask, time, news));
    }

    fn serve(&mut self, at: usize, ask: Ask, time: &[u32]) {
        let nodes = self.nodes.len();
        let known = self.times.entry(ask.object()).or_insert_with(|| vec![0; nodes]);
        if ask.releases() {
            raise(known, time);
        }
        let (known, mut granted) = (known.clone(), Vec::new());
        let result = self.stripes[at].table().0.on(ask, &mut |grant| granted.push(grant.who.0 as usize));
        if let Err(error) = result {
            return self.fail(ROW, error.to_string());
        }
        for who in granted {
            if who == at {
                self.granted(who, ask.object(), known.clone());
            } else {
                let news = self.nodes[at].news(who, &known);
                self.send(at, who, Packet::Grant(ask.object(), known.clone(), news));
            }
        }
    }

    /// The processor has what it waits for.
    fn granted(&mut self, who: usize, object: u64, time: Vec<u32>) {
        self.nodes[who].knowledge().grant(&time);
        let collection = self.processors[who].collects.as_mut();
        match collection {
            Some((upto, step)) if *step == Collection::Drop => {
                let left = self.nodes[who].collected(upto);
                self.processors[who].doing = Doing::Dropping(left);
            }
            Some(_) => self.forget(who),
            None => {
                let is_all = object == address(ALL);
                self.processors[who].collects = (is_all && self.collects).then_some((time, Collection::Keep));
                self.begin_acquire(who);
            }
        }
        self.put(who);
    }

    // ---- processors -------------------------------------------------------------------------------------------------

    fn go_on(&mut self, who: usize) {
        match std::mem::replace(&mut self.processors[who].doing, Doing::Script) {
            Doing::Script => self.run_op(who),
            Doing::Fault(unit, write) => self.fault(who, unit, write),
            Doing::Closing(left, ending) => self.close(who, left, ending),
            Doing::Waiting => self.processors[who].doing = Doing::Waiting,
            Doing::Acquiring(left, upto) => self.obey(who, left, upto),
            Doing::Keeping(unit) => self.keep(who, unit),
            Doing::Dropping(left) => self.drop_one(who, left),
        }
    }

    fn advance(&mut self, who: usize) {
        self.processors[who].next += 1;
        self.put(who);
    }

    fn run_op(&mut self, who: usize) {
        let Some(op) = self.op(who) else { return };
        match op {
            Op::Load(unit, word) => {
                let copy = &self.nodes[who].copies[unit];
                if copy.access == Access::None {
                    return self.fault(who, unit, false);
                }
                let value = copy.frame[word];
                if let Err((sentence, detail)) = self.oracle.load(who, (unit, word), value) {
                    self.fail(sentence, detail);
                }
                self.advance(who);
            }
            Op::Store(unit, word) => {
                if self.nodes[who].copies[unit].access != Access::Write {
                    return self.fault(who, unit, true);
                }
                match self.oracle.store(who, (unit, word), false) {
                    Ok(value) => self.nodes[who].copies[unit].frame[word] = value,
                    Err(sentence) => self.fail(sentence, format!("p{who} u{unit}.{word}")),
                }
                self.advance(who);
            }
            Op::Lock(lock) => {
                self.processors[who].doing = Doing::Waiting;
                self.ask(who, Ask::Lock { mutex: address(lock as u8), who: ProcessorId(who as u32) });
            }
            Op::Unlock(_) | Op::Barrier => {
                let ending = self.nodes[who].knowledge().ending();
                let left = self.nodes[who].dirty.clone();
                self.close(who, left, ending);
            }
        }
    }

    fn fault(&mut self, who: usize, unit: usize, write: bool) {
        self.processors[who].doing = Doing::Fault(unit, write);
        if self.present(who, unit, Event::Fault { write }, None) == Outcome::Done {
            self.processors[who].doing = Doing::Script;
            self.put(who);
        }
    }

    /// A release: one unit of the interval after the other; then the interval is told.
    fn close(&mut self, who: usize, mut left: Vec<usize>, ending: (u32, u32)) {
        if let Some(unit) = left.pop() {
            let (index, stamp) = ending;
            self.present(who, unit, Event::Close { index, stamp }, None);
            self.processors[who].doing = Doing::Closing(left, ending);
            return self.put(who);
        }
        let node = &mut self.nodes[who];
        let units = std::mem::take(&mut node.dirty);
        if !units.is_empty() {
            node.log[who].push(Interval { index: ending.0, stamp: ending.1, units });
            node.knowledge().ended(ending);
        }
        let id = ProcessorId(who as u32);
        match self.op(who) {
            Some(Op::Unlock(lock)) => {
                self.oracle.release(who, Carrier::Sync(lock as u8));
                self.ask(who, Ask::Unlock { mutex: address(lock as u8), who: id });
                self.advance(who);
            }
            Some(Op::Barrier) => {
                self.oracle.release(who, Carrier::Sync(ALL));
                self.arrive(who, ALL);
            }
            Some(Op::Lock(_) | Op::Load(..) | Op::Store(..)) | None => {}
        }
    }

    fn arrive(&mut self, who: usize, barrier: u8) {
        self.processors[who].doing = Doing::Waiting;
        let count = self.nodes.len() as u32;
        self.ask(who, Ask::Arrive { barrier: address(barrier), count, who: ProcessorId(who as u32), weight: 1 });
    }

    fn begin_acquire(&mut self, who: usize) {
        let upto = self.nodes[who].granted.clone();
        let left = if self.bug == Some(Bug::NoticesIgnored) { Vec::new() } else { self.nodes[who].notices(&upto) };
        self.processors[who].doing = Doing::Acquiring(left, upto);
    }

    fn obey(&mut self, who: usize, mut left: Vec<(usize, NodeId, u32, u32)>, upto: Vec<u32>) {
        if let Some((unit, from, index, stamp)) = left.pop() {
            self.present(who, unit, Event::Notice { from, index, stamp }, None);
            // The highest stamp may be any notice's.
            let seen = self.nodes[who].seen.clone();
            self.nodes[who].knowledge().acquired(&seen, stamp);
            self.processors[who].doing = Doing::Acquiring(left, upto);
            return self.put(who);
        }
        self.nodes[who].knowledge().acquired(&upto, 0);
        if self.processors[who].collects.is_some() {
            self.processors[who].doing = Doing::Keeping(0);
            return self.put(who);
        }
        self.oracle.acquire(who, Carrier::Sync(self.carrier(who)));
        self.advance(who);
    }

    fn carrier(&self, who: usize) -> u8 {
        match self.op(who) {
            Some(Op::Lock(lock)) => lock as u8,
            Some(Op::Unlock(_) | Op::Barrier | Op::Load(..) | Op::Store(..)) | None => ALL,
        }
    }

    // ---- collections ------------------------------------------------------------------------------------------------

    fn keep(&mut self, who: usize, unit: usize) {
        let Some((upto, step)) = &mut self.processors[who].collects else { return };
        if unit == self.program.units || self.bug == Some(Bug::NothingKept) {
            *step = Collection::Drop;
            return self.arrive(who, MEETINGS[0]);
        }
        let upto = upto.clone();
        self.processors[who].doing = Doing::Keeping(unit);
        if self.present(who, unit, Event::Keep { upto: &upto }, None) == Outcome::Done {
            self.processors[who].doing = Doing::Keeping(unit + 1);
            self.put(who);
        }
    }

    fn drop_one(&mut self, who: usize, mut left: Vec<(usize, NodeId, u32)>) {
        let Some((upto, step)) = &mut self.processors[who].collects else { return };
        if let Some((unit, from, index)) = left.pop() {
            let upto = upto.clone();
            self.present(who, unit, Event::Collect { from, index, upto: &upto }, None);
            self.processors[who].doing = Doing::Dropping(left);
            return self.put(who);
        }
        *step = Collection::Forget;
        let upto = upto[who];
        self.nodes[who].copies.iter_mut().for_each(|copy| copy.diffs.retain(|kept| kept.index > upto));
        self.arrive(who, MEETINGS[1]);
    }

    /// All have dropped what lacks something.
    fn forget(&mut self, who: usize) {
        if let Some((upto, _)) = self.processors[who].collects.take() {
            for (log, upto) in self.nodes[who].log.iter_mut().zip(&upto) {
                log.retain(|interval| interval.index > *upto);
            }
        }
        self.begin_acquire(who);
    }
}
