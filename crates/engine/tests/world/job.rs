//! A job in virtual time: its nodes, its network, and what happens next.

use finespun_engine::objects::Mailbox;
use finespun_engine::{Route, Transaction};
use finespun_protocol::cashmere::variants::{Variant, Way};
use finespun_protocol::page::{Message, Protocol};
use finespun_sync::migratory;
use finespun_types::{NodeId, ViewId};

use crate::bugs::Bug;
use crate::clock::{Moment, Queue, Task};
use crate::memory::{Diff, Node, Payload, View};
use crate::network::{Model, Network};
use crate::notes::Notes;
use crate::objects::{Keeper, Request, Stripe};
use crate::oracle::Oracle;
use crate::processor::Processor;
use crate::program::Program;
use crate::protocols::Subject;
use crate::random::Random;
use crate::scene::Scene;

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
        }
    }
}

/// A message between two nodes.
#[derive(Clone, Debug)]
pub enum Packet<M> {
    /// Of the protocol.
    Unit {
        unit: usize,
        msg: M,
        payload: Payload,
    },
    /// A processor's request to the manager.
    Ask {
        who: usize,
        request: Request,
    },
    Answer {
        who: usize,
        mailbox: Mailbox,
        value: u64,
    },
    /// The processor's thread begins.
    Begin {
        who: usize,
    },
    Migratory {
        mutex: u64,
        message: migratory::Message,
    },
}

/// The transaction of a task, on one unit.
struct Chain<P: Protocol> {
    unit: usize,
    /// `None` only while it is stepped.
    nest: Option<Box<Transaction<P, Payload>>>,
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
    /// Takes mappings away while programs compute.
    Revoker(NodeId, ViewId),
    /// What a seeded bug applies late.
    Late,
}

pub struct Job<'p, P: Subject> {
    pub program: &'p Program,
    pub setting: Setting,
    pub bug: Option<Bug>,
    pub random: Random,
    pub now: Moment,
    pub steps: u64,
    queue: Queue,
    chains: Vec<Chain<P>>,
    pub nodes: Vec<Node<P>>,
    /// By unit, at its manager.
    pub managers: Vec<P::Manager>,
    /// The page of each unit.
    pub pages: Vec<u32>,
    network: Network<Packet<P::Msg>>,
    pub processors: Vec<Processor>,
    pub stripes: Vec<Stripe>,
    pub keeper: Keeper,
    /// By allocation: where its words are, and where it begins.
    pub objects: Vec<Vec<(usize, usize)>>,
    pub offsets: Vec<u64>,
    /// By node: who has come to the barrier of all, where nodes collect.
    pub gathered: Vec<Vec<usize>>,
    pub oracle: Oracle,
    pub notes: Notes,
    pub broken: Option<Broken>,
    late: Vec<(NodeId, usize, Diff)>,
}

/// Steps after the network has healed in which every processor comes to its end.
const HEALED_MAX: u64 = 400_000;

/// After so many steps one unit is looked at, by turns.
const LOOK_EACH: u64 = 32;

/// A job goes on for ever, or stops too early.
pub const ENDS: &str = "every processor comes to the end of its script";
/// What a driver holds at the end.
pub const GIVEN_BACK: &str = "at the end no lock is held and nothing is under way";

impl<'p, P: Subject> Job<'p, P> {
    pub fn new(program: &'p Program, setting: Setting, bug: Option<Bug>, mut random: Random, traced: bool) -> Self {
        let shape = program.shape;
        let (nodes, processors) = (shape.nodes, shape.processors());
        let tasks = processors + nodes * nodes + nodes * shape.views + 1;
        let chain = |_| Chain { unit: 0, nest: Some(Box::default()) };
        let model = Model { reorders: bug == Some(Bug::Reordered), ..setting.network.clone() };
        let mut queue = Queue::new(tasks);
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
            chains: (0..tasks).map(chain).collect(),
            nodes: (0..nodes).map(|_| Node::new(shape.views)).collect(),
            managers: Vec::new(),
            pages: Vec::new(),
            processors: (0..processors).map(|_| Processor::default()).collect(),
            stripes: (0..nodes).map(|_| Stripe::new(processors)).collect(),
            keeper: Keeper::new(nodes, shape.per_node()),
            objects: vec![Vec::new(); program.objects],
            offsets: vec![0; program.objects],
            gathered: vec![Vec::new(); nodes],
            oracle: Oracle::new(processors, program.syncs, P::SEQUENTIAL, P::ORDERS_RACES),
            notes: Notes::new(traced),
            broken: None,
            late: Vec::new(),
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
        let copies: Vec<P::Unit> = self.nodes.iter().map(|node| node.slots[unit].copy).collect();
        let directories: Vec<P::Directory> = self.nodes.iter().map(|node| node.slots[unit].directory).collect();
        if let Err(sentence) = P::check(&copies, &directories, in_flight) {
            self.fail(sentence, format!("u{unit}"));
        }
    }

    fn look_at_the_end(&mut self) {
        let waiting =
            |(who, processor): (usize, &Processor)| processor.waits_for().map(|what| format!("p{who} {what}"));
        let waiting: Vec<String> = self.processors.iter().enumerate().filter_map(waiting).collect();
        if !waiting.is_empty() {
            return self.fail(ENDS, waiting.join(", "));
        }
        let slots = || self.nodes.iter().flat_map(|node| &node.slots);
        let views = || self.nodes.iter().flat_map(|node| &node.views);
        let held = slots().any(|slot| slot.lock.is_held())
            || views().any(|view| view.releasing.is_held() || view.acquiring.is_held() || view.open > 0);
        let over = |chain: &Chain<P>| chain.nest.as_ref().is_some_and(|nest| nest.is_over());
        if held || !self.network.is_empty() || !self.chains.iter().all(over) {
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
        who / self.program.shape.per_node()
    }

    /// Where a processor runs.
    pub fn seat(&self, who: usize) -> (NodeId, ViewId) {
        let view = who / self.program.shape.threads;
        let views = self.program.shape.views;
        (NodeId::of(view / views), ViewId((view % views) as u8))
    }

    pub fn view(&mut self, node: NodeId, view: ViewId) -> &mut View {
        &mut self.nodes[usize::from(node.0)].views[usize::from(view.0)]
    }

    fn role(&self, task: Task) -> Role {
        let (nodes, views) = (self.program.shape.nodes, self.program.shape.views);
        let Some(channel) = task.checked_sub(self.processors.len()) else { return Role::Processor(task) };
        let Some(view) = channel.checked_sub(nodes * nodes) else {
            return Role::Channel(channel / nodes, channel % nodes);
        };
        match view < nodes * views {
            true => Role::Revoker(NodeId::of(view / views), ViewId((view % views) as u8)),
            false => Role::Late,
        }
    }

    /// Whose mapping a task may change.
    pub fn view_of_task(&self, task: Task) -> Option<(usize, usize)> {
        match self.role(task) {
            Role::Processor(who) => {
                let (node, view) = self.seat(who);
                Some((usize::from(node.0), usize::from(view.0)))
            }
            Role::Revoker(node, view) => Some((usize::from(node.0), usize::from(view.0))),
            Role::Channel(..) | Role::Late => None,
        }
    }

    /// The unit of a page.
    pub fn unit_of(&mut self, page: u32) -> usize {
        if let Some(unit) = self.pages.iter().position(|known| *known == page) {
            return unit;
        }
        self.pages.push(page);
        self.managers.push(P::Manager::default());
        self.nodes.iter_mut().for_each(Node::grow);
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

    pub fn route(&self, msg: P::Msg) -> Route {
        let overtakes = self.has(Bug::FetchOvertakes) && P::is_fetch(msg);
        let way = if overtakes { Way::Direct } else { self.setting.variant.way(msg) };
        Route::of(way, msg.is_between_equals() && !self.has(Bug::EqualsUnderLock))
    }

    pub fn send_packet(&mut self, (from, to): (usize, usize), packet: Packet<P::Msg>) {
        let bytes = match &packet {
            Packet::Unit { payload, .. } => payload.bytes(),
            Packet::Ask { .. } | Packet::Answer { .. } | Packet::Begin { .. } | Packet::Migratory { .. } => 0,
        };
        let channel = self.processors.len() + from * self.program.shape.nodes + to;
        let arrives = self.network.send(self.now, (from, to), bytes, packet, &mut self.random);
        self.queue.put(arrives, channel);
    }

    fn go_on(&mut self, task: Task) {
        let over = self.chains[task].nest.as_ref().is_some_and(|nest| nest.is_over());
        match self.role(task) {
            _ if !over => self.step(task),
            Role::Processor(who) => self.go_on_with(who),
            Role::Channel(from, to) => self.deliver(task, from, to),
            Role::Revoker(node, view) => self.revoke(task, node, view),
            Role::Late => self.apply_now(),
        }
    }

    /// May the task take the lock of (node, unit)? If not, it waits for it.
    pub fn may_lock(&mut self, task: Task, node: NodeId, unit: usize) -> bool {
        let lock = &mut self.nodes[usize::from(node.0)].slots[unit].lock;
        let free = lock.is_free_for(task);
        if !free {
            lock.queue(task);
        }
        free
    }

    /// Something with the transaction of a task.
    pub fn within<R>(
        &mut self,
        (task, unit): (Task, usize),
        body: impl FnOnce(&mut Transaction<P, Payload>, &mut Scene<'_, 'p, P>) -> R,
    ) -> R {
        self.chains[task].unit = unit;
        let mut nest = self.chains[task].nest.take().expect("a transaction is not stepped inside itself");
        let result = body(&mut nest, &mut Scene { job: self, task, unit });
        self.chains[task].nest = Some(nest);
        result
    }

    /// One step of the task's transaction, when it can have the lock that this takes.
    fn step(&mut self, task: Task) {
        let unit = self.chains[task].unit;
        let wants = self.chains[task].nest.as_ref().and_then(|nest| nest.wants(|msg| self.route(msg)));
        if wants.is_some_and(|node| !self.may_lock(task, node, unit)) {
            return;
        }
        self.within((task, unit), |nest, scene| nest.step(scene));
        self.put(task);
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
        if unit.is_some_and(|unit| !self.may_lock(task, NodeId::of(to), unit)) {
            return;
        }
        let Some(packet) = self.network.take(from, to) else { return };
        match packet {
            Packet::Unit { unit, msg, payload } => {
                let (from, to) = (NodeId::of(from), NodeId::of(to));
                self.within((task, unit), |nest, scene| nest.deliver(scene, from, to, msg, payload));
            }
            Packet::Ask { who, request } => self.serve(to, who, request),
            Packet::Answer { who, mailbox, value } => self.answered(who, mailbox, value),
            Packet::Begin { who } => self.begin_thread(who),
            Packet::Migratory { mutex, message } => {
                self.receive_mutex(to, mutex, message);
            }
        }
        self.put(task);
    }

    /// A unit was listed for a view whose mappings are taken away.
    pub fn wake_revoker(&mut self, node: NodeId, view: ViewId) {
        let (nodes, views) = (self.program.shape.nodes, self.program.shape.views);
        let of_views = usize::from(node.0) * views + usize::from(view.0);
        self.put_soon(self.processors.len() + nodes * nodes + of_views);
    }

    fn revoke(&mut self, task: Task, node: NodeId, view: ViewId) {
        let held_until = self.view(node, view).mapped_at + self.setting.hold;
        let Some(&unit) = self.view(node, view).noticed.first() else { return };
        if self.now < held_until {
            return self.queue.put(held_until, task);
        }
        if self.may_lock(task, node, unit) {
            self.view(node, view).noticed.remove(0);
            let demand = finespun_engine::Acquire { view }.demand();
            self.within((task, unit), |nest, scene| nest.present(scene, node, demand.of()));
            self.put(task);
        }
    }

    /// A seeded bug: the diff is applied when its sender knows already that it was.
    pub fn apply_late(&mut self, node: NodeId, unit: usize, diff: Diff) {
        self.late.push((node, unit, diff));
        let late = self.chains.len() - 1;
        let way = self.random.below(4 * (self.setting.network.delay as usize + self.setting.step)) as u64;
        self.queue.put(self.now + way, late);
    }

    fn apply_now(&mut self) {
        for (node, unit, diff) in std::mem::take(&mut self.late) {
            self.nodes[usize::from(node.0)].slots[unit].update(&diff, false);
        }
    }
}
