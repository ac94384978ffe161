//! Processors follow their scripts: loads and stores, and calls with the releases and acquires around them.

use finespun_engine::objects::Mailbox;
use finespun_sync::{Event, migratory, threads};
use finespun_types::{Access, ProcessorId};

use crate::bugs::Bug;
use crate::engine::Engine;
use crate::job::Job;
use crate::objects::{Request, address};
use crate::oracle::{Carrier, Clock};
use crate::program::{Op, Sync, Word};

/// What a processor is in the middle of.
pub enum Doing<E: Engine> {
    Nothing,
    /// A fault, a release or an acquire.
    Consistency(E::Stage),
    Answer(Mailbox),
}

/// A processor.
pub struct Processor<E: Engine> {
    /// Its next operation, and which part of it.
    pub next: usize,
    pub phase: u8,
    pub doing: Doing<E>,
    /// Its thread acquires before the first operation.
    pub begins: bool,
    /// What the table answered, until all that it brought about is done.
    pub presented: Option<E::Outcome>,
    pub sleeps: bool,
    /// Something that it may wait for has happened.
    pub woken: bool,
    pub answer: Option<u64>,
    pub signal: bool,
    pub finished: bool,
    /// A signal comes while it waits for an answer.
    pub signal_due: bool,
    /// What its signal handler has interrupted.
    pub interrupted: Option<Interrupted<E>>,
    /// What its last grant brought, where a grant brings something.
    pub granted: Option<Clock>,
}

/// Where a processor was when its signal handler began.
pub struct Interrupted<E: Engine> {
    pub next: usize,
    pub phase: u8,
    pub doing: Doing<E>,
}

/// Part of an operation.
enum Part {
    Load(Word),
    Store(Word, bool),
    /// Loads the counter: high enough, and the operation is over.
    Test(Word, u32),
    Release,
    Acquire,
    Ask(Request),
    /// Without an answer.
    Tell(Request),
    Signal,
    /// Nothing here.
    Skip,
    Again,
    Over,
}

impl<E: Engine> Processor<E> {
    pub const fn new() -> Self {
        Self {
            next: 0,
            phase: 0,
            doing: Doing::Nothing,
            begins: false,
            presented: None,
            sleeps: false,
            woken: false,
            answer: None,
            signal: false,
            finished: false,
            signal_due: false,
            interrupted: None,
            granted: None,
        }
    }

    /// What it waits for, if it has not finished.
    pub fn waits_for(&self) -> Option<String> {
        let Self { next, phase, sleeps, .. } = self;
        let doing = match &self.doing {
            Doing::Nothing => "nothing".to_owned(),
            Doing::Consistency(doing) => format!("{doing:?}"),
            Doing::Answer(mailbox) => format!("{mailbox:?}"),
        };
        let asleep = if *sleeps { ", asleep" } else { "" };
        (!self.finished).then(|| format!("operation {next}, part {phase}: {doing}{asleep}"))
    }
}

impl<E: Engine> Job<'_, E> {
    /// The processor goes on; no transaction of it is under way.
    pub fn go_on_with(&mut self, who: usize) {
        let processor = &mut self.processors[who];
        if let Some(outcome) = processor.presented.take() {
            return E::conclude(self, who, outcome);
        }
        if processor.sleeps {
            if !processor.woken {
                return;
            }
            (processor.sleeps, processor.woken) = (false, false);
        }
        match processor.doing {
            Doing::Nothing => self.begin_part(who),
            Doing::Consistency(_) => E::go_on(self, who),
            Doing::Answer(mailbox) => self.look_for_answer(who, mailbox),
        }
    }

    fn begin_part(&mut self, who: usize) {
        if self.processors[who].begins {
            return E::begin_acquire(self, who, None);
        }
        let op = self.op(who);
        if op.is_none() && self.processors[who].interrupted.is_some() {
            return self.end_handler(who);
        }
        match self.part(who, op, self.processors[who].phase) {
            Part::Load(at) => self.load(who, at),
            Part::Store(at, puts_back) => self.store(who, at, puts_back),
            Part::Test(at, until) => self.test(who, at, until),
            Part::Release => E::begin_release(self, who),
            Part::Acquire => E::begin_acquire(self, who, op),
            Part::Ask(request) => self.begin_asking(who, op, request),
            Part::Tell(request) => {
                self.processors[who].finished = true;
                self.ask(who, request);
            }
            Part::Signal => {
                self.processors[who].doing = Doing::Answer(Mailbox::Signal);
                self.take_signal(who);
                self.put(who);
            }
            Part::Skip => self.end_part(who),
            Part::Again => {
                self.processors[who].phase = 0;
                self.put(who);
            }
            Part::Over if op.is_none() => self.processors[who].finished = true,
            Part::Over => self.end_op(who),
        }
    }

    pub fn end_part(&mut self, who: usize) {
        let processor = &mut self.processors[who];
        processor.doing = Doing::Nothing;
        if !std::mem::take(&mut processor.begins) {
            processor.phase += 1;
        }
        self.put(who);
    }

    fn end_op(&mut self, who: usize) {
        let processor = &mut self.processors[who];
        processor.doing = Doing::Nothing;
        processor.next += 1;
        processor.phase = 0;
        self.put(who);
    }

    /// The parts of an operation, in order. Without an operation: the end of a thread.
    fn part(&self, who: usize, op: Option<Op>, phase: u8) -> Part {
        let id = ProcessorId(who as u32);
        let object = |event| Part::Ask(Request::Object(event));
        let Some(op) = op else {
            return match phase {
                _ if who == 0 => Part::Over,
                0 => Part::Release,
                _ => Part::Tell(Request::Thread(threads::Event::Finished { who: id, result: 0 })),
            };
        };
        match (op, phase) {
            (Op::Load(at), 0) => Part::Load(at),
            (Op::Store(at), 0) => Part::Store(at, false),
            (Op::PutBack(at), 0) => Part::Store(at, true),
            (Op::Lock(mutex), 0) => Part::Ask(self.lock(who, mutex)),
            (Op::Lock(_) | Op::Await { .. } | Op::Allocate { .. } | Op::Join(_), 1) => Part::Acquire,
            (Op::Unlock(mutex), 0) => self.hand_over(who, mutex),
            (Op::Unlock(_), 1) => Part::Release,
            (Op::Unlock(mutex), 2) => Part::Ask(self.unlock(who, mutex)),
            (Op::Test { counter, until, .. }, 0) => Part::Test(counter, until),
            (Op::Test { condition, mutex, .. }, 1..) => self.part_of_wait(who, condition, mutex, phase),
            (Op::Signal(condition), 0) => object(Event::Signal { condition: address(condition) }),
            (Op::Broadcast(condition), 0) => object(Event::Broadcast { condition: address(condition) }),
            (Op::Meet(_) | Op::Barrier { .. } | Op::Set { .. } | Op::Free(_) | Op::Start(_), 0) => Part::Release,
            (Op::Meet(barrier), 1) => Part::Ask(Request::Object(self.arrival(who, barrier))),
            (Op::Barrier { barrier, count }, 1) => {
                object(Event::Arrive { barrier: address(barrier), count: count.into(), who: id, weight: 1 })
            }
            (Op::Meet(_) | Op::Barrier { .. }, 2) => Part::Acquire,
            (Op::Set { flag, value }, 1) => object(Event::SetFlag { flag: address(flag), value }),
            (Op::Await { flag, value }, 0) => object(Event::WaitFlag { flag: address(flag), value, who: id }),
            (Op::Allocate { object, words, policy }, 0) => Part::Ask(Request::Allocate { object, words, policy }),
            (Op::Free(object), 1) => Part::Ask(Request::Free { object }),
            (Op::Start(other), 1) => {
                let on = Some(ProcessorId(other.into()));
                Part::Ask(Request::Thread(threads::Event::Create { on, by: id, function: 1, argument: 0 }))
            }
            (Op::Join(other), 0) => {
                let thread = threads::Handle(1 << 32 | u64::from(other));
                Part::Ask(Request::Thread(threads::Event::Join { thread, by: id }))
            }
            (Op::Load(_) | Op::Store(_) | Op::PutBack(_) | Op::Signal(_) | Op::Broadcast(_), 1..)
            | (Op::Lock(_) | Op::Await { .. } | Op::Allocate { .. } | Op::Join(_), 2..)
            | (Op::Set { .. } | Op::Free(_) | Op::Start(_), 2..)
            | (Op::Unlock(_) | Op::Meet(_) | Op::Barrier { .. }, 3..) => Part::Over,
        }
    }

    /// The processor comes to a meeting of all, where it may stand for its node.
    pub fn arrival(&self, who: usize, barrier: Sync) -> Event {
        let shape = self.program.shape;
        let each = shape.meeting_per_node();
        let weight = if self.setting.collects { each as u32 } else { 1 };
        let count = (shape.nodes * each) as u32;
        Event::Arrive { barrier: address(barrier), count, who: ProcessorId(who as u32), weight }
    }

    /// Queues first, then gives up the mutex; signalled, takes it and tests again.
    fn part_of_wait(&self, who: usize, condition: Sync, mutex: Sync, phase: u8) -> Part {
        let early = self.has(Bug::UnlockBeforeQueued);
        match phase {
            1 => Part::Release,
            2 | 3 if (phase == 2) != early => {
                let (condition, who) = (address(condition), ProcessorId(who as u32));
                Part::Ask(Request::Object(Event::Enqueue { condition, who }))
            }
            2 | 3 => Part::Ask(self.unlock(who, mutex)),
            4 => Part::Signal,
            5 => Part::Ask(self.lock(who, mutex)),
            6 => Part::Acquire,
            _ => Part::Again,
        }
    }

    fn lock(&self, who: usize, mutex: Sync) -> Request {
        let (mutex, who) = (address(mutex), ProcessorId(who as u32));
        match self.setting.migratory {
            true => Request::Migratory(mutex, migratory::Event::Lock(who)),
            false => Request::Object(Event::Lock { mutex, who }),
        }
    }

    fn unlock(&self, who: usize, mutex: Sync) -> Request {
        let (mutex, who) = (address(mutex), ProcessorId(who as u32));
        match self.setting.migratory {
            true => Request::Migratory(mutex, migratory::Event::Unlock(who)),
            false => Request::Object(Event::Unlock { mutex, who }),
        }
    }

    /// A mutex that migrates may go on inside the node without a release.
    fn hand_over(&self, who: usize, mutex: Sync) -> Part {
        let to = self.heirs(who);
        if !self.setting.migratory || to.len() < 2 {
            return Part::Skip;
        }
        let event = migratory::Event::HandOver { who: ProcessorId(who as u32), to };
        Part::Ask(Request::Migratory(address(mutex), event))
    }

    /// What an operation passes on, or takes over.
    pub fn carrier(who: usize, op: Option<Op>) -> Option<Carrier> {
        match op {
            Some(Op::Lock(sync) | Op::Unlock(sync) | Op::Meet(sync)) => Some(Carrier::Sync(sync)),
            Some(Op::Test { mutex: sync, .. } | Op::Barrier { barrier: sync, .. }) => Some(Carrier::Sync(sync)),
            Some(Op::Set { flag: sync, .. } | Op::Await { flag: sync, .. }) => Some(Carrier::Sync(sync)),
            Some(Op::Allocate { .. } | Op::Free(_)) => Some(Carrier::Heap),
            Some(Op::Start(other) | Op::Join(other)) => Some(Carrier::Thread(other)),
            None => Some(Carrier::Thread(who as u8)),
            Some(Op::Load(_) | Op::Store(_) | Op::PutBack(_) | Op::Signal(_) | Op::Broadcast(_)) => None,
        }
    }

    fn place(&self, at: Word) -> (usize, usize) {
        self.objects[usize::from(at.object)][usize::from(at.word)]
    }

    /// The value of a word, unless the load faults.
    fn value(&mut self, who: usize, at: Word) -> Option<u32> {
        let (unit, word) = self.place(at);
        if E::access(self, who, unit) == Access::None {
            E::begin_fault(self, who, unit, false);
            return None;
        }
        let node = self.node_of(who);
        let value = self.engine.page(node, unit)[word];
        self.note(|| format!("n{node} u{unit} p{who} loads {at:?} = {value}"));
        self.notes.mix(u64::from(value));
        if let Err((sentence, detail)) = self.oracle.load(who, (unit, word), value) {
            self.fail(sentence, detail);
        }
        Some(value)
    }

    fn load(&mut self, who: usize, at: Word) {
        if self.value(who, at).is_some() {
            self.end_op(who);
        }
    }

    fn test(&mut self, who: usize, at: Word, until: u32) {
        match self.value(who, at) {
            Some(value) if value >= until => self.end_op(who),
            Some(_) => self.end_part(who),
            None => {}
        }
    }

    fn store(&mut self, who: usize, at: Word, puts_back: bool) {
        let (unit, word) = self.place(at);
        if E::access(self, who, unit) != Access::Write {
            return E::begin_fault(self, who, unit, true);
        }
        let node = self.node_of(who);
        match self.oracle.store(who, (unit, word), puts_back) {
            Ok(value) => {
                self.engine.page(node, unit)[word] = value;
                self.note(|| format!("n{node} u{unit} p{who} stores {at:?} = {value}"));
            }
            Err(sentence) => self.fail(sentence, format!("p{who} stores u{unit}.{word}")),
        }
        self.end_op(who);
    }

    fn begin_asking(&mut self, who: usize, op: Option<Op>, request: Request) {
        let processor = &mut self.processors[who];
        processor.answer = None;
        processor.doing = Doing::Answer(Mailbox::Answer);
        if let Request::Object(Event::Enqueue { .. }) = request {
            processor.signal = false;
        }
        if let Request::Migratory(_, migratory::Event::HandOver { .. }) = request {
            let carrier = Self::carrier(who, op);
            carrier.into_iter().for_each(|carrier| self.oracle.release(who, carrier));
        }
        if matches!(op, Some(Op::Meet(_))) && self.setting.collects {
            let node = self.node_of(who);
            self.gathered[node].push(who);
            if self.gathered[node].len() < self.program.shape.meeting_per_node() {
                return;
            }
        }
        self.ask(who, request);
        self.take_signal(who);
        if self.has(Bug::LockNotAwaited) && matches!(op, Some(Op::Lock(_))) {
            self.end_part(who);
        }
    }

    /// A processor's answer is there.
    pub fn answered(&mut self, who: usize, mailbox: Mailbox, value: u64) {
        self.note(|| format!("p{who} has its {mailbox:?}: {value}"));
        let processor = &mut self.processors[who];
        match mailbox {
            Mailbox::Answer => processor.answer = Some(value),
            Mailbox::Signal => processor.signal = true,
        }
        if matches!(&processor.doing, Doing::Answer(awaited) if *awaited == mailbox) {
            self.put_soon(who);
        }
    }

    fn look_for_answer(&mut self, who: usize, mailbox: Mailbox) {
        if std::mem::take(&mut self.processors[who].signal_due) {
            return self.begin_handler(who);
        }
        let processor = &mut self.processors[who];
        let value = match mailbox {
            Mailbox::Answer => processor.answer.take(),
            Mailbox::Signal => std::mem::take(&mut processor.signal).then_some(0),
        };
        let Some(value) = value else { return };
        let handed_over = processor.phase == 0 && value == 1;
        let op = self.op(who);
        let handed_over = handed_over && matches!(op, Some(Op::Unlock(_)));
        if handed_over {
            self.end_op(who);
        } else if !E::met(self, who, op) {
            self.end_answer(who, op);
        }
    }

    /// The processor goes on with what it has asked for.
    pub fn end_answer(&mut self, who: usize, op: Option<Op>) {
        self.let_go(who, op);
        self.end_part(who);
    }

    /// Who stood for its node at the barrier lets the node's others go.
    fn let_go(&mut self, who: usize, op: Option<Op>) {
        let node = self.node_of(who);
        if matches!(op, Some(Op::Meet(_))) && self.gathered[node].last() == Some(&who) {
            for other in std::mem::take(&mut self.gathered[node]).into_iter().filter(|other| *other != who) {
                self.processors[other].granted = self.processors[who].granted;
                self.answered(other, Mailbox::Answer, 0);
            }
        }
    }

    /// The processor's thread begins.
    pub fn begin_thread(&mut self, who: usize) {
        self.processors[who].begins = true;
        self.put_soon(who);
    }
}
