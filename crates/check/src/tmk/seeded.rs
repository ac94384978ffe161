//! Where the bugs of [`super::bugs`] are looked for, and what must catch them.

use super::bugs::Bug;
use super::driver::{CARRIED, Form, NEEDED, Rules};
use super::explore::{ENDS, RIGHTS, explore};
use super::processor::LOAD;
use super::worlds;
use crate::driver::{Grain, ROW};
use crate::explore::Violation;
use crate::seeded::{STATES_MAX, judge};

/// A bug, where it is looked for, and the sentence that must break.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    /// The bug.
    pub bug: Bug,
    /// The name of the world.
    pub world: &'static str,
    /// The grain.
    pub grain: Grain,
    /// The sentence.
    pub sentence: &'static str,
}

impl Seeded {
    /// Looks for the bug.
    ///
    /// # Errors
    /// It was not found, or broke another sentence.
    pub fn find(&self) -> Result<Violation, String> {
        let world = worlds::named(self.world).ok_or_else(|| format!("no world {}", self.world))?;
        let rules = Rules { bug: Some(self.bug), ..world.rules(Form::Messages, self.grain)? };
        judge(explore(&rules, STATES_MAX).violation, &self.bug, self.world, self.sentence)
    }
}

/// Every bug, and what catches it.
#[rustfmt::skip]
pub const SEEDED: &[Seeded] = &[
    seeded(Bug::AppliedOutOfOrder,     worlds::CHAIN,    Grain::Event,  LOAD),
    seeded(Bug::GrantWithoutNotices,   worlds::LOCK,     Grain::Event,  LOAD),
    seeded(Bug::AcquireWithoutNotices, worlds::LOCK,     Grain::Event,  LOAD),
    seeded(Bug::CloseKeepsRight,       worlds::LOCK,     Grain::Event,  RIGHTS),
    seeded(Bug::CollectWithoutKeep,    worlds::COLLECT,  Grain::Event,  ROW),
    seeded(Bug::TwinNotUpdated,        worlds::BESIDE,   Grain::Event,  LOAD),
    seeded(Bug::TwinNotRefreshed,      worlds::REWRITTEN, Grain::Event, LOAD),
    seeded(Bug::BaseFromFrame,         worlds::TAKEN_BACK, Grain::Event, LOAD),
    seeded(Bug::BaseBeforeDiff,        worlds::CHAIN,    Grain::Event,  NEEDED),
    seeded(Bug::UnorderedChannels,     worlds::TWO_UNITS,  Grain::Event,  CARRIED),
    seeded(Bug::NoWake,                worlds::LOCK,     Grain::Event,  ENDS),
    seeded(Bug::RightBeforeTwin,       worlds::THREADS,  Grain::Action, LOAD),
    seeded(Bug::OwnNewsOnly,           worlds::CHAIN,    Grain::Event,  super::explore::PAST),
    seeded(Bug::OwedAcrossNotice,      worlds::EARLY,    Grain::Event,  LOAD),
    seeded(Bug::AcquireDuringRelease,  worlds::MIXED,    Grain::Event,  LOAD),
    seeded(Bug::FaultDuringAcquire,    worlds::HALF,     Grain::Event,  LOAD),
    seeded(Bug::FaultInCollection,    worlds::OUTSIDE,  Grain::Event,  ROW),
    seeded(Bug::FaultsHeldTooEarly,   worlds::BESIDE_HANDLER, Grain::Event, ENDS),
    seeded(Bug::CollectByTime,        worlds::OUTSIDE_LATER, Grain::Event, ROW),
    seeded(Bug::KeepForgetsOwn,       worlds::OUTSIDE_WRITES, Grain::Event, ROW),
    seeded(Bug::OwedForgotten,        worlds::OUTSIDE_TWICE, Grain::Event, LOAD),
    seeded(Bug::HandlerInCollection,   worlds::COLLECTED_HANDLER, Grain::Event, ENDS),
];

const fn seeded(bug: Bug, world: &'static str, grain: Grain, sentence: &'static str) -> Seeded {
    Seeded { bug, world, grain, sentence }
}
