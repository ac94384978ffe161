//! Several messages of the protocol to one node in one message of the transport.
//!
//! Strings sends the diffs of a release together, by destination, where its ancestor sent each by itself [Strings §2.3]. Here a
//! release under such a protocol collects its diffs, and whoever handles such a message collects what the tables send for its parts:
//! the home's updates to each sharer, and the acknowledgements. What carries a page goes by itself.
//!
//! ```text
//!   number u8 | flags u8 | length u16 | unit u32 | word u64 | contents ...     and the next
//! ```
//!
//! What waits here may be overtaken by what another thread sends to the same node. No order that a table relies on is broken: the
//! home passes an update only to nodes that were sent their page before, and such a node fetches never again.

use finespun_transport::MESSAGE_BYTES_MAX;
use finespun_types::{Counter, NodeId, NodeSet, UnitId};

use crate::consistency::attached::{self, Attached};
use crate::messages::wire;
use crate::node::cluster::Cluster;
use crate::node::meter;

/// At most so many messages are joined: what is on the stack of a handler stays small.
const JOINED_MAX: usize = wire::JOINED_PIECES_MAX / 2;
/// Bytes before each message's contents.
const PART_BYTES: usize = 16;
/// At most so many bytes of contents, so that all of it fits into one message.
const CONTENTS_MAX: usize = MESSAGE_BYTES_MAX - wire::HEADER_BYTES - JOINED_MAX * PART_BYTES;
const WITH_DIFF: u8 = 1;

/// Where a message's contents stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// There are none.
    Nowhere,
    /// In the message being handled, from here to there.
    Handled(usize, usize),
    /// In the collector's own memory.
    Own(usize, usize),
}

/// A message that waits to be sent.
#[derive(Clone, Copy)]
struct Part {
    to: NodeSet,
    unit: UnitId,
    words: (u8, u64),
    place: Place,
}

/// Collects messages.
pub struct Outbox<'m> {
    /// The message being handled; empty in a release.
    handled: &'m [u8],
    /// Diffs made here. Only a release has some: handlers may not allocate.
    own: Vec<u8>,
    parts: [Part; JOINED_MAX],
    len: usize,
}

impl<'m> Outbox<'m> {
    const NONE: Part = Part { to: NodeSet::EMPTY, unit: UnitId(0), words: (0, 0), place: Place::Nowhere };

    /// For a release, which makes diffs.
    pub fn of_release() -> Self {
        Self { handled: &[], own: Vec::with_capacity(CONTENTS_MAX), parts: [Self::NONE; JOINED_MAX], len: 0 }
    }

    /// For the handling of a joined message, whose diffs may be passed on.
    pub const fn of_handler(handled: &'m [u8]) -> Self {
        Self { handled, own: Vec::new(), parts: [Self::NONE; JOINED_MAX], len: 0 }
    }

    /// Takes a message to be sent later; false if it must go by itself.
    pub fn put(
        &mut self,
        cluster: &Cluster,
        to: NodeId,
        unit: UnitId,
        words: (u8, u64),
        attached: Attached<'_>,
    ) -> bool {
        let bytes = match attached {
            Attached::Nothing => &[][..],
            Attached::Diff(diff) => diff,
            Attached::Page(_) | Attached::Buffered(_) => return false,
        };
        if let Some(last) = self.len.checked_sub(1).map(|last| self.parts[last])
            && (last.unit, last.words) == (unit, words)
            && self.contents(last.place) == bytes
        {
            self.parts[self.len - 1].to = last.to.with(to);
            return true;
        }
        if self.len == JOINED_MAX || self.own.len() + bytes.len() > CONTENTS_MAX {
            self.send(cluster);
        }
        let Some(place) = self.keep(bytes) else { return false };
        self.parts[self.len] = Part { to: NodeSet::only(to), unit, words, place };
        self.len += 1;
        true
    }

    fn keep(&mut self, bytes: &[u8]) -> Option<Place> {
        let start = bytes.as_ptr().addr().wrapping_sub(self.handled.as_ptr().addr());
        if bytes.is_empty() {
            Some(Place::Nowhere)
        } else if start.checked_add(bytes.len()).is_some_and(|end| end <= self.handled.len()) {
            Some(Place::Handled(start, start + bytes.len()))
        } else if self.own.capacity() - self.own.len() >= bytes.len() {
            let start = self.own.len();
            self.own.extend_from_slice(bytes);
            Some(Place::Own(start, self.own.len()))
        } else {
            None
        }
    }

    fn contents(&self, place: Place) -> &[u8] {
        match place {
            Place::Nowhere => &[],
            Place::Handled(start, end) => &self.handled[start..end],
            Place::Own(start, end) => &self.own[start..end],
        }
    }

    /// Sends what waits, to each node in one message.
    pub fn send(&mut self, cluster: &Cluster) {
        let parts = &self.parts[..self.len];
        let all = parts.iter().fold(NodeSet::EMPTY, |all, part| all.union(part.to));
        all.iter().for_each(|to| self.send_to(cluster, to));
        self.len = 0;
        self.own.clear();
    }

    fn send_to(&self, cluster: &Cluster, to: NodeId) {
        let (mut heads, mut slices, mut count) = ([[0; PART_BYTES]; JOINED_MAX], [&[][..]; JOINED_MAX], 0);
        let mut only = None;
        for part in self.parts[..self.len].iter().filter(|part| part.to.contains(to)) {
            let contents = self.contents(part.place);
            heads[count] = head(part, contents.len());
            slices[count] = contents;
            count += 1;
            only = Some((part, contents));
        }
        let bytes = slices[..count].iter().map(|contents| contents.len() + PART_BYTES).sum::<usize>();
        meter::count(cluster, Counter::Messages, 1);
        meter::count(cluster, Counter::Bytes, (wire::HEADER_BYTES + bytes) as u64);
        if let (1, Some((part, contents))) = (count, only) {
            let attached = if contents.is_empty() { Attached::Nothing } else { Attached::Diff(contents) };
            attached::send(cluster, to, part.unit, part.words, attached);
            return;
        }
        meter::count(cluster, Counter::MessagesJoined, count as u64 - 1);
        let mut pieces = [&[][..]; 2 * JOINED_MAX];
        for (pair, (head, contents)) in pieces.chunks_exact_mut(2).zip(heads.iter().zip(slices)) {
            (pair[0], pair[1]) = (head, contents);
        }
        wire::send_joined(cluster, to, &pieces[..2 * count]);
    }
}

fn head(part: &Part, len: usize) -> [u8; PART_BYTES] {
    let mut head = [0; PART_BYTES];
    head[0] = part.words.0;
    head[1] = if len > 0 { WITH_DIFF } else { 0 };
    head[2..4].copy_from_slice(&(len as u16).to_le_bytes());
    head[4..8].copy_from_slice(&part.unit.0.to_le_bytes());
    head[8..].copy_from_slice(&part.words.1.to_le_bytes());
    head
}

/// One message of a joined one.
pub struct Joined<'m> {
    pub unit: UnitId,
    pub words: (u8, u64),
    pub attached: Attached<'m>,
}

/// Takes the first message from a joined one; `None` if it is malformed.
pub fn next<'m>(rest: &mut &'m [u8]) -> Option<Joined<'m>> {
    let (head, behind) = rest.split_first_chunk::<PART_BYTES>()?;
    let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let (contents, behind) = behind.split_at_checked(len)?;
    *rest = behind;
    let attached = match head[1] {
        0 if contents.is_empty() => Attached::Nothing,
        WITH_DIFF => Attached::Diff(contents),
        _ => return None,
    };
    let unit = UnitId(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    let [_, _, _, _, _, _, _, _, word @ ..] = *head;
    Some(Joined { unit, words: (head[0], u64::from_le_bytes(word)), attached })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_survive_the_wire_and_what_is_cut_is_refused() {
        let part = |unit, place| Part { to: NodeSet::EMPTY, unit: UnitId(unit), words: (7, u64::MAX), place };
        let mut bytes = head(&part(9, Place::Nowhere), 0).to_vec();
        bytes.extend(head(&part(u32::MAX, Place::Own(0, 3)), 3));
        bytes.extend([1, 2, 3]);
        let mut rest = &bytes[..];
        let first = next(&mut rest).unwrap();
        assert!(first.unit == UnitId(9) && first.words == (7, u64::MAX) && matches!(first.attached, Attached::Nothing));
        let second = next(&mut rest).unwrap();
        assert!(second.unit == UnitId(u32::MAX) && matches!(second.attached, Attached::Diff([1, 2, 3])));
        assert!(rest.is_empty() && next(&mut rest).is_none());
        let mut cut = &bytes[PART_BYTES..bytes.len() - 1];
        assert!(next(&mut cut).is_none());
    }

    #[test]
    fn a_diff_that_is_passed_on_is_not_copied() {
        let message = [5; 100];
        let mut outbox = Outbox::of_handler(&message);
        assert!(outbox.keep(&message[10..20]) == Some(Place::Handled(10, 20)));
        assert!(outbox.keep(&[5; 10]).is_none(), "a handler has no memory of its own");
        let mut outbox = Outbox::of_release();
        assert!(outbox.keep(&[5; 10]) == Some(Place::Own(0, 10)));
        assert_eq!(outbox.contents(Place::Own(0, 10)), [5; 10]);
    }
}
