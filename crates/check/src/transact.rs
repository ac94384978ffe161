//! Drives the engine's transactions on the model.
//!
//! A *task* runs handlers: a processor, or the delivery of messages from one node to another. Each task has at most one transaction at a
//! time, and the tasks' steps interleave. A transaction is the engine's own ([`Transaction`]): the live runtime runs the same code. What
//! is decided here is only where it stops: before each action that others can see ([`Grain::Action`]), or when no handler runs any more.

use finespun_engine::{Next, Route, Transaction};
use finespun_protocol::page::{Action, Contents, Event, Outcome};
use finespun_types::NodeId;

use crate::driver::{Broken, Grain, Run};
use crate::model::{Envelope, Payload};
use crate::scene::Scene;
use crate::subject::Subject;

impl<'a, P: Subject> Run<'a, P> {
    /// Begins a transaction of the task, or goes on with the one it has.
    fn within<R>(
        &mut self,
        (task, unit): (usize, u8),
        body: impl FnOnce(&mut Transaction<P, Payload>, &mut Scene<'_, 'a, P>) -> R,
    ) -> Result<R, Broken> {
        let (_, mut nest) = self.world.chains[task].nest.take().unwrap_or_else(|| (unit, Box::default()));
        let sender = nest.sender();
        let result = body(&mut nest, &mut Scene { run: self, task, unit, sender });
        if !nest.is_over() {
            self.world.chains[task].nest = Some((unit, nest));
        }
        self.broken.take().map_or(Ok(result), Err)
    }

    /// Runs the unit's table for `event` and begins its actions.
    pub(crate) fn present(
        &mut self,
        task: usize,
        node: NodeId,
        unit: u8,
        event: Event<P::Msg>,
    ) -> Result<Outcome, Broken> {
        self.within((task, unit), |nest, scene| nest.present(scene, node, event))
    }

    /// Runs the table that a message is for.
    pub(crate) fn receive(&mut self, task: usize, envelope: Envelope<P::Msg>) -> Result<(), Broken> {
        let Envelope { from, to, unit, msg, payload, late } = envelope;
        if late {
            Scene { run: self, task, unit, sender: Some(from) }.come_late(to, payload);
            return Ok(());
        }
        self.within((task, unit), |nest, scene| nest.deliver(scene, from, to, msg, payload))
    }

    /// The next step of the task's transaction.
    pub(crate) fn step(&mut self, task: usize) -> Result<(), Broken> {
        let Some((unit, _)) = self.world.chains[task].nest else { return Ok(()) };
        self.within((task, unit), |nest, scene| nest.step(scene))
    }

    /// After a step: goes on as far as one step goes.
    pub(crate) fn settle(&mut self, task: usize) -> Result<(), Broken> {
        while let Some((_, nest)) = &self.world.chains[task].nest
            && nest.is_inside()
        {
            match nest.next() {
                Next::Act(node, action) if self.rules.grain == Grain::Action && !self.is_invisible(node, action) => {
                    return Ok(());
                }
                Next::Act(..) | Next::End(_) | Next::Later(..) | Next::Nothing => self.step(task)?,
            }
        }
        Ok(())
    }

    /// Others cannot see this action, nor can it see others: no point to stop before it.
    fn is_invisible(&self, node: NodeId, action: &Action<P::Msg>) -> bool {
        match action {
            Action::Wake
            | Action::FetchSkipped
            | Action::FlushSkipped
            | Action::RightKept
            | Action::KeptInVain
            | Action::EnteredExclusive
            | Action::HomeMoved
            | Action::HomeKept
            | Action::DropTwin
            | Action::FlushDone(_) => true,
            Action::Send { to, msg, contents } => {
                let nested = to.contains(node) || self.route(*msg) == Route::Inside;
                matches!(contents, Contents::Nothing | Contents::Twin | Contents::Received) && !nested
            }
            Action::Install
            | Action::Merge
            | Action::ApplyUpdate
            | Action::MakeTwin
            | Action::Protect { .. }
            | Action::ListDirty(_)
            | Action::ListNotice(_)
            | Action::Broadcast
            | Action::DropBuffer => false,
        }
    }

    /// The lock that the task's next step needs, beside those it has.
    pub(crate) fn next_lock(&self, task: usize) -> Option<(NodeId, u8)> {
        let (unit, nest) = self.world.chains[task].nest.as_ref()?;
        nest.wants(|msg| self.route(msg)).map(|node| (node, *unit))
    }
}

#[cfg(test)]
mod tests {
    use finespun_engine::{Limit, World as _};
    use finespun_protocol::cashmere::Cashmere;

    use super::*;
    use crate::driver::Form;
    use crate::worlds::WORLDS;

    #[test]
    fn a_list_that_is_full_breaks_a_sentence_of_its_own() {
        let rules = WORLDS[0].rules::<Cashmere>(Form::Dms, Grain::Event).expect("a world of ours");
        for limit in [Limit::Handlers, Limit::Actions, Limit::Aside, Limit::Diffs, Limit::Locks] {
            let told = Run::new(&rules).within((0, 0), |_, scene| scene.overflow(limit));
            assert_eq!(told, Err(Broken::new(limit.sentence(), format!("at most {}", limit.max()))));
        }
    }
}
