//! Strings' two protocols in the checker: the worlds with their counts of states, and the seeded bugs.

pub mod invalidate;
pub mod update;

use crate::driver::{Form, Grain, Rules};
use crate::model::Processor;
use crate::program::Program;
use crate::subject::Subject;
use crate::worlds;

/// The forms and grains, in the order of [`Counted::states`].
pub const WAYS: [(Form, Grain); 4] =
    [(Form::None, Grain::Event), (Form::None, Grain::Action), (Form::Dms, Grain::Event), (Form::Dms, Grain::Action)];

/// A world, and how many states it has.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Its name.
    pub world: &'static str,
    /// Its program; `None`: the one of this name in [`crate::worlds::WORLDS`].
    pub text: Option<&'static str>,
    /// States by [`WAYS`].
    pub states: [usize; 4],
}

impl Counted {
    /// Its program.
    ///
    /// # Errors
    /// There is no such world.
    pub fn program(&self) -> Result<&'static str, String> {
        let named = || worlds::named(self.world).map(|world| world.text);
        self.text.or_else(named).ok_or_else(|| format!("no world {}", self.world))
    }

    /// Its rules, in one form and grain.
    ///
    /// # Errors
    /// There is no such world, or the line of the program that cannot be read.
    pub fn rules<P: Subject>(&self, form: Form, grain: Grain) -> Result<Rules<P>, String> {
        Ok(Rules { program: Program::parse(self.program()?)?, form, grain, bug: None })
    }
}

/// The names that `finespun check` knows.
pub const NAMES: [&str; 2] = ["strings-rc", "strings-sc"];

const fn counted(world: &'static str, states: [usize; 4]) -> Counted {
    Counted { world, text: None, states }
}

/// Neither protocol compares times.
fn forget_times(processors: &mut [Processor]) {
    processors.iter_mut().for_each(|processor| processor.since = 0);
}
