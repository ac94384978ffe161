//! The messages of lazy release consistency, and their words on the wire.

use finespun_errors::Code;
use finespun_types::{Counter, NodeId};

use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::meter;
use crate::misuse;
use crate::sys::tmk::Full;
use crate::wire::{self, HEADER_BYTES, Letter};

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

/// Sends one, with contents in two pieces.
pub fn send(cluster: &Cluster, to: NodeId, unit: u32, msg: Lazy, [contents, more]: [&[u8]; 2]) {
    wire::send_letter(cluster, to, Letter { unit, msg: msg.words(), flags: 0, contents }, more);
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_the_wire() {
        finespun_types::catalogue::assert_codec(Lazy::has_number, Lazy::of_words, Lazy::words);
    }
}
