//! An event of a node's copy: its table answers at once, its actions are performed one after the other under the unit's lock.

use finespun_protocol::tmk::{Action, Event, Outcome, Unit};
use finespun_types::NodeId;

use super::Lazy;
use super::node::Letter;
use super::steps::Stage;
use crate::bugs::Bug;
use crate::clock::Task;
use crate::job::{Job, Packet, ROW};
use crate::memory::Page;

/// A node asks for a diff that its writer does not have, or a handler for a page that did not come.
pub const NEEDED: &str = "a collection drops nothing that is still needed";
/// A node's list names a unit twice.
const LISTED_ONCE: &str = "no list has a unit twice";
/// A handler of another node changes no mapping.
const OWN_MAPPING: &str = "only a node's own threads change its mappings";

/// A message for a handler, wherever that runs.
pub struct Errand {
    pub from: usize,
    pub to: usize,
    pub unit: usize,
    pub letter: Letter,
}

/// What a task is in the middle of.
pub struct Handler {
    node: usize,
    unit: usize,
    /// The last is next.
    actions: Vec<Action>,
    page: Option<Page>,
    /// Of the processor's own event.
    outcome: Option<Outcome>,
    /// It is given back at the end.
    acquiring: bool,
}

impl Job<'_, Lazy> {
    /// May the task take the lock of (node, unit)? If not, it waits for it.
    pub fn may_lock(&mut self, task: Task, node: usize, unit: usize) -> bool {
        self.engine.nodes[node].copies[unit].lock.is_free_or_queues(task)
    }

    /// A message came to a node, whose lock is free for the task.
    pub fn handle(&mut self, task: Task, Errand { from, to, unit, letter }: Errand) {
        let sender = NodeId::of(from);
        match letter {
            Letter::AskDiffs(after, upto) => {
                self.begin_handling(task, (to, unit), Event::AskDiffs { from: sender, after, upto }, None);
            }
            Letter::AskBase => self.begin_handling(task, (to, unit), Event::AskBase { from: sender }, None),
            Letter::NoBase(last, stamp) => self.begin_handling(task, (to, unit), Event::NoBase { last, stamp }, None),
            Letter::Base(page, applied) => {
                self.begin_handling(task, (to, unit), Event::Base { applied: &applied }, Some(page))
            }
            Letter::Diffs(diffs) => {
                let upto = diffs.last().map_or(0, |last| last.index);
                self.engine.nodes[to].copies[unit].came.extend(diffs);
                self.begin_handling(task, (to, unit), Event::Diffs { from: sender, upto }, None);
            }
        }
    }

    /// Presents an event of the processor's own, when it can have the lock. `whole`: not in the middle of another thread's acquire.
    pub fn present(&mut self, who: usize, unit: usize, event: Event<'_>, whole: bool) {
        let node = self.node_of(who);
        if !self.may_lock(who, node, unit) || whole && !self.engine.nodes[node].acquiring.is_free_or_queues(who) {
            return;
        }
        let acquiring = whole && self.engine.nodes[node].acquiring.take(who);
        self.processors[who].woken = false;
        self.begin_handling(who, (node, unit), event, None);
        if let Some(handler) = &mut self.engine.handlers[who] {
            handler.acquiring = acquiring;
        }
    }

    /// Runs the table. The processor that presents its own event is told the outcome at the end.
    fn begin_handling(&mut self, task: Task, (node, unit): (usize, usize), event: Event<'_>, page: Option<Page>) {
        let bug = self.bug;
        let copy = &mut self.engine.nodes[node].copies[unit];
        copy.lock.take(task);
        let before = copy.unit;
        let step = match copy.unit.on(NodeId::of(node), &mut copy.writers, event) {
            Ok(step) => step,
            Err(impossible) => return self.fail(ROW, format!("n{node} u{unit} {impossible:?}")),
        };
        if bug == Some(Bug::OwedAcrossNotice) && matches!(event, Event::Notice { .. }) {
            (copy.unit.owed, copy.unit.has_twin) = (before.owed, before.has_twin);
        }
        let is_collected = |unit: &Unit| matches!(event, Event::Collect { upto, .. } if unit.owed <= upto[node]);
        if bug == Some(Bug::OwedForgotten) && copy.unit.written && is_collected(&copy.unit) {
            copy.unit.owed = 0;
        }
        let after = copy.unit;
        let mut actions = step.actions.as_slice().to_vec();
        bug.into_iter().for_each(|bug| alter(bug, event, &mut actions));
        self.note(|| format!("n{node} u{unit} {before:?} --{event:?}--> {after:?} {actions:?}"));
        actions.reverse();
        let own = matches!(event, Event::Fault { .. } | Event::Close { .. } | Event::Notice { .. })
            || matches!(event, Event::Keep { .. } | Event::Collect { .. });
        let outcome = own.then_some(step.outcome);
        self.engine.handlers[task] = Some(Handler { node, unit, actions, page, outcome, acquiring: false });
        self.put(task);
    }

    /// Performs the next action of the task's handler; behind the last, gives back what it holds. False if it runs none.
    pub fn act_next(&mut self, task: Task) -> bool {
        let Some(handler) = &mut self.engine.handlers[task] else { return false };
        let (node, unit, page) = (handler.node, handler.unit, handler.page);
        if let Some(action) = handler.actions.pop() {
            self.act(task, (node, unit), action, page);
        } else if let Some(Handler { outcome, acquiring, .. }) = self.engine.handlers[task].take() {
            let node = &mut self.engine.nodes[node];
            let mut waiting = node.copies[unit].lock.give_back();
            if acquiring {
                waiting.extend(node.acquiring.give_back());
            }
            self.put_all(waiting);
            if outcome.is_some() {
                self.processors[task].presented = outcome;
            }
        }
        self.put(task);
        true
    }

    fn act(&mut self, task: Task, (node, unit): (usize, usize), action: Action, page: Option<Page>) {
        match action {
            Action::ListDirty => {
                let dirty = &mut self.engine.nodes[node].dirty;
                let twice = dirty.contains(&unit);
                dirty.push(unit);
                if twice {
                    self.fail(LISTED_ONCE, format!("n{node} u{unit}"));
                }
            }
            Action::Wake if self.has(Bug::NoWake) => {}
            Action::Wake => self.wake_if(node, |stage| matches!(stage, Stage::Fault { .. } | Stage::Keep(_))),
            Action::Protect(_) if task < self.processors.len() && self.node_of(task) != node => {
                self.fail(OWN_MAPPING, format!("n{node} u{unit} by p{task}"));
            }
            Action::AskBase(_)
            | Action::AskDiffs
            | Action::SendDiffs { .. }
            | Action::SendBase { .. }
            | Action::SendNoBase { .. }
            | Action::MakeDiff { .. }
            | Action::MakeTwin
            | Action::DropTwin
            | Action::Install
            | Action::Apply { .. }
            | Action::Protect(_) => {
                let bug = self.bug;
                match self.engine.nodes[node].copies[unit].act(NodeId::of(node), action, page, bug) {
                    Ok(letters) => {
                        letters.into_iter().for_each(|(to, letter)| self.send(task, (node, to), unit, letter))
                    }
                    Err(what) => self.fail(NEEDED, format!("u{unit}: {what}")),
                }
            }
        }
    }

    /// By a message; or the task itself runs the receiver's handler, when this one has ended.
    fn send(&mut self, task: Task, (from, to): (usize, usize), unit: usize, letter: Letter) {
        if self.direct() {
            self.engine.errands[task].push_back(Errand { from, to, unit, letter });
        } else {
            self.send_packet((from, to), Packet::Unit { unit, letter });
        }
    }

    /// Runs the next handler of another node; false if there is none to run.
    pub fn run_errand(&mut self, who: usize) -> bool {
        let Some(Errand { to, unit, .. }) = self.engine.errands[who].front() else { return false };
        let (to, unit) = (*to, *unit);
        if self.may_lock(who, to, unit)
            && let Some(errand) = self.engine.errands[who].pop_front()
        {
            self.handle(who, errand);
        }
        true
    }
}

/// The actions as a seeded bug would have them.
fn alter(bug: Bug, event: Event<'_>, actions: &mut Vec<Action>) {
    let is_diff = |action: &Action| matches!(action, Action::MakeDiff { .. });
    match event {
        Event::Close { .. } if bug == Bug::CloseKeepsRight => actions.clear(),
        Event::AskBase { .. } if bug == Bug::BaseBeforeDiff => actions.retain(|action| !is_diff(action)),
        Event::Notice { .. } if bug == Bug::OwedAcrossNotice => {
            actions.retain(|action| !is_diff(action) && *action != Action::DropTwin);
        }
        Event::Fault { .. } if bug == Bug::RightBeforeTwin => {
            let right = actions.iter().position(|action| matches!(action, Action::Protect(_)));
            right.into_iter().for_each(|right| actions[..=right].rotate_right(1));
        }
        Event::Fault { .. } | Event::Close { .. } | Event::Notice { .. } | Event::AskDiffs { .. } => {}
        Event::AskBase { .. } | Event::Base { .. } | Event::NoBase { .. } | Event::Diffs { .. } => {}
        Event::Keep { .. } | Event::Collect { .. } => {}
    }
}
