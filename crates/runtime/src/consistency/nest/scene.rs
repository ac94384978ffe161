//! A unit of the live memory as the engine sees it: its locks, its entries at the nodes that this process reaches, its messages, and what
//! a transaction's effects do.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use finespun_diff::{DiffBuffer, Malformed};
use finespun_engine::{Limit, Route, World};
use finespun_protocol::page::{Buffers, Carried, Contents, Effect, Message, Outcome, Place, Time};
use finespun_types::{Access, Counter, NodeId, NodeSet, UnitId, ViewId};

use crate::consistency::attached::{self, Attached};
use crate::consistency::join::Outbox;
use crate::consistency::mappings::{Change, Wanted};
use crate::messages::{wait, wire};
use crate::node::cluster::Cluster;
use crate::node::misuse;
use crate::sys::buffers::Copied;
use crate::sys::frames::{self, Page, Row};
use crate::sys::live::Live;
use crate::sys::segment::Locked;
use crate::sys::slot::Slot;

/// What a presenter says of its event.
#[derive(Default)]
pub struct Early<'a> {
    /// When the event happens, if not now. A copy may be taken for older than it is, as old as the fault it is fetched for: a notice in between may
    /// then make it be fetched again in vain. The other way round never happens, because only the question is asked whether one time is later.
    pub since: Option<Time>,
    /// The pages side by side of which this is one, if the presenter knows of them.
    pub copies: Option<&'a mut Row>,
}

/// The unit at the nodes that this process reaches.
pub struct Scene<'a, 'm, P: Live> {
    pub cluster: &'a Cluster,
    pub unit: UnitId,
    /// What its address says, at this process's node.
    pub place: Place,
    /// Where the thread counts.
    pub slot: &'a Slot,
    /// What the presenter's event wants of this process's mapping.
    pub wanted: Wanted,
    /// What the presenter says of its event.
    pub early: Early<'a>,
    /// The locks taken, in order: requester, manager or home, owner.
    pub held: [Option<(NodeId, Locked<'a>)>; Limit::Locks.max()],
    /// Where a flush makes its diff. The engine presents one flush, which makes one diff.
    pub buffer: Option<&'a mut DiffBuffer>,
    /// Where a page goes that a broadcast buffer held.
    pub room: Option<&'a mut Copied>,
    /// Collects messages, if the caller joins them.
    pub outbox: Option<&'a mut Outbox<'m>>,
    pub protocol: PhantomData<P>,
}

/// Runs `body` with room for the page of a broadcast buffer, under a protocol that has such. Under another one the stack has no place
/// for it.
#[inline(always)]
pub fn with_room<P: Live, R>(body: impl FnOnce(Option<&mut Copied>) -> R) -> R {
    if P::BROADCASTS { body(Some(&mut Copied::new())) } else { body(None) }
}

#[cold]
fn too_many(cluster: &Cluster, unit: UnitId, limit: Limit) -> ! {
    misuse::bug(cluster, unit, cluster.me, &limit)
}

/// Is a lock held here, and is it the node's?
#[inline(always)]
fn is_at(place: &Option<(NodeId, Locked<'_>)>, node: NodeId) -> bool {
    place.as_ref().is_some_and(|(at, _)| *at == node)
}

impl<'a, 'm, P: Live> Scene<'a, 'm, P> {
    /// What happens is an event of this process's view.
    #[inline(always)]
    pub fn by_view(&mut self, change: Change) {
        let (me, view) = (self.cluster.me, self.cluster.my_view());
        let before = P::access(self.at(me).state::<P>(), view);
        self.wanted = Wanted::new(change, before);
    }

    /// What happens now is no longer the presenter's event: nothing that was said about that holds any more.
    pub fn leave_presenter(&mut self) {
        self.wanted = Wanted::new(Change::Shrink, Access::None);
        (self.early, self.outbox) = (Early::default(), None);
    }

    /// Has whatever this process asks been answered when the event is over?
    pub fn answers_inside(&self) -> bool {
        self.cluster.reach.answers_inside(P::REVOKES)
    }

    /// The unit at a node, locked.
    #[inline(always)]
    pub fn at(&mut self, node: NodeId) -> &mut Locked<'a> {
        let [first, second, _] = &self.held;
        let index = if is_at(first, node) {
            0
        } else if is_at(second, node) {
            1
        } else {
            self.place_of(node)
        };
        let (cluster, unit) = (self.cluster, self.unit);
        match &mut self.held[index] {
            Some((_, locked)) => locked,
            None => too_many(cluster, unit, Limit::Locks),
        }
    }

    /// The place of a lock among those that are held. It is taken, if it is not held yet.
    #[inline(never)]
    fn place_of(&mut self, node: NodeId) -> usize {
        self.lock(node);
        self.held.iter().position(|place| is_at(place, node)).unwrap_or(self.held.len() - 1)
    }

    /// Gives all locks back but the first `held`.
    pub fn give_back_from(&mut self, held: usize) {
        for handler in self.held.iter_mut().skip(held).rev() {
            *handler = None;
        }
    }

    /// The home, as a node knows it, or by the address.
    pub fn home_at(&mut self, node: NodeId) -> Option<NodeId> {
        P::home(self.at(node).state::<P>()).or(self.place.fixed_home)
    }

    pub fn count(&self, counter: Counter, by: u64) {
        self.slot.count(counter, by);
    }

    /// What crosses between nodes: messages over a network, remote operations over shared memory.
    pub fn count_message(&self, own: Option<Counter>, attached: Attached<'_>) {
        self.count(Counter::Messages, 1);
        self.count(Counter::Bytes, (wire::HEADER_BYTES + attached.len()) as u64);
        if let Some(own) = own {
            self.count(own, 1);
        }
    }

    fn too_many(&self, limit: Limit) -> ! {
        too_many(self.cluster, self.unit, limit)
    }
}

/// A unit of the live memory, as this process sees it.
impl<'a, P: Live> World for Scene<'a, '_, P> {
    type Protocol = P;
    type Payload = Attached<'a>;
    const NOTHING: Attached<'a> = Attached::Nothing;

    #[inline(always)]
    fn place(&self, node: NodeId) -> Place {
        Place { me: node, ..self.place }
    }

    #[inline(always)]
    fn route(&self, msg: P::Msg) -> Route {
        Route::of(self.cluster.reach.way(msg), msg.is_between_equals())
    }

    #[inline(always)]
    fn lock(&mut self, node: NodeId) -> bool {
        for place in &mut self.held {
            match place {
                Some((at, _)) if *at == node => return false,
                Some(_) => {}
                None => {
                    *place = Some((node, self.cluster.at(node).lock(self.unit)));
                    return true;
                }
            }
        }
        self.too_many(Limit::Locks);
    }

    #[inline(always)]
    fn unlock(&mut self, node: NodeId) {
        if let Some(place) = self.held.iter_mut().find(|place| is_at(place, node)) {
            *place = None;
        }
    }

    #[inline(always)]
    fn tick(&mut self, node: NodeId) -> Time {
        // A table runs next, and waits for nothing: time to ask for the page that is copied after this one.
        if let Some(copies) = &mut self.early.copies {
            copies.ask();
        }
        let me = self.cluster.me;
        self.early.since.filter(|_| node == me).unwrap_or_else(|| self.at(node).segment().tick())
    }

    #[inline(always)]
    fn copy(&mut self, node: NodeId) -> &mut P::Unit {
        self.at(node).unit::<P>()
    }

    #[inline(always)]
    fn directory(&mut self, home: NodeId) -> &mut P::Directory {
        self.at(home).directory::<P>()
    }

    #[inline(always)]
    fn manager(&mut self, manager: NodeId) -> &mut P::Manager {
        self.at(manager).manager::<P>()
    }

    /// Does a broadcast buffer of the home seem to hold the unit? Not asked by the home.
    fn hint(&mut self, node: NodeId) -> Buffers {
        let (cluster, unit) = (self.cluster, self.unit);
        let held = self.home_at(node).is_some_and(|home| home != node && cluster.at(home).holds(unit));
        Buffers { held, interval: 0 }
    }

    fn buffers(&mut self, home: NodeId, msg: P::Msg, came: Attached<'a>) -> (Buffers, Attached<'a>) {
        let (at, unit) = (self.cluster.at(home), self.unit);
        let interval = at.node().interval.load(Ordering::Relaxed);
        if !msg.wants_buffer() {
            return (Buffers { held: at.holds(unit), interval }, came);
        }
        let page = self.room.as_mut().and_then(|room| at.take_from_buffer(unit, room));
        (Buffers { held: page.is_some(), interval }, page.map_or(came, Attached::Buffered))
    }

    #[cold]
    fn impossible(&mut self, node: NodeId, what: &P::Impossible) -> Outcome {
        misuse::bug(self.cluster, self.unit, node, what)
    }

    #[cold]
    fn overflow(&mut self, limit: Limit) {
        self.too_many(limit)
    }

    /// What crosses between nodes: messages over a network, remote operations over shared memory.
    #[inline(always)]
    fn pass(&mut self, _from: NodeId, _to: NodeId, msg: P::Msg, attached: Attached<'a>) {
        self.count_message(msg.counter(), attached);
    }

    fn send(&mut self, _from: NodeId, to: NodeId, msg: P::Msg, attached: Attached<'a>) {
        let cluster = self.cluster;
        if let Some(outbox) = &mut self.outbox
            && outbox.put(cluster, to, self.unit, msg.words(), attached)
        {
            // Messages and bytes are counted when they leave.
            if let Some(own) = msg.counter() {
                self.count(own, 1);
            }
            return;
        }
        self.count_message(msg.counter(), attached);
        attached::send(cluster, to, self.unit, msg.words(), attached);
    }

    #[inline(always)]
    fn contents(
        &mut self,
        node: NodeId,
        to: NodeSet,
        contents: Contents,
        received: Attached<'a>,
    ) -> Option<Attached<'a>> {
        let page = match contents {
            Contents::Nothing => return Some(Attached::Nothing),
            Contents::Received => return Some(received),
            Contents::Frame => Page::at(self.at(node).frame()),
            Contents::Twin => Page::at(self.at(node).twin()),
            Contents::Released => self.at(node).released(),
            Contents::Diff { refresh } => return self.make_diff(node, to, refresh).map(Attached::Diff),
        };
        Some(Attached::Page(page))
    }

    #[inline(always)]
    fn perform(&mut self, node: NodeId, effect: Effect, received: Attached<'a>) {
        self.act(node, effect, received);
    }
}

/// What a transaction's effects do: to frames and twins, to this process's mapping, to lists.
impl<'a, P: Live> Scene<'a, '_, P> {
    /// Performs an action.
    #[inline(always)]
    fn act(&mut self, node: NodeId, effect: Effect, attached: Attached<'_>) {
        let (cluster, unit) = (self.cluster, self.unit);
        match effect {
            Effect::Install => {
                let page = self.page_of(node, attached);
                let frame = self.at(node).frame();
                match &mut self.early.copies {
                    Some(copies) => copies.install(page, frame),
                    None => frames::install(page, frame),
                }
            }
            Effect::Merge => {
                let page = self.page_of(node, attached);
                self.count(Counter::IncomingDiffs, 1);
                let locked = self.at(node);
                frames::merge(page, locked.twin(), locked.frame());
            }
            Effect::ApplyUpdate => match attached {
                Attached::Diff(diff) if self.update(node, diff).is_ok() => {}
                Attached::Diff(_) | Attached::Page(_) | Attached::Buffered(_) | Attached::Nothing => {
                    misuse::malformed(cluster, unit, node)
                }
            },
            Effect::MakeTwin => {
                self.count(Counter::Twins, 1);
                let locked = self.at(node);
                let twin = locked.new_twin();
                frames::snapshot(locked.frame(), twin);
            }
            Effect::DropTwin => self.at(node).drop_twin(),
            Effect::Protect { view, access } => self.protect(node, view, access),
            Effect::ListDirty(views) => views.iter().for_each(|view| cluster.at(node).list_dirty(view, unit)),
            Effect::ListNotice(views) => views.iter().for_each(|view| {
                cluster.at(node).list_notice(view, unit);
                if P::REVOKES {
                    wait::wake_revoker(cluster, node, view);
                }
            }),
            Effect::FlushDone(view) => wait::flush_done(cluster, node, view),
            Effect::Wake => wait::wake_views(cluster, node),
            Effect::FetchSkipped => self.count(Counter::FetchesSkipped, 1),
            Effect::FlushSkipped => self.count(Counter::FlushesSkipped, 1),
            Effect::RightKept => self.count(Counter::RightsKept, 1),
            Effect::KeptInVain => self.count(Counter::KeptInVain, 1),
            Effect::EnteredExclusive => self.count(Counter::ExclusiveEntries, 1),
            Effect::Broadcast => {
                let page = self.at(node).released();
                self.count_message(Some(Counter::Broadcasts), Attached::Page(page));
                cluster.at(node).broadcast(unit, page);
            }
            Effect::DropBuffer => cluster.at(node).drop_buffer(unit),
            Effect::HomeMoved => {
                self.count(Counter::Migrations, 1);
                self.count(Counter::MigrationAttempts, 1);
            }
            // Where the question was a look at the home's own state, there was no attempt.
            Effect::HomeKept if cluster.reach.looks_at_all() => {}
            Effect::HomeKept => self.count(Counter::MigrationAttempts, 1),
        }
    }

    /// To the frame, and to the twin if there is one.
    fn update(&mut self, node: NodeId, diff: &[u8]) -> Result<(), Malformed> {
        let locked = self.at(node);
        if locked.has_twin() {
            frames::apply(diff, locked.twin())?;
        }
        frames::apply(diff, locked.frame())
    }

    /// The page that must have come.
    fn page_of(&self, node: NodeId, attached: Attached<'_>) -> Page {
        match attached {
            Attached::Page(page) => {
                self.count(Counter::PageTransfers, 1);
                page
            }
            Attached::Buffered(page) => page,
            Attached::Nothing | Attached::Diff(_) => misuse::malformed(self.cluster, self.unit, node),
        }
    }

    /// The table wants this process's own mapping changed.
    #[inline(always)]
    fn protect(&mut self, node: NodeId, view: ViewId, access: Access) {
        let cluster = self.cluster;
        assert!(node == cluster.me && view == cluster.my_view(), "nobody can change another process's mapping");
        let locked = self.at(node);
        if access == Access::None {
            locked.forget_flushes();
        }
        let frame = locked.frame();
        self.wanted.want(cluster, self.unit, access, frame);
        if P::REVOKES {
            self.wanted.hold(cluster);
        }
    }

    /// The diff, unless it is empty.
    fn make_diff(&mut self, node: NodeId, to: NodeSet, refresh: bool) -> Option<&'a [u8]> {
        let Some(buffer) = self.buffer.take() else { self.too_many(Limit::Diffs) };
        let locked = self.at(node);
        let diff = frames::diff(locked.frame(), locked.twin(), refresh, buffer);
        if !refresh {
            locked.drop_twin();
        }
        if diff.is_empty() {
            locked.flushed_nothing();
            return None;
        }
        // At the home only whether anything changed is of interest.
        if to != NodeSet::only(node) {
            self.count(Counter::Diffs, 1);
            self.count(Counter::DiffBytes, diff.len() as u64);
        }
        Some(diff)
    }
}
