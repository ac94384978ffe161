//! The objects in use at one manager, or in one part of them: a hash table over plain memory.
//!
//! An object is *in use* while its two words are not zero or somebody waits for it: a held mutex, a barrier with
//! somebody in it, a condition with waiters, a flag above 0. All others are as they were at first, and take no entry.
//!
//! ```text
//!   buckets   [ 0 | . | 0 | . ]        heads of chains
//!                   |       |
//!   entries   [ a | b | - | c | untouched ... ]    b -> a; the free ones form a chain too
//!               |
//!   waiters   [ 0 | . | . | 0 ]        one slot for each processor; queues through `next`
//! ```
//!
//! The memory may be shared by processes at different addresses: links are indices (plus one, so that zero memory
//! is an empty table), and all fields are plain numbers, so that no bytes are invalid. Entries beyond the high-water
//! mark have never been touched: a large table costs only what was in use at once. One lock guards a table; under it
//! an event costs a short chain and what it grants.

use finespun_types::ProcessorId;

use crate::barrier::{self, Barrier};
use crate::condition::{self, Condition};
use crate::event::{Event, Grant, Kind};
use crate::flag::{self, Flag};
use crate::hash::bucket;
use crate::migratory::{self, Line, Lock, Refused};
use crate::mutex::{self, Mutex};
use crate::object::{Object, Step};
use crate::queue::{Queue, Waiter};
use crate::rwlock::{self, READER, Rwlock};
use crate::{Error, Impossible, Misuse, Wrong};

/// What a table remembers of its pool of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Header {
    /// Link to the first free entry below the high-water mark.
    free: u32,
    /// How many entries have ever been used.
    high_water: u32,
    /// How many are in use.
    in_use: u32,
    /// For alignment.
    reserved: u32,
}

/// One object in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Entry {
    address: u64,
    /// Link to the next of the chain, or of the free ones.
    next: u32,
    /// `Kind as u32`, 0 while free.
    kind: u32,
    queue: Queue,
    /// The state, as its kind spells it.
    words: [u32; 2],
}

/// A processor's wait for an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    pub address: u64,
    pub kind: Kind,
    /// The state of the object.
    pub words: [u32; 2],
    /// What is waited for (flags).
    pub until: u32,
}

/// A view of one table's memory, made for as long as its lock is held.
#[derive(Debug)]
pub struct Table<'a> {
    header: &'a mut Header,
    buckets: &'a mut [u32],
    entries: &'a mut [Entry],
    waiters: &'a mut [Waiter],
}

impl Entry {
    /// The object as it is before anybody has used it.
    fn idle(address: u64, kind: Kind) -> Self {
        Self { address, kind: kind as u32, ..Self::default() }
    }

    fn is_idle(&self) -> bool {
        self.words == [0, 0] && self.queue.is_empty()
    }

    fn kind(&self) -> Option<Kind> {
        let all = [Kind::Mutex, Kind::Condition, Kind::Barrier, Kind::Flag, Kind::Migratory, Kind::Rwlock];
        all.into_iter().find(|kind| *kind as u32 == self.kind)
    }
}

impl<'a> Table<'a> {
    /// The table in this memory, all zeros at first. `buckets`: about as many as objects are expected in use;
    /// `entries`: the most that can be; `waiters`: one for each processor of the job.
    ///
    /// # Panics
    /// If there is no bucket.
    pub fn new(
        header: &'a mut Header,
        buckets: &'a mut [u32],
        entries: &'a mut [Entry],
        waiters: &'a mut [Waiter],
    ) -> Self {
        assert!(!buckets.is_empty(), "a table needs at least one bucket");
        Self { header, buckets, entries, waiters }
    }

    /// Takes one event. `out` is called for every grant, oldest waiter first, under the table's lock: it should only
    /// note whom to wake. After an error nothing has changed.
    ///
    /// # Errors
    /// [`Error::Misuse`] is the program's, [`Error::Full`] the table's size, [`Error::Impossible`] the runtime's (it is
    /// found out where the processor waits in this table already; other tables are not asked).
    #[rustfmt::skip]
    pub fn on(&mut self, event: Event, out: &mut dyn FnMut(Grant)) -> Result<(), Error> {
        match event {
            Event::Lock { who, .. }            => self.run::<Mutex>(event, mutex::Event::Lock(who), out),
            Event::TryLock { who, .. }         => self.run::<Mutex>(event, mutex::Event::TryLock(who), out),
            Event::Unlock { who, .. }          => self.run::<Mutex>(event, mutex::Event::Unlock(who), out),
            Event::Arrive { count, who, weight, .. }
                                               => self.run::<Barrier>(event, barrier::Arrive { count, who, weight }, out),
            Event::SetFlag { value, .. }       => self.run::<Flag>(event, flag::Event::Set(value), out),
            Event::WaitFlag { value, who, .. } => self.run::<Flag>(event, flag::Event::Wait(who, value), out),
            Event::ReadFlag { who, .. }        => self.run::<Flag>(event, flag::Event::Read(who), out),
            Event::ResetFlag { .. }            => self.run::<Flag>(event, flag::Event::Reset, out),
            Event::Enqueue { who, .. }         => self.run::<Condition>(event, condition::Event::Enqueue(who), out),
            Event::Signal { .. }               => self.run::<Condition>(event, condition::Event::Signal, out),
            Event::Broadcast { .. }            => self.run::<Condition>(event, condition::Event::Broadcast, out),
            Event::Leave { who, .. }           => self.run::<Condition>(event, condition::Event::Leave(who), out),
            Event::ReadLock { who, again, .. } => self.run_rwlock(event, rwlock::Event::Read { who, again }, out),
            Event::TryReadLock { who, again, .. }
                                               => self.run_rwlock(event, rwlock::Event::TryRead { who, again }, out),
            Event::WriteLock { who, .. }       => self.run_rwlock(event, rwlock::Event::Write(who), out),
            Event::TryWriteLock { who, .. }    => self.run_rwlock(event, rwlock::Event::TryWrite(who), out),
            Event::RwUnlock { who, .. }        => self.run_rwlock(event, rwlock::Event::Unlock(who), out),
        }
    }

    /// Takes one event for a mutex whose ownership migrates, at the node whose table this is. `out` is called for every
    /// action, under the table's lock. Returns whether anybody was granted. After an error nothing has changed.
    ///
    /// A node's parts in such mutexes are kept apart from the objects it manages: an address has one entry for each.
    ///
    /// # Errors
    /// As [`Table::on`].
    pub fn on_migratory(
        &mut self,
        mutex: u64,
        at: migratory::Place,
        event: &migratory::Event,
        out: &mut dyn FnMut(migratory::Action),
    ) -> Result<bool, Error> {
        let found = self.find(mutex, true);
        let entry = found.map_or(Entry::idle(mutex, Kind::Migratory), |index| self.entries[index]);
        let row = Lock::from_words(entry.words).on(at, event, entry.queue.first());
        let (next, step) = row.map_err(|refused| refusal(mutex, event, refused))?;
        if let Line::Joins(who) = step.line {
            self.may_wait(who)?;
        }
        let words = next.to_words();
        let index = match found {
            Some(index) => Some(index),
            None if words != [0, 0] => Some(self.insert(mutex, Kind::Migratory)?),
            None => None,
        };
        let mut unused = Queue::default();
        let queue = match index {
            None => &mut unused,
            Some(index) => {
                self.entries[index].words = words;
                &mut self.entries[index].queue
            }
        };
        let granted = match step.line {
            Line::Stays => None,
            Line::Joins(who) => {
                queue.push(self.waiters, who, index.map_or(0, link_to), 0);
                None
            }
            Line::FirstGoes => queue.pop(self.waiters).map(|who| Grant { who, value: 0 }),
            Line::Answer(who, value) => Some(Grant { who, value: value.into() }),
        };
        if let Some(index) = index.filter(|index| self.entries[*index].is_idle()) {
            self.remove(index);
        }
        granted.into_iter().for_each(|grant| out(migratory::Action::Grant(grant)));
        for (to, message) in step.send.into_iter().chain(step.ask) {
            out(migratory::Action::Send { to, message });
        }
        Ok(granted.is_some())
    }

    /// A node's part in a mutex whose ownership migrates.
    #[must_use]
    pub fn migratory(&self, mutex: u64) -> Lock {
        Lock::from_words(self.find(mutex, true).map_or([0, 0], |index| self.entries[index].words))
    }

    /// How many objects are in use.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.header.in_use
    }

    /// The most objects that were ever in use at once: how much of the entries' memory was touched.
    #[must_use]
    pub fn most_in_use(&self) -> u32 {
        self.header.high_water
    }

    /// The object of this table that `who` waits for, if any: for the message when a job cannot go on.
    #[must_use]
    pub fn awaited_by(&self, who: ProcessorId) -> Option<(u64, Kind)> {
        self.wait(who).map(|wait| (wait.address, wait.kind))
    }

    /// What `who` waits for in this table.
    pub(crate) fn wait(&self, who: ProcessorId) -> Option<Waits> {
        let waiter = self.waiters.get(who.0 as usize)?;
        let entry = self.entries.get(waiter.entry.checked_sub(1)? as usize)?;
        Some(Waits { address: entry.address, kind: entry.kind()?, words: entry.words, until: waiter.until })
    }

    /// Lets the machine of one kind decide, finds room, and only then changes anything.
    fn run<O: Object>(&mut self, event: Event, asked: O::Event, out: &mut dyn FnMut(Grant)) -> Result<(), Error> {
        self.decide(event, O::KIND, out, |words, queue, _| {
            let (next, step) = O::from_words(words).on(asked, queue.first())?;
            Ok((next.to_words(), step))
        })
    }

    /// The same for a kind that has to know how many at the head of the queue are readers.
    fn run_rwlock(&mut self, event: Event, asked: rwlock::Event, out: &mut dyn FnMut(Grant)) -> Result<(), Error> {
        self.decide(event, Kind::Rwlock, out, |words, queue, waiters| {
            let line = rwlock::Line { first: queue.first(), readers: queue.leading(waiters, READER) };
            let (next, step) = Rwlock::from_words(words).on(asked, line)?;
            Ok((next.to_words(), step))
        })
    }

    fn decide(
        &mut self,
        event: Event,
        kind: Kind,
        out: &mut dyn FnMut(Grant),
        row: impl FnOnce([u32; 2], Queue, &[Waiter]) -> Result<([u32; 2], Step), Wrong>,
    ) -> Result<(), Error> {
        let address = event.object();
        let misuse = |wrong| Error::Misuse(Misuse { event, wrong });
        let found = self.find(address, false);
        let entry = found.map_or(Entry::idle(address, kind), |index| self.entries[index]);
        if let Some(there) = entry.kind().filter(|there| *there != kind) {
            return Err(misuse(Wrong::WrongKind { there }));
        }
        let (words, step) = row(entry.words, entry.queue, self.waiters).map_err(misuse)?;
        if let Step::Wait(who, _) = step {
            self.may_wait(who)?;
        }
        let stays = words != [0, 0] || matches!(step, Step::Wait(..));
        let index = match found {
            Some(index) => index,
            None if stays => self.insert(address, kind)?,
            None => {
                perform(step, &mut Queue::default(), self.waiters, 0, out);
                return Ok(());
            }
        };
        let entry = &mut self.entries[index];
        entry.words = words;
        perform(step, &mut entry.queue, self.waiters, link_to(index), out);
        if self.entries[index].is_idle() {
            self.remove(index);
        }
        Ok(())
    }

    fn may_wait(&self, who: ProcessorId) -> Result<(), Error> {
        if who.0 as usize >= self.waiters.len() {
            return Err(Error::Impossible(Impossible::NoSuchProcessor { who, processors: self.waiters.len() }));
        }
        match self.awaited_by(who) {
            Some((object, _)) => Err(Error::Impossible(Impossible::WaitsAlready { who, object })),
            None => Ok(()),
        }
    }

    /// Puts an object that has no entry into the table, in a state in which nobody waits for it.
    pub(crate) fn put(&mut self, address: u64, kind: Kind, words: [u32; 2]) -> Result<(), Error> {
        let index = self.insert(address, kind)?;
        self.entries[index].words = words;
        Ok(())
    }

    /// The state of an object that has an entry, is of this kind, and that nobody waits for.
    pub(crate) fn calm(&self, address: u64, kind: Kind) -> Option<[u32; 2]> {
        let entry = &self.entries[self.find(address, false)?];
        (entry.kind == kind as u32 && entry.queue.is_empty()).then_some(entry.words)
    }

    /// Drops the entry of such an object: another place keeps its state.
    pub(crate) fn drop_calm(&mut self, address: u64) {
        if let Some(index) = self.find(address, false) {
            debug_assert!(self.entries[index].queue.is_empty(), "who waits is not forgotten");
            self.remove(index);
        }
    }

    /// The entry of an object, or of this node's part in a mutex whose ownership migrates.
    fn find(&self, address: u64, is_migratory: bool) -> Option<usize> {
        let mut link = self.buckets[bucket(address, self.buckets.len())];
        while let Some(index) = link.checked_sub(1) {
            let entry = &self.entries[index as usize];
            if entry.address == address && (entry.kind == Kind::Migratory as u32) == is_migratory {
                return Some(index as usize);
            }
            link = entry.next;
        }
        None
    }

    /// Takes an entry from the free ones, or the first untouched one, and puts it at the head of its chain.
    fn insert(&mut self, address: u64, kind: Kind) -> Result<usize, Error> {
        let index = match self.header.free.checked_sub(1) {
            Some(index) => {
                self.header.free = self.entries[index as usize].next;
                index as usize
            }
            None if (self.header.high_water as usize) < self.entries.len() => {
                self.header.high_water += 1;
                self.header.high_water as usize - 1
            }
            None => return Err(Error::Full { entries: self.entries.len() }),
        };
        self.header.in_use += 1;
        let head = &mut self.buckets[bucket(address, self.buckets.len())];
        self.entries[index] = Entry { next: *head, ..Entry::idle(address, kind) };
        *head = link_to(index);
        Ok(index)
    }

    /// Takes an entry out of its chain and puts it first among the free ones.
    fn remove(&mut self, index: usize) {
        let Entry { address, next, .. } = self.entries[index];
        let head = bucket(address, self.buckets.len());
        if self.buckets[head] == link_to(index) {
            self.buckets[head] = next;
        } else {
            let mut before = self.buckets[head] as usize - 1;
            while self.entries[before].next != link_to(index) {
                before = self.entries[before].next as usize - 1;
            }
            self.entries[before].next = next;
        }
        self.entries[index] = Entry { next: self.header.free, ..Entry::default() };
        self.header.free = link_to(index);
        self.header.in_use -= 1;
    }
}

/// Why a row refused, told as of the object that programs know.
fn refusal(mutex: u64, event: &migratory::Event, refused: Refused) -> Error {
    use migratory::Event as Of;
    let told = match *event {
        Of::Lock(who) => Event::Lock { mutex, who },
        Of::TryLock(who) => Event::TryLock { mutex, who },
        Of::Unlock(who) | Of::HandOver { who, .. } => Event::Unlock { mutex, who },
        Of::Receive(_) => return Error::Impossible(Impossible::OutOfPlace { mutex }),
    };
    match refused {
        Refused::Wrong(wrong) => Error::Misuse(Misuse { event: told, wrong }),
        Refused::Impossible => Error::Impossible(Impossible::OutOfPlace { mutex }),
    }
}

/// The link to the entry at `index`.
fn link_to(index: usize) -> u32 {
    index as u32 + 1
}

/// Does what the row said to the object's queue; `entry` is the link to the object.
fn perform(step: Step, queue: &mut Queue, waiters: &mut [Waiter], entry: u32, out: &mut dyn FnMut(Grant)) {
    let mut grant = |who, value: u32| out(Grant { who, value: value.into() });
    match step {
        Step::Nothing => {}
        Step::Grant(who, value) => grant(who, value),
        Step::Wait(who, until) => queue.push(waiters, who, entry, until),
        Step::GrantFirst => queue.pop(waiters).into_iter().for_each(|who| grant(who, 0)),
        Step::GrantAll => queue.drain(waiters, |who| grant(who, 0)),
        Step::GrantAllAnd(last) => {
            queue.drain(waiters, |who| grant(who, 0));
            grant(last, 1);
        }
        Step::GrantSome(count) => (0..count).filter_map(|_| queue.pop(waiters)).for_each(|who| grant(who, 0)),
        Step::Leave(who) => {
            let waited = queue.remove(waiters, who);
            grant(who, waited.into());
        }
        Step::GrantReached(value) => queue.take_reached(waiters, value, |who| grant(who, value)),
    }
}
