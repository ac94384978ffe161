//! The two byte queues of a connection, as they lie in the shared memory.
//!
//! The state words are atomics because several processes see them; they change only under the queue's lock, so
//! relaxed loads and stores do: the lock orders them. Each state is all zeroes when fresh.
//!
//! On the wire a message is its length (4 bytes, little-endian) and its bytes.

use crate::MESSAGE_BYTES_MAX;
use finespun_sys::lock::{Guard, WordLock};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bytes of the length before each message.
pub(crate) const PREFIX_BYTES: usize = 4;
/// A message with its length.
const FRAME_BYTES_MAX: usize = PREFIX_BYTES + MESSAGE_BYTES_MAX;

/// The queue out: a ring. In memory of its own cache lines, for every process of the node appends to it.
#[repr(C, align(128))]
pub(crate) struct OutState {
    pub(crate) lock: WordLock,
    /// Not zero: the peer takes nothing any more.
    closed: AtomicU32,
    /// Offset of the oldest byte.
    start: AtomicU64,
    /// Bytes queued.
    length: AtomicU64,
    /// Of these, from the oldest on, those that a receiver may take which takes them itself.
    released: AtomicU64,
    /// Messages and bytes ever appended; the bytes with the lengths.
    pub(crate) messages: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// System calls that took something.
    pub(crate) writes: AtomicU64,
}

/// The queue out, locked.
pub(crate) struct Out<'a> {
    pub(crate) state: &'a OutState,
    pub(crate) ring: &'a mut [u8],
    pub(crate) _held: Guard<'a>,
}

/// The buffer in: linear, so that a message is one slice. It needs no ring, because a pass ends with less than
/// one message in it.
#[repr(C, align(128))]
pub(crate) struct InState {
    pub(crate) lock: WordLock,
    /// Why the peer is lost, as `LossCause` encodes it; 0: it is not.
    pub(crate) cause: AtomicU32,
    /// Bytes before this offset have been handled.
    start: AtomicU64,
    /// Bytes up to this offset have been received.
    end: AtomicU64,
    /// Messages and bytes ever handled; the bytes with the lengths.
    pub(crate) messages: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// System calls that brought something.
    pub(crate) reads: AtomicU64,
}

/// The buffer in, locked.
pub(crate) struct In<'a> {
    pub(crate) state: &'a InState,
    pub(crate) buffer: &'a mut [u8],
    pub(crate) _held: Guard<'a>,
}

/// A length that no sender of ours writes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Adds to a counter whose lock is held: a load and a store cost less than an atomic addition.
pub(crate) fn count(counter: &AtomicU64, by: usize) {
    counter.store(counter.load(Relaxed) + by as u64, Relaxed);
}

impl OutState {
    /// Bytes queued; exact under the lock, else as of a moment ago.
    pub(crate) fn length(&self) -> usize {
        self.length.load(Relaxed) as usize
    }

    /// Bytes that a receiver may take; exact under the lock, else as of a moment ago.
    pub(crate) fn released(&self) -> usize {
        self.released.load(Relaxed) as usize
    }

    /// Is the peer past taking anything?
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed) != 0
    }
}

impl Out<'_> {
    /// Is there room for a message of `bytes`?
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        PREFIX_BYTES + bytes <= self.ring.len() - self.state.length()
    }

    /// Appends one message, for which there is room; `bytes` is the sum of the parts.
    pub(crate) fn append(&mut self, parts: &[&[u8]], bytes: usize) {
        let frame = PREFIX_BYTES + bytes;
        let queued = self.state.length();
        let mut at = self.state.start.load(Relaxed) as usize + queued;
        for part in std::iter::once(&(bytes as u32).to_le_bytes()[..]).chain(parts.iter().copied()) {
            self.put(at, part);
            at += part.len();
        }
        self.state.length.store((queued + frame) as u64, Relaxed);
        count(&self.state.messages, 1);
        count(&self.state.bytes, frame);
    }

    fn put(&mut self, at: usize, part: &[u8]) {
        let at = at % self.ring.len();
        let (first, rest) = part.split_at(part.len().min(self.ring.len() - at));
        self.ring[at..at + first.len()].copy_from_slice(first);
        self.ring[..rest.len()].copy_from_slice(rest);
    }

    /// The oldest bytes, as far as they lie in one piece.
    pub(crate) fn front(&self) -> &[u8] {
        let start = self.state.start.load(Relaxed) as usize;
        &self.ring[start..(start + self.state.length()).min(self.ring.len())]
    }

    /// All that is queued may be taken from now on.
    pub(crate) fn release(&self) {
        self.state.released.store(self.state.length.load(Relaxed), Relaxed);
    }

    /// The oldest of the bytes that may be taken, as far as they lie in one piece.
    pub(crate) fn released(&self) -> &[u8] {
        let front = self.front();
        &front[..front.len().min(self.state.released())]
    }

    /// The oldest `bytes` have been taken. An empty ring begins again at its first byte: while a connection
    /// keeps up, it goes on using the same few pages.
    pub(crate) fn take(&mut self, bytes: usize) {
        let left = self.state.length() - bytes;
        let start = (self.state.start.load(Relaxed) as usize + bytes) % self.ring.len();
        self.state.start.store(if left == 0 { 0 } else { start as u64 }, Relaxed);
        self.state.length.store(left as u64, Relaxed);
        self.state.released.store(self.state.released().saturating_sub(bytes) as u64, Relaxed);
        count(&self.state.writes, 1);
    }

    /// The peer takes nothing any more: drops what is queued, and everything later.
    pub(crate) fn close(&mut self) {
        self.state.closed.store(1, Relaxed);
        self.state.start.store(0, Relaxed);
        self.state.length.store(0, Relaxed);
        self.state.released.store(0, Relaxed);
    }
}

impl In<'_> {
    /// Where the next bytes go: always room for the rest of the longest message, and as a rule for several.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let (start, end) = self.bounds();
        if start == end {
            self.set_bounds(0, 0);
        } else if self.buffer.len() - end < FRAME_BYTES_MAX {
            self.buffer.copy_within(start..end, 0);
            self.set_bounds(0, end - start);
        }
        let (_, end) = self.bounds();
        &mut self.buffer[end..]
    }

    /// `bytes` have been put into the room.
    pub(crate) fn filled(&mut self, bytes: usize) {
        let (start, end) = self.bounds();
        self.set_bounds(start, end + bytes);
        count(&self.state.reads, 1);
    }

    /// The next whole message, if there is one. It counts as handled from now on, so that nothing, not even a
    /// handler that panics, makes it come twice.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Malformed> {
        let (start, end) = self.bounds();
        let Some((prefix, rest)) = self.buffer[start..end].split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let bytes = u32::from_le_bytes(*prefix) as usize;
        if bytes > MESSAGE_BYTES_MAX {
            return Err(Malformed);
        }
        if rest.len() < bytes {
            return Ok(None);
        }
        let frame = PREFIX_BYTES + bytes;
        self.set_bounds(start + frame, end);
        count(&self.state.messages, 1);
        count(&self.state.bytes, frame);
        Ok(Some(&self.buffer[start + PREFIX_BYTES..start + frame]))
    }

    fn bounds(&self) -> (usize, usize) {
        (self.state.start.load(Relaxed) as usize, self.state.end.load(Relaxed) as usize)
    }

    fn set_bounds(&mut self, start: usize, end: usize) {
        self.state.start.store(start as u64, Relaxed);
        self.state.end.store(end as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeroed_out() -> OutState {
        let word = AtomicU64::default;
        let (start, length, released) = (word(), word(), word());
        let (messages, bytes, writes) = (word(), word(), word());
        OutState { lock: WordLock::new(), closed: AtomicU32::new(0), start, length, released, messages, bytes, writes }
    }

    fn zeroed_in() -> InState {
        let word = AtomicU64::default;
        let (start, end, messages, bytes, reads) = (word(), word(), word(), word(), word());
        InState { lock: WordLock::new(), cause: AtomicU32::new(0), start, end, messages, bytes, reads }
    }

    /// Bytes go from one queue to the other in pieces of every small size: the ring wraps at every place, and the
    /// buffer in ends in the middle of every message.
    #[test]
    fn messages_survive_any_cut_and_any_wrap() {
        for piece in 1..40 {
            let (out_state, in_state) = (zeroed_out(), zeroed_in());
            let (mut ring, mut buffer) = (vec![0; 101], vec![0; 2 * FRAME_BYTES_MAX]);
            let mut out = Out { state: &out_state, ring: &mut ring, _held: out_state.lock.guard() };
            let mut inbox = In { state: &in_state, buffer: &mut buffer, _held: in_state.lock.guard() };
            let message = |number: u8| vec![number; usize::from(number) % 60];
            let (mut sent, mut got) = (0, 0);
            while got < 200 {
                let next = message(sent);
                if sent < 200 && out.has_room(next.len()) {
                    let (head, tail) = next.split_at(next.len() / 2);
                    out.append(&[head, tail], next.len());
                    sent += 1;
                    continue;
                }
                let moved = out.front().len().min(piece);
                inbox.room()[..moved].copy_from_slice(&out.front()[..moved]);
                out.take(moved);
                inbox.filled(moved);
                while let Some(whole) = inbox.next().unwrap() {
                    assert_eq!(whole, message(got));
                    got += 1;
                }
            }
            assert_eq!((out_state.length(), out_state.start.load(Relaxed)), (0, 0));
            assert_eq!(out_state.bytes.load(Relaxed), in_state.bytes.load(Relaxed));
        }
    }

    #[test]
    fn a_message_is_refused_when_it_would_not_fit_by_one_byte() {
        let state = zeroed_out();
        let mut ring = [0; 16];
        let mut out = Out { state: &state, ring: &mut ring, _held: state.lock.guard() };
        assert!(out.has_room(12) && !out.has_room(13));
        out.append(&[&[1; 5]], 5);
        assert!(out.has_room(3) && !out.has_room(4));
    }

    #[test]
    fn a_length_beyond_the_longest_message_is_malformed() {
        let state = zeroed_in();
        let mut buffer = vec![0; 2 * FRAME_BYTES_MAX];
        let mut inbox = In { state: &state, buffer: &mut buffer, _held: state.lock.guard() };
        inbox.room()[..4].copy_from_slice(&(MESSAGE_BYTES_MAX as u32 + 1).to_le_bytes());
        inbox.filled(4);
        assert_eq!(inbox.next(), Err(Malformed));
    }
}
