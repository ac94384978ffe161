//! Mutexes, conditions, barriers, flags, threads and the heap: the tables of `sync` and `heap` at their managers, reached directly or by
//! messages.

use finespun_engine::allocation::{self, Call, Together};
use finespun_engine::homes::KEEPER;
use finespun_engine::objects::{self, About, Answer, Keepers, Mailbox, Start};
use finespun_heap::{Heap, Layout, Policy, Tables};
use finespun_sync::migratory::{self, Message};
use finespun_sync::threads::{self, Threads};
use finespun_sync::{Entry, Error, Event, Grant, Header, Quick, Table, Waiter, Word};
use finespun_types::{NodeId, ProcessorId, UnitSize};

use crate::bugs::Bug;
use crate::engine::Engine;
use crate::job::{Job, Packet};
use crate::memory::{WORD_BYTES, WORDS};
use crate::program::{self, Sync};

/// Words beside a table of objects.
const THIN: u32 = 3;
/// Hand-overs inside a node before another node that waits.
const LOCAL_MAX: u8 = 2;

/// The address that stands for a mutex, condition, flag or barrier.
pub const fn address(sync: Sync) -> u64 {
    0x2000_0000_0000 + 64 * sync as u64
}

/// What the acquirers of the heap's memory acquire by, and those of threads: no object has this address.
pub const HEAP: u64 = 1;
pub const THREADS: u64 = 2;

/// What a processor asks for.
#[derive(Clone, Debug)]
pub enum Request {
    Object(Event),
    /// Of this node's table of mutexes whose ownership migrates.
    Migratory(u64, migratory::Event),
    Thread(threads::Event),
    Allocate {
        object: u8,
        words: u8,
        policy: Policy,
    },
    Free {
        object: u8,
    },
}

/// A node's table of objects.
pub struct Stripe {
    header: Header,
    buckets: [u32; 4],
    entries: [Entry; 32],
    waiters: Vec<Waiter>,
    words: [Word; THIN as usize],
}

impl Stripe {
    pub fn new(processors: usize) -> Self {
        Self {
            header: Header::default(),
            buckets: [0; 4],
            entries: [Entry::default(); 32],
            waiters: vec![Waiter::default(); processors],
            words: Default::default(),
        }
    }

    pub fn table(&mut self) -> (Table<'_>, &[Word]) {
        let Self { header, buckets, entries, waiters, words } = self;
        (Table::new(header, buckets, entries, waiters), words)
    }
}

/// The tables of heap and threads.
pub struct Keeper {
    layout: Layout,
    header: Box<finespun_heap::Header>,
    pages: Vec<finespun_heap::Page>,
    spans: Vec<finespun_heap::Span>,
    together: [Together; 2],
    threads: threads::Header,
    slots: Vec<threads::Slot>,
    per_node: u32,
}

impl Keeper {
    pub fn new(nodes: usize, per_node: usize) -> Self {
        let layout = Layout::new(1, nodes as u32, UnitSize::PAGE).expect("a small job has a layout");
        let mut keeper = Self {
            layout,
            header: Box::new(finespun_heap::Header::EMPTY),
            pages: vec![finespun_heap::Page::default(); layout.pages() as usize],
            spans: vec![finespun_heap::Span::default(); layout.limit_pages() as usize],
            together: [Together::default(); 2],
            threads: threads::Header::default(),
            slots: vec![threads::Slot::default(); nodes * per_node],
            per_node: per_node as u32,
        };
        let begun = keeper.threads().on(threads::Event::Begin { who: ProcessorId(0) }, &mut |_| {});
        begun.expect("main begins once");
        keeper
    }

    pub fn home_of(&self, page: u32) -> Option<NodeId> {
        self.layout.home_of(page)
    }

    fn on_heap(&mut self, call: Call) -> Result<(u64, u64), allocation::Refused> {
        let Self { layout, header, pages, spans, together, .. } = self;
        allocation::run(&mut Heap::new(*layout, Tables { header, pages, spans }), together, call)
    }

    fn threads(&mut self) -> Threads<'_> {
        Threads::new(&mut self.threads, &mut self.slots, self.per_node)
    }
}

/// A table refused what a program of ours asks for.
pub const REFUSED: &str = "no table of objects refuses a program without mistakes";

/// Why a table refused.
pub enum Refusal {
    Object(Error),
    Thread(threads::Error),
}

impl<E: Engine> Keepers for Job<'_, E> {
    type Refusal = Refusal;

    fn runs_tables_of(&self, _node: NodeId) -> bool {
        self.direct()
    }

    fn manager_of(&self, object: u64) -> finespun_sync::Place {
        finespun_sync::place(object, self.program.shape.nodes as u32, 1, THIN)
    }

    fn node_with(&self, who: ProcessorId) -> NodeId {
        NodeId::of(self.node_of(who.0 as usize))
    }

    fn puts_off(&self) -> bool {
        !E::TELLS_MANAGERS
    }

    fn on_object(
        &mut self,
        at: &finespun_sync::Place,
        event: Event,
        mut granted: impl FnMut(&mut Self, Grant),
    ) -> Result<(), Refusal> {
        let (quick, mut grants) = (self.direct() && !E::TELLS_MANAGERS, Vec::new());
        let (mut table, words) = self.stripes[usize::from(at.node.0)].table();
        let word = &words[at.word as usize];
        match if quick { word.on(event) } else { Quick::ForTable } {
            Quick::Granted(grant) => grants.push(grant),
            Quick::Taken => {}
            Quick::NotYet | Quick::ForTable => {
                table.on_beside(word, event, &mut |grant| grants.push(grant)).map_err(Refusal::Object)?;
            }
        }
        grants.into_iter().for_each(|grant| granted(self, grant));
        Ok(())
    }

    fn on_mutex(
        &mut self,
        node: NodeId,
        mutex: u64,
        event: &migratory::Event,
        out: &mut dyn FnMut(migratory::Action),
    ) -> Result<bool, Refusal> {
        let place = migratory::Place { me: node, manager: self.manager_of(mutex).node, local_max: LOCAL_MAX };
        let (mut table, _) = self.stripes[usize::from(node.0)].table();
        table.on_migratory(mutex, place, event, out).map_err(Refusal::Object)
    }

    fn on_threads(
        &mut self,
        event: threads::Event,
        mut out: impl FnMut(&mut Self, threads::Action),
    ) -> Result<(), Refusal> {
        let mut actions = Vec::new();
        self.keeper.threads().on(event, &mut |action| actions.push(action)).map_err(Refusal::Thread)?;
        actions.into_iter().for_each(|action| out(self, action));
        Ok(())
    }

    fn answer(&mut self, Answer { from, about, who, mailbox, value: (value, _), .. }: Answer) {
        let about = match about {
            About::Nothing => None,
            About::Object(object) => Some(object),
            About::Threads => Some(THREADS),
        };
        self.give(from, (who, mailbox), value, about);
    }

    fn send(&mut self, from: NodeId, to: NodeId, mutex: u64, message: Message) {
        self.send_packet((usize::from(from.0), usize::from(to.0)), Packet::Migratory { mutex, message });
    }

    fn start(&mut self, Start { who, .. }: Start) {
        let (who, node) = (who.0 as usize, self.node_with(who));
        let along = E::grants(self, usize::from(KEEPER.0), who, Some(THREADS));
        if self.direct() || node == KEEPER {
            E::granted(self, usize::from(KEEPER.0), who, along);
            self.begin_thread(who);
        } else {
            self.send_packet((usize::from(KEEPER.0), usize::from(node.0)), Packet::Begin { who, along });
        }
    }
}

impl<E: Engine> Job<'_, E> {
    /// A processor's answer, with what goes along.
    fn give(&mut self, from: NodeId, (who, mailbox): (ProcessorId, Mailbox), value: u64, about: Option<u64>) {
        let (who, from, to) = (who.0 as usize, usize::from(from.0), usize::from(self.node_with(who).0));
        let along = E::grants(self, from, who, about);
        if self.direct() || to == from {
            E::granted(self, from, who, along);
            self.answered(who, mailbox, value);
        } else {
            self.send_packet((from, to), Packet::Answer { who, mailbox, value, along });
        }
    }

    /// The processor asks. Its answer comes at once or later.
    pub fn ask(&mut self, who: usize, request: Request) {
        let me = self.node_of(who);
        let manager = match &request {
            Request::Object(event) => usize::from(self.manager_of(event.object()).node.0),
            Request::Migratory(..) => me,
            Request::Thread(_) | Request::Allocate { .. } | Request::Free { .. } => usize::from(KEEPER.0),
        };
        let along = E::asks(self, who, manager, &request);
        if self.direct() || manager == me {
            self.serve(manager, who, request, along);
        } else {
            self.send_packet((me, manager), Packet::Ask { who, request, along });
        }
    }

    /// The manager runs its table.
    pub fn serve(&mut self, manager: usize, who: usize, request: Request, along: E::Along) {
        self.note(|| format!("n{manager} {request:?} of p{who}"));
        E::asked(self, who, manager, &request, along);
        let asker = ProcessorId(who as u32);
        let refused = match request {
            Request::Object(event) => objects::serve(self, asker, event),
            Request::Migratory(mutex, event) => self.serve_migratory(NodeId::of(manager), asker, mutex, &event),
            Request::Thread(event) => objects::run_threads(self, event),
            Request::Allocate { object, words, policy } => return self.allocate(who, (object, words), policy),
            Request::Free { object } => return self.free(who, object),
        };
        match refused {
            Ok(()) => {}
            Err(Refusal::Object(error)) => self.fail(REFUSED, format!("{error:?}")),
            Err(Refusal::Thread(error)) => self.fail(REFUSED, format!("{error:?}")),
        }
    }

    fn serve_migratory(
        &mut self,
        node: NodeId,
        who: ProcessorId,
        mutex: u64,
        event: &migratory::Event,
    ) -> Result<(), Refusal> {
        let granted = objects::run_mutex(self, node, mutex, event)?;
        match event {
            migratory::Event::Unlock(_) => self.answer(done(node, who, 0)),
            migratory::Event::HandOver { .. } => self.answer(done(node, who, u64::from(granted))),
            migratory::Event::Lock(_) | migratory::Event::TryLock(_) | migratory::Event::Receive(_) => {}
        }
        Ok(())
    }

    /// A mutex's message came.
    pub fn receive_mutex(&mut self, node: usize, mutex: u64, message: Message) {
        let event = migratory::Event::Receive(message);
        if let Err(Refusal::Object(error)) = objects::run_mutex(self, NodeId::of(node), mutex, &event) {
            self.fail(REFUSED, format!("{error:?}"));
        }
    }

    fn allocate(&mut self, who: usize, (object, words): (u8, u8), policy: Policy) {
        let (size, node) = (u64::from(words) * WORD_BYTES as u64, NodeId::of(self.node_of(who)));
        let (offset, _) = match self.keeper.on_heap(Call::Allocate { size, align: WORD_BYTES as u64, policy, node }) {
            Ok(placed) => placed,
            Err(refused) => return self.fail(REFUSED, format!("{refused:?}")),
        };
        let first = offset as usize / WORD_BYTES;
        for at in first..first + usize::from(words) {
            let unit = self.unit_of((at / WORDS) as u32);
            self.oracle.renew(unit, at % WORDS);
            self.objects[usize::from(object)].push((unit, at % WORDS));
            if self.program.racy.contains(&program::Word { object, word: (at - first) as u8 }) {
                self.oracle.allow_races(unit, at % WORDS);
            }
        }
        self.offsets[usize::from(object)] = offset;
        self.give(KEEPER, (ProcessorId(who as u32), Mailbox::Answer), offset, Some(HEAP));
    }

    fn free(&mut self, who: usize, object: u8) {
        let offset = self.offsets[usize::from(object)];
        if let Err(refused) = self.keeper.on_heap(Call::Free { offset }) {
            return self.fail(REFUSED, format!("{refused:?}"));
        }
        self.give(KEEPER, (ProcessorId(who as u32), Mailbox::Answer), 0, None);
    }

    /// The processors that may be handed a mutex without a release.
    pub fn heirs(&self, who: usize) -> std::ops::Range<u32> {
        let shape = self.program.shape;
        let each = match E::HANDS_OVER_IN_NODE || self.has(Bug::HandedTooFar) {
            true => shape.per_node(),
            false => shape.threads,
        };
        let first = who / each * each;
        first as u32..(first + each) as u32
    }
}

/// The answer of a table that has none.
const fn done(from: NodeId, who: ProcessorId, value: u64) -> Answer {
    Answer { from, about: About::Nothing, who, mailbox: Mailbox::Answer, value: (value, 0) }
}
