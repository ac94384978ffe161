//! Presents events to the tables and performs their actions on the model.

use finespun_engine::lazy::{self, Want};
use finespun_protocol::tmk::{Action, Event, raise};
use finespun_types::{Access, NodeId};

use super::bugs::Bug;
use super::world::{Ask, Copy, Diff, Envelope, Handler, Interval, Letter, Page, Times, World};
use crate::driver::{Broken, Grain, ROW};
use crate::program::{Op, Program};

/// Somebody asks for a diff that its writer has not.
pub const NEEDED: &str = "a collection drops nothing that anybody still needs";
/// What a message says was known must be known.
pub const CARRIED: &str = "whoever is told a time is told its intervals";

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// In channels.
    Messages,
    /// The sender runs the receiver's handler at once.
    Direct,
}

/// What does not change during a run.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What the processors do.
    pub program: Program,
    /// How messages travel.
    pub form: Form,
    /// What one step is.
    pub grain: Grain,
    /// Every barrier collects.
    pub collects: bool,
    /// What is wrong on purpose.
    pub bug: Option<Bug>,
}

/// One run in progress.
pub struct Run<'a> {
    /// The rules.
    pub rules: &'a Rules,
    /// Where it stands.
    pub world: World,
    /// The transitions, one line each, if they are wanted.
    pub trace: Option<Vec<String>>,
}

impl<'a> Run<'a> {
    /// At the beginning.
    #[must_use]
    pub fn new(rules: &'a Rules) -> Self {
        Self { rules, world: World::new(&rules.program), trace: None }
    }

    pub(super) fn has(&self, bug: Bug) -> bool {
        self.rules.bug == Some(bug)
    }

    pub(super) fn log(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(line());
        }
    }

    pub(super) fn nodes(&self) -> usize {
        self.world.nodes.len()
    }

    pub(super) fn copy(&mut self, node: usize, unit: u8) -> &mut Copy {
        let units = self.rules.program.shape.units;
        &mut self.world.copies[node * units + usize::from(unit)]
    }

    pub(super) fn access(&self, node: usize, unit: usize) -> Access {
        self.world.copies[node * self.rules.program.shape.units + unit].access.unwrap_or(Access::None)
    }

    /// Is the lock of (node, unit) free for a task?
    pub(super) fn is_free(&self, node: usize, unit: u8) -> bool {
        let holds = |handler: &Handler| usize::from(handler.node) == node && handler.unit == unit;
        !self.world.handlers.iter().flatten().any(holds)
    }

    /// Runs the table of a node's copy and performs what it says: at once, or action by action.
    pub(super) fn present(
        &mut self,
        task: usize,
        node: usize,
        unit: u8,
        event: Event<'_>,
        page: Option<Page>,
    ) -> Result<(), Broken> {
        let (nodes, bug) = (self.nodes(), self.rules.bug);
        let copy = self.copy(node, unit);
        let before = copy.unit;
        let mut writers = std::mem::take(&mut copy.writers);
        let result = copy.unit.on(NodeId::of(node), &mut writers[..nodes], event);
        copy.writers = writers;
        if bug == Some(Bug::OwedAcrossNotice) && matches!(event, Event::Notice { .. }) {
            (copy.unit.owed, copy.unit.has_twin) = (before.owed, before.has_twin);
        }
        if bug == Some(Bug::OwedForgotten) && super::bugs::is_collected(&copy.unit, event, node) {
            copy.unit.owed = 0;
        }
        let after = copy.unit;
        let step = result.map_err(|impossible| Broken::new(ROW, format!("n{node} u{unit}: {impossible:?}")))?;
        let mut actions = step.actions.as_slice().to_vec();
        self.log(|| format!("n{node} u{unit} {before:?} --{event:?}--> {after:?} {actions:?}"));
        if let Some(bug) = self.rules.bug {
            bug.alter(event, &mut actions);
        }
        if let Some(processor) = self.world.processors.get_mut(task) {
            processor.outcome = Some(step.outcome);
        }
        actions.reverse();
        let handler = Handler { node: node as u8, unit, actions, page };
        if self.rules.grain == Grain::Action {
            self.world.handlers[task] = Some(handler);
            return Ok(());
        }
        self.perform_all(handler)
    }

    fn perform_all(&mut self, mut handler: Handler) -> Result<(), Broken> {
        while let Some(action) = handler.actions.pop() {
            self.act(usize::from(handler.node), handler.unit, action, handler.page)?;
        }
        Ok(())
    }

    /// Performs the next action of a task's handler.
    pub(super) fn act_next(&mut self, task: usize) -> Result<(), Broken> {
        let Some(mut handler) = self.world.handlers[task].take() else { return Ok(()) };
        if let Some(action) = handler.actions.pop() {
            let (node, unit, page) = (usize::from(handler.node), handler.unit, handler.page);
            self.log(|| format!("n{node} u{unit}   {action:?}"));
            if !handler.actions.is_empty() {
                self.world.handlers[task] = Some(handler);
            }
            self.act(node, unit, action, page)?;
        }
        Ok(())
    }

    fn act(&mut self, node: usize, unit: u8, action: Action, page: Option<Page>) -> Result<(), Broken> {
        let (second_twin, apply_in_disorder, no_twin_update) =
            (self.has(Bug::TwinNotRefreshed), self.has(Bug::AppliedOutOfOrder), self.has(Bug::TwinNotUpdated));
        let copy = self.copy(node, unit);
        match action {
            Action::AskBase(to) => self.send(node, usize::from(to.0), Letter::AskBase(unit))?,
            Action::AskDiffs => {
                let wants: Vec<_> = lazy::wants(&copy.writers).collect();
                for Want { writer, after, upto } in wants {
                    self.send(node, usize::from(writer.0), Letter::AskDiffs(unit, after, upto))?;
                }
            }
            Action::SendDiffs { to, after, upto } => {
                let want = Want { writer: NodeId::of(node), after, upto };
                let kept: Vec<Diff> = copy.diffs.iter().filter(|diff| want.is_part(diff.index)).cloned().collect();
                let end = kept.iter().position(|diff| want.reaches(diff.index)).map_or(kept.len(), |last| last + 1);
                let diffs = kept[..end].to_vec();
                if !diffs.last().is_some_and(|last| want.reaches(last.index)) {
                    return Err(Broken::new(NEEDED, format!("n{node} u{unit}: intervals {after}..{upto}")));
                }
                self.send(node, usize::from(to.0), Letter::Diffs(unit, diffs))?;
            }
            Action::SendBase { to, twin } => {
                let page = if twin { copy.twin } else { copy.frame };
                let applied = copy.writers.iter().map(|seen| seen.applied).collect();
                self.send(node, usize::from(to.0), Letter::Base(unit, page, applied))?;
            }
            Action::SendNoBase { to, last, stamp } => {
                self.send(node, usize::from(to.0), Letter::NoBase(unit, last, stamp))?;
            }
            Action::MakeDiff { index, stamp, refresh } => {
                let changed = |word: usize| (copy.frame[word] != copy.twin[word]).then_some(copy.frame[word]);
                let diff = Diff { from: node as u8, index, stamp, words: std::array::from_fn(changed) };
                copy.diffs.push(diff);
                if refresh && !second_twin {
                    copy.twin = copy.frame;
                }
            }
            Action::MakeTwin => copy.twin = copy.frame,
            Action::DropTwin => copy.twin = Page::default(),
            Action::Install => copy.frame = page.unwrap_or_default(),
            Action::Apply { twin } => {
                let mut diffs = std::mem::take(&mut copy.inbox);
                diffs.sort_by_key(|diff| lazy::order(diff.stamp, NodeId(diff.from.into()), diff.index));
                if apply_in_disorder {
                    diffs.reverse();
                }
                for diff in &diffs {
                    apply(diff, &mut copy.frame);
                    if twin && !no_twin_update {
                        apply(diff, &mut copy.twin);
                    }
                }
            }
            Action::Protect(access) => copy.access = Some(access),
            Action::ListDirty => self.world.nodes[node].dirty |= 1 << unit,
            Action::Wake => {
                let threads = self.rules.program.shape.threads;
                for processor in &mut self.world.processors[node * threads..][..threads] {
                    processor.asleep = false;
                }
            }
        }
        Ok(())
    }

    /// To the node itself at once: no message.
    pub(super) fn send(&mut self, from: usize, to: usize, letter: Letter) -> Result<(), Broken> {
        let envelope = Envelope { from: from as u8, to: to as u8, letter };
        if from == to || self.rules.form == Form::Direct {
            let task = self.world.processors.len() + from * self.nodes() + to;
            return self.receive(task, envelope);
        }
        let nodes = self.nodes();
        self.world.channels[from * nodes + to].push(envelope);
        Ok(())
    }

    /// The unit that the next message of a channel is about.
    pub(super) fn unit_of(letter: &Letter) -> Option<u8> {
        match letter {
            Letter::AskDiffs(unit, ..) | Letter::Diffs(unit, _) | Letter::AskBase(unit) => Some(*unit),
            Letter::Base(unit, ..) | Letter::NoBase(unit, ..) => Some(*unit),
            Letter::Ask(..) | Letter::Grant(..) => None,
        }
    }

    /// A message arrives.
    pub(super) fn receive(&mut self, task: usize, Envelope { from, to, letter }: Envelope) -> Result<(), Broken> {
        let (sender, node) = (NodeId(from.into()), usize::from(to));
        match letter {
            Letter::AskDiffs(unit, after, upto) => {
                self.present(task, node, unit, Event::AskDiffs { from: sender, after, upto }, None)
            }
            Letter::AskBase(unit) => self.present(task, node, unit, Event::AskBase { from: sender }, None),
            Letter::Diffs(unit, diffs) => {
                let upto = diffs.last().map_or(0, |last| last.index);
                self.copy(node, unit).inbox.extend(diffs);
                self.present(task, node, unit, Event::Diffs { from: sender, upto }, None)
            }
            Letter::Base(unit, page, applied) => {
                self.present(task, node, unit, Event::Base { applied: &applied }, Some(page))
            }
            Letter::NoBase(unit, last, stamp) => self.present(task, node, unit, Event::NoBase { last, stamp }, None),
            Letter::Ask(who, ask, time, news) => {
                match news {
                    Some(news) => self.hear(from, node, &time, news)?,
                    // Who only asks says what it knows already.
                    None => self.world.knowledge(node).sent(sender, &time),
                }
                self.serve(node, who, ask, &time)
            }
            Letter::Grant(who, time, news) => {
                self.hear(from, node, &time, news)?;
                self.world.knowledge(node).grant(&time);
                self.passed_barrier(usize::from(who), &time);
                self.world.processors[usize::from(who)].grant();
                Ok(())
            }
        }
    }

    /// Intervals go into the log, in order and without gaps; those known already are left out.
    fn hear(&mut self, from: u8, node: usize, time: &[u32], news: Vec<Vec<Interval>>) -> Result<(), Broken> {
        for (writer, intervals) in news.into_iter().enumerate() {
            for interval in intervals {
                if interval.index > self.world.nodes[node].known[writer] {
                    self.world.nodes[node].known[writer] = interval.index;
                    self.world.nodes[node].log[writer].push(interval);
                }
            }
            if self.world.nodes[node].known[writer] < time[writer] {
                return Err(Broken::new(CARRIED, format!("n{node} lacks intervals of n{writer} in {time:?}")));
            }
        }
        self.world.knowledge(node).heard(NodeId(from.into()), time);
        Ok(())
    }

    /// The intervals that a message of `node` to another must carry with `time`.
    pub(super) fn news(&mut self, node: usize, to: usize, time: &Times) -> Vec<Vec<Interval>> {
        let knowledge = self.world.knowledge(node);
        let ranges: Vec<_> = (0..time.len()).map(|writer| knowledge.news(NodeId::of(to), time, writer)).collect();
        let log = &self.world.nodes[node].log;
        let within = |(log, &(after, upto)): (&Vec<Interval>, &(u32, u32))| {
            log.iter().filter(|interval| interval.index > after && interval.index <= upto).cloned().collect()
        };
        let news = log.iter().zip(&ranges).map(within).collect();
        if node != to {
            self.world.knowledge(node).sent(NodeId::of(to), time);
        }
        news
    }

    /// An object at its manager.
    fn serve(&mut self, node: usize, who: u8, ask: Ask, time: &[u32]) -> Result<(), Broken> {
        let takes_part = |script: &&Vec<Op>| script.contains(&Op::Barrier);
        let everybody = self.rules.program.scripts.iter().filter(takes_part).count() as u8;
        let forget = self.has(Bug::GrantWithoutNotices);
        let object = &mut self.world.objects[ask.object()];
        if ask.releases() && !forget {
            raise(&mut object.time, time);
        }
        let mut granted = Vec::new();
        match ask {
            Ask::Lock(_) if object.state == 0 => {
                object.state = who + 1;
                granted.push(who);
            }
            Ask::Lock(_) => object.queue.push(who),
            Ask::Unlock(_) => {
                object.state = 0;
                if !object.queue.is_empty() {
                    let next = object.queue.remove(0);
                    object.state = next + 1;
                    granted.push(next);
                }
            }
            Ask::Set(_) => {
                object.state = 1;
                granted.append(&mut object.queue);
            }
            Ask::Await(_) if object.state == 1 => granted.push(who),
            Ask::Await(_) => object.queue.push(who),
            Ask::Arrive(_) => {
                object.queue.push(who);
                if object.queue.len() as u8 == everybody {
                    granted.append(&mut object.queue);
                }
            }
        }
        let time = object.time.clone();
        let threads = self.rules.program.shape.threads;
        for who in granted {
            let to = usize::from(who) / threads;
            let news = self.news(node, to, &time);
            self.send(node, to, Letter::Grant(who, time.clone(), news))?;
        }
        Ok(())
    }
}

fn apply(diff: &Diff, page: &mut Page) {
    for (word, changed) in page.iter_mut().zip(diff.words) {
        *word = changed.unwrap_or(*word);
    }
}
