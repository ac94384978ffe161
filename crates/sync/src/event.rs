//! What reaches objects and what they answer: their kinds, events and grants.

use finespun_types::{ProcessorId, messages};

/// What kind of object stands at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Kind {
    /// `fsp_mutex_t`
    Mutex = 1,
    /// `fsp_cond_t`
    Condition = 2,
    /// `fsp_barrier_t`
    Barrier = 3,
    /// `fsp_flag_t`
    Flag = 4,
    /// `fsp_mutex_t` whose ownership migrates: a node's part in it
    Migratory = 5,
    /// A lock for readers and writers
    Rwlock = 6,
}

impl Kind {
    /// The word for messages: "mutex".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutex | Self::Migratory => "mutex",
            Self::Condition => "condition variable",
            Self::Barrier => "barrier",
            Self::Flag => "flag",
            Self::Rwlock => "rwlock",
        }
    }
}

messages! {
    /// What a processor asks of an object, which is named by its address.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Event in 3 words {
        /// Granted when `who` holds the mutex.
        1 Lock {
            /// The object.
            mutex: u64,
            /// Who asks.
            who: ProcessorId,
        },
        /// Granted at once: value 1, `who` holds the mutex; value 0, somebody held it.
        2 TryLock {
            /// The object.
            mutex: u64,
            /// Who asks.
            who: ProcessorId,
        },
        /// The mutex goes to the longest waiter. No grant to `who`.
        3 Unlock {
            /// The object.
            mutex: u64,
            /// Who held it.
            who: ProcessorId,
        },
        /// Granted when `count` processors have arrived.
        4 Arrive {
            /// The object.
            barrier: u64,
            /// How many must arrive, as this arrival has it.
            count: u32,
            /// Who asks.
            who: ProcessorId,
            /// How many processors this arrival stands for, at least 1: more when a node has collected its own first.
            weight: u32,
        },
        /// Raises the flag to `value`, or leaves it where it is higher. No grant to the setter.
        5 SetFlag {
            /// The object.
            flag: u64,
            /// The new value.
            value: u32,
        },
        /// Granted, with the flag's value, when that is at least `value`.
        6 WaitFlag {
            /// The object.
            flag: u64,
            /// The value waited for.
            value: u32,
            /// Who asks.
            who: ProcessorId,
        },
        /// Granted at once, with the flag's value.
        7 ReadFlag {
            /// The object.
            flag: u64,
            /// Who asks.
            who: ProcessorId,
        },
        /// Back to 0. No grant.
        8 ResetFlag {
            /// The object.
            flag: u64,
        },
        /// `who` waits for the condition from here on; granted by a `Signal` or `Broadcast` that comes later.
        9 Enqueue {
            /// The object.
            condition: u64,
            /// Who waits.
            who: ProcessorId,
        },
        /// Grants the longest waiter, if any.
        10 Signal {
            /// The object.
            condition: u64,
        },
        /// Grants all waiters.
        11 Broadcast {
            /// The object.
            condition: u64,
        },
        /// `who` waits no longer. Granted at once: value 1, it waited; value 0, a signal has come before.
        12 Leave {
            /// The object.
            condition: u64,
            /// Who waited.
            who: ProcessorId,
        },
        /// Granted when `who` is one of the readers.
        13 ReadLock {
            /// The object.
            rwlock: u64,
            /// Who asks.
            who: ProcessorId,
            /// It is a reader already: it does not wait behind a writer, who waits for it.
            again: bool,
        },
        /// Granted at once: value 1, `who` is a reader; value 0, a writer is there or waits.
        14 TryReadLock {
            /// The object.
            rwlock: u64,
            /// Who asks.
            who: ProcessorId,
            /// It is a reader already.
            again: bool,
        },
        /// Granted when `who` is the writer, alone.
        15 WriteLock {
            /// The object.
            rwlock: u64,
            /// Who asks.
            who: ProcessorId,
        },
        /// Granted at once: value 1, `who` is the writer; value 0, somebody is there.
        16 TryWriteLock {
            /// The object.
            rwlock: u64,
            /// Who asks.
            who: ProcessorId,
        },
        /// The writer, or one reader, leaves. No grant to `who`.
        17 RwUnlock {
            /// The object.
            rwlock: u64,
            /// Who was there.
            who: ProcessorId,
        },
    }
}

impl Event {
    /// The address of the object.
    #[must_use]
    pub const fn object(self) -> u64 {
        match self {
            Self::Lock { mutex, .. } | Self::TryLock { mutex, .. } | Self::Unlock { mutex, .. } => mutex,
            Self::Arrive { barrier, .. } => barrier,
            Self::SetFlag { flag, .. } | Self::WaitFlag { flag, .. } => flag,
            Self::ReadFlag { flag, .. } | Self::ResetFlag { flag } => flag,
            Self::Enqueue { condition, .. } | Self::Signal { condition } | Self::Broadcast { condition } => condition,
            Self::Leave { condition, .. } => condition,
            Self::ReadLock { rwlock, .. } | Self::TryReadLock { rwlock, .. } => rwlock,
            Self::WriteLock { rwlock, .. } | Self::TryWriteLock { rwlock, .. } | Self::RwUnlock { rwlock, .. } => {
                rwlock
            }
        }
    }

    /// The kind of object that the event is for.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Lock { .. } | Self::TryLock { .. } | Self::Unlock { .. } => Kind::Mutex,
            Self::Arrive { .. } => Kind::Barrier,
            Self::SetFlag { .. } | Self::WaitFlag { .. } | Self::ReadFlag { .. } | Self::ResetFlag { .. } => Kind::Flag,
            Self::Enqueue { .. } | Self::Signal { .. } | Self::Broadcast { .. } | Self::Leave { .. } => Kind::Condition,
            Self::ReadLock { .. } | Self::TryReadLock { .. } | Self::WriteLock { .. } => Kind::Rwlock,
            Self::TryWriteLock { .. } | Self::RwUnlock { .. } => Kind::Rwlock,
        }
    }
}

impl Event {
    /// Does who sends it pass on what it has stored? Else it only asks, or tells nothing that others wait for.
    #[must_use]
    pub const fn releases(self) -> bool {
        match self {
            Self::Unlock { .. } | Self::RwUnlock { .. } | Self::Arrive { .. } | Self::SetFlag { .. } => true,
            Self::Lock { .. } | Self::TryLock { .. } | Self::WaitFlag { .. } | Self::ReadFlag { .. } => false,
            Self::ResetFlag { .. } | Self::Enqueue { .. } | Self::Signal { .. } | Self::Broadcast { .. } => false,
            Self::Leave { .. } | Self::ReadLock { .. } | Self::TryReadLock { .. } => false,
            Self::WriteLock { .. } | Self::TryWriteLock { .. } => false,
        }
    }
}

/// The operation that `who` waits for is complete. The only action of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// Who goes on.
    pub who: ProcessorId,
    /// The result: of `TryLock` and kin, 1 for success; of `WaitFlag` and `ReadFlag`, the flag's value; of `Arrive`, 1 for the last
    /// one; of `Leave`, 1 if it waited; else 0.
    pub value: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use finespun_types::catalogue::assert_wide_codec;

    #[test]
    fn every_event_survives_the_wire() {
        assert_wide_codec(Event::has_number, Event::of_words, Event::words);
    }

    #[test]
    fn what_gives_something_up_releases_and_what_waits_does_not() {
        let (object, who) = (64, ProcessorId(1));
        assert!(Event::Unlock { mutex: object, who }.releases());
        assert!(Event::RwUnlock { rwlock: object, who }.releases());
        assert!(Event::Arrive { barrier: object, count: 2, who, weight: 1 }.releases());
        assert!(Event::SetFlag { flag: object, value: 1 }.releases());
        assert!(!Event::Lock { mutex: object, who }.releases());
        assert!(!Event::WaitFlag { flag: object, value: 1, who }.releases());
        assert!(!Event::ReadLock { rwlock: object, who, again: false }.releases());
        assert!(!Event::Enqueue { condition: object, who }.releases(), "the unlock that follows releases");
    }
}
