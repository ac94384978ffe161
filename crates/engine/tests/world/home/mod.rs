//! The home-based engine: the engine's own transactions and steps, with the tables of a page protocol.
//!
//! ```text
//!   steps      what a fault, a release and an acquire wait on
//!   scene      what the engine asks of a world, on model memory
//!   memory     copies, directory entries, views
//!   protocols  the protocols, and what must be known of them beside their tables
//! ```

mod memory;
mod protocols;
mod scene;
mod steps;

use finespun_engine::{Acquire, Route, Transaction};
use finespun_protocol::cashmere::variants::Way;
use finespun_protocol::page::{Message, Outcome};
use finespun_types::{Access, NodeId, ViewId};

use crate::bugs::Bug;
use crate::clock::Task;
use crate::engine::Engine;
use crate::job::Job;
use crate::memory::{Diff, Page};
use crate::objects::Request;
use crate::processor::Doing;
use crate::program::{Op, Shape};
use memory::{Node, Payload, View};
use protocols::Subject;
use scene::Scene;
use steps::Stage;

/// The transaction of a task, on one unit.
struct Chain<P: Subject> {
    unit: usize,
    /// `None` only while it is stepped.
    nest: Option<Box<Transaction<P, Payload>>>,
}

/// What the tasks beside processors and channels are.
enum More {
    /// Takes mappings away while programs compute.
    Revoker(NodeId, ViewId),
    /// What a seeded bug applies late.
    Late,
}

pub struct Home<P: Subject> {
    chains: Vec<Chain<P>>,
    pub nodes: Vec<Node<P>>,
    /// By unit, at its manager.
    pub managers: Vec<P::Manager>,
    late: Vec<(NodeId, usize, Diff)>,
}

impl<P: Subject> Engine for Home<P> {
    const SEQUENTIAL: bool = P::SEQUENTIAL;
    const ORDERS_RACES: bool = P::ORDERS_RACES;
    const TELLS_MANAGERS: bool = false;
    const HANDS_OVER_IN_NODE: bool = P::RELEASES_NODE || P::REVOKES;

    type Stage = Stage;
    type Outcome = Outcome;
    type Letter = (P::Msg, Payload);
    type Along = ();

    fn new(shape: Shape) -> Self {
        let tasks = shape.processors() + shape.nodes * shape.nodes + Self::more_tasks(shape);
        Self {
            chains: (0..tasks).map(|_| Chain { unit: 0, nest: Some(Box::default()) }).collect(),
            nodes: (0..shape.nodes).map(|_| Node::new(shape.views)).collect(),
            managers: Vec::new(),
            late: Vec::new(),
        }
    }

    fn grow(&mut self) {
        self.managers.push(P::Manager::default());
        self.nodes.iter_mut().for_each(Node::grow);
    }

    fn page(&mut self, node: usize, unit: usize) -> &mut Page {
        &mut self.nodes[node].slots[unit].frame
    }

    fn bytes((_, payload): &Self::Letter) -> usize {
        payload.bytes()
    }

    fn bytes_along((): &()) -> usize {
        0
    }

    fn more_tasks(shape: Shape) -> usize {
        shape.nodes * shape.views + 1
    }

    fn go_on_with_more(job: &mut Job<'_, Self>, task: Task) {
        match job.more(task) {
            Some(More::Revoker(node, view)) => job.revoke(task, node, view),
            Some(More::Late) => job.apply_now(),
            None => {}
        }
    }

    fn step(job: &mut Job<'_, Self>, task: Task) -> bool {
        let Chain { unit, nest } = &job.engine.chains[task];
        let unit = *unit;
        let Some(nest) = nest.as_ref().filter(|nest| !nest.is_over()) else { return false };
        let wants = nest.wants(|msg| job.route(msg));
        if wants.is_none_or(|node| job.may_lock(task, node, unit)) {
            job.within((task, unit), |nest, scene| nest.step(scene));
            job.put(task);
        }
        true
    }

    fn access(job: &mut Job<'_, Self>, who: usize, unit: usize) -> Access {
        let (node, view) = job.seat(who);
        job.view(node, view).access[unit]
    }

    fn begin_fault(job: &mut Job<'_, Self>, who: usize, unit: usize, writes: bool) {
        job.begin_fault(who, unit, writes);
    }

    fn begin_release(job: &mut Job<'_, Self>, who: usize) {
        job.begin_release(who);
    }

    fn begin_acquire(job: &mut Job<'_, Self>, who: usize, op: Option<Op>) {
        job.begin_acquire(who, op);
    }

    fn go_on(job: &mut Job<'_, Self>, who: usize) {
        match &job.processors[who].doing {
            Doing::Consistency(Stage::Fault(fault, unit)) => {
                let (demand, unit) = (fault.demand(), *unit);
                job.processors[who].woken = false;
                job.present(who, unit, demand);
            }
            Doing::Consistency(Stage::Release { .. }) => job.go_on_releasing(who),
            Doing::Consistency(Stage::Acquire(_)) => job.go_on_acquiring(who),
            Doing::Nothing | Doing::Answer(_) => {}
        }
    }

    fn conclude(job: &mut Job<'_, Self>, who: usize, outcome: Outcome) {
        job.conclude(who, outcome);
    }

    fn may_receive(job: &mut Job<'_, Self>, task: Task, to: usize, unit: usize) -> bool {
        job.may_lock(task, NodeId::of(to), unit)
    }

    fn receive(
        job: &mut Job<'_, Self>,
        task: Task,
        (from, to): (usize, usize),
        unit: usize,
        (msg, payload): Self::Letter,
    ) {
        let (from, to) = (NodeId::of(from), NodeId::of(to));
        job.within((task, unit), |nest, scene| nest.deliver(scene, from, to, msg, payload));
    }

    fn asks(_job: &mut Job<'_, Self>, _who: usize, _manager: usize, _request: &Request) {}
    fn asked(_job: &mut Job<'_, Self>, _who: usize, _manager: usize, _request: &Request, (): ()) {}
    fn grants(_job: &mut Job<'_, Self>, _manager: usize, _who: usize, _about: Option<u64>) {}
    fn granted(_job: &mut Job<'_, Self>, _manager: usize, _who: usize, (): ()) {}

    fn check(&self, unit: usize, in_flight: bool) -> Result<(), &'static str> {
        let copies: Vec<P::Unit> = self.nodes.iter().map(|node| node.slots[unit].copy).collect();
        let directories: Vec<P::Directory> = self.nodes.iter().map(|node| node.slots[unit].directory).collect();
        P::check(&copies, &directories, in_flight)
    }

    fn is_at_rest(&self) -> bool {
        let slots = || self.nodes.iter().flat_map(|node| &node.slots);
        let views = || self.nodes.iter().flat_map(|node| &node.views);
        let held = slots().any(|slot| slot.lock.is_held())
            || views().any(|view| view.releasing.is_held() || view.acquiring.is_held() || view.open > 0);
        let over = |chain: &Chain<P>| chain.nest.as_ref().is_some_and(|nest| nest.is_over());
        !held && self.chains.iter().all(over)
    }
}

impl<'p, P: Subject> Job<'p, Home<P>> {
    /// Where a processor runs.
    fn seat(&self, who: usize) -> (NodeId, ViewId) {
        let view = who / self.program.shape.threads;
        let views = self.program.shape.views;
        (NodeId::of(view / views), ViewId((view % views) as u8))
    }

    fn view(&mut self, node: NodeId, view: ViewId) -> &mut View {
        &mut self.engine.nodes[usize::from(node.0)].views[usize::from(view.0)]
    }

    fn more(&self, task: Task) -> Option<More> {
        let (nodes, views) = (self.program.shape.nodes, self.program.shape.views);
        let view = task.checked_sub(self.processors.len() + nodes * nodes)?;
        Some(match view < nodes * views {
            true => More::Revoker(NodeId::of(view / views), ViewId((view % views) as u8)),
            false => More::Late,
        })
    }

    /// Whose mapping a task may change.
    fn view_of_task(&self, task: Task) -> Option<(NodeId, ViewId)> {
        if task < self.processors.len() {
            return Some(self.seat(task));
        }
        match self.more(task)? {
            More::Revoker(node, view) => Some((node, view)),
            More::Late => None,
        }
    }

    fn route(&self, msg: P::Msg) -> Route {
        let overtakes = self.has(Bug::FetchOvertakes) && P::is_fetch(msg);
        let way = if overtakes { Way::Direct } else { self.setting.variant.way(msg) };
        Route::of(way, msg.is_between_equals() && !self.has(Bug::EqualsUnderLock))
    }

    /// May the task take the lock of (node, unit)? If not, it waits for it.
    fn may_lock(&mut self, task: Task, node: NodeId, unit: usize) -> bool {
        self.engine.nodes[usize::from(node.0)].slots[unit].lock.is_free_or_queues(task)
    }

    /// Something with the transaction of a task.
    fn within<R>(
        &mut self,
        (task, unit): (Task, usize),
        body: impl FnOnce(&mut Transaction<P, Payload>, &mut Scene<'_, 'p, P>) -> R,
    ) -> R {
        self.engine.chains[task].unit = unit;
        let mut nest = self.engine.chains[task].nest.take().expect("a transaction is not stepped inside itself");
        let result = body(&mut nest, &mut Scene { job: self, task, unit });
        self.engine.chains[task].nest = Some(nest);
        result
    }

    /// A unit was listed for a view whose mappings are taken away.
    fn wake_revoker(&mut self, node: NodeId, view: ViewId) {
        let (nodes, views) = (self.program.shape.nodes, self.program.shape.views);
        let of_views = usize::from(node.0) * views + usize::from(view.0);
        self.put_soon(self.processors.len() + nodes * nodes + of_views);
    }

    fn revoke(&mut self, task: Task, node: NodeId, view: ViewId) {
        let held_until = self.view(node, view).mapped_at + self.setting.hold;
        let Some(&unit) = self.view(node, view).noticed.first() else { return };
        if self.now < held_until {
            return self.queue.put(held_until, task);
        }
        if self.may_lock(task, node, unit) {
            self.view(node, view).noticed.remove(0);
            let demand = Acquire { view }.demand();
            self.within((task, unit), |nest, scene| nest.present(scene, node, demand.of()));
            self.put(task);
        }
    }

    /// A seeded bug: the diff is applied when its sender knows already that it was.
    fn apply_late(&mut self, node: NodeId, unit: usize, diff: Diff) {
        self.engine.late.push((node, unit, diff));
        let late = self.engine.chains.len() - 1;
        let way = self.random.below(4 * (self.setting.network.delay as usize + self.setting.step)) as u64;
        self.queue.put(self.now + way, late);
    }

    fn apply_now(&mut self) {
        for (node, unit, diff) in std::mem::take(&mut self.engine.late) {
            self.engine.nodes[usize::from(node.0)].slots[unit].update(&diff, false);
        }
    }
}
