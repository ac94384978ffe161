//! Locks for readers and writers: every interleaving of a few processors, and seeded bugs that the search must catch.

use std::collections::{HashSet, VecDeque};

use finespun_sync::{Entry, Event, Grant, Header, Table, Waiter};
use finespun_types::ProcessorId;

const L: u64 = 0x2000_0000_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Do {
    Read,
    TryRead,
    Write,
    TryWrite,
    /// Leaves once; nothing if the try before it failed.
    Unlock,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Memory {
    header: Header,
    bucket: [u32; 1],
    entries: [Entry; 1],
    waiters: Vec<Waiter>,
}

impl Memory {
    fn on(&mut self, event: Event) -> Result<Vec<Grant>, String> {
        let mut grants = Vec::new();
        let mut table = Table::new(&mut self.header, &mut self.bucket, &mut self.entries, &mut self.waiters);
        table.on(event, &mut |grant| grants.push(grant)).map_err(|error| error.to_string())?;
        Ok(grants)
    }
}

/// What a broken table would make of an event.
type Bug = fn(event: Event, before: &Memory, after: &mut Memory, grants: &mut Vec<Grant>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    memory: Memory,
    at: Vec<usize>,
    /// How often each reads.
    reads: Vec<u32>,
    writes: Vec<bool>,
    /// Who waits, in order; true for writers.
    line: Vec<(usize, bool)>,
    /// The last try failed: its unlock does nothing.
    failed: Vec<bool>,
}

impl World {
    fn new(processors: usize) -> Self {
        let memory = Memory {
            header: Header::default(),
            bucket: [0],
            entries: [Entry::default()],
            waiters: vec![Waiter::default(); processors],
        };
        let [at, reads] = [vec![0; processors], vec![0; processors]];
        let reads = reads.into_iter().map(|count: usize| count as u32).collect();
        let no = vec![false; processors];
        Self { memory, at, reads, writes: no.clone(), line: Vec::new(), failed: no }
    }

    fn waits(&self, p: usize) -> bool {
        self.line.iter().any(|(waiter, _)| *waiter == p)
    }

    fn step(&mut self, p: usize, step: Do, bug: Bug) -> Result<(), String> {
        let (who, again) = (ProcessorId(p as u32), self.reads[p] > 0);
        self.at[p] += 1;
        let event = match step {
            Do::Read => Event::ReadLock { rwlock: L, who, again },
            Do::TryRead => Event::TryReadLock { rwlock: L, who, again },
            Do::Write => Event::WriteLock { rwlock: L, who },
            Do::TryWrite => Event::TryWriteLock { rwlock: L, who },
            Do::Unlock if std::mem::take(&mut self.failed[p]) => return Ok(()),
            Do::Unlock => Event::RwUnlock { rwlock: L, who },
        };
        let before = self.memory.clone();
        let mut grants = self.memory.on(event)?;
        bug(event, &before, &mut self.memory, &mut grants);
        match step {
            Do::Read => self.line.push((p, false)),
            Do::Write => self.line.push((p, true)),
            Do::Unlock if self.writes[p] => self.writes[p] = false,
            Do::Unlock => self.reads[p] -= 1,
            Do::TryRead | Do::TryWrite => {}
        }
        for Grant { who, value } in grants {
            self.grant(who.0 as usize, (who.0 as usize == p).then_some(step), value)?;
        }
        Ok(())
    }

    fn grant(&mut self, p: usize, step: Option<Do>, value: u64) -> Result<(), String> {
        match step {
            Some(Do::TryRead | Do::TryWrite) if value == 0 => self.failed[p] = true,
            Some(Do::TryRead) => self.reads[p] += 1,
            Some(Do::TryWrite) => self.writes[p] = true,
            Some(Do::Read | Do::Write | Do::Unlock) | None => {
                let place = self.line.iter().position(|(waiter, _)| *waiter == p);
                let place = place.ok_or(format!("p{p} was granted and waits for nothing"))?;
                let (_, writer) = self.line.remove(place);
                if place > 0 && self.reads[p] == 0 {
                    return Err(format!("p{p} was let in before {:?}", self.line[0]));
                }
                if writer {
                    self.writes[p] = true;
                } else {
                    self.reads[p] += 1;
                }
            }
        }
        let writers = self.writes.iter().filter(|writes| **writes).count();
        let readers = self.reads.iter().filter(|reads| **reads > 0).count();
        if writers > 1 || (writers == 1 && readers > 0) {
            return Err(format!("{writers} writers and {readers} readers are inside"));
        }
        Ok(())
    }
}

/// Every interleaving: how many states, or what is wrong.
fn explore(scripts: &[&[Do]], bug: Bug) -> Result<usize, String> {
    let first = World::new(scripts.len());
    let mut seen = HashSet::from([first.clone()]);
    let mut queue = VecDeque::from([first]);
    while let Some(world) = queue.pop_front() {
        let can_run = |p: &usize| !world.waits(*p) && world.at[*p] < scripts[*p].len();
        let runs = (0..scripts.len()).filter(can_run).collect::<Vec<_>>();
        if runs.is_empty() {
            if let Some((p, _)) = world.line.first() {
                return Err(format!("p{p} waits for ever"));
            }
            let mut memory = world.memory.clone();
            let table = Table::new(&mut memory.header, &mut memory.bucket, &mut memory.entries, &mut memory.waiters);
            if table.in_use() > 0 {
                return Err("the lock is in use, and nobody uses it".to_owned());
            }
        }
        for p in runs {
            let mut after = world.clone();
            after.step(p, scripts[p][world.at[p]], bug)?;
            if seen.insert(after.clone()) {
                queue.push_back(after);
            }
        }
    }
    Ok(seen.len())
}

use Do::{Read, TryRead, TryWrite, Unlock, Write};

const READERS_AND_WRITERS: &[&[Do]] = &[
    &[Read, Unlock, Write, Unlock],
    &[Write, Unlock, Read, Unlock],
    &[Read, Unlock, TryWrite, Unlock],
    &[Write, Unlock, TryRead, Unlock],
];
const READERS_THAT_READ_TWICE: &[&[Do]] =
    &[&[Read, Read, Unlock, Unlock], &[Write, Unlock], &[Read, TryRead, Unlock, Unlock], &[Write, Unlock]];

const fn no_bug(_: Event, _: &Memory, _: &mut Memory, _: &mut Vec<Grant>) {}

fn caught(scripts: &[&[Do]], bug: Bug) -> String {
    explore(scripts, bug).expect_err("the bug is caught")
}

#[test]
fn a_writer_is_alone_and_everybody_gets_in_by_turns() {
    assert_eq!(explore(READERS_AND_WRITERS, no_bug), Ok(1_332));
}

#[test]
fn a_reader_may_read_again_while_a_writer_waits_for_it() {
    assert_eq!(explore(READERS_THAT_READ_TWICE, no_bug), Ok(350));
}

#[test]
fn catches_a_reader_that_is_let_in_past_a_waiting_writer() {
    let why = caught(READERS_AND_WRITERS, |event, before, after, grants| {
        if let Event::ReadLock { rwlock, who, .. } = event {
            *after = before.clone();
            *grants = after.on(Event::ReadLock { rwlock, who, again: true }).expect("not refused");
        }
    });
    assert!(why.contains("was let in before"), "{why}");
}

#[test]
fn catches_a_reader_that_waits_behind_the_writer_that_waits_for_it() {
    let why = caught(READERS_THAT_READ_TWICE, |event, before, after, grants| {
        if let Event::ReadLock { rwlock, who, .. } = event {
            *after = before.clone();
            *grants = after.on(Event::ReadLock { rwlock, who, again: false }).expect("not refused");
        }
    });
    assert!(why.contains("waits for ever"), "{why}");
}

#[test]
fn catches_an_unlock_that_lets_in_only_one_of_the_readers() {
    let why = caught(READERS_AND_WRITERS, |event, _, _, grants| {
        if let Event::RwUnlock { .. } = event {
            grants.truncate(1);
        }
    });
    assert!(why.contains("waits for ever") || why.contains("was let in before"), "{why}");
}

#[test]
fn catches_a_writer_that_is_let_in_among_readers() {
    let why = caught(READERS_AND_WRITERS, |event, _, _, grants| {
        if let (Event::WriteLock { who, .. }, []) = (event, grants.as_slice()) {
            grants.push(Grant { who, value: 0 });
        }
    });
    assert!(why.contains("inside") || why.contains("let in before"), "{why}");
}
