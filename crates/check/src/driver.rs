//! Presents events to the tables and performs their actions on the model, in each form of the protocol.
//!
//! A *task* is whoever runs handlers: a processor, or the delivery of messages from one node to another. Running a
//! handler takes the lock of (node, unit), which covers the copy and the directory entry, and holds it until the
//! handler's last action is done; a handler run by an action of another one (`Send` of what the form executes directly,
//! `Send` to the node itself in all) is nested in it.

use finespun_protocol::cashmere::variants::{Variant, Way};
use finespun_protocol::page::{Action, Buffers, Contents, Event, Message, Place, Role, Step, Time};
use finespun_types::{NodeId, NodeSet, ViewId, ViewSet};

use crate::program::{Program, WORDS};
use crate::show;
use crate::subject::{Quirk, Sabotage, Subject};
use crate::world::{Copy, Envelope, Frame, Page, Payload, View, World};

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
}

impl<'a, P: Subject> Run<'a, P> {
    /// At the beginning.
    #[must_use]
    pub fn new(rules: &'a Rules<P>) -> Self {
        Self { rules, world: World::new(&rules.program), trace: None }
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
        let manager = NodeId((usize::from(unit) % shape.nodes) as u8);
        Place { me, manager, fixed_home: homes[usize::from(unit)] }
    }

    /// May this task take the lock now?
    pub(crate) fn lock_is_free(&self, task: usize, node: NodeId, unit: u8) -> bool {
        let lock = usize::from(self.world.copies[self.copy_at(node, unit)].lock);
        lock == 0 || lock == task + 1
    }

    /// Runs the unit's table for `event` and begins its actions.
    pub(crate) fn present(
        &mut self,
        task: usize,
        node: NodeId,
        unit: u8,
        event: Event<P::Msg>,
        payload: Payload,
    ) -> Result<Step<P::Msg>, Broken> {
        let (place, now, bug) = (self.place(node, unit), self.tick(node), self.rules.bug);
        // A hint, as in the runtime: it may have changed when the home is asked.
        let nodes = 0..self.rules.program.shape.nodes;
        let held = nodes.into_iter().any(|home| self.buffer(NodeId(home as u8), unit).is_some());
        let buffers = Buffers { held, interval: 0 };
        let copy = &mut self.copy(node, unit).unit;
        let before = *copy;
        let answer = match bug {
            None => P::on_unit_seeing(copy, buffers, place, now, event),
            Some(bug) => bug.on_unit_seeing(copy, buffers, place, now, event),
        };
        let after = *copy;
        let from = match event {
            Event::Recv { from, .. } => from,
            Event::ReadFault { .. }
            | Event::WriteFault { .. }
            | Event::Flush { .. }
            | Event::NothingChanged
            | Event::Invalidate { .. } => node,
        };
        let step = answered::<P>(answer)?;
        self.log(|| {
            let (before, after) = (P::state(&before), P::state(&after));
            let (event, actions) = (show::event::<P>(event), show::actions::<P>(step.actions.as_slice()));
            format!("{node:?} u{unit} {before} --{event}--> {after} {actions}")
        });
        self.begin(task, node, unit, from, payload, event, &step);
        Ok(step)
    }

    /// Runs the table that a message is for.
    pub(crate) fn receive(&mut self, task: usize, envelope: Envelope<P::Msg>) -> Result<(), Broken> {
        let Envelope { from, to, unit, msg, payload, late } = envelope;
        if late {
            match payload {
                Payload::Diff(_) | Payload::Page(_) => self.apply_diff(to, unit, payload),
                Payload::Nothing => self.drop_buffer(to, unit),
            }
            return Ok(());
        }
        let (at, event) = (usize::from(unit), Event::Recv { from, msg });
        match msg.role() {
            Role::Manager => {
                let step = answered::<P>(P::on_manager(&mut self.world.homes[at], from, msg))?;
                self.log(|| {
                    let actions = show::actions::<P>(step.actions.as_slice());
                    format!("{to:?} u{unit} manager --{msg:?}({from:?})--> {actions}")
                });
                self.begin(task, to, unit, from, payload, event, &step);
            }
            Role::Home => {
                let at = self.copy_at(to, unit);
                let buffer = self.buffer(to, unit);
                let buffers = Buffers { held: buffer.is_some(), interval: self.world.intervals[usize::from(to.0)] };
                let payload = buffer.filter(|_| msg.wants_buffer()).map_or(payload, Payload::Page);
                let directory = &mut self.world.directories[at];
                let before = *directory;
                let answer = match self.rules.bug {
                    None => P::on_directory_seeing(directory, buffers, to, from, msg),
                    Some(bug) => bug.on_directory_seeing(directory, buffers, to, from, msg),
                };
                let after = *directory;
                let step = answered::<P>(answer)?;
                self.log(|| {
                    let (before, after) = (P::entry(&before), P::entry(&after));
                    let (message, actions) = (P::message(from, msg), show::actions::<P>(step.actions.as_slice()));
                    format!("{to:?} u{unit} home {before} --{message}--> {after} {actions}")
                });
                self.begin(task, to, unit, from, payload, event, &step);
            }
            Role::Copy => {
                self.present(task, to, unit, event, payload)?;
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn begin(
        &mut self,
        task: usize,
        node: NodeId,
        unit: u8,
        from: NodeId,
        payload: Payload,
        event: Event<P::Msg>,
        step: &Step<P::Msg>,
    ) {
        let mut actions = step.actions.as_slice().to_vec();
        if let Some(bug) = self.rules.bug {
            bug.alter(event, &mut actions);
        }
        actions.reverse();
        let copy = self.copy(node, unit);
        let locked = copy.lock == 0;
        copy.lock = task as u8 + 1;
        self.world.chains[task].frames.push(Frame { node, unit, from, payload, actions, locked });
    }

    /// After a step: goes on as far as one step goes.
    pub(crate) fn settle(&mut self, task: usize) -> Result<(), Broken> {
        loop {
            let Some(frame) = self.world.chains[task].frames.last() else { return Ok(()) };
            match frame.actions.last() {
                None => self.end_frame(task),
                Some(action) if self.rules.grain == Grain::Event || self.is_invisible(frame, action) => {
                    self.act(task)?;
                }
                Some(_) => return Ok(()),
            }
        }
    }

    fn end_frame(&mut self, task: usize) {
        if let Some(frame) = self.world.chains[task].frames.pop()
            && frame.locked
        {
            self.copy(frame.node, frame.unit).lock = 0;
        }
    }

    /// Others cannot see this action, nor can it see others: no point to stop before it.
    fn is_invisible(&self, frame: &Frame<P::Msg>, action: &Action<P::Msg>) -> bool {
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
                matches!(contents, Contents::Nothing | Contents::Twin | Contents::Received)
                    && !self.is_nested(frame.node, *to, *msg)
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

    fn way(&self, msg: P::Msg) -> Way {
        let wrong = self.rules.bug.and_then(|bug| bug.way(msg));
        wrong.unwrap_or_else(|| self.rules.form.variant().way(msg))
    }

    fn is_aside(&self, msg: P::Msg) -> bool {
        let between_equals = match self.rules.bug {
            None => msg.is_between_equals(),
            Some(bug) => bug.is_between_equals(msg),
        };
        between_equals && self.way(msg) == Way::Direct
    }

    fn is_nested(&self, me: NodeId, to: NodeSet, msg: P::Msg) -> bool {
        match self.way(msg) {
            Way::Message => to.contains(me),
            Way::Direct => !self.is_aside(msg) || to.contains(me),
        }
    }

    /// The lock that the task's next action needs, beside those it has.
    pub(crate) fn next_lock(&self, task: usize) -> Option<(NodeId, u8)> {
        let frame = self.world.chains[task].frames.last()?;
        match frame.actions.last()? {
            // A message to the node itself is handled under the lock that its sender has.
            Action::Send { to, msg, .. } if self.way(*msg) == Way::Direct && !self.is_aside(*msg) => {
                to.iter().next().map(|node| (node, frame.unit))
            }
            Action::Send { .. }
            | Action::Install
            | Action::Merge
            | Action::ApplyUpdate
            | Action::MakeTwin
            | Action::DropTwin
            | Action::Protect { .. }
            | Action::ListDirty(_)
            | Action::ListNotice(_)
            | Action::FlushDone(_)
            | Action::Wake
            | Action::FetchSkipped
            | Action::FlushSkipped
            | Action::RightKept
            | Action::KeptInVain
            | Action::EnteredExclusive
            | Action::Broadcast
            | Action::DropBuffer
            | Action::HomeMoved
            | Action::HomeKept => None,
        }
    }

    /// Performs the next action of the task's innermost handler.
    pub(crate) fn act(&mut self, task: usize) -> Result<(), Broken> {
        let second_read = self.has(Quirk::TwinRefreshedBySecondRead);
        let Some(frame) = self.world.chains[task].frames.last_mut() else { return Ok(()) };
        let Some(action) = frame.actions.pop() else { return Ok(()) };
        let (node, unit, from, payload) = (frame.node, frame.unit, frame.from, frame.payload);
        if second_read && refreshes(action) {
            frame.actions.push(Action::MakeTwin);
        }
        match action {
            Action::Send { to, msg, contents } => return self.send(task, node, unit, to, msg, contents),
            Action::Install => {
                if let Payload::Page(page) = payload {
                    self.copy(node, unit).frame = page;
                }
            }
            Action::Merge => self.merge(node, unit, payload),
            Action::ApplyUpdate if self.late_diff().is_some() => self.apply_late(task, from, node, unit, payload),
            Action::ApplyUpdate => self.apply_update(node, unit, payload),
            Action::MakeTwin => {
                let copy = self.copy(node, unit);
                copy.twin = copy.frame;
            }
            Action::DropTwin => self.copy(node, unit).twin = [0; WORDS],
            Action::Protect { view, access } => self.protect(task, (node, view), unit, access),
            Action::ListDirty(views) => return self.list(node, unit, views, |view| &mut view.dirty),
            Action::ListNotice(views) => return self.list(node, unit, views, |view| &mut view.noticed),
            Action::FlushDone(view) => self.view(node, view).open -= 1,
            Action::Wake => self.wake(node, unit),
            Action::FetchSkipped | Action::FlushSkipped | Action::EnteredExclusive => {}
            Action::RightKept | Action::KeptInVain => {}
            Action::Broadcast => {
                let page = self.released(node, unit);
                self.world.buffers[usize::from(node.0)] = Some((unit, page));
            }
            Action::DropBuffer => match self.rules.bug.and_then(Sabotage::late_drop) {
                None => self.drop_buffer(node, unit),
                Some(msg) => self.push(Envelope { from, to: node, unit, msg, payload: Payload::Nothing, late: true }),
            },
            Action::HomeMoved | Action::HomeKept => {}
        }
        Ok(())
    }

    /// The page that a node's broadcast buffer holds of a unit.
    fn buffer(&self, home: NodeId, unit: u8) -> Option<Page> {
        let any = self.has(Quirk::BufferOfAnyUnit);
        let held = self.world.buffers[usize::from(home.0)];
        held.filter(|(of, _)| *of == unit || any).map(|(_, page)| page)
    }

    fn drop_buffer(&mut self, home: NodeId, unit: u8) {
        let buffer = &mut self.world.buffers[usize::from(home.0)];
        *buffer = buffer.filter(|(of, _)| *of != unit);
    }

    fn merge(&mut self, node: NodeId, unit: u8, payload: Payload) {
        let copy = self.copy(node, unit);
        if let Payload::Page(page) = payload {
            for (word, &value) in page.iter().enumerate() {
                if value != copy.twin[word] {
                    copy.frame[word] = value;
                    copy.twin[word] = value;
                }
            }
        }
    }

    fn apply_diff(&mut self, node: NodeId, unit: u8, payload: Payload) {
        let copy = self.copy(node, unit);
        if let Payload::Diff(diff) = payload {
            for (word, value) in diff.iter().enumerate() {
                copy.frame[word] = value.unwrap_or(copy.frame[word]);
            }
        }
    }

    fn apply_update(&mut self, node: NodeId, unit: u8, payload: Payload) {
        self.apply_diff(node, unit, payload);
        let to_twin = !self.has(Quirk::UpdateMissesTwin);
        let copy = self.copy(node, unit);
        if let (Payload::Diff(diff), true) = (payload, to_twin && P::has_twin(&copy.unit)) {
            for (word, value) in diff.iter().enumerate() {
                copy.twin[word] = value.unwrap_or(copy.twin[word]);
            }
        }
    }

    fn late_diff(&self) -> Option<P::Msg> {
        self.rules.bug.and_then(Sabotage::late_diff)
    }

    /// A seeded bug: the diff comes once more, as a message of its own.
    fn apply_late(&mut self, task: usize, from: NodeId, to: NodeId, unit: u8, payload: Payload) {
        let Some(msg) = self.late_diff() else { return };
        let late = Envelope { from, to, unit, msg, payload, late: true };
        match self.way(msg) {
            Way::Message => self.push(late),
            Way::Direct => self.world.chains[task].aside.push(late),
        }
    }

    fn list(
        &mut self,
        node: NodeId,
        unit: u8,
        views: ViewSet,
        list: impl Fn(&mut View) -> &mut u8,
    ) -> Result<(), Broken> {
        for view in views.iter() {
            let list = list(self.view(node, view));
            if *list & 1 << unit != 0 {
                return Err(Broken::new(LISTED_ONCE, format!("{node:?} {view:?} u{unit}")));
            }
            *list |= 1 << unit;
        }
        Ok(())
    }

    fn wake(&mut self, node: NodeId, unit: u8) {
        let per_node = self.rules.program.shape.views * self.rules.program.shape.threads;
        let first = usize::from(node.0) * per_node;
        for processor in &mut self.world.processors[first..first + per_node] {
            processor.asleep &= !(1 << unit);
        }
    }

    fn push(&mut self, envelope: Envelope<P::Msg>) {
        let channel = usize::from(envelope.from.0) * self.rules.program.shape.nodes + usize::from(envelope.to.0);
        self.world.channels[channel].push(envelope);
    }

    fn send(
        &mut self,
        task: usize,
        node: NodeId,
        unit: u8,
        to: NodeSet,
        msg: P::Msg,
        contents: Contents,
    ) -> Result<(), Broken> {
        let contents = self.rules.bug.map_or(contents, |bug| bug.contents(msg, contents));
        let Some(payload) = self.payload(task, node, unit, contents) else {
            self.present(task, node, unit, Event::NothingChanged, Payload::Nothing)?;
            return Ok(());
        };
        let envelope = |to| Envelope { from: node, to, unit, msg, payload, late: false };
        if self.is_aside(msg) {
            self.world.chains[task].aside.extend(to.without(node).iter().map(envelope));
            return if to.contains(node) { self.receive(task, envelope(node)) } else { Ok(()) };
        }
        if self.way(msg) == Way::Message {
            to.without(node).iter().for_each(|to| self.push(envelope(to)));
            return if to.contains(node) { self.receive(task, envelope(node)) } else { Ok(()) };
        }
        let Some(first) = to.iter().next() else { return Ok(()) };
        let rest = to.without(first);
        if let (false, Some(frame)) = (rest.is_empty(), self.world.chains[task].frames.last_mut()) {
            frame.actions.push(Action::Send { to: rest, msg, contents });
        }
        self.receive(task, envelope(first))
    }

    /// What the node has released of a page: see [`Contents::Released`].
    fn released(&mut self, node: NodeId, unit: u8) -> Page {
        let copy = self.copy(node, unit);
        if P::has_twin(&copy.unit) { copy.twin } else { copy.frame }
    }

    /// What goes with a message; `None` for a diff that is empty.
    fn payload(&mut self, task: usize, node: NodeId, unit: u8, contents: Contents) -> Option<Payload> {
        let keep = self.has(Quirk::TwinNotRefreshed) || self.has(Quirk::TwinRefreshedBySecondRead);
        let received = self.world.chains[task].frames.last().map(|frame| frame.payload);
        let released = self.released(node, unit);
        let copy = self.copy(node, unit);
        match contents {
            Contents::Nothing => Some(Payload::Nothing),
            Contents::Received => received,
            Contents::Frame => Some(Payload::Page(copy.frame)),
            Contents::Twin => Some(Payload::Page(copy.twin)),
            Contents::Released => Some(Payload::Page(released)),
            Contents::Diff { refresh } => {
                let (frame, twin) = (copy.frame, copy.twin);
                let differs = |word: usize| (frame[word] != twin[word]).then_some(frame[word]);
                let diff = std::array::from_fn(differs);
                if !refresh {
                    copy.twin = [0; WORDS];
                } else if !keep {
                    copy.twin = frame;
                }
                diff.iter().any(Option::is_some).then_some(Payload::Diff(diff))
            }
        }
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
                chain.frames.iter().any(|frame| frame.unit == unit)
                    || chain.aside.iter().any(|envelope| envelope.unit == unit)
            })
    }

    /// Is a processor in the middle of something that concerns this unit at this node?
    pub(crate) fn is_busy(&self, node: usize, unit: u8) -> bool {
        let world = &self.world;
        let at = NodeId(node as u8);
        world.chains.iter().any(|chain| chain.frames.iter().any(|frame| frame.unit == unit && frame.node == at))
    }
}

fn refreshes<M>(action: Action<M>) -> bool {
    matches!(action, Action::Send { contents: Contents::Diff { refresh: true }, .. })
}

fn answered<P: Subject>(answer: Result<Step<P::Msg>, P::Impossible>) -> Result<Step<P::Msg>, Broken> {
    answer.map_err(|impossible| Broken::new(ROW, format!("{impossible:?}")))
}
