//! What a call returns that cannot be done.

use std::fmt::Display;

use finespun_errors::Code;
use finespun_sync::{Error, Wrong, threads};

use crate::node::names;

/// What went wrong in a call: the caller decides whether it ends the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which error.
    pub code: Code,
    /// What happened, in this run's own words.
    pub what: String,
}

impl Failure {
    /// An error with its sentence.
    pub fn new(code: Code, what: impl Display) -> Self {
        Self { code, what: what.to_string() }
    }
}

/// An error of a table of objects as one of a call.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let worded = |code, what: &dyn Display| Self { code, what: names::named(&what.to_string()) };
        match error {
            Error::Misuse(misuse) => worded(code_of(misuse.wrong), &misuse),
            Error::Full { .. } => worded(Code::TooManyObjects, &error),
            Error::Impossible(_) => worded(Code::Bug, &error),
        }
    }
}

const fn code_of(wrong: Wrong) -> Code {
    match wrong {
        Wrong::NotHeld | Wrong::NotHeldHere | Wrong::NotOwner { .. } => Code::NotOwner,
        Wrong::Relock => Code::Relock,
        Wrong::CountMismatch { .. } | Wrong::TooManyArrived { .. } => Code::BarrierCount,
        Wrong::CountZero | Wrong::FlagBusy { .. } | Wrong::WrongKind { .. } => Code::Argument,
    }
}

/// An error of the table of threads as one of a call.
impl From<threads::Error> for Failure {
    fn from(error: threads::Error) -> Self {
        use threads::Error::{
            Detached, Impossible, JoinPending, JoinSelf, JoinedAlready, NoNode, NoProcessor, NoThread,
        };
        let code = match error {
            Impossible { .. } => Code::Bug,
            NoProcessor { .. } | NoThread { .. } | JoinedAlready { .. } => Code::Argument,
            JoinPending { .. } | JoinSelf { .. } | Detached { .. } | NoNode { .. } => Code::Argument,
        };
        let text = error.to_string();
        // A number that the caller gave is shown as it was given.
        let what = if matches!(error, NoProcessor { .. }) { text } else { names::named(&text) };
        Self { code, what }
    }
}

#[cfg(test)]
mod tests {
    use finespun_types::ProcessorId;

    use super::*;

    #[test]
    fn a_processor_that_is_not_there_is_shown_as_it_was_given() {
        let error = threads::Error::NoProcessor { given: ProcessorId(226), processors: 2 };
        assert_eq!(Failure::from(error), Failure::new(Code::Argument, error));
    }

    #[test]
    fn what_a_table_calls_impossible_is_a_bug_of_ours() {
        let event = threads::Event::Begin { who: ProcessorId(0) };
        assert_eq!(Failure::from(threads::Error::Impossible { state: threads::State::Main, event }).code, Code::Bug);
    }

    #[test]
    fn each_mistake_with_an_object_has_its_code() {
        assert_eq!(code_of(Wrong::NotHeld), Code::NotOwner);
        assert_eq!(code_of(Wrong::Relock), Code::Relock);
        assert_eq!(code_of(Wrong::CountZero), Code::Argument);
    }
}
