//! Why an event was refused. A refused event has changed nothing.

use core::fmt;

use finespun_types::ProcessorId;

use crate::{Event, Kind};

/// Why an event was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The program used the object wrongly.
    Misuse(Misuse),
    /// The table has no entry left: more objects are in use at once than it was made for.
    Full {
        /// How many it was made for.
        entries: usize,
    },
    /// A bug of ours.
    Impossible(Impossible),
}

/// The program used an object wrongly. `Display` is the sentence for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// What was asked.
    pub event: Event,
    /// What is wrong with it.
    pub wrong: Wrong,
}

/// What a program can do wrong with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Unlock of a mutex that nobody holds (E020).
    NotHeld,
    /// Unlock of a mutex that another processor holds (E020).
    NotOwner {
        /// Who holds it.
        owner: ProcessorId,
    },
    /// Unlock of a mutex that is not at this node: nobody here holds it (E020).
    NotHeldHere,
    /// Lock by the processor that holds the mutex already (E022).
    Relock,
    /// A barrier's count is 0 (E005).
    CountZero,
    /// An arrival gives another count than the first of its round (E021).
    CountMismatch {
        /// What the first gave.
        expected: u32,
        /// What this one gives.
        given: u32,
    },
    /// More processors have arrived than the count says (E021).
    TooManyArrived {
        /// The count.
        expected: u32,
        /// How many there would be.
        arrived: u32,
    },
    /// Reset of a flag while somebody waits for it (E005).
    FlagBusy {
        /// Who has waited longest.
        waiter: ProcessorId,
    },
    /// Another kind of object is in use at this address (E005). A flag is in use until it is reset.
    WrongKind {
        /// What is there.
        there: Kind,
    },
}

/// The runtime presented what cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// The table was made for fewer processors.
    NoSuchProcessor {
        /// Who asked to wait.
        who: ProcessorId,
        /// For how many the table was made.
        processors: usize,
    },
    /// A mutex whose ownership migrates is asked for where it is not, or asked for twice.
    OutOfPlace {
        /// Which.
        mutex: u64,
    },
    /// The processor waits already.
    WaitsAlready {
        /// Who asked to wait.
        who: ProcessorId,
        /// For what.
        object: u64,
    },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.event.kind().name();
        let object = self.event.object();
        match self.wrong {
            Wrong::NotHeld => write!(f, "unlock of the {kind} at {object:#x}, which nobody holds"),
            Wrong::NotOwner { owner } => {
                write!(f, "unlock of the {kind} at {object:#x}, which processor {} holds", owner.0)
            }
            Wrong::NotHeldHere => {
                write!(f, "unlock of the mutex at {object:#x}, which no processor of this node holds")
            }
            Wrong::Relock => write!(f, "lock of the {kind} at {object:#x} by the processor that holds it"),
            Wrong::CountZero => write!(f, "arrival at the barrier at {object:#x} with a count of 0"),
            Wrong::CountMismatch { expected, given } => write!(
                f,
                "arrival at the barrier at {object:#x} with a count of {given}, where the first of this round gave \
                 {expected}"
            ),
            Wrong::TooManyArrived { expected, arrived } => {
                write!(f, "{arrived} processors have arrived at the barrier at {object:#x}, whose count is {expected}")
            }
            Wrong::FlagBusy { waiter } => {
                write!(f, "reset of the flag at {object:#x}, for which processor {} waits", waiter.0)
            }
            Wrong::WrongKind { there } => {
                write!(f, "use of {object:#x} as a {kind}, where a {} is in use", there.name())
            }
        }
    }
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchProcessor { who, processors } => {
                write!(f, "processor {} waits at a table made for {processors}", who.0)
            }
            Self::OutOfPlace { mutex } => {
                write!(f, "a message about the mutex at {mutex:#x} came to a node that has no part in it")
            }
            Self::WaitsAlready { who, object } => {
                write!(f, "processor {} waits a second time, while it waits for the object at {object:#x}", who.0)
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(misuse) => misuse.fmt(f),
            Self::Full { entries } => {
                write!(f, "more than {entries} synchronization objects are in use at once in one table")
            }
            Self::Impossible(impossible) => impossible.fmt(f),
        }
    }
}

impl core::error::Error for Error {}
