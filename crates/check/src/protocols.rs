//! The protocols that can be checked, by name, and what of each is explored.

use finespun_protocol::cashmere::variants::Variant;

use crate::cashmere::{broadcast, migration};
use crate::driver::Form;
use crate::{strings, tmk};

/// The protocol with all its forms; the variants have one each.
const WHOLE: &str = "csm-2l";
/// The one-level protocol: csm-dms in worlds whose nodes have one processor.
const ONE_LEVEL: &str = "csm-1l-dms";

/// What is explored under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The forms.
    pub forms: Vec<Form>,
    /// What of the protocol these forms leave out, in a sentence.
    pub note: Option<&'static str>,
}

/// The names of Cashmere's family whose tables are the same.
#[must_use]
pub fn names() -> Vec<&'static str> {
    std::iter::once(WHOLE).chain(Variant::NAMED.iter().map(|(name, _)| *name)).chain([ONE_LEVEL]).collect()
}

/// Those and the protocols with tables of their own.
#[must_use]
pub fn all_names() -> Vec<&'static str> {
    let moving = migration::NAMED.map(|(name, _)| name);
    [names(), moving.to_vec(), broadcast::NAMES.to_vec(), strings::NAMES.to_vec(), vec![tmk::NAME]].concat()
}

/// The protocol of this name.
#[must_use]
pub fn named(name: &str) -> Option<Protocol> {
    if name == WHOLE {
        return Some(Protocol { forms: Form::ALL.to_vec(), note: None });
    }
    if name == ONE_LEVEL {
        let note = "explored as csm-dms: the same tables, in worlds with one processor a node and with more";
        return Some(Protocol { forms: vec![Form::Dms], note: Some(note) });
    }
    let (_, variant) = Variant::NAMED.iter().find(|(other, _)| *other == name)?;
    let form = Form::of(variant)?;
    let note = (form.variant() != *variant).then_some(
        "explored as csm-none: the two differ only in how locks and barriers reach other nodes, which is abstract here",
    );
    Some(Protocol { forms: vec![form], note })
}

#[cfg(test)]
mod tests {
    use super::{Form, named, names};

    #[test]
    fn every_name_is_explored_in_its_forms() {
        let forms = |name| named(name).unwrap().forms;
        assert_eq!(names(), ["csm-2l", "csm-dms", "csm-ms", "csm-s", "csm-none", "csm-1l-dms"]);
        assert_eq!(forms("csm-2l"), Form::ALL);
        assert_eq!([forms("csm-dms"), forms("csm-ms")], [[Form::Dms], [Form::Ms]]);
        assert_eq!(forms("csm-1l-dms"), [Form::Dms]);
        assert_eq!([forms("csm-s"), forms("csm-none")], [[Form::None], [Form::None]]);
        assert_eq!(named("mesi"), None);
    }

    #[test]
    fn only_those_that_share_a_form_say_so() {
        let noted: Vec<_> = names().into_iter().filter(|name| named(name).unwrap().note.is_some()).collect();
        assert_eq!(noted, ["csm-s", "csm-1l-dms"]);
    }
}
