//! A seeded bug, where it is looked for, and what must catch it: a checker that never fails proves nothing.

use crate::driver::{Form, Grain, Rules};
use crate::explore::{Violation, explore};
use crate::subject::{Sabotage, Subject};
use crate::worlds;

/// A bug, where it is looked for, and the sentence that must break.
#[derive(Clone, Copy, Debug)]
pub struct Seeded<P: Subject> {
    /// The bug.
    pub bug: P::Bug,
    /// The name of the world.
    pub world: &'static str,
    /// The form.
    pub form: Form,
    /// The grain.
    pub grain: Grain,
    /// The sentence.
    pub sentence: &'static str,
}

impl<P: Subject> Seeded<P> {
    /// The bug's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.bug.quirk().map_or_else(|| format!("{:?}", self.bug), |quirk| format!("{quirk:?}"))
    }

    /// Looks for the bug.
    ///
    /// # Errors
    /// It was not found, or broke another sentence.
    pub fn find(&self) -> Result<Violation, String> {
        let world = worlds::named(self.world).ok_or_else(|| format!("no world {}", self.world))?;
        let rules: Rules<P> = Rules { bug: Some(self.bug), ..world.rules(self.form, self.grain)? };
        judge(explore(&rules, STATES_MAX).violation, &self.bug, self.world, self.sentence)
    }
}

/// What the checker explores before it says that a bug is not caught.
pub const STATES_MAX: usize = 1_000_000;

/// A violation is right if it breaks the sentence that the bug is to break.
///
/// # Errors
/// Nothing was found, or another sentence is broken.
pub fn judge(
    found: Option<Violation>,
    bug: &dyn std::fmt::Debug,
    world: &str,
    sentence: &str,
) -> Result<Violation, String> {
    let violation = found.ok_or_else(|| format!("{bug:?} is not caught in: {world}"))?;
    if violation.sentence == sentence {
        return Ok(violation);
    }
    Err(format!("{bug:?} should break `{sentence}`, but: {violation}"))
}
