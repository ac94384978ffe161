//! Mutexes, conditions, barriers, flags, threads and the heap: the tables of `sync` and `heap` at their managers, reached directly or by
//! messages.

use finespun_heap::{Heap, Layout, Policy, Tables};
use finespun_protocol::cashmere::variants::Way;
use finespun_sync::migratory::{self, Message};
use finespun_sync::threads::{self, Handle, Threads};
use finespun_sync::{Entry, Event, Grant, Header, Quick, Table, Waiter, Word};
use finespun_types::{NodeId, ProcessorId};

use crate::bugs::Bug;
use crate::job::{Job, Packet};
use crate::memory::{WORD_BYTES, WORDS};
use crate::program::{self, Sync};
use crate::protocols::Subject;

/// The node with the tables of heap and threads.
const KEEPER: usize = 0;
/// Words beside a table of objects.
const THIN: u32 = 3;
/// Hand-overs inside a node before another node that waits.
const LOCAL_MAX: u8 = 2;

/// The address that stands for a mutex, condition, flag or barrier.
pub const fn address(sync: Sync) -> u64 {
    0x2000_0000_0000 + 64 * sync as u64
}

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

/// Which of a processor's two places an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mailbox {
    Answer,
    Signal,
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

    fn table(&mut self) -> (Table<'_>, &[Word]) {
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
    threads: threads::Header,
    slots: Vec<threads::Slot>,
    per_node: u32,
}

impl Keeper {
    pub fn new(nodes: usize, per_node: usize) -> Self {
        let layout = Layout::new(1, nodes as u32).expect("a small job has a layout");
        let mut keeper = Self {
            layout,
            header: Box::new(finespun_heap::Header::EMPTY),
            pages: vec![finespun_heap::Page::default(); layout.pages() as usize],
            spans: vec![finespun_heap::Span::default(); layout.limit_pages() as usize],
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

    fn heap(&mut self) -> Heap<'_> {
        let Self { layout, header, pages, spans, .. } = self;
        Heap::new(*layout, Tables { header, pages, spans })
    }

    fn threads(&mut self) -> Threads<'_> {
        Threads::new(&mut self.threads, &mut self.slots, self.per_node)
    }
}

/// A table refused what a program of ours asks for.
pub const REFUSED: &str = "no table of objects refuses a program without mistakes";

impl<P: Subject> Job<'_, P> {
    fn manager_of(&self, address: u64) -> finespun_sync::Place {
        finespun_sync::place(address, self.program.shape.nodes as u32, 1, THIN)
    }

    fn direct(&self) -> bool {
        self.setting.variant.synchronization == Way::Direct
    }

    /// The processor asks. Its answer comes at once or later.
    pub fn ask(&mut self, who: usize, request: Request) {
        let me = self.node_of(who);
        let manager = match &request {
            Request::Object(event) => usize::from(self.manager_of(event.object()).node.0),
            Request::Migratory(..) => me,
            Request::Thread(_) | Request::Allocate { .. } | Request::Free { .. } => KEEPER,
        };
        if self.direct() || manager == me {
            self.serve(manager, who, request);
        } else {
            self.send_packet((me, manager), Packet::Ask { who, request });
        }
    }

    /// The manager runs its table.
    pub fn serve(&mut self, manager: usize, who: usize, request: Request) {
        self.note(|| format!("n{manager} {request:?} of p{who}"));
        match request {
            Request::Object(event) => self.serve_object(manager, who, event),
            Request::Migratory(mutex, event) => self.serve_migratory(manager, who, mutex, &event),
            Request::Thread(event) => self.serve_thread(event),
            Request::Allocate { object, words, policy } => self.allocate(who, (object, words), policy),
            Request::Free { object } => self.free(who, object),
        }
    }

    fn serve_object(&mut self, manager: usize, who: usize, event: Event) {
        let (word, quick) = (self.manager_of(event.object()).word as usize, self.direct());
        let (mut grants, stripe) = (Vec::new(), &mut self.stripes[manager]);
        let (mut table, words) = stripe.table();
        let found = if quick { words[word].on(event) } else { Quick::ForTable };
        let result = match found {
            Quick::Granted(grant) => {
                grants.push(grant);
                Ok(())
            }
            Quick::Taken => Ok(()),
            Quick::NotYet | Quick::ForTable => table.on_beside(&words[word], event, &mut |grant| grants.push(grant)),
        };
        if let Err(error) = result {
            return self.fail(REFUSED, format!("{error:?}"));
        }
        let mailbox = match event {
            Event::Signal { .. } | Event::Broadcast { .. } => Mailbox::Signal,
            Event::Lock { .. } | Event::TryLock { .. } | Event::Unlock { .. } | Event::Arrive { .. } => Mailbox::Answer,
            Event::SetFlag { .. } | Event::WaitFlag { .. } | Event::ReadFlag { .. } | Event::ResetFlag { .. } => {
                Mailbox::Answer
            }
            Event::Enqueue { .. } | Event::Leave { .. } | Event::ReadLock { .. } => Mailbox::Answer,
            Event::TryReadLock { .. } | Event::WriteLock { .. } | Event::TryWriteLock { .. } => Mailbox::Answer,
            Event::RwUnlock { .. } => Mailbox::Answer,
        };
        for grant in grants {
            self.answer(manager, grant.who.0 as usize, mailbox, grant.value);
        }
        if !is_granted(event) {
            self.answer(manager, who, Mailbox::Answer, 0);
        }
    }

    fn serve_migratory(&mut self, node: usize, who: usize, mutex: u64, event: &migratory::Event) {
        let granted = self.run_migratory(node, mutex, event);
        match event {
            migratory::Event::Unlock(_) => self.answer(node, who, Mailbox::Answer, 0),
            migratory::Event::HandOver { .. } => self.answer(node, who, Mailbox::Answer, u64::from(granted)),
            migratory::Event::Lock(_) | migratory::Event::TryLock(_) | migratory::Event::Receive(_) => {}
        }
    }

    /// Runs a node's table, then does what it says. Was anybody granted?
    pub fn run_migratory(&mut self, node: usize, mutex: u64, event: &migratory::Event) -> bool {
        let manager = self.manager_of(mutex).node;
        let place = migratory::Place { me: NodeId(node as u8), manager, local_max: LOCAL_MAX };
        let mut actions = Vec::new();
        let (mut table, _) = self.stripes[node].table();
        let granted = match table.on_migratory(mutex, place, event, &mut |action| actions.push(action)) {
            Ok(granted) => granted,
            Err(error) => {
                self.fail(REFUSED, format!("{error:?}"));
                return false;
            }
        };
        for action in actions {
            match action {
                migratory::Action::Grant(Grant { who, value }) => {
                    self.answer(node, who.0 as usize, Mailbox::Answer, value);
                }
                migratory::Action::Send { to, message } => self.pass_mutex(node, usize::from(to.0), mutex, message),
            }
        }
        granted
    }

    fn pass_mutex(&mut self, from: usize, to: usize, mutex: u64, message: Message) {
        if self.direct() || from == to {
            self.run_migratory(to, mutex, &migratory::Event::Receive(message));
        } else {
            self.send_packet((from, to), Packet::Migratory { mutex, message });
        }
    }

    fn serve_thread(&mut self, event: threads::Event) {
        let mut actions = Vec::new();
        if let Err(error) = self.keeper.threads().on(event, &mut |action| actions.push(action)) {
            return self.fail(REFUSED, format!("{error:?}"));
        }
        for action in actions {
            match action {
                threads::Action::Start { who, .. } => self.start(who.0 as usize),
                threads::Action::Created { by, thread: Handle(value) } => {
                    self.answer(KEEPER, by.0 as usize, Mailbox::Answer, value);
                }
                threads::Action::Joined { by, result } => {
                    self.answer(KEEPER, by.0 as usize, Mailbox::Answer, result);
                }
                threads::Action::Refused { .. } | threads::Action::Done { .. } => {
                    self.fail(REFUSED, format!("{action:?}"));
                }
            }
        }
    }

    fn start(&mut self, who: usize) {
        let node = self.node_of(who);
        if self.direct() || node == KEEPER {
            self.begin_thread(who);
        } else {
            self.send_packet((KEEPER, node), Packet::Begin { who });
        }
    }

    fn allocate(&mut self, who: usize, (object, words): (u8, u8), policy: Policy) {
        let (size, node) = (usize::from(words) * WORD_BYTES, NodeId(self.node_of(who) as u8));
        let placed = self.keeper.heap().alloc(size as u64, WORD_BYTES as u64, policy, node);
        let Some(placement) = placed else { return self.fail(REFUSED, "no room in the heap".to_owned()) };
        let first = placement.offset as usize / WORD_BYTES;
        for at in first..first + usize::from(words) {
            let unit = self.unit_of((at / WORDS) as u32);
            self.oracle.renew(unit, at % WORDS);
            self.objects[usize::from(object)].push((unit, at % WORDS));
            if self.program.racy.contains(&program::Word { object, word: (at - first) as u8 }) {
                self.oracle.allow_races(unit, at % WORDS);
            }
        }
        self.offsets[usize::from(object)] = placement.offset;
        self.answer(KEEPER, who, Mailbox::Answer, placement.offset);
    }

    fn free(&mut self, who: usize, object: u8) {
        let offset = self.offsets[usize::from(object)];
        if let Err(bad) = self.keeper.heap().free(offset) {
            return self.fail(REFUSED, bad.to_string());
        }
        self.answer(KEEPER, who, Mailbox::Answer, 0);
    }

    /// Gives a processor its answer.
    fn answer(&mut self, from: usize, who: usize, mailbox: Mailbox, value: u64) {
        let node = self.node_of(who);
        if self.direct() || node == from {
            self.answered(who, mailbox, value);
        } else {
            self.send_packet((from, node), Packet::Answer { who, mailbox, value });
        }
    }

    /// The processors that may be handed a mutex without a release.
    pub fn heirs(&self, who: usize) -> std::ops::Range<u32> {
        let shape = self.program.shape;
        let each = match P::RELEASES_NODE || P::REVOKES || self.has(Bug::HandedTooFar) {
            true => shape.per_node(),
            false => shape.threads,
        };
        let first = who / each * each;
        first as u32..(first + each) as u32
    }
}

/// Does a processor wait for the event's own grant?
const fn is_granted(event: Event) -> bool {
    match event {
        Event::Lock { .. } | Event::TryLock { .. } | Event::Arrive { .. } => true,
        Event::WaitFlag { .. } | Event::ReadFlag { .. } | Event::Leave { .. } => true,
        Event::ReadLock { .. } | Event::TryReadLock { .. } => true,
        Event::WriteLock { .. } | Event::TryWriteLock { .. } => true,
        // The grant of an Enqueue comes with a signal, after the mutex was given up.
        Event::Enqueue { .. } | Event::Unlock { .. } | Event::SetFlag { .. } | Event::ResetFlag { .. } => false,
        Event::Signal { .. } | Event::Broadcast { .. } | Event::RwUnlock { .. } => false,
    }
}
