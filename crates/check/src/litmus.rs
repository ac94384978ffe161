//! Litmus tests: short programs, and which outcomes the consistency model allows. Every interleaving is run, in both
//! grains; the outcomes that each form reaches must be those listed, all of them and no other.

use std::collections::BTreeSet;

use crate::driver::{Broken, Form, Grain, Rules};
use crate::explore::{Violation, explore};
use crate::program::Program;
use crate::subject::Subject;

/// One test.
#[derive(Clone, Copy, Debug)]
pub struct Litmus {
    /// Its file, without ending.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

/// Some outcome is not listed, or some listed one cannot be reached.
pub const OUTCOMES: &str = "the outcomes of a litmus test are those that the consistency model allows";

const STATES_MAX: usize = 1_000_000;

macro_rules! litmus {
    ($($name:literal,)*) => {
        /// The tests of `tests/litmus/`.
        pub const LITMUS: &[Litmus] =
            &[$(Litmus { name: $name, text: include_str!(concat!("../../../tests/litmus/", $name, ".txt")) },)*];
    };
}

litmus! {
    "a_chain_of_flags",
    "coherence_of_one_word",
    "false_sharing",
    "false_sharing_inside_a_node",
    "increments_under_a_lock",
    "independent_reads_of_independent_writes",
    "load_buffering_by_locks",
    "message_passing_by_barrier",
    "message_passing_by_flag",
    "message_passing_by_lock",
    "racy_independent_reads",
    "racy_inside_a_node",
    "racy_message_passing",
    "racy_store_buffering",
    "racy_two_words_two_writers",
    "store_buffering_by_locks",
    "two_words_two_writers",
    "write_to_read_causality",
}

impl Litmus {
    /// Runs every interleaving in one form; tells how many states there were.
    ///
    /// # Errors
    /// The first violation, or the outcomes that should not be, or are missing.
    pub fn run<P: Subject>(&self, form: Form) -> Result<usize, Violation> {
        let mut reached = BTreeSet::new();
        let mut states = 0;
        let program = Program::parse(self.text).map_err(|why| self.wrong(why))?;
        for grain in [Grain::Event, Grain::Action] {
            let rules = Rules::<P> { program: program.clone(), form, grain, bug: None };
            let report = explore(&rules, STATES_MAX);
            if let Some(violation) = report.violation {
                return Err(violation);
            }
            states += report.states;
            reached.extend(report.outcomes);
        }
        let allowed = program.allowed_under(P::KIND);
        if reached == allowed {
            return Ok(states);
        }
        let told = |outcomes: &mut dyn Iterator<Item = &Vec<u8>>| {
            outcomes.map(|outcome| program.outcome_text(outcome)).collect::<Vec<_>>().join(", ")
        };
        let surplus = told(&mut reached.difference(&allowed));
        let missing = told(&mut allowed.difference(&reached));
        Err(self.wrong(format!("{form:?}: reached and not allowed: {surplus}; allowed and not reached: {missing}")))
    }

    fn wrong(&self, why: String) -> Violation {
        Broken::new(OUTCOMES, format!("{}: {why}", self.name)).into()
    }
}
