//! A catalogue of messages: each message's number and fields in one place, and the codec made from them.
//!
//! [`messages!`](crate::messages) declares an enum whose variants are numbered. It gives the enum `has_number`, `words` and
//! `of_words`. The fields of a message stand one after the other in one word of 64 bits, the first in its lowest bytes; in three words where
//! the enum says so: `enum Mine in 3 words { .. }`. Bits that no field uses are zero, and a word with another value there is refused. An enum may take in another one's messages:
//! `enum Mine: Theirs(Other) { .. }` has a variant `Theirs`, and their numbers.

use crate::nouns::{NODES_MAX, NodeId, NodeIndex, ProcessorId, UnitId};
use crate::set::{NodeSet, Set};

/// A value that stands in some bytes of a message's word.
pub trait Field: Sized {
    /// How many bytes it takes, 1 to 8.
    const BYTES: u32;

    /// The value as a number.
    fn to_number(self) -> u64;
    /// The value of such a number; `None` if there is none.
    fn of_number(number: u64) -> Option<Self>;
}

macro_rules! number_field {
    ($($number:ty),*) => {
        $(impl Field for $number {
            const BYTES: u32 = size_of::<Self>() as u32;

            fn to_number(self) -> u64 {
                u64::from(self)
            }
            fn of_number(number: u64) -> Option<Self> {
                Self::try_from(number).ok()
            }
        })*
    };
}
number_field!(u8, u16, u32, u64);

impl Field for bool {
    const BYTES: u32 = 1;

    fn to_number(self) -> u64 {
        u64::from(self)
    }
    fn of_number(number: u64) -> Option<Self> {
        (number < 2).then_some(number == 1)
    }
}

impl Field for NodeId {
    const BYTES: u32 = size_of::<NodeIndex>() as u32;

    fn to_number(self) -> u64 {
        u64::from(self.0)
    }
    fn of_number(number: u64) -> Option<Self> {
        (number < NODES_MAX as u64).then_some(Self(number as NodeIndex))
    }
}

macro_rules! wrapped_field {
    ($($wrapped:ident),*) => {
        $(impl Field for $wrapped {
            const BYTES: u32 = size_of::<Self>() as u32;

            fn to_number(self) -> u64 {
                self.0.to_number()
            }
            fn of_number(number: u64) -> Option<Self> {
                Field::of_number(number).map(Self)
            }
        })*
    };
}
wrapped_field!(ProcessorId, UnitId);

impl Field for NodeSet {
    const BYTES: u32 = 8;

    fn to_number(self) -> u64 {
        self.0
    }
    fn of_number(number: u64) -> Option<Self> {
        Some(Set(number))
    }
}

/// An optional processor or number: all bits set stand for none.
macro_rules! optional_field {
    ($($optional:ty),*) => {
        $(impl Field for Option<$optional> {
            const BYTES: u32 = size_of::<u32>() as u32;

            fn to_number(self) -> u64 {
                self.map_or(u64::from(u32::MAX), <$optional>::to_number)
            }
            fn of_number(number: u64) -> Option<Self> {
                let is_none = number == u64::from(u32::MAX);
                if is_none { Some(None) } else { <$optional>::of_number(number).map(Some) }
            }
        })*
    };
}
optional_field!(ProcessorId, u32);

/// The words of a message's fields, as they are handed on: one as itself, several as an array.
pub trait Packed: Sized {
    /// What is handed on.
    type As;

    /// The words to be handed on.
    fn pack(self) -> Self::As;
    /// The words that were.
    fn unpack(packed: Self::As) -> Self;
}

impl Packed for [u64; 1] {
    type As = u64;

    fn pack(self) -> u64 {
        self[0]
    }
    fn unpack(packed: u64) -> Self {
        [packed]
    }
}

impl Packed for [u64; 3] {
    type As = Self;

    fn pack(self) -> Self {
        self
    }
    fn unpack(packed: Self) -> Self {
        packed
    }
}

/// Puts fields into words, the first into the lowest bytes of the first. A field stands in one word.
#[derive(Clone, Copy, Debug)]
pub struct Writer<const WORDS: usize> {
    words: [u64; WORDS],
    at: usize,
    bits: u32,
}

impl<const WORDS: usize> Default for Writer<WORDS> {
    fn default() -> Self {
        Self { words: [0; WORDS], at: 0, bits: 0 }
    }
}

impl<const WORDS: usize> Writer<WORDS> {
    /// Puts one more: into the rest of the word, or into the next.
    ///
    /// # Panics
    /// The fields of a message have no room in its words.
    pub fn put<F: Field>(&mut self, field: F) {
        if self.bits + 8 * F::BYTES > u64::BITS {
            (self.at, self.bits) = (self.at + 1, 0);
        }
        assert!(self.at < WORDS, "the fields of a message have room in its words");
        self.words[self.at] |= field.to_number() << self.bits;
        self.bits += 8 * F::BYTES;
    }

    /// The words of all fields put.
    #[must_use]
    pub const fn words(self) -> [u64; WORDS] {
        self.words
    }
}

/// Takes fields out of words, in the order in which they were put.
#[derive(Clone, Copy, Debug)]
pub struct Reader<const WORDS: usize> {
    /// What is left, moved down to the lowest bytes.
    left: [u64; WORDS],
    at: usize,
    bits: u32,
}

impl<const WORDS: usize> Reader<WORDS> {
    /// Of these words.
    #[must_use]
    pub const fn new(words: [u64; WORDS]) -> Self {
        Self { left: words, at: 0, bits: 0 }
    }

    /// Takes the next field; `None` if its number has no value.
    pub fn take<F: Field>(&mut self) -> Option<F> {
        let bits = 8 * F::BYTES;
        if self.bits + bits > u64::BITS {
            (self.at, self.bits) = (self.at + 1, 0);
        }
        let left = self.left.get_mut(self.at)?;
        let number = if bits == u64::BITS { *left } else { *left & ((1 << bits) - 1) };
        *left = left.checked_shr(bits).unwrap_or(0);
        self.bits += bits;
        F::of_number(number)
    }

    /// Is nothing but zeros left?
    #[must_use]
    pub fn is_at_end(self) -> bool {
        self.left == [0; WORDS]
    }
}

/// Declares an enum of messages and makes its codec: see [the module](crate::catalogue).
///
/// ```
/// finespun_types::messages! {
///     /// What two cooks tell each other.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     pub enum Message {
///         /// More salt.
///         1 Salt,
///         /// So many eggs.
///         2 Eggs(count: u8),
///         /// The oven.
///         3 Oven {
///             /// How hot.
///             degrees: u16,
///             /// With the fan.
///             fan: bool,
///         },
///     }
/// }
/// let (number, word) = Message::Oven { degrees: 200, fan: true }.words();
/// assert_eq!((number, word), (3, 200 | 1 << 16));
/// assert_eq!(Message::of_words(number, word), Some(Message::Oven { degrees: 200, fan: true }));
/// assert_eq!(Message::of_words(1, 7), None);
/// assert_eq!(Message::of_words(4, 0), None);
/// ```
#[macro_export]
macro_rules! messages {
    (
        $(#[$of_enum:meta])*
        $visible:vis enum $Message:ident $(: $Inner:ident($Others:ty))? $(in $words:literal words)? {
            $(
                $(#[$about:meta])*
                $number:literal $Name:ident $(($only:ident: $Only:ty))? $({
                    $($(#[$of_field:meta])* $field:ident: $Field:ty),* $(,)?
                })?
            ),* $(,)?
        }
    ) => {
        $(#[$of_enum])*
        $visible enum $Message {
            $(
                /// A message of the other kind.
                $Inner($Others),
            )?
            $($(#[$about])* $Name $(($Only))? $({ $($(#[$of_field])* $field: $Field),* })?,)*
        }

        impl $Message {
            /// In how many words the fields of a message stand.
            const WORDS: usize = {
                let words = [1_usize $(, $words)?];
                words[words.len() - 1]
            };

            /// Does this number stand for a message?
            #[must_use]
            #[allow(clippy::manual_range_patterns, reason = "the numbers of a catalogue may follow each other")]
            pub const fn has_number(number: u8) -> bool {
                $(if <$Others>::has_number(number) {
                    return true;
                })?
                matches!(number, $($number)|*)
            }

            /// The message as its number and the words of its fields.
            #[must_use]
            pub fn words(self) -> (u8, <[u64; Self::WORDS] as $crate::catalogue::Packed>::As) {
                #[allow(unused_mut, reason = "most messages have no field")]
                let mut writer = $crate::catalogue::Writer::<{ Self::WORDS }>::default();
                match self {
                    $(Self::$Inner(message) => message.words(),)?
                    $(Self::$Name $(($only))? $({ $($field),* })? => {
                        $(writer.put($only);)?
                        $($(writer.put($field);)*)?
                        ($number, $crate::catalogue::Packed::pack(writer.words()))
                    })*
                }
            }

            /// The message of such words; `None` if there is none.
            #[must_use]
            pub fn of_words(
                number: u8,
                words: <[u64; Self::WORDS] as $crate::catalogue::Packed>::As,
            ) -> Option<Self> {
                $(if let Some(message) = <$Others>::of_words(number, words) {
                    return Some(Self::$Inner(message));
                })?
                #[allow(unused_mut, reason = "there may be no message with a field")]
                let mut reader =
                    $crate::catalogue::Reader::<{ Self::WORDS }>::new($crate::catalogue::Packed::unpack(words));
                let message = match number {
                    $($number => Self::$Name $(({ let $only = reader.take()?; $only }))? $({ $($field: reader.take()?),* })?,)*
                    _ => return None,
                };
                reader.is_at_end().then_some(message)
            }
        }

        const _: () = {
            let numbers = [$($number),*];
            let mut place = 0;
            while place < numbers.len() {
                $(assert!(!<$Others>::has_number(numbers[place]), "the other messages have this number already");)?
                let mut before = 0;
                while before < place {
                    assert!(numbers[before] != numbers[place], "two messages have the same number");
                    before += 1;
                }
                place += 1;
            }
        };
    };
}

/// Words that show what a codec does: small ones, each single bit, and all bits of the lowest bytes.
pub fn telling_words() -> impl Iterator<Item = u64> {
    let bits = (0..u64::BITS).map(|bit| 1 << bit);
    let full = (1..=u64::BITS).map(|bits| u64::MAX >> (u64::BITS - bits));
    (0..1 << 12).chain(bits).chain(full)
}

/// Checks a codec from the side of the words: what is a message comes back as the same words, each number is one, and no
/// other is. For tests: the functions are `has_number`, `of_words` and `words` of one enum.
///
/// # Panics
/// With a sentence, if the codec is wrong.
pub fn assert_codec<M: Copy + core::fmt::Debug>(
    has_number: impl Fn(u8) -> bool,
    of_words: impl Fn(u8, u64) -> Option<M>,
    words: impl Fn(M) -> (u8, u64),
) {
    for number in 0..=u8::MAX {
        assert_eq!(of_words(number, 0).is_some(), has_number(number), "number {number} with a word of zeros");
        for word in telling_words() {
            let Some(message) = of_words(number, word) else { continue };
            assert_eq!(words(message), (number, word), "{message:?} came back as another");
        }
    }
}

/// The same for an enum in several words: each of them takes all telling values, beside zeros and beside ones that an optional
/// field reads as none.
///
/// # Panics
/// As [`assert_codec`].
pub fn assert_wide_codec<M: Copy + core::fmt::Debug, const WORDS: usize>(
    has_number: impl Fn(u8) -> bool,
    of_words: impl Fn(u8, [u64; WORDS]) -> Option<M>,
    words: impl Fn(M) -> (u8, [u64; WORDS]),
) {
    for number in 0..=u8::MAX {
        assert_eq!(of_words(number, [0; WORDS]).is_some(), has_number(number), "number {number} with words of zeros");
        for others in [0, u64::from(u32::MAX)] {
            for (place, word) in (0..WORDS).flat_map(|place| telling_words().map(move |word| (place, word))) {
                let mut sent = [others; WORDS];
                sent[place] = word;
                let Some(message) = of_words(number, sent) else { continue };
                assert_eq!(words(message), (number, sent), "{message:?} came back as another");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    messages! {
        /// One message of each form.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Sample {
            /// Without a field.
            1 Bare,
            /// With one.
            2 One(node: NodeId),
            /// With all bytes in use.
            3 Full {
                /// A number.
                count: u32,
                /// Another.
                unit: UnitId,
            },
            /// With fields of one byte.
            7 Flags {
                /// A truth value.
                first: bool,
                /// Another.
                second: bool,
                /// A small number.
                small: u8,
            },
            /// A set.
            9 Nodes {
                /// Of nodes.
                nodes: NodeSet,
            },
        }
    }

    #[test]
    fn every_message_survives_the_wire() {
        assert_codec(Sample::has_number, Sample::of_words, Sample::words);
        let full = Sample::Full { count: u32::MAX, unit: UnitId(5) };
        assert_eq!(Sample::of_words(3, full.words().1), Some(full));
        assert_eq!(Sample::of_words(9, u64::MAX), Some(Sample::Nodes { nodes: NodeSet { 0: u64::MAX } }));
    }

    messages! {
        /// The same and one more.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Larger: Small(Sample) {
            /// Another.
            32 Own,
        }
    }

    #[test]
    fn an_enum_may_take_in_the_messages_of_another() {
        assert_codec(Larger::has_number, Larger::of_words, Larger::words);
        assert_eq!(Larger::of_words(1, 0), Some(Larger::Small(Sample::Bare)));
        assert_eq!(Larger::of_words(32, 0), Some(Larger::Own));
    }

    messages! {
        /// Messages with fields of more than one word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Wide in 3 words {
            /// Without a field.
            1 Nothing,
            /// In all bits.
            2 All {
                /// One that may be left out.
                who: Option<ProcessorId>,
                /// Another.
                near: Option<u32>,
                /// A word.
                first: u64,
                /// Another.
                second: u64,
            },
            /// With room that no field has.
            3 Gaps {
                /// Half a word.
                count: u32,
                /// A whole word, the next.
                object: u64,
                /// A byte.
                again: bool,
            },
        }
    }

    #[test]
    fn every_message_of_several_words_survives_the_wire() {
        assert_wide_codec(Wide::has_number, Wide::of_words, Wide::words);
        let who = Some(ProcessorId(5));
        let all = Wide::All { who, near: None, first: 7, second: u64::MAX };
        assert_eq!(all.words(), (2, [5 | 0xffff_ffff << 32, 7, u64::MAX]));
        let gaps = Wide::Gaps { count: 1, object: 2, again: true };
        assert_eq!((gaps.words(), Wide::of_words(3, [1, 2, 1])), ((3, [1, 2, 1]), Some(gaps)));
        assert_eq!(Wide::of_words(3, [1 << 32, 2, 1]), None, "bits between two fields");
        assert_eq!(Wide::of_words(1, [0, 0, 1]), None, "a word that the message has not");
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(Sample::of_words(1, 1), None, "a field that the message has not");
        assert_eq!(Sample::of_words(2, 64), None, "a node that no job has");
        assert_eq!(Sample::of_words(7, 2), None, "a truth value of 2");
        assert_eq!(Sample::of_words(7, 1 << 24), None, "a byte after the last field");
        assert_eq!(Sample::of_words(4, 0), None, "a number between others");
    }
}
