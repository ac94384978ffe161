//! The outcomes that a program of a few lines reaches under a protocol, each with a shortest run that leads to it.

use std::collections::BTreeMap;

use finespun_protocol::cashmere::Cashmere;
use finespun_protocol::cashmere::broadcast::Broadcasting;
use finespun_protocol::cashmere::migration::Migrating;
use finespun_protocol::strings::{invalidate::StringsSc, update::StringsRc};

use crate::cashmere::{broadcast, migration};
use crate::driver::{Broken, Form, Grain, Rules};
use crate::explore::{Violation, explore, trace_of};
use crate::program::Program;
use crate::subject::Subject;
use crate::{protocols, tmk};

/// More than any program of a few lines has.
const STATES_MAX: usize = 2_000_000;
/// The program is not understood.
const UNDERSTOOD: &str = "the file is a litmus test";

/// What came of some interleavings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The registers' values, as the file would list them: `flag=1 data=0`.
    pub values: String,
    /// Is it among those that the file lists for this protocol? `None`: the file lists none.
    pub is_allowed: Option<bool>,
    /// A shortest run, a line for each transition.
    pub trace: Vec<String>,
}

impl Outcome {
    /// Are these its values, in any order?
    #[must_use]
    pub fn is(&self, values: &str) -> bool {
        let sorted = |text: &str| {
            let mut words = text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            words.sort_unstable();
            words
        };
        sorted(&self.values) == sorted(values)
    }
}

/// Explores every interleaving of a program under a protocol that can be checked. Where a protocol has several forms, in the one
/// that sends most messages.
///
/// # Errors
/// The first sentence of the protocol that does not hold, with the run that leads there; or what is wrong with the text.
pub fn reached(protocol: &str, text: &str) -> Result<Vec<Outcome>, Violation> {
    let program = Program::parse(text).map_err(|why| Violation::from(Broken::new(UNDERSTOOD, why)))?;
    if protocol == tmk::NAME {
        return lazily(&program);
    }
    if broadcast::NAMES.contains(&protocol) {
        return under::<Broadcasting>(&program, broadcast::FORM);
    }
    if let Some((_, form)) = migration::NAMED.iter().find(|(name, _)| *name == protocol) {
        return under::<Migrating>(&program, *form);
    }
    match protocol {
        "strings-rc" => under::<StringsRc>(&program, Form::None),
        "strings-sc" => under::<StringsSc>(&program, Form::None),
        _ => {
            let forms = protocols::named(protocol).map_or_else(Vec::new, |protocol| protocol.forms);
            under::<Cashmere>(&program, forms.first().copied().unwrap_or(Form::None))
        }
    }
}

fn under<P: Subject>(program: &Program, form: Form) -> Result<Vec<Outcome>, Violation> {
    let mut runs = BTreeMap::new();
    // By action there are more of them; by event the runs are shorter.
    for grain in [Grain::Event, Grain::Action] {
        let rules = Rules::<P> { program: program.clone(), form, grain, bug: None };
        let report = explore(&rules, STATES_MAX);
        if let Some(violation) = report.violation {
            return Err(violation);
        }
        for (values, moves) in report.ways {
            runs.entry(values).or_insert_with(|| trace_of(&rules, &moves));
        }
    }
    Ok(told(program, &[P::KIND], runs))
}

fn lazily(program: &Program) -> Result<Vec<Outcome>, Violation> {
    let mut runs = BTreeMap::new();
    for grain in [Grain::Event, Grain::Action] {
        let form = tmk::driver::Form::Messages;
        let rules = tmk::driver::Rules { program: program.clone(), form, grain, collects: false, bug: None };
        let report = tmk::explore::explore(&rules, STATES_MAX);
        if let Some(violation) = report.violation {
            return Err(violation);
        }
        for (values, moves) in report.ways {
            runs.entry(values).or_insert_with(|| tmk::explore::trace_of(&rules, &moves));
        }
    }
    Ok(told(program, &["lazy", tmk::NAME], runs))
}

fn told(program: &Program, kinds: &[&str], runs: BTreeMap<Vec<u8>, Vec<String>>) -> Vec<Outcome> {
    let lists_any = !program.allowed.is_empty() || !program.allowed_only.is_empty();
    let is_allowed = |values: &Vec<u8>| kinds.iter().any(|kind| program.allowed_under(kind).contains(values));
    let outcome = |(values, trace): (Vec<u8>, Vec<String>)| Outcome {
        values: program.outcome_text(&values),
        is_allowed: lists_any.then(|| is_allowed(&values)),
        trace,
    };
    runs.into_iter().map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::{Outcome, reached};

    const RACE: &str = include_str!("../../../tests/litmus/racy_message_passing.txt");

    fn values(protocol: &str) -> Vec<String> {
        reached(protocol, RACE).unwrap().into_iter().map(|outcome| outcome.values).collect()
    }

    #[test]
    fn an_old_copy_is_read_under_release_consistency_only() {
        let old = "old=0 flag=1 data=0".to_owned();
        for protocol in ["csm-2l", "csm-none-mg", "csm-adb", "strings-rc"] {
            assert!(values(protocol).contains(&old), "{protocol}");
        }
        assert!(!values("strings-sc").contains(&old));
        assert_eq!(values("tmk"), ["old=0 flag=0 data=0"], "nothing is told before an acquire");
    }

    #[test]
    fn each_outcome_comes_with_its_run() {
        let all = reached("csm-2l", RACE).unwrap();
        assert!(all.iter().all(|outcome| outcome.is_allowed == Some(true)));
        let old = all.iter().find(|outcome| outcome.is("flag=1 data=0 old=0")).unwrap();
        let loads = old.trace.iter().filter(|line| line.contains(" loads ")).collect::<Vec<_>>();
        assert_eq!(loads.len(), 3, "{loads:#?}");
        assert!(loads[2].ends_with("loads u0.0 = 0"), "{loads:#?}");
        assert!(!Outcome { values: "a=1".into(), is_allowed: None, trace: Vec::new() }.is("a=2"));
    }

    #[test]
    fn what_is_no_program_is_told() {
        assert!(reached("csm-2l", "nodes many").is_err());
    }
}
