//! Random events on thousands of objects, judged by a plain model with `BTreeMap` (so that a seed replays a run) and `VecDeque`.

use std::collections::{BTreeMap, VecDeque};

use finespun_sync::{Entry, Error, Event, Grant, Header, Kind, Quick, Table, Thin, Waiter, Word};
use finespun_types::ProcessorId;

const PROCESSORS: u32 = 600;

/// What an object is, said as simply as possible.
#[derive(Clone, Debug, Default)]
struct Object {
    holder: Option<ProcessorId>,
    arrived: u32,
    value: u32,
    line: VecDeque<(ProcessorId, u32)>,
}

impl Object {
    fn in_use(&self) -> bool {
        self.holder.is_some() || self.arrived > 0 || self.value > 0 || !self.line.is_empty()
    }
}

#[derive(Debug, Default)]
struct Model {
    objects: BTreeMap<u64, Object>,
    most_in_use: usize,
}

/// What an event must lead to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Grants(Vec<Grant>),
    Misuse,
    Full,
}

fn granted(who: ProcessorId, value: u32) -> Grant {
    Grant { who, value: value.into() }
}

impl Model {
    fn in_use(&self) -> usize {
        self.objects.len()
    }

    fn on(&mut self, event: Event, capacity: usize) -> Outcome {
        let before = self.objects.get(&event.object()).cloned();
        let was_in_use = before.is_some();
        let mut object = before.unwrap_or_default();
        let Some(grants) = Self::change(&mut object, event) else { return Outcome::Misuse };
        if object.in_use() && !was_in_use && self.objects.len() == capacity {
            return Outcome::Full;
        }
        if object.in_use() {
            self.objects.insert(event.object(), object);
        } else {
            self.objects.remove(&event.object());
        }
        self.most_in_use = self.most_in_use.max(self.objects.len());
        Outcome::Grants(grants)
    }

    fn change(object: &mut Object, event: Event) -> Option<Vec<Grant>> {
        let mut grants = Vec::new();
        match event {
            Event::Lock { who, .. } if object.holder == Some(who) => return None,
            Event::Lock { who, .. } if object.holder.is_some() => object.line.push_back((who, 0)),
            Event::Lock { who, .. } => {
                object.holder = Some(who);
                grants.push(granted(who, 0));
            }
            Event::TryLock { who, .. } => {
                grants.push(granted(who, object.holder.is_none().into()));
                object.holder = object.holder.or(Some(who));
            }
            Event::Unlock { who, .. } if object.holder != Some(who) => return None,
            Event::Unlock { .. } => {
                object.holder = object.line.pop_front().map(|(who, _)| who);
                grants.extend(object.holder.map(|who| granted(who, 0)));
            }
            Event::Arrive { count, who, weight, .. } => {
                object.line.push_back((who, 0));
                object.arrived += weight;
                if object.arrived > count {
                    return None;
                }
                if object.arrived == count {
                    object.arrived = 0;
                    grants.extend(object.line.drain(..).map(|(other, _)| granted(other, (other == who).into())));
                }
            }
            Event::SetFlag { value, .. } if value <= object.value => {}
            Event::SetFlag { value, .. } => {
                object.value = value;
                let line = std::mem::take(&mut object.line);
                let (reached, rest): (Vec<_>, Vec<_>) = line.into_iter().partition(|(_, until)| *until <= value);
                object.line = rest.into();
                grants.extend(reached.into_iter().map(|(who, _)| granted(who, value)));
            }
            Event::WaitFlag { value, who, .. } if value > object.value => object.line.push_back((who, value)),
            Event::WaitFlag { who, .. } | Event::ReadFlag { who, .. } => grants.push(granted(who, object.value)),
            Event::ResetFlag { .. } if !object.line.is_empty() => return None,
            Event::ResetFlag { .. } => object.value = 0,
            Event::Enqueue { who, .. } => object.line.push_back((who, 0)),
            Event::Signal { .. } => grants.extend(object.line.pop_front().map(|(who, _)| granted(who, 0))),
            Event::Broadcast { .. } => grants.extend(object.line.drain(..).map(|(who, _)| granted(who, 0))),
            Event::Leave { who, .. } => {
                let waited = object.line.len();
                object.line.retain(|(other, _)| *other != who);
                grants.push(granted(who, (object.line.len() < waited).into()));
            }
            Event::ReadLock { .. } | Event::TryReadLock { .. } | Event::RwUnlock { .. } => {
                unreachable!("tests/rwlock.rs")
            }
            Event::WriteLock { .. } | Event::TryWriteLock { .. } => unreachable!("tests/rwlock.rs"),
        }
        Some(grants)
    }
}

/// A small generator (xorshift), so that a seed replays a run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// An event that `who`, who waits for nothing, may present to one of `objects`.
    fn event(&mut self, who: ProcessorId, objects: u32, model: &Model) -> Event {
        let number = self.below(objects);
        let object = 0x2000_0000_0000 + 8 * u64::from(number);
        match number % 4 {
            0 => match (self.below(8), model.objects.get(&object).and_then(|mutex| mutex.holder)) {
                (0, _) => Event::TryLock { mutex: object, who },
                (1..=6, None) => Event::Lock { mutex: object, who },
                (7, _) => Event::Unlock { mutex: object, who },
                (1..=2, Some(_)) => Event::Lock { mutex: object, who },
                (_, holder) => Event::Unlock { mutex: object, who: holder.unwrap_or(who) },
            },
            1 => Event::Arrive { barrier: object, count: 1 + number % 5, who, weight: 1 + self.below(2) },
            2 => match self.below(5) {
                0 => Event::ReadFlag { flag: object, who },
                1 => Event::ResetFlag { flag: object },
                2 => Event::WaitFlag { flag: object, value: self.below(4), who },
                _ => Event::SetFlag { flag: object, value: self.below(6) },
            },
            _ => match self.below(6) {
                5 => {
                    let line = model.objects.get(&object).map(|object| &object.line);
                    let waiter = line.and_then(|line| line.get(self.below(4) as usize));
                    Event::Leave { condition: object, who: waiter.map_or(who, |(waiter, _)| *waiter) }
                }
                0 | 1 => Event::Enqueue { condition: object, who },
                2 | 3 => Event::Signal { condition: object },
                _ => Event::Broadcast { condition: object },
            },
        }
    }
}

/// A table, the words beside it if it has any, the model, and who waits.
struct Run {
    words: Vec<Word>,
    header: Header,
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    waiters: Vec<Waiter>,
    model: Model,
    waiting: Vec<bool>,
    full: u32,
    misuses: u32,
}

impl Run {
    fn new(buckets: usize, capacity: usize) -> Self {
        Self {
            words: Vec::new(),
            header: Header::default(),
            buckets: vec![0; buckets],
            entries: vec![Entry::default(); capacity],
            waiters: vec![Waiter::default(); PROCESSORS as usize],
            model: Model::default(),
            waiting: vec![false; PROCESSORS as usize],
            full: 0,
            misuses: 0,
        }
    }

    /// Presents the event to both, and compares everything that can be seen.
    fn present(&mut self, event: Event, at: &str) {
        let expected = self.model.on(event, self.entries.len());
        let mut grants = Vec::new();
        let mut table = Table::new(&mut self.header, &mut self.buckets, &mut self.entries, &mut self.waiters);
        let result = match self.words.get(event.object() as usize / 8 % self.words.len().max(1)) {
            None => table.on(event, &mut |grant| grants.push(grant)),
            Some(word) => match word.on(event) {
                Quick::Granted(grant) => {
                    grants.push(grant);
                    Ok(())
                }
                Quick::Taken => Ok(()),
                Quick::NotYet | Quick::ForTable => table.on_beside(word, event, &mut |grant| grants.push(grant)),
            },
        };
        let outcome = match result {
            Ok(()) => Outcome::Grants(grants),
            Err(Error::Misuse(misuse)) => {
                assert_eq!(misuse.event, event);
                Outcome::Misuse
            }
            Err(Error::Full { .. }) => Outcome::Full,
            Err(Error::Impossible(why)) => panic!("{at}: {event:?}: {why}"),
        };
        assert_eq!(outcome, expected, "{at}: {event:?}");
        let is_thin = |word: &&Word| matches!(word.says(), Thin::Mutex { .. } | Thin::Flag { .. });
        let in_words = self.words.iter().filter(is_thin).count();
        assert_eq!(table.in_use() as usize + in_words, self.model.in_use(), "{at}: {event:?}");
        if self.words.is_empty() {
            assert_eq!(table.most_in_use() as usize, self.model.most_in_use, "{at}: {event:?}");
        }
        let object = self.model.objects.get(&event.object());
        for (who, _) in object.iter().flat_map(|object| &object.line) {
            self.waiting[who.0 as usize] = true;
            assert_eq!(table.awaited_by(*who), Some((event.object(), event.kind())), "{at}");
        }
        match outcome {
            Outcome::Grants(grants) => grants.iter().for_each(|grant| {
                self.waiting[grant.who.0 as usize] = false;
                assert_eq!(table.awaited_by(grant.who), None, "{at}");
            }),
            Outcome::Misuse => self.misuses += 1,
            Outcome::Full => self.full += 1,
        }
    }

    /// Ends everything: unlocks what is held, completes rounds, wakes waiters, resets flags.
    fn release_all(&mut self) {
        while let Some((&object, state)) = self.model.objects.iter().next() {
            let event = match 0x3 & object >> 3 {
                0 => Event::Unlock { mutex: object, who: state.holder.expect("it is in use") },
                1 => {
                    let count = 1 + ((object - 0x2000_0000_0000) / 8 % 5) as u32;
                    let idle = self.waiting.iter().position(|waiting| !waiting).expect("not all can be in barriers");
                    let who = ProcessorId(idle as u32);
                    Event::Arrive { barrier: object, count, who, weight: count - state.arrived }
                }
                2 if state.line.is_empty() => Event::ResetFlag { flag: object },
                2 => Event::SetFlag { flag: object, value: 100 },
                _ => Event::Broadcast { condition: object },
            };
            self.present(event, "at the end");
        }
    }
}

fn random_run(seed: u64, events: u32, objects: u32, buckets: usize, capacity: usize) -> Run {
    random_events(Run::new(buckets, capacity), seed, events, objects)
}

fn random_events(mut run: Run, seed: u64, events: u32, objects: u32) -> Run {
    let mut random = Random(seed);
    for i in 0..events {
        let start = random.below(PROCESSORS);
        let mut idle = (start..PROCESSORS).chain(0..start).filter(|who| !run.waiting[*who as usize]);
        let (Some(pick), Some(_)) = (idle.next(), idle.next()) else {
            run.release_all(); // nearly all wait: begin anew
            continue;
        };
        let event = random.event(ProcessorId(pick), objects, &run.model);
        run.present(event, &format!("seed {seed}, event {i}"));
    }
    run
}

fn is_empty_again(mut run: Run) {
    run.release_all();
    let table = Table::new(&mut run.header, &mut run.buckets, &mut run.entries, &mut run.waiters);
    assert_eq!(table.in_use(), 0);
    assert!(run.buckets.iter().all(|link| *link == 0));
    assert!(run.waiters.iter().all(|waiter| *waiter == Waiter::default()));
    assert!(run.words.iter().all(|word| word.says() == Thin::Empty));
}

#[test]
fn words_beside_a_table_change_nothing_that_can_be_seen() {
    for (seed, words) in [(1, 1), (2, 7), (3, 61), (4, 1_024)] {
        let run = Run { words: (0..words).map(|_| Word::default()).collect(), ..Run::new(64, 1_000) };
        let run = random_events(run, seed, 30_000, 1_000);
        assert!(run.misuses > 100, "misuses: {}", run.misuses);
        is_empty_again(run);
    }
}

#[test]
fn a_word_that_finds_the_table_full_stays_as_it_was() {
    let mut run = Run { words: vec![Word::default()], ..Run::new(4, 1) };
    let [p, q] = [0, 1].map(ProcessorId);
    run.present(Event::Lock { mutex: 8, who: p }, "in the word");
    let mut table = Table::new(&mut run.header, &mut run.buckets, &mut run.entries, &mut run.waiters);
    let elsewhere = Word::default();
    table.on_beside(&elsewhere, Event::Enqueue { condition: 16, who: q }, &mut |_| {}).expect("there is room");
    let lock = Event::Lock { mutex: 8, who: q };
    assert!(matches!(table.on_beside(&run.words[0], lock, &mut |_| {}), Err(Error::Full { .. })));
    assert_eq!(run.words[0].says(), Thin::Mutex { mutex: 8, holder: p });
}

#[test]
fn a_hundred_thousand_events_on_four_thousand_objects_agree_with_the_model() {
    let run = random_run(1, 100_000, 4_000, 256, 4_000);
    assert_eq!(run.full, 0);
    assert!(run.misuses > 100, "misuses: {}", run.misuses);
    assert!(run.model.most_in_use > 500, "most in use: {}", run.model.most_in_use);
    // What was never in use at once was never touched.
    assert!(run.entries[run.model.most_in_use..].iter().all(|entry| *entry == Entry::default()));
    is_empty_again(run);
}

#[test]
fn a_few_objects_with_long_queues_agree_with_the_model() {
    for seed in 2..12 {
        is_empty_again(random_run(seed, 10_000, 12, 1, 12));
    }
}

#[test]
fn a_full_table_refuses_and_goes_on() {
    let run = random_run(99, 30_000, 1_000, 16, 60);
    assert!(run.full > 1_000, "full: {}", run.full);
    is_empty_again(run);
}

#[test]
fn a_refused_event_changes_nothing() {
    let mut run = Run::new(4, 1);
    let [p, q] = [0, 1].map(ProcessorId);
    run.present(Event::Lock { mutex: 8, who: p }, "setting up");
    run.present(Event::Lock { mutex: 8, who: q }, "setting up");
    let before = (run.header, run.buckets.clone(), run.entries.clone(), run.waiters.clone());
    let refused = [
        (Event::Lock { mutex: 8, who: p }, "lock of the mutex at 0x8 by the processor that holds it"),
        (Event::Unlock { mutex: 8, who: q }, "unlock of the mutex at 0x8, which processor 0 holds"),
        (Event::Unlock { mutex: 16, who: q }, "unlock of the mutex at 0x10, which nobody holds"),
        (Event::Signal { condition: 8 }, "use of 0x8 as a condition variable, where a mutex is in use"),
        (Event::Lock { mutex: 8, who: q }, "processor 1 waits a second time, while it waits for the object at 0x8"),
        (Event::Lock { mutex: 8, who: ProcessorId(PROCESSORS) }, "processor 600 waits at a table made for 600"),
        (Event::Lock { mutex: 16, who: p }, "more than 1 synchronization objects are in use at once in one table"),
    ];
    for (event, message) in refused {
        let mut table = Table::new(&mut run.header, &mut run.buckets, &mut run.entries, &mut run.waiters);
        let error = table.on(event, &mut |grant| panic!("{grant:?}")).expect_err("it is refused");
        assert_eq!(error.to_string(), message);
        assert_eq!(before, (run.header, run.buckets.clone(), run.entries.clone(), run.waiters.clone()));
    }
}

#[test]
fn an_address_may_be_another_kind_of_object_once_it_is_at_rest() {
    let mut run = Run::new(4, 4);
    let who = ProcessorId(0);
    for event in [
        Event::Lock { mutex: 8, who },
        Event::Unlock { mutex: 8, who },
        Event::SetFlag { flag: 8, value: 2 },
        Event::ResetFlag { flag: 8 },
        Event::Arrive { barrier: 8, count: 1, who, weight: 1 },
        Event::Enqueue { condition: 8, who },
    ] {
        run.present(event, "in turn");
    }
    let table = Table::new(&mut run.header, &mut run.buckets, &mut run.entries, &mut run.waiters);
    assert_eq!(table.awaited_by(who), Some((8, Kind::Condition)));
    assert_eq!(table.most_in_use(), 1);
}
