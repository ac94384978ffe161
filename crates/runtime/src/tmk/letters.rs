//! The messages of lazy release consistency, and their words on the wire.

use finespun_types::NodeId;

/// A message about a unit; contents may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lazy {
    /// The receiver's diffs of the unit, please.
    AskDiffs {
        /// After this interval.
        after: u32,
        /// Up to this one.
        upto: u32,
    },
    /// Here they are: index, stamp, length, bytes of each.
    Diffs {
        /// The interval of the last one; 0: more come.
        upto: u32,
    },
    /// The receiver's copy, please.
    AskBase,
    /// Here it is: the page, then what it has applied.
    Base,
    /// There is none.
    NoBase {
        /// Who wrote later.
        last: NodeId,
        /// The stamp.
        stamp: u32,
    },
    /// About no unit: intervals, ahead of a message that counts on them.
    News,
}

impl Lazy {
    /// As a number and two words.
    pub const fn words(self) -> (u8, u64, u64) {
        match self {
            Self::AskDiffs { after, upto } => (1, after as u64, upto as u64),
            Self::Diffs { upto } => (2, upto as u64, 0),
            Self::AskBase => (3, 0, 0),
            Self::Base => (4, 0, 0),
            Self::NoBase { last, stamp } => (5, last.0 as u64, stamp as u64),
            Self::News => (6, 0, 0),
        }
    }

    /// The message of such words.
    pub fn of_words(number: u8, a: u64, b: u64) -> Option<Self> {
        let (a, b) = (u32::try_from(a).ok()?, u32::try_from(b).ok()?);
        Some(match number {
            1 => Self::AskDiffs { after: a, upto: b },
            2 => Self::Diffs { upto: a },
            3 => Self::AskBase,
            4 => Self::Base,
            5 => Self::NoBase { last: NodeId(u8::try_from(a).ok()?), stamp: b },
            6 => Self::News,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_the_wire() {
        for msg in [
            Lazy::AskDiffs { after: 3, upto: u32::MAX },
            Lazy::Diffs { upto: 7 },
            Lazy::AskBase,
            Lazy::Base,
            Lazy::NoBase { last: NodeId(63), stamp: 9 },
            Lazy::News,
        ] {
            let (number, a, b) = msg.words();
            assert_eq!(Lazy::of_words(number, a, b), Some(msg));
        }
        assert_eq!(Lazy::of_words(99, 0, 0), None);
        assert_eq!(Lazy::of_words(5, 256, 0), None);
    }
}
