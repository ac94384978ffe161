//! What travels with synchronization: vector times, and the intervals that their receiver lacks.
//!
//! A release tells the carrier's manager what the node knows; a grant tells the acquirer what the carrier's releasers knew
//! ([`crate::node::carriers`]). Managers keep that by carrier, for 1,024 objects each; those whose addresses share a place share what they know, which costs a
//! few notices more than happened before. Where nodes reach each other's memory only times travel: who acquires reads the
//! intervals in their writers' memory.
//!
//! A time has one word more than there are nodes: the number of the collection that somebody wishes for. It
//! travels like the rest, so that all leave a barrier with the same wish.
//!
//! ```text
//!   contents of a request or reply:  the time, then records: writer, index, stamp, count, flags, units ...
//!   what does not fit goes ahead, in messages of its own (News), in pieces of an interval if need be
//! ```

use std::sync::atomic::Ordering;

use finespun_protocol::tmk::raise;
use finespun_types::{Counter, NODES_MAX, NodeId, UnitId};

use super::letters::{self, Lazy, no_room};
use super::wish;
use crate::node::carriers::{self, Passes};
use crate::node::cluster::Cluster;
use crate::node::{meter, misuse};
use crate::sys::tmk::{Full, Known};
use crate::sys::tmk_records::{OBJECTS, time_words};

/// Bytes of news in one message.
const NEWS_BYTES_MAX: usize = 8192;
/// Words before a record's units.
const RECORD_WORDS: usize = 5;
/// Flags of a record: the first of its interval; others of it follow.
const FIRST: u32 = 1;
const MORE: u32 = 2;

/// A vector time with the wish.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Time {
    words: [u32; NODES_MAX + 1],
    len: usize,
}

impl Time {
    /// These words.
    pub fn of(words: &[u32]) -> Self {
        let mut time = Self { words: [0; _], len: words.len() };
        time.words[..words.len()].copy_from_slice(words);
        time
    }

    /// Its words.
    pub fn words(&self) -> &[u32] {
        &self.words[..self.len]
    }
}

impl AsRef<[u32]> for Time {
    fn as_ref(&self) -> &[u32] {
        self.words()
    }
}

/// Where a manager keeps what an object's releasers knew.
fn place(about: u64) -> usize {
    match about {
        carriers::HEAP => OBJECTS,
        carriers::THREADS => OBJECTS + 1,
        carriers::ALL => OBJECTS + 2,
        object => (object >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - OBJECTS.ilog2()),
    }
}

/// What this node's processors know, to be told to a carrier: at the barrier of all also whether they wish for a collection.
pub fn to_tell(cluster: &Cluster, about: u64) -> Time {
    let mut time = seen(cluster);
    if about == carriers::ALL && wish::is_wished(cluster) {
        time.words[cluster.shape.nodes] = cluster.mine().tmk().collections.load(Ordering::Relaxed) + 1;
    }
    time
}

fn seen(cluster: &Cluster) -> Time {
    Time::of(cluster.mine().known().knowledge(cluster.me).seen)
}

/// The manager of a carrier keeps what a releaser knows.
pub fn keep(cluster: &Cluster, manager: NodeId, about: u64, time: &Time) {
    raise(cluster.at(manager).known().object(place(about)), time.words());
}

fn known_of(cluster: &Cluster, manager: NodeId, about: u64) -> Time {
    Time::of(cluster.at(manager).known().object(place(about)))
}

/// A processor of `node`, whose memory is reached, is granted something by a carrier at `manager`.
pub fn granted(cluster: &Cluster, manager: NodeId, about: u64, node: NodeId) {
    let time = known_of(cluster, manager, about);
    meter::count(cluster, Counter::Bytes, size_of_val(time.words()) as u64);
    take_grant(cluster, node, about, &time);
}

fn take_grant(cluster: &Cluster, node: NodeId, about: u64, time: &Time) {
    let mut known = cluster.at(node).known();
    known.knowledge(node).grant(time.words());
    if about == carriers::ALL {
        raise(known.at_barrier(), time.words());
    }
}

// ---- by messages --------------------------------------------------------------------------------------------------

/// Sends a request with what it passes on: `send` is given the words that go along.
pub fn with_request(cluster: &Cluster, to: NodeId, passes: Passes, send: impl FnOnce(&[u8])) {
    match passes {
        Passes::Nothing => send(&[]),
        Passes::Asks => send_with(cluster, to, &seen(cluster), false, send),
        Passes::Releases(about) => send_with(cluster, to, &to_tell(cluster, about), true, send),
        Passes::Grants(about) => with_reply(cluster, to, about, send),
    }
}

/// Sends an answer with what the carrier's releasers knew.
pub fn with_reply(cluster: &Cluster, to: NodeId, about: u64, send: impl FnOnce(&[u8])) {
    let time = known_of(cluster, cluster.me, about);
    send_with(cluster, to, &time, true, send);
}

/// Under the lock of the times, so that what is told to a node is sent in the order in which it is told.
fn send_with(cluster: &Cluster, to: NodeId, time: &Time, with_intervals: bool, send: impl FnOnce(&[u8])) {
    let mut known = cluster.mine().known();
    let mut letter = Letter { cluster, to, bytes: [0; NEWS_BYTES_MAX], filled: 0, start: 0 };
    time.words().iter().for_each(|&word| letter.push(word));
    letter.start = letter.filled;
    if with_intervals {
        for writer in 0..cluster.shape.nodes {
            let oldest = known.collected()[writer];
            let (after, upto) = known.knowledge(cluster.me).news(to, time.words(), writer);
            for index in after.max(oldest) + 1..=upto {
                letter.interval(NodeId::of(writer), index);
            }
        }
        known.knowledge(cluster.me).sent(to, time.words());
    }
    meter::count(cluster, Counter::Bytes, letter.filled as u64);
    send(&letter.bytes[..letter.filled]);
}

/// News being written.
struct Letter<'a> {
    cluster: &'a Cluster,
    to: NodeId,
    bytes: [u8; NEWS_BYTES_MAX],
    filled: usize,
    /// Where the records start, behind the time.
    start: usize,
}

impl Letter<'_> {
    fn push(&mut self, word: u32) {
        self.bytes[self.filled..self.filled + 4].copy_from_slice(&word.to_le_bytes());
        self.filled += 4;
    }

    /// What is written goes ahead.
    fn send_ahead(&mut self) {
        let records = &self.bytes[self.start..self.filled];
        letters::send(self.cluster, self.to, UnitId(0), Lazy::News, [records, &[]]);
        self.filled = self.start;
    }

    fn interval(&mut self, writer: NodeId, index: u32) {
        let mut is_first = true;
        for record in self.cluster.mine().interval(writer, index) {
            let mut units = record.units();
            let mut left = record.count as usize;
            loop {
                if self.filled + 4 * (RECORD_WORDS + left.min(16)) > NEWS_BYTES_MAX {
                    self.send_ahead();
                }
                let room = (NEWS_BYTES_MAX - self.filled) / 4 - RECORD_WORDS;
                let count = left.min(room);
                left -= count;
                let more = record.more || left > 0;
                let flags = if is_first { FIRST } else { 0 } | if more { MORE } else { 0 };
                for word in [u32::from(writer.0), index, record.stamp, count as u32, flags] {
                    self.push(word);
                }
                units.by_ref().take(count).for_each(|UnitId(unit)| self.push(unit));
                is_first = false;
                if left == 0 {
                    break;
                }
            }
        }
    }
}

/// News of a request: what its sender knows. The carriers of this node keep it here, but for objects, whose tables are locked first.
pub fn take_request(cluster: &Cluster, from: NodeId, passes: Passes, along: &[u8]) -> Option<Time> {
    if along.is_empty() {
        return None;
    }
    let (time, records) = split(cluster, from, along);
    log(cluster, from, records);
    heard(cluster, from, &time, passes != Passes::Asks);
    match passes {
        Passes::Releases(about @ (carriers::HEAP | carriers::THREADS)) => keep(cluster, cluster.me, about, &time),
        Passes::Grants(about) => take_grant(cluster, cluster.me, about, &time),
        Passes::Nothing | Passes::Asks | Passes::Releases(_) => {}
    }
    Some(time)
}

/// News of an answer to a processor of this node.
pub fn take_reply(cluster: &Cluster, from: NodeId, about: u64, contents: &[u8]) {
    let (time, records) = split(cluster, from, contents);
    log(cluster, from, records);
    heard(cluster, from, &time, true);
    take_grant(cluster, cluster.me, about, &time);
}

fn heard(cluster: &Cluster, from: NodeId, time: &Time, with_intervals: bool) {
    let mut known = cluster.mine().known();
    let mut knowledge = known.knowledge(cluster.me);
    if with_intervals {
        knowledge.heard(from, time.words());
    } else {
        knowledge.sent(from, time.words());
    }
}

fn split<'a>(cluster: &Cluster, from: NodeId, contents: &'a [u8]) -> (Time, &'a [u8]) {
    let len = time_words(cluster.shape.nodes);
    let Some((words, records)) = contents.split_at_checked(4 * len) else { misuse::malformed_message(cluster, from) };
    let mut time = Time { words: [0; _], len };
    for (word, bytes) in time.words.iter_mut().zip(words.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    (time, records)
}

/// Intervals that came go into the log; those known already are left out.
pub fn log(cluster: &Cluster, from: NodeId, records: &[u8]) {
    let (words, []) = records.as_chunks::<4>() else { misuse::malformed_message(cluster, from) };
    let word = |at: usize| u32::from_le_bytes(words[at]);
    let mut known = cluster.mine().known();
    let mut units = [0; NEWS_BYTES_MAX / 4];
    let mut at = 0;
    while at + RECORD_WORDS <= words.len() {
        let [writer, index, stamp, count, flags] = std::array::from_fn(|number| word(at + number));
        let (first, count) = (at + RECORD_WORDS, count as usize);
        if writer as usize >= cluster.shape.nodes || first + count > words.len() || count > units.len() {
            misuse::malformed_message(cluster, from);
        }
        for (number, unit) in units[..count].iter_mut().enumerate() {
            *unit = word(first + number);
            if *unit as usize >= cluster.shape.pages {
                misuse::malformed_message(cluster, from);
            }
        }
        at = first + count;
        if let Err(full) = log_one(cluster, &mut known, writer as u8, (index, stamp), flags, &units[..count]) {
            drop(known);
            no_room(cluster, full);
        }
    }
}

fn log_one(
    cluster: &Cluster,
    known: &mut Known<'_>,
    writer: u8,
    interval: (u32, u32),
    flags: u32,
    units: &[u32],
) -> Result<(), Full> {
    let last = known.knowledge(cluster.me).known[usize::from(writer)];
    if interval.0 <= last {
        return Ok(());
    }
    known.log(NodeId(writer.into()), interval, units, flags & FIRST != 0, flags & MORE != 0)?;
    if flags & MORE == 0 {
        known.knowledge(cluster.me).known[usize::from(writer)] = interval.0;
    }
    Ok(())
}
