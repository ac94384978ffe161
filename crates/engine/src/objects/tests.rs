//! Two nodes of twelve processors each, whose tables stand in plain memory.

use std::vec::Vec;
use std::{format, vec};

use finespun_sync::threads::{Error as ThreadError, Slot, Threads};
use finespun_sync::{Entry, Error, Header, Table, Waiter, threads};

use super::*;

const PER_NODE: u32 = 12;
const MUTEX: u64 = 0x2000_0000_0040;

struct Stripe {
    header: Header,
    buckets: [u32; 4],
    entries: [Entry; 8],
    waiters: Vec<Waiter>,
}

/// What a driver did, in the order in which it did so.
#[derive(Debug, PartialEq, Eq)]
enum Did {
    Answer(u32, Mailbox, u64),
    Send(u16, u16, Message),
    Start(u32, u64),
}

struct Driver {
    stripes: [Stripe; 2],
    threads: (threads::Header, Vec<Slot>),
    /// The nodes whose tables it runs.
    runs: Vec<u16>,
    puts_off: bool,
    is_under_lock: bool,
    /// What it did, and whether that was under the lock of a table.
    did: Vec<(Did, bool)>,
    passed: u32,
}

impl Driver {
    fn new(runs: &[u16]) -> Self {
        let stripe = || Stripe {
            header: Header::default(),
            buckets: [0; 4],
            entries: [Entry::default(); 8],
            waiters: vec![Waiter::default(); 2 * PER_NODE as usize],
        };
        Self {
            stripes: [stripe(), stripe()],
            threads: (threads::Header::default(), vec![Slot::default(); 2 * PER_NODE as usize]),
            runs: runs.to_vec(),
            puts_off: true,
            is_under_lock: false,
            did: Vec::new(),
            passed: 0,
        }
    }

    fn note(&mut self, did: Did) {
        self.did.push((did, self.is_under_lock));
    }

    fn table(&mut self, node: NodeId) -> Table<'_> {
        let Stripe { header, buckets, entries, waiters } = &mut self.stripes[usize::from(node.0)];
        Table::new(header, buckets, entries, waiters)
    }

    fn take(&mut self) -> Vec<Did> {
        self.did.drain(..).map(|(did, _)| did).collect()
    }
}

impl Keepers for Driver {
    type Refusal = Error;

    fn runs_tables_of(&self, node: NodeId) -> bool {
        self.runs.contains(&node.0)
    }
    fn manager_of(&self, _object: u64) -> Place {
        Place { node: NodeId(0), table: 0, word: 0 }
    }
    fn node_with(&self, who: ProcessorId) -> NodeId {
        NodeId::of((who.0 / PER_NODE) as usize)
    }
    fn puts_off(&self) -> bool {
        self.puts_off
    }
    fn on_object(&mut self, at: &Place, event: Event, mut granted: impl FnMut(&mut Self, Grant)) -> Result<(), Error> {
        let mut grants = Vec::new();
        self.table(at.node).on(event, &mut |grant| grants.push(grant))?;
        self.is_under_lock = true;
        grants.into_iter().for_each(|grant| granted(self, grant));
        self.is_under_lock = false;
        Ok(())
    }
    fn on_mutex(
        &mut self,
        node: NodeId,
        mutex: u64,
        event: &migratory::Event,
        out: &mut dyn FnMut(migratory::Action),
    ) -> Result<bool, Error> {
        let place = migratory::Place { me: node, manager: NodeId(0), local_max: 2 };
        self.table(node).on_migratory(mutex, place, event, out)
    }
    fn on_threads(
        &mut self,
        event: threads::Event,
        mut out: impl FnMut(&mut Self, threads::Action),
    ) -> Result<(), Error> {
        let mut actions = Vec::new();
        let (header, slots) = &mut self.threads;
        let run: Result<(), ThreadError> =
            Threads::new(header, slots, PER_NODE).on(event, &mut |act| actions.push(act));
        run.map_err(|error| panic!("{}", format!("{error}")))?;
        actions.into_iter().for_each(|action| out(self, action));
        Ok(())
    }
    fn answer(&mut self, answer: Answer) {
        self.note(Did::Answer(answer.who.0, answer.mailbox, answer.value.0));
    }
    fn send(&mut self, from: NodeId, to: NodeId, _mutex: u64, message: Message) {
        self.note(Did::Send(from.0, to.0, message));
    }
    fn start(&mut self, start: Start) {
        self.note(Did::Start(start.who.0, start.argument));
    }
    fn pass(&mut self, from: NodeId, to: NodeId) {
        self.passed += u32::from(from != to);
    }
}

fn who(number: u32) -> ProcessorId {
    ProcessorId(number)
}

fn arrive(number: u32) -> Event {
    Event::Arrive { barrier: 64, count: 2 * PER_NODE, who: who(number), weight: 1 }
}

#[test]
fn what_a_barrier_grants_is_answered_once_each_and_eight_of_it_without_the_lock() {
    for puts_off in [true, false] {
        let mut driver = Driver { puts_off, ..Driver::new(&[0, 1]) };
        for number in 0..2 * PER_NODE - 1 {
            assert_eq!(serve(&mut driver, who(number), arrive(number)), Ok(()));
        }
        assert!(driver.did.is_empty());
        assert_eq!(serve(&mut driver, who(2 * PER_NODE - 1), arrive(2 * PER_NODE - 1)), Ok(()));
        let free = driver.did.iter().filter(|(_, is_under_lock)| !is_under_lock).count();
        assert_eq!(free, if puts_off { PUT_OFF } else { 0 });
        // Twelve of them are of the other node.
        assert_eq!(driver.passed, PER_NODE);
        let mut answered: Vec<Did> = driver.take();
        answered.sort_by_key(|did| if let Did::Answer(who, ..) = did { *who } else { u32::MAX });
        let all: Vec<Did> = (0..2 * PER_NODE)
            // The last to arrive is told so.
            .map(|number| Did::Answer(number, Mailbox::Answer, u64::from(number == 2 * PER_NODE - 1)))
            .collect();
        assert_eq!(answered, all);
    }
}

#[test]
fn an_event_that_is_granted_nothing_is_answered_to_the_processor_that_sent_it() {
    let mut driver = Driver::new(&[0]);
    let lock = |number| Event::Lock { mutex: MUTEX, who: who(number) };
    for number in [3, 15] {
        assert_eq!(serve(&mut driver, who(number), lock(number)), Ok(()));
    }
    assert_eq!(driver.take(), [Did::Answer(3, Mailbox::Answer, 0)]);
    assert_eq!(serve(&mut driver, who(3), Event::Unlock { mutex: MUTEX, who: who(3) }), Ok(()));
    assert_eq!(driver.take(), [Did::Answer(15, Mailbox::Answer, 0), Did::Answer(3, Mailbox::Answer, 0)]);
}

#[test]
fn a_refused_event_is_answered_by_the_caller() {
    let mut driver = Driver::new(&[0]);
    assert!(serve(&mut driver, who(3), Event::Unlock { mutex: MUTEX, who: who(3) }).is_err());
    assert!(driver.did.is_empty());
}

#[test]
fn a_signal_goes_to_the_mailbox_that_the_answer_to_the_unlock_leaves_free() {
    let mut driver = Driver::new(&[0]);
    assert_eq!(serve(&mut driver, who(1), Event::Enqueue { condition: 8, who: who(1) }), Ok(()));
    assert_eq!(driver.take(), [Did::Answer(1, Mailbox::Answer, 0)]);
    assert_eq!(serve(&mut driver, who(2), Event::Signal { condition: 8 }), Ok(()));
    assert_eq!(driver.take(), [Did::Answer(1, Mailbox::Signal, 0), Did::Answer(2, Mailbox::Answer, 0)]);
}

#[test]
fn a_mutex_passes_between_the_nodes_of_one_driver_without_a_message() {
    let mut driver = Driver::new(&[0, 1]);
    let event = migratory::Event::Lock(who(PER_NODE));
    // Node 1 asks node 0, its manager, which has it.
    assert_eq!(run_mutex(&mut driver, NodeId(1), MUTEX, &event), Ok(false));
    assert_eq!(driver.take(), [Did::Answer(PER_NODE, Mailbox::Answer, 0)]);
    assert_eq!(driver.passed, 2);
}

#[test]
fn a_mutex_of_another_driver_is_asked_for_by_a_message() {
    let mut driver = Driver::new(&[1]);
    let event = migratory::Event::Lock(who(PER_NODE));
    assert_eq!(run_mutex(&mut driver, NodeId(1), MUTEX, &event), Ok(false));
    let ask = Message::Ask { node: NodeId(1), trier: None };
    assert_eq!(driver.take(), [Did::Send(1, 0, ask)]);
    let own = migratory::Event::Receive(Message::Own { trier: None });
    assert_eq!(run_mutex(&mut driver, NodeId(1), MUTEX, &own), Ok(true));
    assert_eq!(driver.take(), [Did::Answer(PER_NODE, Mailbox::Answer, 0)]);
}

#[test]
fn a_thread_is_started_before_its_creator_hears_of_it_and_joined_with_its_result() {
    let mut driver = Driver::new(&[0]);
    let mut on = |event| {
        assert_eq!(run_threads(&mut driver, event), Ok(()));
        driver.take()
    };
    assert_eq!(on(threads::Event::Begin { who: who(0) }), []);
    let create = threads::Event::Create { on: Some(who(13)), by: who(0), function: 5, argument: 6 };
    let created = on(create);
    let [Did::Start(13, 6), Did::Answer(0, Mailbox::Answer, handle)] = created[..] else { panic!("{created:?}") };
    assert_eq!(on(threads::Event::Join { thread: Handle(handle), by: who(0) }), []);
    assert_eq!(on(threads::Event::Finished { who: who(13), result: 7 }), [Did::Answer(0, Mailbox::Answer, 7)]);
}
