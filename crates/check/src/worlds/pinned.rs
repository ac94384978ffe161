//! A world that is explored completely: its program, and how many states it has.

use crate::driver::{Form, Grain, Rules};
use crate::program::Program;
use crate::subject::Subject;

/// A program and how many states it has.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// What it is about.
    pub name: &'static str,
    /// The program.
    pub text: &'static str,
    /// States in the form `None`, by event and by action, then likewise in the forms `MS` and `DMS`.
    pub states: [usize; 6],
}

/// The forms and grains, in the order of [`World::states`].
pub const WAYS: [(Form, Grain); 6] = [
    (Form::None, Grain::Event),
    (Form::None, Grain::Action),
    (Form::Ms, Grain::Event),
    (Form::Ms, Grain::Action),
    (Form::Dms, Grain::Event),
    (Form::Dms, Grain::Action),
];

impl World {
    /// Its rules, in one form and grain.
    ///
    /// # Errors
    /// The line of the program that cannot be read.
    pub fn rules<P: Subject>(&self, form: Form, grain: Grain) -> Result<Rules<P>, String> {
        Ok(Rules { program: Program::parse(self.text)?, form, grain, bug: None })
    }
}
