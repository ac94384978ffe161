//! One unit of the model as the engine sees it: locks, tables, and what actions do to pages, rights and lists.
//!
//! Seeded bugs are here: they alter what goes into the tables, what comes out of them, and how messages travel.

use finespun_engine::{Answer, Limit, Question, Route, World};
use finespun_protocol::cashmere::variants::Way;
use finespun_protocol::page::{Action, Actions, Buffers, Contents, Effect, Event, Message, Outcome, Place, Step, Time};
use finespun_types::{NodeId, NodeSet, ViewSet};

use crate::driver::{LISTED_ONCE, ROW, Run};
use crate::model::{Copy, Envelope, Page, Payload, View};
use crate::program::WORDS;
use crate::show;
use crate::subject::{Quirk, Sabotage, Subject};

/// One unit of the model, as a task sees it.
pub(crate) struct Scene<'r, 'a, P: Subject> {
    pub(crate) run: &'r mut Run<'a, P>,
    pub(crate) task: usize,
    pub(crate) unit: u8,
    /// Who sent what the handler answers that takes the next step.
    pub(crate) sender: Option<NodeId>,
}

impl<P: Subject> World for Scene<'_, '_, P> {
    type Protocol = P;
    type Payload = Payload;
    const NOTHING: Payload = Payload::Nothing;

    fn place(&self, node: NodeId) -> Place {
        self.run.place(node, self.unit)
    }

    fn route(&self, msg: P::Msg) -> Route {
        self.run.route(msg)
    }

    fn lock(&mut self, node: NodeId) -> bool {
        debug_assert!(self.run.lock_is_free(self.task, node, self.unit));
        let task = self.task as u8 + 1;
        let lock = &mut self.model(node).lock;
        let takes = *lock == 0;
        *lock = task;
        let nodes = 0..self.run.rules.program.shape.nodes;
        if nodes.filter(|&node| self.model(NodeId::of(node)).lock == task).count() > Limit::Locks.max() {
            self.overflow(Limit::Locks);
        }
        takes
    }

    fn unlock(&mut self, node: NodeId) {
        self.model(node).lock = 0;
    }

    fn tick(&mut self, node: NodeId) -> Time {
        self.run.tick(node)
    }

    fn copy(&mut self, node: NodeId) -> &mut P::Unit {
        &mut self.model(node).unit
    }

    fn directory(&mut self, home: NodeId) -> &mut P::Directory {
        let at = self.run.copy_at(home, self.unit);
        &mut self.run.world.directories[at]
    }

    fn manager(&mut self, _manager: NodeId) -> &mut P::Manager {
        &mut self.run.world.homes[usize::from(self.unit)]
    }

    fn perform(&mut self, node: NodeId, effect: Effect, received: Payload) {
        let unit = self.unit;
        match effect {
            Effect::Install => {
                if let Payload::Page(page) = received {
                    self.model(node).frame = page;
                }
            }
            Effect::Merge => self.merge(node, received),
            Effect::ApplyUpdate => match self.run.rules.bug.and_then(Sabotage::late_diff) {
                None => self.apply_update(node, received),
                Some(msg) => self.again_late(node, msg, received),
            },
            Effect::MakeTwin => {
                let copy = self.model(node);
                copy.twin = copy.frame;
            }
            Effect::DropTwin => self.model(node).twin = [0; WORDS],
            Effect::Protect { view, access } => self.run.protect(self.task, (node, view), unit, access),
            Effect::ListDirty(views) => self.list(node, views, |view| &mut view.dirty),
            Effect::ListNotice(views) => self.list(node, views, |view| &mut view.noticed),
            Effect::FlushDone(view) => self.run.view(node, view).open -= 1,
            Effect::Wake => self.wake(node),
            Effect::Broadcast => {
                let page = self.released(node);
                self.run.world.buffers[usize::from(node.0)] = Some((unit, page));
            }
            Effect::DropBuffer => match self.run.rules.bug.and_then(Sabotage::late_drop) {
                None => self.drop_buffer(node),
                Some(msg) => self.again_late(node, msg, Payload::Nothing),
            },
            Effect::FetchSkipped
            | Effect::FlushSkipped
            | Effect::EnteredExclusive
            | Effect::RightKept
            | Effect::KeptInVain
            | Effect::HomeMoved
            | Effect::HomeKept => {}
        }
    }

    fn contents(&mut self, node: NodeId, _to: NodeSet, contents: Contents, received: Payload) -> Option<Payload> {
        match contents {
            Contents::Nothing => Some(Payload::Nothing),
            Contents::Received => Some(received),
            Contents::Frame => Some(Payload::Page(self.model(node).frame)),
            Contents::Twin => Some(Payload::Page(self.model(node).twin)),
            Contents::Released => Some(Payload::Page(self.released(node))),
            Contents::Diff { refresh } => self.make_diff(node, refresh),
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, msg: P::Msg, payload: Payload) {
        self.push(Envelope { from, to, unit: self.unit, msg, payload, late: false });
    }

    /// As in the runtime it may have changed when the home is asked.
    fn hint(&mut self, _node: NodeId) -> Buffers {
        let nodes = 0..self.run.rules.program.shape.nodes;
        let held = nodes.into_iter().any(|home| self.buffer(NodeId::of(home)).is_some());
        Buffers { held, interval: 0 }
    }

    fn buffers(&mut self, home: NodeId, msg: P::Msg, came: Payload) -> (Buffers, Payload) {
        let buffer = self.buffer(home);
        let buffers = Buffers { held: buffer.is_some(), interval: self.run.world.intervals[usize::from(home.0)] };
        (buffers, buffer.filter(|_| msg.wants_buffer()).map_or(came, Payload::Page))
    }

    fn impossible(&mut self, _node: NodeId, what: &P::Impossible) -> Outcome {
        self.run.break_sentence(ROW, format!("{what:?}"));
        Outcome::Done
    }

    fn overflow(&mut self, limit: Limit) {
        self.run.break_sentence(limit.sentence(), format!("at most {}", limit.max()));
    }

    fn ask(&mut self, question: Question<P::Msg>, out: &mut Actions<P::Msg>) -> Answer<Self> {
        let before = self.run.trace.is_some().then(|| self.entry(&question));
        let Some(bug) = self.run.rules.bug else {
            let floor = out.len();
            let outcome = question.put(self, out)?;
            self.log(&question, before, &out.as_slice()[floor..]);
            return Ok(outcome);
        };
        let step = self.put_with(bug, question)?;
        self.log(&question, before, step.actions.as_slice());
        out.extend(&self.spoilt(bug, question.event(), step.actions.as_slice()));
        Ok(step.outcome)
    }
}

/// Tables, with what is wrong around them.
impl<P: Subject> Scene<'_, '_, P> {
    fn put_with(&mut self, bug: P::Bug, question: Question<P::Msg>) -> Result<Step<P::Msg>, P::Impossible> {
        match question {
            Question::Copy { place, now, buffers, event } => {
                bug.on_unit_seeing(self.copy(place.me), buffers, place, now, event)
            }
            Question::Home { home, buffers, from, msg } => {
                bug.on_directory_seeing(self.directory(home), buffers, home, from, msg)
            }
            Question::Manager { .. } => Step::of(|out| question.put(self, out)),
        }
    }

    /// The answer of a table, as the bug would have it.
    fn spoilt(&self, bug: P::Bug, event: Event<P::Msg>, actions: &[Action<P::Msg>]) -> Vec<Action<P::Msg>> {
        let mut actions = actions.to_vec();
        bug.alter(event, &mut actions);
        if self.run.has(Quirk::TwinRefreshedBySecondRead)
            && let Some(at) = actions.iter().position(|&action| refreshes(action))
        {
            actions.insert(at + 1, Action::MakeTwin);
        }
        actions
    }

    /// What the table works on, as it stands in a trace line.
    fn entry(&mut self, question: &Question<P::Msg>) -> String {
        match *question {
            Question::Copy { place, .. } => P::state(self.copy(place.me)),
            Question::Home { home, .. } => P::entry(self.directory(home)),
            Question::Manager { .. } => String::new(),
        }
    }

    fn log(&mut self, question: &Question<P::Msg>, before: Option<String>, actions: &[Action<P::Msg>]) {
        let Some(before) = before else { return };
        let (unit, after) = (self.unit, self.entry(question));
        let (event, actions) = (show::event::<P>(question.event()), show::actions::<P>(actions));
        self.run.log(|| match *question {
            Question::Copy { place: Place { me, .. }, .. } => {
                format!("{me:?} u{unit} {before} --{event}--> {after} {actions}")
            }
            Question::Home { home, .. } => format!("{home:?} u{unit} home {before} --{event}--> {after} {actions}"),
            Question::Manager { manager, from, msg } => {
                format!("{manager:?} u{unit} manager --{msg:?}({from:?})--> {actions}")
            }
        });
    }
}

/// Pages, lists and messages.
impl<P: Subject> Scene<'_, '_, P> {
    fn model(&mut self, node: NodeId) -> &mut Copy<P::Unit> {
        self.run.copy(node, self.unit)
    }

    fn merge(&mut self, node: NodeId, received: Payload) {
        let copy = self.model(node);
        if let Payload::Page(page) = received {
            for (word, &value) in page.iter().enumerate() {
                if value != copy.twin[word] {
                    copy.frame[word] = value;
                    copy.twin[word] = value;
                }
            }
        }
    }

    fn apply_diff(&mut self, node: NodeId, received: Payload) {
        let copy = self.model(node);
        if let Payload::Diff(diff) = received {
            for (word, value) in diff.iter().enumerate() {
                copy.frame[word] = value.unwrap_or(copy.frame[word]);
            }
        }
    }

    fn apply_update(&mut self, node: NodeId, received: Payload) {
        self.apply_diff(node, received);
        let to_twin = !self.run.has(Quirk::UpdateMissesTwin);
        let copy = self.model(node);
        if let (Payload::Diff(diff), true) = (received, to_twin && P::has_twin(&copy.unit)) {
            for (word, value) in diff.iter().enumerate() {
                copy.twin[word] = value.unwrap_or(copy.twin[word]);
            }
        }
    }

    /// The diff, unless it is empty.
    fn make_diff(&mut self, node: NodeId, refresh: bool) -> Option<Payload> {
        let keep = self.run.has(Quirk::TwinNotRefreshed) || self.run.has(Quirk::TwinRefreshedBySecondRead);
        let copy = self.model(node);
        let (frame, twin) = (copy.frame, copy.twin);
        let diff = std::array::from_fn(|word| (frame[word] != twin[word]).then_some(frame[word]));
        if !refresh {
            copy.twin = [0; WORDS];
        } else if !keep {
            copy.twin = frame;
        }
        diff.iter().any(Option::is_some).then_some(Payload::Diff(diff))
    }

    /// What the node has released of the page: see [`Contents::Released`].
    fn released(&mut self, node: NodeId) -> Page {
        let copy = self.model(node);
        if P::has_twin(&copy.unit) { copy.twin } else { copy.frame }
    }

    /// The page that a node's broadcast buffer holds of the unit.
    fn buffer(&self, home: NodeId) -> Option<Page> {
        let any = self.run.has(Quirk::BufferOfAnyUnit);
        let held = self.run.world.buffers[usize::from(home.0)];
        held.filter(|(of, _)| *of == self.unit || any).map(|(_, page)| page)
    }

    fn drop_buffer(&mut self, home: NodeId) {
        let unit = self.unit;
        let buffer = &mut self.run.world.buffers[usize::from(home.0)];
        *buffer = buffer.filter(|(of, _)| *of != unit);
    }

    fn list(&mut self, node: NodeId, views: ViewSet, list: impl Fn(&mut View) -> &mut u8) {
        let unit = self.unit;
        for view in views.iter() {
            let list = list(self.run.view(node, view));
            if *list & 1 << unit != 0 {
                return self.run.break_sentence(LISTED_ONCE, format!("{node:?} {view:?} u{unit}"));
            }
            *list |= 1 << unit;
        }
    }

    fn wake(&mut self, node: NodeId) {
        let shape = &self.run.rules.program.shape;
        let per_node = shape.views * shape.threads;
        let first = usize::from(node.0) * per_node;
        for processor in &mut self.run.world.processors[first..first + per_node] {
            processor.asleep &= !(1 << self.unit);
        }
    }

    fn push(&mut self, envelope: Envelope<P::Msg>) {
        let channel = usize::from(envelope.from.0) * self.run.rules.program.shape.nodes + usize::from(envelope.to.0);
        self.run.world.channels[channel].push(envelope);
    }

    /// A seeded bug: the diff, or the end of a buffer, comes once more as a message of its own.
    fn again_late(&mut self, to: NodeId, msg: P::Msg, payload: Payload) {
        let from = self.sender.unwrap_or(to);
        let envelope = Envelope { from, to, unit: self.unit, msg, payload, late: true };
        match (payload, self.run.way(msg)) {
            (Payload::Nothing, _) | (_, Way::Message) => self.push(envelope),
            (_, Way::Direct) => self.run.world.chains[self.task].late.push(envelope),
        }
    }

    /// It has come.
    pub(crate) fn come_late(&mut self, node: NodeId, payload: Payload) {
        match payload {
            Payload::Diff(_) | Payload::Page(_) => self.apply_diff(node, payload),
            Payload::Nothing => self.drop_buffer(node),
        }
    }
}

fn refreshes<M>(action: Action<M>) -> bool {
    matches!(action, Action::Send { contents: Contents::Diff { refresh: true }, .. })
}
