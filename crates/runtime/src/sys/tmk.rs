//! A node's memory for lazy release consistency: its times, the log of intervals, diffs, and what it has of each unit.
//!
//! ```text
//!   TmkNode | times | times of objects | copies | writers of copies | log: places, words | diffs kept | diffs that came
//! ```
//!
//! In a job of another protocol all of it has no size.

use std::sync::atomic::{AtomicU32, Ordering};

use finespun_engine::lazy;
use finespun_protocol::tmk::{Knowledge, Seen};
use finespun_sys::lock::Guard;
use finespun_types::{NodeId, UnitId};

use super::region::Region;
use super::segment::{Locked, Segment};
use super::tmk_records::{Arena, Copy, LOG_INTERVALS, LOG_WORDS, TmkNode, time_words};

/// The words of an interval in a log before its units: index, stamp, count.
const RECORD_WORDS: u32 = 3;
/// In a record's count: another record of the same interval follows.
const MORE: u32 = 1 << 31;
/// Diffs are kept at multiples of so many bytes.
const GRAIN: usize = 16;

/// Which of a node's two stores of diffs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// The node's own, for others.
    Kept,
    /// Others', not applied yet.
    Came,
}

/// A diff's header; the bytes follow.
#[repr(C, align(16))]
pub struct Head {
    /// The next of the unit's chain, as [`Segment::diff`] takes it; 0: none. In the node's own chain the next younger.
    pub next: AtomicU32,
    /// The one before.
    pub before: AtomicU32,
    /// The interval it counts as.
    pub index: u32,
    /// What it is ordered by.
    pub stamp: u32,
    /// Whose.
    pub from: u32,
    len: u32,
}

impl Head {
    /// Where it stands in the order in which diffs are applied.
    pub fn order(&self) -> (u32, NodeId, u32) {
        lazy::order(self.stamp, NodeId::of(self.from as usize), self.index)
    }
}

/// A node's vector times are locked.
pub struct Known<'a> {
    segment: &'a Segment,
    _guard: Guard<'a>,
}

/// There is no room left for intervals, or for diffs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// One record of an interval.
pub struct Record<'a> {
    words: &'a [AtomicU32],
    at: u32,
    /// The interval.
    pub index: u32,
    /// Its stamp.
    pub stamp: u32,
    /// How many units.
    pub count: u32,
    /// Another record of the same interval follows.
    pub more: bool,
}

impl Record<'_> {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        u64::from(RECORD_WORDS + self.count) * 4
    }

    /// Its units.
    pub fn units(&self) -> impl Iterator<Item = UnitId> + '_ {
        let first = self.at + RECORD_WORDS;
        (0..self.count).map(move |number| UnitId(word(self.words, first + number)))
    }
}

fn word(words: &[AtomicU32], at: u32) -> u32 {
    words[at as usize % LOG_WORDS].load(Ordering::Relaxed)
}

impl Segment {
    /// The block of this protocol.
    pub fn tmk(&self) -> &TmkNode {
        // SAFETY: mapped for the life of self, zeroed at first (a valid TmkNode); the clock is only reached under the lock.
        unsafe { &*self.pointer(self.shape().tmk.node, 0) }
    }

    /// Locks the node's times.
    pub fn known(&self) -> Known<'_> {
        Known { segment: self, _guard: self.tmk().lock.guard() }
    }

    fn log(&self, writer: NodeId) -> (&[AtomicU32], &[AtomicU32]) {
        let (node, regions) = (usize::from(writer.0), &self.shape().tmk);
        let places = self.pointer(regions.places, node * LOG_INTERVALS);
        let words = self.pointer(regions.words, node * LOG_WORDS);
        // SAFETY: each region has a part of this size for every node of the job (`Shape::of`), zeroed at first; atomics may be
        // shared.
        unsafe { (std::slice::from_raw_parts(places, LOG_INTERVALS), std::slice::from_raw_parts(words, LOG_WORDS)) }
    }

    /// The records of an interval that is known: what was logged before it was told is visible.
    pub fn interval(&self, writer: NodeId, index: u32) -> impl Iterator<Item = Record<'_>> {
        let (places, words) = self.log(writer);
        let mut next = Some(places[index as usize % LOG_INTERVALS].load(Ordering::Relaxed));
        std::iter::from_fn(move || {
            let at = next?;
            let count = word(words, at + 2);
            let (count, more) = (count & !MORE, count & MORE != 0);
            next = more.then_some(at + RECORD_WORDS + count);
            Some(Record { words, at, index: word(words, at), stamp: word(words, at + 1), count, more })
        })
    }

    /// The part of a log's room that is taken, in hundredths: of its words or of its intervals.
    pub fn log_used(&self, writer: NodeId, intervals: u32) -> usize {
        let ends = &self.tmk().ends[usize::from(writer.0)];
        let words = ends.head.load(Ordering::Relaxed).wrapping_sub(ends.tail.load(Ordering::Relaxed));
        (words as usize * 100 / LOG_WORDS).max(intervals as usize * 100 / LOG_INTERVALS)
    }

    fn arena(&self, store: Store) -> (&Arena, Region) {
        match store {
            Store::Kept => (&self.tmk().kept, self.shape().tmk.kept),
            Store::Came => (&self.tmk().came, self.shape().tmk.came),
        }
    }

    /// Bytes of the node's own diffs.
    pub fn kept_bytes(&self) -> usize {
        self.tmk().kept.head.load(Ordering::Relaxed) as usize * GRAIN
    }

    /// Keeps a diff; its number, never 0.
    pub fn keep_diff(&self, store: Store, from: NodeId, index: u32, stamp: u32, bytes: &[u8]) -> Result<u32, Full> {
        let (arena, region) = self.arena(store);
        let size = size_of::<Head>() + bytes.len().next_multiple_of(GRAIN);
        let at = {
            let _guard = arena.lock.guard();
            let at = arena.head.load(Ordering::Relaxed);
            if at as usize * GRAIN + size > region.len {
                return Err(Full);
            }
            arena.head.store(at + (size / GRAIN) as u32, Ordering::Relaxed);
            arena.live.fetch_add(1, Ordering::Relaxed);
            at
        };
        let place: *mut u8 = self.pointer(region, at as usize * GRAIN);
        let (next, before, len) = (AtomicU32::new(0), AtomicU32::new(0), bytes.len() as u32);
        let head = Head { next, before, index, stamp, from: u32::from(from.0), len };
        // SAFETY: `size` bytes from `place` on lie in the region and were given to nobody else; regions start on pages, so
        // multiples of the grain are aligned for a head.
        unsafe {
            place.cast::<Head>().write(head);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.add(size_of::<Head>()), bytes.len());
        }
        Ok(at + 1)
    }

    /// A diff that is kept. It does not change, but for its links.
    pub fn diff(&self, store: Store, number: u32) -> (&Head, &[u8]) {
        let (_, region) = self.arena(store);
        let place: *mut u8 = self.pointer(region, (number as usize - 1) * GRAIN);
        // SAFETY: `number` came from `keep_diff`, which wrote head and bytes there; nothing of it is given to others before
        // all is forgotten, and who still has a number then uses it no more.
        unsafe {
            let head = &*place.cast::<Head>();
            (head, std::slice::from_raw_parts(place.add(size_of::<Head>()), head.len as usize))
        }
    }

    /// So many diffs are needed no more. After the last one all memory is free again.
    pub fn forget_diffs(&self, store: Store, count: u32) {
        let (arena, _) = self.arena(store);
        let _guard = arena.lock.guard();
        if count > 0 && arena.live.fetch_sub(count, Ordering::Relaxed) == count {
            arena.head.store(0, Ordering::Relaxed);
        }
    }
}

impl Known<'_> {
    fn words(&mut self) -> &mut [u32] {
        let region = self.segment.shape().tmk.times;
        // SAFETY: the lock is held and self borrowed mutably: the only reference.
        unsafe { self.segment.part(region, 0, region.len) }
    }

    /// The node's knowledge.
    pub fn knowledge(&mut self, me: NodeId) -> Knowledge<'_> {
        let clock = self.segment.tmk().clock.get();
        let nodes = self.segment.shape().nodes;
        let time = time_words(nodes);
        let (seen, rest) = self.words().split_at_mut(time);
        let (granted, rest) = rest.split_at_mut(time);
        let (known, rest) = rest.split_at_mut(time);
        let told = &mut rest[2 * time..];
        // SAFETY: only reached here, under the lock.
        let clock = unsafe { &mut *clock };
        Knowledge { me, seen, granted, known, told, clock }
    }

    /// What the last barrier of all brought.
    pub fn at_barrier(&mut self) -> &mut [u32] {
        let time = time_words(self.segment.shape().nodes);
        &mut self.words()[3 * time..4 * time]
    }

    /// What is forgotten.
    pub fn collected(&mut self) -> &mut [u32] {
        let time = time_words(self.segment.shape().nodes);
        &mut self.words()[4 * time..5 * time]
    }

    /// What the releasers of an object knew.
    pub fn object(&mut self, number: usize) -> &mut [u32] {
        let (region, time) = (self.segment.shape().tmk.objects, time_words(self.segment.shape().nodes));
        // SAFETY: the lock is held and self borrowed mutably: the only reference.
        unsafe { self.segment.part(region, number, time) }
    }

    /// Adds a record to the log of a node's intervals, the first of its interval or one more.
    pub fn log(
        &mut self,
        writer: NodeId,
        (index, stamp): (u32, u32),
        units: &[u32],
        is_first: bool,
        more: bool,
    ) -> Result<(), Full> {
        let (places, words) = self.segment.log(writer);
        let ends = &self.segment.tmk().ends[usize::from(writer.0)];
        let at = ends.head.load(Ordering::Relaxed);
        let len = RECORD_WORDS + units.len() as u32;
        let used = at.wrapping_sub(ends.tail.load(Ordering::Relaxed));
        let oldest = self.collected()[usize::from(writer.0)];
        if (used + len) as usize > LOG_WORDS || (index - oldest) as usize > LOG_INTERVALS {
            return Err(Full);
        }
        if is_first {
            places[index as usize % LOG_INTERVALS].store(at, Ordering::Relaxed);
        }
        let count = units.len() as u32 | if more { MORE } else { 0 };
        let record = [index, stamp, count].into_iter().chain(units.iter().copied());
        for (number, value) in record.enumerate() {
            words[at.wrapping_add(number as u32) as usize % LOG_WORDS].store(value, Ordering::Relaxed);
        }
        ends.head.store(at.wrapping_add(len), Ordering::Release);
        Ok(())
    }

    /// Forgets a node's intervals up to this one; `known`: the last in the log.
    pub fn forget(&mut self, writer: NodeId, upto: u32, known: u32) {
        let (places, _) = self.segment.log(writer);
        let ends = &self.segment.tmk().ends[usize::from(writer.0)];
        let tail = if upto >= known {
            ends.head.load(Ordering::Relaxed)
        } else {
            places[(upto as usize + 1) % LOG_INTERVALS].load(Ordering::Relaxed)
        };
        ends.tail.store(tail, Ordering::Relaxed);
    }
}

impl Locked<'_> {
    /// What the node has of the unit, and of its writers.
    pub fn tmk(&mut self) -> (&mut Copy, &mut [Seen]) {
        let (segment, unit) = (self.segment(), self.unit_id().0 as usize);
        let regions = &segment.shape().tmk;
        let copy: *mut Copy = segment.pointer(regions.copies, unit);
        // SAFETY: the unit's lock is held and self borrowed mutably: the only references; all-zero memory is valid for both.
        unsafe { (&mut *copy, segment.part(regions.writers, unit, segment.shape().nodes)) }
    }
}
