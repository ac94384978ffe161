//! The messages of lazy release consistency, and their words on the wire.

use finespun_errors::Code;
use finespun_types::{Counter, NodeId, UnitId};

use crate::messages::wire::{self, HEADER_BYTES, Letter};
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::meter;
use crate::node::misuse;
use crate::sys::tmk::Full;

finespun_types::messages! {
    /// A message about a unit; contents may follow.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Lazy {
        /// The receiver's diffs of the unit, please.
        1 AskDiffs {
            /// After this interval.
            after: u32,
            /// Up to this one.
            upto: u32,
        },
        /// Here they are: index, stamp, length, bytes of each.
        2 Diffs {
            /// The interval of the last one; 0: more come.
            upto: u32,
        },
        /// The receiver's copy, please.
        3 AskBase,
        /// Here it is: the page, then what it has applied.
        4 Base,
        /// There is none.
        5 NoBase {
            /// Who wrote later.
            last: NodeId,
            /// The stamp.
            stamp: u32,
        },
        /// About no unit: intervals, ahead of a message that counts on them.
        6 News,
    }
}

/// Sends one about a unit, with contents in two pieces.
pub fn send(cluster: &Cluster, to: NodeId, UnitId(unit): UnitId, msg: Lazy, [contents, more]: [&[u8]; 2]) {
    count_message(cluster, contents.len() + more.len());
    wire::send_letter(cluster, to, Letter { unit, msg: msg.words(), flags: 0, contents }, more);
}

/// Bytes of diffs in one message: any one diff fits.
const ANSWER_BYTES_MAX: usize = 8192;
/// Index, stamp, length before each diff in a message.
pub const DIFF_HEADER_BYTES: usize = 12;

/// Counts one, with so many bytes of contents.
pub fn count_message(cluster: &Cluster, contents: usize) {
    meter::count(cluster, Counter::Messages, 1);
    meter::count(cluster, Counter::Bytes, (HEADER_BYTES + contents) as u64);
}

/// No barrier has let the job forget anything for too long.
#[cold]
pub fn no_room(cluster: &Cluster, Full: Full) -> ! {
    let what = "the intervals or diffs that tmk keeps for other nodes have filled their memory".to_owned();
    misuse::end_job(misuse::place(cluster), &Failure { code: Code::LazyFull, what })
}

/// Diffs of one unit on their way, in as many messages as they need.
pub struct DiffsLetter<'a> {
    cluster: &'a Cluster,
    to: NodeId,
    unit: UnitId,
    bytes: [u8; ANSWER_BYTES_MAX],
    filled: usize,
}

impl<'a> DiffsLetter<'a> {
    /// None yet.
    pub const fn new(cluster: &'a Cluster, to: NodeId, unit: UnitId) -> Self {
        Self { cluster, to, unit, bytes: [0; ANSWER_BYTES_MAX], filled: 0 }
    }

    /// One more, younger than those before.
    pub fn add(&mut self, index: u32, stamp: u32, diff: &[u8]) {
        if self.filled + DIFF_HEADER_BYTES + diff.len() > ANSWER_BYTES_MAX {
            self.send_part(0);
        }
        self.filled += put_diff(&mut self.bytes[self.filled..], index, stamp, diff);
    }

    /// The last one was of this interval.
    pub fn send(mut self, upto: u32) {
        self.send_part(upto);
    }

    fn send_part(&mut self, upto: u32) {
        send(self.cluster, self.to, self.unit, Lazy::Diffs { upto }, [&self.bytes[..self.filled], &[]]);
        self.filled = 0;
    }
}

fn put_diff(room: &mut [u8], index: u32, stamp: u32, diff: &[u8]) -> usize {
    for (word, bytes) in [index, stamp, diff.len() as u32].into_iter().zip(room.as_chunks_mut::<4>().0) {
        *bytes = word.to_le_bytes();
    }
    let end = DIFF_HEADER_BYTES + diff.len();
    room[DIFF_HEADER_BYTES..end].copy_from_slice(diff);
    end
}

/// Takes the first diff from such contents: its interval, its stamp, its bytes. `None` if it is malformed.
pub fn next_diff<'m>(rest: &mut &'m [u8]) -> Option<(u32, u32, &'m [u8])> {
    let (header, behind) = rest.split_first_chunk::<DIFF_HEADER_BYTES>()?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (diff, behind) = behind.split_at_checked(word(8) as usize)?;
    *rest = behind;
    Some((word(0), word(4), diff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_the_wire() {
        finespun_types::catalogue::assert_codec(Lazy::has_number, Lazy::of_words, Lazy::words);
    }

    #[test]
    fn diffs_survive_the_wire_and_what_is_cut_is_refused() {
        let mut bytes = [0; 64];
        let first = put_diff(&mut bytes, 7, u32::MAX, &[1, 2, 3]);
        let all = first + put_diff(&mut bytes[first..], 9, 2, &[]);
        let mut rest = &bytes[..all];
        assert_eq!(next_diff(&mut rest), Some((7, u32::MAX, &[1, 2, 3][..])));
        assert_eq!(next_diff(&mut rest), Some((9, 2, &[][..])));
        assert_eq!(next_diff(&mut rest), None);
        assert_eq!(next_diff(&mut &bytes[..first - 1]), None);
    }
}
