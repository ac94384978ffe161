//! A catalogue of messages: each message's number and fields in one place, and the codec made from them.
//!
//! [`messages!`](crate::messages) declares an enum whose variants are numbered. It gives the enum `has_number`, `words` and
//! `of_words`. The fields of a message stand one after the other in one word of 64 bits, the first in its lowest bytes. Bits
//! that no field uses are zero, and a word with another value there is refused. An enum may take in another one's messages:
//! `enum Mine: Theirs(Other) { .. }` has a variant `Theirs`, and their numbers.

use crate::nouns::{NODES_MAX, NodeId, ProcessorId, UnitId};
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
    const BYTES: u32 = 1;

    fn to_number(self) -> u64 {
        u64::from(self.0)
    }
    fn of_number(number: u64) -> Option<Self> {
        (number < NODES_MAX as u64).then_some(Self(number as u8))
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

/// Puts fields into a word, the first into its lowest bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writer {
    word: u64,
    bits: u32,
}

impl Writer {
    /// Puts one more.
    ///
    /// # Panics
    /// The fields of a message have more than 8 bytes together.
    pub fn put<F: Field>(&mut self, field: F) {
        assert!(self.bits + 8 * F::BYTES <= u64::BITS, "the fields of a message fit into one word");
        self.word |= field.to_number() << self.bits;
        self.bits += 8 * F::BYTES;
    }

    /// The word of all fields put.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.word
    }
}

/// Takes fields out of a word, in the order in which they were put.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// What is left, moved down to the lowest bytes.
    left: u64,
}

impl Reader {
    /// Of this word.
    #[must_use]
    pub const fn new(word: u64) -> Self {
        Self { left: word }
    }

    /// Takes the next field; `None` if its number has no value.
    pub fn take<F: Field>(&mut self) -> Option<F> {
        let bits = 8 * F::BYTES;
        let number = if bits == u64::BITS { self.left } else { self.left & ((1 << bits) - 1) };
        self.left = self.left.checked_shr(bits).unwrap_or(0);
        F::of_number(number)
    }

    /// Is nothing but zeros left?
    #[must_use]
    pub const fn is_at_end(self) -> bool {
        self.left == 0
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
        $visible:vis enum $Message:ident $(: $Inner:ident($Others:ty))? {
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
            /// Does this number stand for a message?
            #[must_use]
            pub const fn has_number(number: u8) -> bool {
                $(if <$Others>::has_number(number) {
                    return true;
                })?
                matches!(number, $($number)|*)
            }

            /// The message as its number and the word of its fields.
            #[must_use]
            pub fn words(self) -> (u8, u64) {
                #[allow(unused_mut, reason = "most messages have no field")]
                let mut writer = $crate::catalogue::Writer::default();
                match self {
                    $(Self::$Inner(message) => message.words(),)?
                    $(Self::$Name $(($only))? $({ $($field),* })? => {
                        $(writer.put($only);)?
                        $($(writer.put($field);)*)?
                        ($number, writer.word())
                    })*
                }
            }

            /// The message of such words; `None` if there is none.
            #[must_use]
            pub fn of_words(number: u8, word: u64) -> Option<Self> {
                $(if let Some(message) = <$Others>::of_words(number, word) {
                    return Some(Self::$Inner(message));
                })?
                #[allow(unused_mut, reason = "there may be no message with a field")]
                let mut reader = $crate::catalogue::Reader::new(word);
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

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(Sample::of_words(1, 1), None, "a field that the message has not");
        assert_eq!(Sample::of_words(2, 64), None, "a node that no job has");
        assert_eq!(Sample::of_words(7, 2), None, "a truth value of 2");
        assert_eq!(Sample::of_words(7, 1 << 24), None, "a byte after the last field");
        assert_eq!(Sample::of_words(4, 0), None, "a number between others");
    }
}
