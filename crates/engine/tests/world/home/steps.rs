//! Fault, release and acquire of a processor: the numbered steps are the engine's; here is what they wait on.

use finespun_engine::{Acquire, Fault, Release, Todo};
use finespun_protocol::page::{Demand, Outcome};
use finespun_types::{Access, NodeId};

use super::Home;
use super::protocols::Subject;
use crate::bugs::Bug;
use crate::engine::Engine;
use crate::job::Job;
use crate::processor::Doing;
use crate::program::Op;

/// What a processor is in the middle of.
#[derive(Debug)]
pub enum Stage {
    Fault(Fault, usize),
    /// `left` is what is still to be flushed, from `at` on in this round.
    Release {
        release: Release,
        left: Vec<usize>,
        at: usize,
        progressed: bool,
    },
    Acquire(Vec<usize>),
}

impl<P: Subject> Job<'_, Home<P>> {
    /// Presents an event of the processor's own, when it can have the lock; tells whether it did.
    pub fn present(&mut self, who: usize, unit: usize, demand: Demand) -> bool {
        let (node, _) = self.seat(who);
        if !self.may_lock(who, node, unit) {
            return false;
        }
        let outcome = self.within((who, unit), |nest, scene| nest.present(scene, node, demand.of()));
        self.processors[who].presented = Some(outcome);
        self.put(who);
        true
    }

    /// All that the processor's event brought about is done.
    pub fn conclude(&mut self, who: usize, outcome: Outcome) {
        let (node, view) = self.seat(who);
        let processor = &mut self.processors[who];
        let Doing::Consistency(stage) = &mut processor.doing else { unreachable!("only these present events") };
        match stage {
            Stage::Fault(fault, _) => match fault.next(Some(outcome), processor.woken) {
                Todo::Over => processor.doing = Doing::Nothing,
                Todo::Wait => {
                    processor.sleeps = true;
                    return;
                }
                Todo::Present(_) => {}
            },
            Stage::Release { left, at, progressed, .. } => {
                if outcome == Outcome::Wait {
                    *at += 1;
                } else {
                    left.remove(*at);
                    *progressed = true;
                }
                if outcome != Outcome::Begun {
                    self.view(node, Release::list::<P>(view)).open -= 1;
                }
            }
            Stage::Acquire(left) => {
                left.remove(0);
            }
        }
        self.put(who);
    }

    pub fn begin_fault(&mut self, who: usize, unit: usize, writes: bool) {
        let (node, view) = self.seat(who);
        let since = self.engine.nodes[usize::from(node.0)].tick();
        self.processors[who].doing = Doing::Consistency(Stage::Fault(Fault { view, writes, since }, unit));
        self.put(who);
    }

    /// Step 1 of a release.
    pub fn begin_release(&mut self, who: usize) {
        let (node, view) = self.seat(who);
        let several = self.program.shape.threads > 1 && !self.has(Bug::SkipWithThreads);
        let list = Release::list::<P>(view);
        let seen = self.view(node, list);
        let nothing = seen.dirty.is_empty() && !seen.releasing.is_held() && !P::BROADCASTS;
        if !nothing && !seen.releasing.is_free_for(who) {
            return seen.releasing.queue(who);
        }
        if nothing {
            return self.end_release(who);
        }
        let at = &mut self.engine.nodes[usize::from(node.0)];
        let now = at.tick();
        at.interval += u32::from(P::BROADCASTS);
        let seen = self.view(node, list);
        seen.releasing.take(who);
        let left = std::mem::take(&mut seen.dirty);
        self.note(|| format!("{node:?} {view:?} p{who} releases {left:?}"));
        let release = Release::begin(view, now, several);
        let processor = &mut self.processors[who];
        processor.woken = false;
        processor.doing = Doing::Consistency(Stage::Release { release, left, at: 0, progressed: false });
        self.put(who);
    }

    /// Steps 2, 3 and 4.
    pub fn go_on_releasing(&mut self, who: usize) {
        let (node, view) = self.seat(who);
        let (list, too_early) = (Release::list::<P>(view), self.has(Bug::ReleaseTooEarly));
        let open = if too_early { 0 } else { self.view(node, list).open };
        let keeps = P::KEEPS && self.setting.keeps_in > 0 && self.random.once_in(self.setting.keeps_in.max(1));
        let processor = &mut self.processors[who];
        let Doing::Consistency(Stage::Release { release, left, at, progressed }) = &mut processor.doing else { return };
        let (release, unit) = (*release, left.get(*at).copied());
        match release.next(left.len(), unit.is_some(), open, keeps) {
            Todo::Present(_) => {
                let Some(unit) = unit else { return };
                let keep = keeps && Home::access(self, who, unit) == Access::Write;
                // Counted before: the flush may be done before its presenter goes on.
                self.view(node, list).open += 1;
                if !self.present(who, unit, release.flush(keep)) {
                    self.view(node, list).open -= 1;
                }
            }
            Todo::Wait => {
                *at = 0;
                let again = std::mem::take(&mut processor.woken) | std::mem::take(progressed);
                if again {
                    self.put(who);
                } else if self.has(Bug::HandlerInRelease) && self.has_handler(who) {
                    self.begin_handler(who);
                } else {
                    self.processors[who].sleeps = true;
                }
            }
            Todo::Over => {
                let waiting = self.view(node, list).releasing.give_back();
                self.put_all(waiting);
                self.end_release(who);
            }
        }
    }

    /// What the processor did until now happens before what comes after.
    fn end_release(&mut self, who: usize) {
        Self::carrier(who, self.op(who)).into_iter().for_each(|carrier| self.oracle.release(who, carrier));
        self.end_part(who);
    }

    /// Step 1 of an acquire.
    pub fn begin_acquire(&mut self, who: usize, op: Option<Op>) {
        let (node, view) = self.seat(who);
        let alone = !self.has(Bug::AcquireNotExcluded);
        let skips = !Acquire::obeys::<P>() || self.has(Bug::NoticesIgnored);
        let seen = self.view(node, view);
        let held = seen.acquiring.is_held() && alone;
        let nothing = skips || (seen.noticed.is_empty() && !held);
        if !nothing && !seen.acquiring.is_free_for(who) {
            seen.acquiring.queue(who);
            self.processors[who].doing = Doing::Nothing;
            return;
        }
        if let Some(carrier) = Self::carrier(who, op) {
            let passed_on = self.oracle.passed_on(carrier);
            self.oracle.acquire(who, &passed_on);
        }
        if nothing {
            return self.end_part(who);
        }
        let seen = self.view(node, view);
        seen.acquiring.take(who);
        let taken = std::mem::take(&mut seen.noticed);
        self.engine.nodes[usize::from(node.0)].tick();
        self.note(|| format!("{node:?} {view:?} p{who} acquires {taken:?}"));
        self.processors[who].doing = Doing::Consistency(Stage::Acquire(taken));
        self.put(who);
    }

    /// Step 2.
    pub fn go_on_acquiring(&mut self, who: usize) {
        let (node, view) = self.seat(who);
        let Doing::Consistency(Stage::Acquire(left)) = &self.processors[who].doing else { return };
        if let Some(&unit) = left.first() {
            self.present(who, unit, Acquire { view }.demand());
            return;
        }
        let waiting = self.view(node, view).acquiring.give_back();
        self.put_all(waiting);
        self.end_part(who);
    }

    /// The node's waiting processors look again at a unit.
    pub fn wake(&mut self, node: NodeId, unit: usize) {
        let by_unit = self.setting.wakes_by_unit;
        self.wake_if(usize::from(node.0), |stage| match stage {
            Stage::Fault(_, of) => !by_unit || *of == unit,
            Stage::Release { left, .. } => !by_unit || left.contains(&unit),
            Stage::Acquire(_) => false,
        });
    }

    /// A flush is done.
    pub fn wake_releasers(&mut self, node: NodeId) {
        self.wake_if(usize::from(node.0), |stage| matches!(stage, Stage::Release { .. }));
    }
}
