//! The messages of lazy release consistency, and their words on the wire.

use finespun_types::NodeId;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_the_wire() {
        finespun_types::catalogue::assert_codec(Lazy::has_number, Lazy::of_words, Lazy::words);
    }
}
