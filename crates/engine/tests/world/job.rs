//! A job in virtual time: its nodes, its network, and what happens next.

use finespun_engine::objects::Mailbox;
use finespun_protocol::cashmere::variants::{Variant, Way};
use finespun_sync::migratory;

use crate::bugs::Bug;
use crate::clock::{Moment, Queue, Task};
use crate::engine::Engine;
use crate::network::{Model, Network};
use crate::notes::Notes;
use crate::objects::{Keeper, Request, Stripe};
use crate::oracle::Oracle;
use crate::processor::{Doing, Processor};
use crate::program::Program;
use crate::random::Random;

/// How a job runs, beside its program.
#[derive(Clone, Debug)]
pub struct Setting {
    pub variant: Variant,
    pub network: Model,
    /// A step takes up to so many nanoseconds.
    pub step: usize,
    /// One step in so many takes up to `stall` instead.
    pub stall_in: usize,
    pub stall: usize,
    /// A unit's waiting processors are woken for that unit only, and not whenever something happens at their node.
    pub wakes_by_unit: bool,
    /// One flush in so many may leave its view the right to write; 0: none.
    pub keeps_in: usize,
    /// Mutexes migrate.
    pub migratory: bool,
    /// A node collects its processors at the barrier of all.
    pub collects: bool,
    /// Broadcast buffers of a node.
    pub buffers: usize,
    /// A page that was mapped stays so long before it is taken away.
    pub hold: u64,
    /// A manager has so many places for what is known to the releasers of objects.
    pub places: u64,
    /// A node wishes for a collection at one barrier of all in so many.
    pub wishes_in: usize,
}

impl Setting {
    pub fn random(variant: Variant, random: &mut Random) -> Self {
        Self {
            variant,
            network: Model::random(random),
            step: random.of(&[4, 40, 400]),
            stall_in: random.of(&[10, 50, 1_000]),
            stall: random.of(&[100, 2_000, 20_000]),
            wakes_by_unit: random.once_in(2),
            keeps_in: random.of(&[0, 1, 3]),
            migratory: random.once_in(3),
            collects: random.once_in(2),
            buffers: random.within(1..4),
            hold: random.of(&[0, 1_000, 20_000]),
            places: random.of(&[1, 3, 64]),
            wishes_in: random.of(&[1, 2, 8, usize::MAX]),
        }
    }
}

/// A message between two nodes.
pub enum Packet<E: Engine> {
    /// Of the protocol.
    Unit {
        unit: usize,
        letter: E::Letter,
    },
    /// A processor's request to the manager.
    Ask {
        who: usize,
        request: Request,
        along: E::Along,
    },
    Answer {
        who: usize,
        mailbox: Mailbox,
        value: u64,
        along: E::Along,
    },
    /// The processor's thread begins.
    Begin {
        who: usize,
        along: E::Along,
    },
    Migratory {
        mutex: u64,
        message: migratory::Message,
    },
}

/// A sentence that does not hold, with what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub sentence: &'static str,
    pub detail: String,
}

/// What a task is.
enum Role {
    Processor(usize),
    Channel(usize, usize),
    /// The engine's own.
    More,
}

pub struct Job<'p, E: Engine> {
    pub program: &'p Program,
    pub setting: Setting,
    pub bug: Option<Bug>,
    pub random: Random,
    pub now: Moment,
    pub steps: u64,
    pub queue: Queue,
    pub engine: E,
    /// The page of each unit.
    pub pages: Vec<u32>,
    network: Network<Packet<E>>,
    pub processors: Vec<Processor<E>>,
    pub stripes: Vec<Stripe>,
    pub keeper: Keeper,
    /// By allocation: where its words are, and where it begins.
    pub objects: Vec<Vec<(usize, usize)>>,
    pub offsets: Vec<u64>,
    /// By node: which processors have come to the barrier of all, where nodes collect.
    pub gathered: Vec<Vec<usize>>,
    pub oracle: Oracle,
    pub notes: Notes,
    pub broken: Option<Broken>,
}

/// Steps after the network has healed in which every processor comes to its end.
const HEALED_MAX: u64 = 400_000;

/// After so many steps one unit is looked at, by turns.
const LOOK_EACH: u64 = 32;

/// A job goes on for ever, or stops too early.
pub const ENDS: &str = "every processor comes to the end of its script";
/// The tables have no row.
pub const ROW: &str = "the table has a row for everything that happens";
/// What a driver holds at the end.
pub const GIVEN_BACK: &str = "at the end no lock is held and nothing is under way";

impl<'p, E: Engine> Job<'p, E> {
    pub fn new(program: &'p Program, mut setting: Setting, bug: Option<Bug>, mut random: Random, traced: bool) -> Self {
        setting.migratory &= !E::TELLS_MANAGERS;
        let shape = program.shape;
        let (nodes, processors) = (shape.nodes, shape.processors());
        let model = Model { reorders: bug == Some(Bug::Reordered), ..setting.network.clone() };
        let mut queue = Queue::new(processors + nodes * nodes + E::more_tasks(shape));
        queue.put(0, 0);
        Self {
            program,
            network: Network::new(model, nodes, &mut random),
            setting,
            bug,
            random,
            now: 0,
            steps: 0,
            queue,
            engine: E::new(shape),
            pages: Vec::new(),
            processors: (0..processors).map(|_| Processor::new()).collect(),
            stripes: (0..nodes).map(|_| Stripe::new(processors)).collect(),
            keeper: Keeper::new(nodes, shape.per_node()),
            objects: vec![Vec::new(); program.objects],
            offsets: vec![0; program.objects],
            gathered: vec![Vec::new(); nodes],
            oracle: Oracle::new(processors, program.syncs, E::SEQUENTIAL, E::ORDERS_RACES),
            notes: Notes::new(traced),
            broken: None,
        }
    }

    /// Runs until nothing can happen any more, or a sentence breaks.
    pub fn run(&mut self) {
        let mut healed = 0;
        while self.broken.is_none() {
            let Some((now, task)) = self.queue.next() else { return self.look_at_the_end() };
            self.now = now;
            self.steps += 1;
            self.notes.mix(now << 8 | task as u64);
            if now < self.setting.network.healed {
                healed = self.steps;
            } else if self.steps > healed + HEALED_MAX {
                return self.fail(ENDS, format!("{HEALED_MAX} steps after the network healed something still happens"));
            }
            self.go_on(task);
            if self.steps.is_multiple_of(LOOK_EACH) && !self.pages.is_empty() {
                self.look_at((self.steps / LOOK_EACH) as usize % self.pages.len(), true);
            }
        }
    }

    /// The protocol's sentences about one unit.
    fn look_at(&mut self, unit: usize, in_flight: bool) {
        if let Err(sentence) = self.engine.check(unit, in_flight) {
            self.fail(sentence, format!("u{unit}"));
        }
    }

    fn look_at_the_end(&mut self) {
        let waiting =
            |(who, processor): (usize, &Processor<E>)| processor.waits_for().map(|what| format!("p{who} {what}"));
        let waiting: Vec<String> = self.processors.iter().enumerate().filter_map(waiting).collect();
        if !waiting.is_empty() {
            return self.fail(ENDS, waiting.join(", "));
        }
        if !self.network.is_empty() || !self.engine.is_at_rest() {
            return self.fail(GIVEN_BACK, String::new());
        }
        (0..self.pages.len()).for_each(|unit| self.look_at(unit, false));
    }

    pub fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub fn fail(&mut self, sentence: &'static str, detail: String) {
        self.note(|| format!("broken: {sentence}: {detail}"));
        self.broken.get_or_insert(Broken { sentence, detail });
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        self.notes.line(self.now, line);
    }

    pub fn node_of(&self, who: usize) -> usize {
        self.program.shape.node_of(who)
    }

    fn role(&self, task: Task) -> Role {
        let nodes = self.program.shape.nodes;
        let Some(channel) = task.checked_sub(self.processors.len()) else { return Role::Processor(task) };
        if channel < nodes * nodes { Role::Channel(channel / nodes, channel % nodes) } else { Role::More }
    }

    /// Does a processor run the tables of synchronization of other nodes itself? Under the lazy engine it runs their handlers too.
    pub fn direct(&self) -> bool {
        self.setting.variant.synchronization == Way::Direct
    }

    /// The unit of a page.
    pub fn unit_of(&mut self, page: u32) -> usize {
        if let Some(unit) = self.pages.iter().position(|known| *known == page) {
            return unit;
        }
        self.pages.push(page);
        self.engine.grow();
        self.oracle.grow();
        self.pages.len() - 1
    }

    fn price(&mut self) -> u64 {
        let most = if self.random.once_in(self.setting.stall_in) { self.setting.stall } else { self.setting.step };
        1 + self.random.below(most) as u64
    }

    /// The task goes on when its step is paid for.
    pub fn put(&mut self, task: Task) {
        let price = self.price();
        self.queue.put(self.now + price, task);
    }

    /// The task is woken.
    pub fn put_soon(&mut self, task: Task) {
        let price = 1 + self.random.below(self.setting.step) as u64;
        self.queue.put(self.now + price, task);
    }

    /// All of these are, which have waited for a lock.
    pub fn put_all(&mut self, waiting: Vec<Task>) {
        waiting.into_iter().for_each(|task| self.put_soon(task));
    }

    /// The processors of a node that wait so are woken.
    pub fn wake_if(&mut self, node: usize, waits: impl Fn(&E::Stage) -> bool) {
        let each = self.program.shape.per_node();
        for who in node * each..(node + 1) * each {
            let processor = &mut self.processors[who];
            if matches!(&processor.doing, Doing::Consistency(stage) if waits(stage)) {
                processor.woken = true;
                if processor.sleeps {
                    self.put_soon(who);
                }
            }
        }
    }

    pub fn send_packet(&mut self, (from, to): (usize, usize), packet: Packet<E>) {
        let bytes = match &packet {
            Packet::Unit { letter, .. } => E::bytes(letter),
            Packet::Ask { along, .. } | Packet::Answer { along, .. } | Packet::Begin { along, .. } => {
                E::bytes_along(along)
            }
            Packet::Migratory { .. } => 0,
        };
        let channel = self.processors.len() + from * self.program.shape.nodes + to;
        let arrives = self.network.send(self.now, (from, to), bytes, packet, &mut self.random);
        self.queue.put(arrives, channel);
    }

    fn go_on(&mut self, task: Task) {
        if E::step(self, task) {
            return;
        }
        match self.role(task) {
            Role::Processor(who) => self.go_on_with(who),
            Role::Channel(from, to) => self.deliver(task, from, to),
            Role::More => E::go_on_with_more(self, task),
        }
    }

    /// Handles the next message of a channel, when it has arrived.
    fn deliver(&mut self, task: Task, from: usize, to: usize) {
        match self.network.next(from, to) {
            None => return,
            Some(arrives) if arrives > self.now => return self.queue.put(arrives, task),
            Some(_) => {}
        }
        let unit = match self.network.peek(from, to) {
            Some(Packet::Unit { unit, .. }) => Some(*unit),
            Some(Packet::Ask { .. } | Packet::Answer { .. } | Packet::Begin { .. } | Packet::Migratory { .. })
            | None => None,
        };
        if unit.is_some_and(|unit| !E::may_receive(self, task, to, unit)) {
            return;
        }
        let Some(packet) = self.network.take(from, to) else { return };
        match packet {
            Packet::Unit { unit, letter } => E::receive(self, task, (from, to), unit, letter),
            Packet::Ask { who, request, along } => self.serve(to, who, request, along),
            Packet::Answer { who, mailbox, value, along } => {
                E::granted(self, from, who, along);
                self.answered(who, mailbox, value);
            }
            Packet::Begin { who, along } => {
                E::granted(self, from, who, along);
                self.begin_thread(who);
            }
            Packet::Migratory { mutex, message } => {
                self.receive_mutex(to, mutex, message);
            }
        }
        self.put(task);
    }
}
