//! A run: the rules, and where it stands.

use finespun_engine::homes::Homes;
use finespun_engine::{Route, Transaction};
use finespun_protocol::cashmere::variants::{Variant, Way};
use finespun_protocol::page::{Message, Place, Time};
use finespun_types::{NodeId, UnitId, ViewId};

use crate::model::{Copy, Payload, View};
use crate::program::Program;
use crate::subject::{Quirk, Sabotage, Subject};
use crate::world::World;

/// How `Send` is done. How locks and barriers reach other nodes makes no form: here they are abstract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// Messages in channels.
    None,
    /// Data in channels; for metadata the sender runs the receiver's table itself.
    Ms,
    /// The sender runs the receiver's table itself.
    Dms,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Ms, Self::Dms];

    /// The variant of the protocol that it explores.
    #[must_use]
    pub const fn variant(self) -> Variant {
        match self {
            Self::None => Variant::NONE,
            Self::Ms => Variant::MS,
            Self::Dms => Variant::DMS,
        }
    }

    /// The form in which the tables run as in this variant.
    #[must_use]
    pub fn of(variant: &Variant) -> Option<Self> {
        let ways = |variant: &Variant| (variant.data, variant.metadata);
        Self::ALL.into_iter().find(|form| ways(&form.variant()) == ways(variant))
    }
}

/// What counts as one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grain {
    /// An event with all that it brings about at once.
    Event,
    /// Each action that others can see.
    Action,
}

/// What does not change during a run.
#[derive(Clone, Debug)]
pub struct Rules<P: Subject> {
    /// What the processors do.
    pub program: Program,
    /// How `Send` is done.
    pub form: Form,
    /// What one step is.
    pub grain: Grain,
    /// What is wrong on purpose.
    pub bug: Option<P::Bug>,
}

/// A sentence that does not hold, with what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The sentence.
    pub sentence: &'static str,
    /// What was seen.
    pub detail: String,
}

impl Broken {
    pub(crate) fn new(sentence: &'static str, detail: impl Into<String>) -> Self {
        Self { sentence, detail: detail.into() }
    }
}

/// The tables have no row.
pub const ROW: &str = "the table has a row for everything that happens";
/// The twin was needed and is not there, or the other way round.
pub const LISTED_ONCE: &str = "no list has a unit twice";

/// One run in progress.
pub struct Run<'a, P: Subject> {
    /// The rules.
    pub rules: &'a Rules<P>,
    /// Where it stands.
    pub world: World<P>,
    /// The transitions, one line each, if they are wanted.
    pub trace: Option<Vec<String>>,
    /// A sentence that the step under way has broken.
    pub(crate) broken: Option<Broken>,
}

impl<'a, P: Subject> Run<'a, P> {
    /// At the beginning.
    #[must_use]
    pub fn new(rules: &'a Rules<P>) -> Self {
        Self::at(rules, World::new(&rules.program))
    }

    /// Where this world stands.
    pub(crate) const fn at(rules: &'a Rules<P>, world: World<P>) -> Self {
        Self { rules, world, trace: None, broken: None }
    }

    /// The step under way breaks a sentence; the first one counts.
    pub(crate) fn break_sentence(&mut self, sentence: &'static str, detail: String) {
        self.broken.get_or_insert_with(|| Broken::new(sentence, detail));
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.rules.bug.and_then(Sabotage::quirk) == Some(quirk)
    }

    pub(crate) fn copy_at(&self, node: NodeId, unit: u8) -> usize {
        usize::from(node.0) * self.rules.program.shape.units + usize::from(unit)
    }

    pub(crate) fn copy(&mut self, node: NodeId, unit: u8) -> &mut Copy<P::Unit> {
        let at = self.copy_at(node, unit);
        &mut self.world.copies[at]
    }

    fn view_at(&self, node: NodeId, view: ViewId) -> usize {
        usize::from(node.0) * self.rules.program.shape.views + usize::from(view.0)
    }

    pub(crate) fn view(&mut self, node: NodeId, view: ViewId) -> &mut View {
        let at = self.view_at(node, view);
        &mut self.world.views[at]
    }

    /// The same, to look at.
    pub(crate) fn seen(&self, node: NodeId, view: ViewId) -> &View {
        &self.world.views[self.view_at(node, view)]
    }

    pub(crate) fn tick(&mut self, node: NodeId) -> Time {
        let clock = &mut self.world.clocks[usize::from(node.0)];
        *clock += 1;
        *clock
    }

    pub(crate) fn place(&self, me: NodeId, unit: u8) -> Place {
        let Program { shape, homes, .. } = &self.rules.program;
        Homes::new(shape.nodes as u32, 0).place(me, UnitId(unit.into()), homes[usize::from(unit)])
    }

    /// May this task take the lock now?
    pub(crate) fn lock_is_free(&self, task: usize, node: NodeId, unit: u8) -> bool {
        let lock = usize::from(self.world.copies[self.copy_at(node, unit)].lock);
        lock == 0 || lock == task + 1
    }

    pub(crate) fn route(&self, msg: P::Msg) -> Route {
        let between_equals = match self.rules.bug {
            None => msg.is_between_equals(),
            Some(bug) => bug.is_between_equals(msg),
        };
        Route::of(self.way(msg), between_equals)
    }

    pub(crate) fn way(&self, msg: P::Msg) -> Way {
        let wrong = self.rules.bug.and_then(|bug| bug.way(msg));
        wrong.unwrap_or_else(|| self.rules.form.variant().way(msg))
    }

    pub(crate) fn log(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(line());
        }
    }

    /// Is anything about this unit under way?
    pub(crate) fn in_flight(&self, unit: u8) -> bool {
        let world = &self.world;
        world.channels.iter().flatten().any(|envelope| envelope.unit == unit)
            || world.chains.iter().any(|chain| {
                chain.nest.as_ref().is_some_and(|&(of, _)| of == unit)
                    || chain.late.iter().any(|envelope| envelope.unit == unit)
            })
    }

    /// Is a processor in the middle of something that concerns this unit at this node?
    pub(crate) fn is_busy(&self, node: usize, unit: u8) -> bool {
        let at = NodeId::of(node);
        let concerns = |(of, nest): &(u8, Box<Transaction<P, Payload>>)| *of == unit && nest.is_at(at);
        self.world.chains.iter().any(|chain| chain.nest.as_ref().is_some_and(concerns))
    }
}
