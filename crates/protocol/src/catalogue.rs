//! The catalogue of a protocol's messages: everything about a message in one row.

/// Declares a protocol's messages. A row is `number Name fields => role, class`, and where they apply `between equals`,
/// `wants buffer` and `counts COUNTER`: see [`Message`](crate::page::Message) and [`Carried`](crate::page::Carried). A number is never used again for another message.
///
/// From the rows come the enum, what these traits ask, and a test that every message survives the wire.
macro_rules! catalogue {
    (
        $(#[$of_enum:meta])*
        pub enum $Msg:ident $(: $Inner:ident($Others:ty))? {
            $(
                $(#[$about:meta])*
                $number:literal $Name:ident $(($only:ident: $Only:ty))? $({
                    $($(#[$of_field:meta])* $field:ident: $Field:ty),* $(,)?
                })? => $Role:ident, $Class:ident $(, between $equals:ident)? $(, wants $buffer:ident)? $(, counts $Counter:ident)?;
            )*
        }
    ) => {
        finespun_types::messages! {
            $(#[$of_enum])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $Msg $(: $Inner($Others))? {
                $($(#[$about])* $number $Name $(($only: $Only))? $({ $($(#[$of_field])* $field: $Field),* })?,)*
            }
        }

        impl $crate::page::Message for $Msg {
            fn role(self) -> $crate::page::Role {
                match self {
                    $(Self::$Inner(message) => message.role(),)?
                    $(Self::$Name { .. } => $crate::page::Role::$Role,)*
                }
            }

            fn class(self) -> $crate::page::Class {
                match self {
                    $(Self::$Inner(message) => message.class(),)?
                    $(Self::$Name { .. } => $crate::page::Class::$Class,)*
                }
            }

            fn is_between_equals(self) -> bool {
                match self {
                    $(Self::$Inner(message) => message.is_between_equals(),)?
                    $(Self::$Name { .. } => false $(|| stringify!($equals) == "equals")?,)*
                }
            }

            fn wants_buffer(self) -> bool {
                match self {
                    $(Self::$Inner(message) => message.wants_buffer(),)?
                    $(Self::$Name { .. } => false $(|| stringify!($buffer) == "buffer")?,)*
                }
            }
        }

        impl $crate::page::Carried for $Msg {
            fn counter(self) -> Option<finespun_types::Counter> {
                match self {
                    $(Self::$Inner(message) => message.counter(),)?
                    $(Self::$Name { .. } => None$(.or(Some(finespun_types::Counter::$Counter)))?,)*
                }
            }

            fn words(self) -> (u8, u64) {
                self.words()
            }

            fn of_words(number: u8, word: u64) -> Option<Self> {
                Self::of_words(number, word)
            }
        }

        #[cfg(test)]
        mod wire {
            use super::$Msg;

            #[test]
            fn every_message_survives_the_wire() {
                finespun_types::catalogue::assert_codec($Msg::has_number, $Msg::of_words, $Msg::words);
            }
        }
    };
}
pub(crate) use catalogue;
