//! What the simulator gives to the engine: one unit at every node, in virtual time.

use finespun_engine::homes::Homes;
use finespun_engine::{Answer, Limit, Question, Route, World};
use finespun_protocol::page::{Actions, Buffers, Contents, Effect, Message, Outcome, Place, Time};
use finespun_types::{Access, NodeId, NodeSet, UnitId, ViewId, ViewSet};

use super::Home;
use super::memory::{Payload, Slot};
use super::protocols::Subject;
use crate::bugs::Bug;
use crate::clock::Task;
use crate::job::{Job, Packet, ROW};
use crate::memory::{Diff, Page};

/// A list names a unit twice.
const LISTED_ONCE: &str = "no list has a unit twice";
/// A mapping is changed by its own view.
const OWN_MAPPING: &str = "only a view's own thread changes its mapping";
/// A message brings what its handler needs.
const BROUGHT: &str = "a handler finds the page or the diff that it needs";
/// As many flushes end as began.
const FLUSHES: &str = "a flush that is done had begun";

/// A task's view of one unit.
pub struct Scene<'s, 'p, P: Subject> {
    pub job: &'s mut Job<'p, Home<P>>,
    pub task: Task,
    pub unit: usize,
}

impl<P: Subject> Scene<'_, '_, P> {
    fn slot(&mut self, node: NodeId) -> &mut Slot<P> {
        &mut self.job.engine.nodes[usize::from(node.0)].slots[self.unit]
    }

    fn page(&mut self, received: Payload) -> Option<Page> {
        if let Payload::Page(page) = received {
            return Some(page);
        }
        self.job.fail(BROUGHT, format!("u{} {received:?}", self.unit));
        None
    }

    fn apply_update(&mut self, node: NodeId, received: Payload) {
        let misses_twin = self.job.has(Bug::UpdateMissesTwin);
        match received {
            Payload::Diff(diff) if self.job.has(Bug::AckBeforeApply) => self.job.apply_late(node, self.unit, diff),
            Payload::Diff(diff) => self.slot(node).update(&diff, misses_twin),
            Payload::Page(_) | Payload::Nothing => self.job.fail(BROUGHT, format!("u{} {received:?}", self.unit)),
        }
    }

    fn protect(&mut self, node: NodeId, view: ViewId, access: Access) {
        if self.job.view_of_task(self.task) != Some((node, view)) {
            self.job.fail(OWN_MAPPING, format!("{node:?} {view:?} u{} by task {}", self.unit, self.task));
        }
        let now = self.job.now;
        let seen = self.job.view(node, view);
        if access != Access::None {
            seen.mapped_at = now;
        }
        seen.access[self.unit] = access;
    }

    fn list(&mut self, node: NodeId, views: ViewSet, dirty: bool) {
        for view in views.iter() {
            let unit = self.unit;
            let seen = self.job.view(node, view);
            let list = if dirty { &mut seen.dirty } else { &mut seen.noticed };
            let twice = list.contains(&unit);
            list.push(unit);
            if twice {
                self.job.fail(LISTED_ONCE, format!("{node:?} {view:?} u{unit}"));
            }
            if P::REVOKES && !dirty {
                self.job.wake_revoker(node, view);
            }
        }
    }

    fn flush_done(&mut self, node: NodeId, view: ViewId) {
        let seen = self.job.view(node, view);
        match seen.open.checked_sub(1) {
            Some(left) => seen.open = left,
            None => self.job.fail(FLUSHES, format!("{node:?} {view:?} u{}", self.unit)),
        }
        self.job.wake_releasers(node);
    }

    /// A state as it stands in a trace line.
    fn state(&self, question: &Question<P::Msg>) -> String {
        let slot = |node: NodeId| &self.job.engine.nodes[usize::from(node.0)].slots[self.unit];
        match *question {
            Question::Copy { place: Place { me, .. }, .. } => {
                format!("{me:?} u{} {}", self.unit, P::state(&slot(me).copy))
            }
            Question::Home { home, .. } => format!("{home:?} u{} home {:?}", self.unit, slot(home).directory),
            Question::Manager { manager, .. } => format!("{manager:?} u{} manager", self.unit),
        }
    }
}

impl<P: Subject> World for Scene<'_, '_, P> {
    type Protocol = P;
    type Payload = Payload;
    const NOTHING: Payload = Payload::Nothing;

    fn place(&self, node: NodeId) -> Place {
        let page = self.job.pages[self.unit];
        let homes = Homes::new(self.job.program.shape.nodes as u32, 0);
        homes.place(node, UnitId(page), self.job.keeper.home_of(page))
    }

    fn route(&self, msg: P::Msg) -> Route {
        self.job.route(msg)
    }

    fn lock(&mut self, node: NodeId) -> bool {
        let task = self.task;
        self.slot(node).lock.take(task)
    }

    fn unlock(&mut self, node: NodeId) {
        let waiting = self.slot(node).lock.give_back();
        self.job.put_all(waiting);
    }

    fn tick(&mut self, node: NodeId) -> Time {
        self.job.engine.nodes[usize::from(node.0)].tick()
    }

    fn copy(&mut self, node: NodeId) -> &mut P::Unit {
        &mut self.slot(node).copy
    }

    fn directory(&mut self, home: NodeId) -> &mut P::Directory {
        &mut self.slot(home).directory
    }

    fn manager(&mut self, _manager: NodeId) -> &mut P::Manager {
        &mut self.job.engine.managers[self.unit]
    }

    fn perform(&mut self, node: NodeId, effect: Effect, received: Payload) {
        let (at, unit) = (usize::from(node.0), self.unit);
        match effect {
            Effect::Send { msg, .. } => match msg {},
            Effect::Install => {
                if let Some(page) = self.page(received) {
                    self.slot(node).frame = page;
                }
            }
            Effect::Merge => {
                if let Some(page) = self.page(received) {
                    match self.job.has(Bug::MergeInstalls) {
                        true => self.slot(node).frame = page,
                        false => self.slot(node).merge(&page),
                    }
                }
            }
            Effect::ApplyUpdate => self.apply_update(node, received),
            Effect::MakeTwin => {
                let slot = self.slot(node);
                slot.twin = Some(slot.frame);
            }
            Effect::DropTwin => self.slot(node).twin = None,
            Effect::Protect { view, access } => self.protect(node, view, access),
            Effect::ListDirty(views) => self.list(node, views, true),
            Effect::ListNotice(_) if self.job.has(Bug::NoticeDropped) => {}
            Effect::ListNotice(views) => self.list(node, views, false),
            Effect::FlushDone(view) => self.flush_done(node, view),
            Effect::Wake if self.job.has(Bug::NoWake) && P::home(&self.slot(node).copy).is_some() => {}
            Effect::Wake => self.job.wake(node, unit),
            Effect::Broadcast => {
                let most = self.job.setting.buffers;
                self.job.engine.nodes[at].broadcast(unit, most);
            }
            Effect::DropBuffer => self.job.engine.nodes[at].drop_buffer(unit),
            Effect::FetchSkipped | Effect::FlushSkipped | Effect::RightKept | Effect::KeptInVain => {}
            Effect::EnteredExclusive | Effect::HomeMoved | Effect::HomeKept => {}
        }
    }

    fn contents(&mut self, node: NodeId, _to: NodeSet, contents: Contents, received: Payload) -> Option<Payload> {
        let (as_it_was, frame_granted) = (self.job.has(Bug::TwinNotRefreshed), self.job.has(Bug::FrameGranted));
        let slot = self.slot(node);
        Some(match contents {
            Contents::Nothing => Payload::Nothing,
            Contents::Frame => Payload::Page(slot.frame),
            Contents::Released if frame_granted => Payload::Page(slot.frame),
            Contents::Released => Payload::Page(slot.released()),
            Contents::Received => received,
            Contents::Twin => {
                let Some(twin) = slot.twin else {
                    self.job.fail(BROUGHT, format!("u{} has no twin at {node:?}", self.unit));
                    return Some(Payload::Nothing);
                };
                Payload::Page(twin)
            }
            Contents::Diff { refresh } => {
                let Some(twin) = slot.twin else {
                    self.job.fail(BROUGHT, format!("u{} has no twin at {node:?}", self.unit));
                    return None;
                };
                let diff = Diff::of(&slot.frame, &twin);
                slot.twin = if as_it_was && refresh { Some(twin) } else { refresh.then_some(slot.frame) };
                if diff.is_empty() {
                    return None;
                }
                Payload::Diff(diff)
            }
        })
    }

    fn send(&mut self, from: NodeId, to: NodeId, msg: P::Msg, payload: Payload) {
        let packet = Packet::Unit { unit: self.unit, letter: (msg, payload) };
        self.job.send_packet((usize::from(from.0), usize::from(to.0)), packet);
    }

    fn hint(&mut self, node: NodeId) -> Buffers {
        let home = P::home(&self.slot(node).copy).filter(|home| *home != node);
        let held = home.is_some_and(|home| self.job.engine.nodes[usize::from(home.0)].buffered(self.unit).is_some());
        Buffers { held, interval: 0 }
    }

    fn buffers(&mut self, home: NodeId, msg: P::Msg, came: Payload) -> (Buffers, Payload) {
        let node = &self.job.engine.nodes[usize::from(home.0)];
        let buffered = node.buffered(self.unit);
        let payload = buffered.filter(|_| msg.wants_buffer()).map_or(came, Payload::Page);
        (Buffers { held: buffered.is_some(), interval: node.interval }, payload)
    }

    fn impossible(&mut self, node: NodeId, what: &P::Impossible) -> Outcome {
        self.job.fail(ROW, format!("{node:?} u{} {what:?}", self.unit));
        Outcome::Done
    }

    fn overflow(&mut self, limit: Limit) {
        self.job.fail(limit.sentence(), format!("u{}, at most {}", self.unit, limit.max()));
    }

    fn ask(&mut self, question: Question<P::Msg>, out: &mut Actions<P::Msg>) -> Answer<Self> {
        if !self.job.notes.are_wanted() {
            return question.put(self, out);
        }
        let (before, floor) = (self.state(&question), out.len());
        let answer = question.put(self, out);
        let after = self.state(&question);
        let event = question.event();
        self.job.note(|| match &answer {
            Ok(_) => format!("{before} --{event:?}--> {after} {:?}", &out.as_slice()[floor..]),
            Err(what) => format!("{before} --{event:?}--> {what:?}"),
        });
        answer
    }
}
