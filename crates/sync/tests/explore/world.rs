//! A small world: a table, a few processors with their scripts, and what must hold between them.
//!
//! The world keeps its own account of who asked for what in which order, and judges every grant by it.

use std::collections::BTreeMap;

use finespun_sync::{Entry, Error, Event, Grant, Header, Quick, Table, Thin, Waiter, Word};
use finespun_types::ProcessorId;

use crate::script::{Script, Step};

/// A table's memory, and the word beside it: one for all objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    pub thin: Thin,
    header: Header,
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    waiters: Vec<Waiter>,
}

impl Store {
    fn new(processors: usize) -> Self {
        // One bucket, so that objects share a chain.
        let entries = vec![Entry::default(); 4];
        let waiters = vec![Waiter::default(); processors];
        Self { thin: Thin::Empty, header: Header::default(), buckets: vec![0], entries, waiters }
    }

    pub fn on(&mut self, event: Event) -> Result<Vec<Grant>, Error> {
        let mut grants = Vec::new();
        self.table().on(event, &mut |grant| grants.push(grant))?;
        Ok(grants)
    }

    /// The quick way: one atomic step.
    fn quick(&mut self, event: Event) -> Quick {
        let word = Word::saying(self.thin);
        let quick = word.on(event);
        self.thin = word.says();
        quick
    }

    /// The first half of the way through the table, during which others may try the quick one.
    fn inflate(&mut self) -> Result<(), Error> {
        let word = Word::saying(self.thin);
        self.table().inflate(&word)?;
        self.thin = word.says();
        Ok(())
    }

    /// The second half.
    fn on_fat(&mut self, event: Event) -> Result<Vec<Grant>, Error> {
        let (word, mut grants) = (Word::saying(self.thin), Vec::new());
        self.table().on_fat(&word, event, &mut |grant| grants.push(grant))?;
        self.thin = word.says();
        Ok(grants)
    }

    pub fn table(&mut self) -> Table<'_> {
        Table::new(&mut self.header, &mut self.buckets, &mut self.entries, &mut self.waiters)
    }
}

/// A seeded bug: what a broken table would make of the event, given the memory before it; it may alter the memory
/// after it and the grants.
pub type Bug = fn(event: Event, before: &Store, after: &mut Store, grants: &mut Vec<Grant>);

/// How events reach the managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// The requester runs the table itself.
    Direct,
    /// The same, with a word beside the table: the quick way first.
    Quick,
    /// As messages, in order from one processor to one object, each object at a manager of its own.
    Messages,
    /// As messages, and a waiter does not wait to hear that it is queued before it unlocks.
    MessagesUnacknowledged,
}

/// What does not change in a world.
#[derive(Clone, Debug)]
pub struct Setting {
    pub scripts: Vec<Script>,
    pub delivery: Delivery,
    pub bug: Bug,
}

/// How far a processor is with a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Queueing {
    No,
    Asked,
    Queued,
    Signalled,
}

/// How far a processor is with an event that it brings by itself, with a word beside the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    /// The word may tell soon.
    Looking(Event),
    /// It wants the table's lock.
    ToTable(Event),
    /// It has the lock, and the word is fat.
    AtTable(Event),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Processor {
    /// The event that it is about to bring.
    way: Option<Way>,
    /// The next step of its script.
    at: usize,
    /// The event whose grant it waits for, and how many steps to skip if a try fails.
    waiting: Option<(Event, usize)>,
    queueing: Queueing,
    /// How often it arrived at, and left, each barrier.
    rounds: BTreeMap<u64, (u32, u32)>,
    /// The highest value seen of each flag.
    seen: BTreeMap<u64, u64>,
}

/// Everything that can change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    store: Store,
    processors: Vec<Processor>,
    /// Events on their way, in order, by processor and object.
    in_flight: BTreeMap<(usize, u64), Vec<Event>>,
    /// Who asked, in order, and for which value (flags), by object.
    lines: BTreeMap<u64, Vec<(ProcessorId, u32)>>,
    /// Who is in the section of each mutex.
    inside: BTreeMap<u64, ProcessorId>,
    items: u32,
}

/// One thing that can happen next.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    /// A processor takes its next step.
    Run(usize),
    /// The first event on its way from a processor to an object arrives.
    Deliver(usize, u64),
    /// A processor looks at the word again.
    Look(usize),
    /// A processor takes the table's lock and inflates the word.
    Inflate(usize),
    /// It brings its event to the table, deflates the word, and gives the lock back.
    Finish(usize),
}

impl World {
    pub fn new(setting: &Setting) -> Self {
        let (rounds, seen) = (BTreeMap::new(), BTreeMap::new());
        let fresh = Processor { way: None, at: 0, waiting: None, queueing: Queueing::No, rounds, seen };
        Self {
            store: Store::new(setting.scripts.len()),
            processors: vec![fresh; setting.scripts.len()],
            in_flight: BTreeMap::new(),
            lines: BTreeMap::new(),
            inside: BTreeMap::new(),
            items: 0,
        }
    }

    /// Everything that can happen next.
    pub fn moves(&self, setting: &Setting) -> Vec<Move> {
        let runs = (0..self.processors.len()).filter(|p| self.can_run(setting, *p)).map(Move::Run);
        let deliveries = self.in_flight.keys().map(|(p, object)| Move::Deliver(*p, *object));
        let ways = self.processors.iter().enumerate().filter_map(|(p, processor)| Some((p, processor.way?)));
        runs.chain(deliveries).chain(ways.flat_map(|(p, way)| self.moves_of_way(p, way))).collect()
    }

    fn moves_of_way(&self, p: usize, way: Way) -> Vec<Move> {
        let is_locked = self.processors.iter().any(|other| matches!(other.way, Some(Way::AtTable(_))));
        match way {
            Way::Looking(_) if is_locked => vec![Move::Look(p)],
            Way::Looking(_) => vec![Move::Look(p), Move::Inflate(p)],
            Way::ToTable(_) if is_locked => vec![],
            Way::ToTable(_) => vec![Move::Inflate(p)],
            Way::AtTable(_) => vec![Move::Finish(p)],
        }
    }

    fn can_run(&self, setting: &Setting, p: usize) -> bool {
        let processor = &self.processors[p];
        let free = processor.waiting.is_none() && processor.way.is_none() && processor.queueing != Queueing::Asked;
        free && match setting.scripts[p].steps.get(processor.at) {
            Some(Step::AwaitSignal) => processor.queueing == Queueing::Signalled,
            Some(_) => true,
            None => false,
        }
    }

    /// What must hold when nothing more can happen.
    pub fn check_end(&mut self, setting: &Setting) -> Result<(), String> {
        for (p, processor) in self.processors.iter().enumerate() {
            let script = &setting.scripts[p].steps;
            if processor.waiting.is_some() || processor.at < script.len() {
                return Err(format!("p{p} waits for ever, at step {} of {}", processor.at, script.len()));
            }
        }
        match self.store.table().in_use() {
            0 if self.store.thin == Thin::Empty => Ok(()),
            0 => Err(format!("the word says {:?}, and nobody uses it", self.store.thin)),
            left => Err(format!("{left} entries in use, and nobody uses them")),
        }
    }

    /// Lets `next` happen.
    pub fn step(&mut self, setting: &Setting, next: Move) -> Result<(), String> {
        match next {
            Move::Run(p) => self.run(setting, p),
            Move::Deliver(p, object) => {
                let queue = self.in_flight.get_mut(&(p, object)).expect("it is in flight");
                let event = queue.remove(0);
                if queue.is_empty() {
                    self.in_flight.remove(&(p, object));
                }
                self.deliver(setting, p, event)
            }
            Move::Look(p) | Move::Inflate(p) | Move::Finish(p) => {
                let way = self.processors[p].way.take().expect("it brings an event");
                let (Way::Looking(event) | Way::ToTable(event) | Way::AtTable(event)) = way;
                match next {
                    Move::Inflate(_) => {
                        self.processors[p].way = Some(Way::AtTable(event));
                        self.store.inflate().map_err(|error| format!("{event:?}: {error}"))
                    }
                    Move::Finish(_) => self.deliver(setting, p, event),
                    Move::Look(_) | Move::Run(_) | Move::Deliver(..) => self.look(setting, p, event),
                }
            }
        }
    }

    /// Tries the quick way.
    fn look(&mut self, setting: &Setting, p: usize, event: Event) -> Result<(), String> {
        let before = self.store.clone();
        let grants = match self.store.quick(event) {
            Quick::Granted(grant) => vec![grant],
            Quick::Taken => Vec::new(),
            Quick::NotYet => {
                self.processors[p].way = Some(Way::Looking(event));
                return Ok(());
            }
            Quick::ForTable => {
                self.processors[p].way = Some(Way::ToTable(event));
                return Ok(());
            }
        };
        self.join_line(event)?;
        self.done(setting, p, event, &before, grants)
    }

    fn run(&mut self, setting: &Setting, p: usize) -> Result<(), String> {
        let step = setting.scripts[p].steps[self.processors[p].at];
        let who = setting.scripts[p].who;
        self.processors[p].at += 1;
        match step {
            Step::Do(event) => self.present(setting, p, event, 0),
            Step::Try(event, skip) => self.present(setting, p, event, skip),
            Step::AwaitSignal => {
                self.processors[p].queueing = Queueing::No;
                Ok(())
            }
            Step::AwaitOrLeave(leave, skip) => match self.processors[p].queueing {
                Queueing::Signalled => {
                    self.processors[p].queueing = Queueing::No;
                    Ok(())
                }
                Queueing::No | Queueing::Asked | Queueing::Queued => self.present(setting, p, leave, skip),
            },
            Step::SkipIfItem(skip) => {
                self.processors[p].at += if self.items > 0 { skip } else { 0 };
                Ok(())
            }
            Step::Back(steps) => {
                self.processors[p].at -= steps + 1;
                Ok(())
            }
            Step::Put(mutex) => {
                self.items += 1;
                self.assert_inside(mutex, who)
            }
            Step::Take(mutex) => {
                self.items = self.items.checked_sub(1).ok_or("an item was taken twice")?;
                self.assert_inside(mutex, who)
            }
        }
    }

    fn present(&mut self, setting: &Setting, p: usize, event: Event, skip: usize) -> Result<(), String> {
        let processor = &mut self.processors[p];
        match event {
            Event::Arrive { barrier, .. } => {
                processor.rounds.entry(barrier).or_default().0 += 1;
                processor.waiting = Some((event, skip));
            }
            Event::Lock { .. } | Event::TryLock { .. } | Event::WaitFlag { .. } | Event::ReadFlag { .. } => {
                processor.waiting = Some((event, skip));
            }
            Event::Leave { .. } => processor.waiting = Some((event, skip)),
            Event::ReadLock { .. } | Event::TryReadLock { .. } | Event::RwUnlock { .. } => return elsewhere(),
            Event::WriteLock { .. } | Event::TryWriteLock { .. } => return elsewhere(),
            Event::Enqueue { .. } => {
                processor.queueing = match setting.delivery {
                    Delivery::Direct | Delivery::Quick | Delivery::Messages => Queueing::Asked,
                    Delivery::MessagesUnacknowledged => Queueing::Queued,
                };
            }
            Event::Unlock { mutex, who } => {
                self.assert_inside(mutex, who)?;
                self.inside.remove(&mutex);
            }
            Event::SetFlag { .. } | Event::ResetFlag { .. } | Event::Signal { .. } | Event::Broadcast { .. } => {}
        }
        match setting.delivery {
            Delivery::Direct => self.deliver(setting, p, event),
            Delivery::Quick => self.look(setting, p, event),
            Delivery::Messages | Delivery::MessagesUnacknowledged => {
                self.in_flight.entry((p, event.object())).or_default().push(event);
                Ok(())
            }
        }
    }

    fn deliver(&mut self, setting: &Setting, p: usize, event: Event) -> Result<(), String> {
        self.join_line(event)?;
        let before = self.store.clone();
        let grants = match setting.delivery {
            Delivery::Quick => self.store.on_fat(event),
            Delivery::Direct | Delivery::Messages | Delivery::MessagesUnacknowledged => self.store.on(event),
        };
        let grants = grants.map_err(|error| format!("{event:?}: {error}"))?;
        self.done(setting, p, event, &before, grants)
    }

    fn join_line(&mut self, event: Event) -> Result<(), String> {
        let line = self.lines.entry(event.object()).or_default();
        match event {
            Event::Lock { who, .. } | Event::Arrive { who, .. } | Event::Enqueue { who, .. } => line.push((who, 0)),
            Event::WaitFlag { who, value, .. } => line.push((who, value)),
            Event::ResetFlag { flag } => self.processors.iter_mut().for_each(|p| p.seen.retain(|f, _| *f != flag)),
            Event::TryLock { .. } | Event::Unlock { .. } | Event::SetFlag { .. } => {}
            Event::ReadFlag { .. } | Event::Signal { .. } | Event::Broadcast { .. } | Event::Leave { .. } => {}
            Event::ReadLock { .. } | Event::TryReadLock { .. } | Event::RwUnlock { .. } => return elsewhere(),
            Event::WriteLock { .. } | Event::TryWriteLock { .. } => return elsewhere(),
        }
        Ok(())
    }

    fn done(
        &mut self,
        setting: &Setting,
        p: usize,
        event: Event,
        before: &Store,
        mut grants: Vec<Grant>,
    ) -> Result<(), String> {
        (setting.bug)(event, before, &mut self.store, &mut grants);
        if self.processors[p].queueing == Queueing::Asked {
            self.processors[p].queueing = Queueing::Queued;
        }
        for grant in grants {
            self.grant(setting, event, grant)?;
        }
        self.lines.retain(|_, line| !line.is_empty());
        Ok(())
    }

    /// The grant that `cause` led to.
    fn grant(&mut self, setting: &Setting, cause: Event, Grant { who, value }: Grant) -> Result<(), String> {
        let (p, object) = (who.0 as usize, cause.object());
        // Signals have a mailbox of their own: one may come while the answer to a Leave is awaited.
        let is_signal = matches!(cause, Event::Signal { .. } | Event::Broadcast { .. });
        let waiting = if is_signal { None } else { self.processors[p].waiting.take() };
        let Some((event, skip)) = waiting else {
            if self.processors[p].queueing != Queueing::Queued {
                return Err(format!("p{p} was granted something and waits for nothing"));
            }
            self.processors[p].queueing = Queueing::Signalled;
            return self.leave_line(object, who, value);
        };
        if event.object() != object {
            return Err(format!("p{p} waits for another object"));
        }
        match event {
            Event::Lock { mutex, .. } => {
                self.leave_line(object, who, value)?;
                self.enter(mutex, who)
            }
            Event::TryLock { mutex, .. } if value == 1 => self.enter(mutex, who),
            Event::TryLock { .. } => {
                self.processors[p].at += skip;
                Ok(())
            }
            Event::Arrive { .. } => {
                self.leave_line(object, who, value)?;
                self.leave_barrier(setting, object, p)
            }
            Event::WaitFlag { value: until, .. } if value < until.into() => {
                Err(format!("p{p} waits for {until} and was granted {value}"))
            }
            Event::WaitFlag { .. } => {
                self.leave_line(object, who, value)?;
                self.see(object, p, value)
            }
            Event::ReadFlag { .. } => self.see(object, p, value),
            Event::Leave { .. } if value == 1 => {
                let processor = &mut self.processors[p];
                processor.queueing = Queueing::No;
                processor.at += skip;
                let line = self.lines.get_mut(&object).ok_or("nobody is in line")?;
                line.retain(|(other, _)| *other != who);
                Ok(())
            }
            Event::Leave { .. } if self.processors[p].queueing == Queueing::Signalled => {
                self.processors[p].queueing = Queueing::No;
                Ok(())
            }
            Event::Leave { .. } => Err(format!("p{p} left a line in which it was not")),
            Event::ReadLock { .. } | Event::TryReadLock { .. } | Event::RwUnlock { .. } => elsewhere(),
            Event::WriteLock { .. } | Event::TryWriteLock { .. } => elsewhere(),
            Event::Unlock { .. } | Event::Enqueue { .. } | Event::Signal { .. } | Event::Broadcast { .. } => Ok(()),
            Event::SetFlag { .. } | Event::ResetFlag { .. } => Ok(()),
        }
    }

    /// First come, first served: nobody is granted before one who asked earlier and could have been granted too.
    fn leave_line(&mut self, object: u64, who: ProcessorId, value: u64) -> Result<(), String> {
        let line = self.lines.get_mut(&object).ok_or("nobody is in line")?;
        match line.iter().position(|(_, until)| u64::from(*until) <= value) {
            Some(first) if line[first].0 == who => {
                line.remove(first);
                Ok(())
            }
            Some(_) | None => Err(format!("{who:?} was granted out of turn: {line:?}")),
        }
    }

    fn enter(&mut self, mutex: u64, who: ProcessorId) -> Result<(), String> {
        match self.inside.insert(mutex, who) {
            None => Ok(()),
            Some(other) => Err(format!("{who:?} and {other:?} are both inside")),
        }
    }

    fn assert_inside(&self, mutex: u64, who: ProcessorId) -> Result<(), String> {
        match self.inside.get(&mutex) {
            Some(inside) if *inside == who => Ok(()),
            Some(_) | None => Err(format!("{who:?} is not inside")),
        }
    }

    /// Rounds never mix: who leaves a round leaves after everybody has arrived for it.
    fn leave_barrier(&mut self, setting: &Setting, barrier: u64, p: usize) -> Result<(), String> {
        let rounds = self.processors[p].rounds.entry(barrier).or_default();
        rounds.1 += 1;
        let round = rounds.1;
        for (other, script) in setting.scripts.iter().enumerate() {
            let takes_part = script
                .steps
                .iter()
                .any(|step| matches!(step, Step::Do(Event::Arrive { barrier: b, .. }) if *b == barrier));
            let arrived = self.processors[other].rounds.get(&barrier).map_or(0, |rounds| rounds.0);
            if takes_part && arrived < round {
                return Err(format!("p{p} left round {round} before p{other} arrived for it"));
            }
        }
        Ok(())
    }

    /// A flag only grows.
    fn see(&mut self, flag: u64, p: usize, value: u64) -> Result<(), String> {
        match self.processors[p].seen.insert(flag, value) {
            Some(before) if before > value => Err(format!("p{p} saw the flag fall from {before} to {value}")),
            Some(_) | None => Ok(()),
        }
    }
}

/// Locks for readers and writers have a world of their own.
fn elsewhere() -> Result<(), String> {
    Err("see tests/rwlock.rs".to_owned())
}
