//! The engine: presents events to the protocol's tables and performs the actions.
//!
//! A *nest* is what one presented event does before anybody else may see the unit: the table runs under the unit's
//! lock, and what it sends to its home, its manager or itself is executed inside, under the locks of the unit at the
//! nodes concerned, where this process reaches their memory. That is the form `DMS`: the requester runs the home's
//! handler, so that nobody is woken. What the job's variant sends as a message leaves the nest.
//!
//! One engine for every home-based protocol: [`Nest`] is written over the trait [`Live`], and [`present`] and [`receive`] pick
//! the job's.
//!
//! **Locks.** One lock for each (node, unit), over the copy and the home's entries there. A handler that is nested in another
//! takes the lock of its node, if the nest has it not, and gives it back at its end, as in the checker. Under Cashmere the
//! order is requester, manager or home, exclusive owner. There is no cycle: whoever holds the lock at
//! an exclusive owner as a requester wants nothing more (its copy answers every event itself), the manager answers from
//! its own entry, and the question to the manager is a nest of its own. Where homes move, the home is whom the requester's hint
//! names: hints lead from earlier homes to later ones, and what a former home passes on is a message.
//! Notices go from releaser to sharers, which might
//! be releasing the same unit in the other direction: they are executed after the nest, each as a nest of its own, and
//! the release is not over before. Under Strings' protocols updates are put aside likewise, and what goes to a home.

use std::sync::atomic::Ordering;

use finespun_job::switches::Rewrites;
use finespun_protocol::Family;
use finespun_protocol::cashmere::Cashmere;
use finespun_protocol::cashmere::broadcast::Broadcasting;
use finespun_protocol::cashmere::migration::Migrating;
use finespun_protocol::page::{Buffers, Carried, Demand, Event, Message, Outcome, Place, Protocol, Role, Step, Time};
use finespun_protocol::strings::{invalidate::StringsSc, update::StringsRc};
use finespun_types::{Access, Counter, NodeId, UnitId};

use crate::aside::{Aside, Later};
use crate::cluster::Cluster;
use crate::join::{self, Joined, Outbox};
use crate::live::Live;
use crate::sys::frames::{Page, Row};
use crate::sys::segment::{Locked, Release};
use crate::sys::slot::Slot;
use crate::{meter, misuse, tmk};

/// Evaluates an expression with the tables of a family, or another where the protocol is not home-based.
macro_rules! with_tables {
    ($family:expr, $P:ident => $body:expr, $lazy:expr) => {
        with_tables!(@of Cashmere Broadcasting Migrating StringsRc StringsSc; $family, $P => $body, $lazy)
    };
    // The tables of a family have its name.
    (@of $($tables:ident)*; $family:expr, $P:ident => $body:expr, $lazy:expr) => {
        match $family {
            $(Family::$tables => {
                type $P = $tables;
                $body
            })*
            Family::Tmk => $lazy,
        }
    };
}

mod actions;
pub mod ahead;
pub mod refresh;

/// What came with a message.
#[derive(Clone, Copy)]
pub enum Attached<'a> {
    /// Nothing but its words.
    Nothing,
    /// A page.
    Page(Page),
    /// A page that was in a broadcast buffer: it crossed between nodes when it was written there.
    Buffered(Page),
    /// An encoded diff.
    Diff(&'a [u8]),
}

/// Why a nest may change this process's mapping, which says how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// A fault: the page was not there, or not writable.
    Grow,
    /// A release or an acquire takes rights away.
    Shrink,
    /// A release that has taken the right to write already, for whole runs of units.
    Shrunk,
    /// The presenter opens or closes the page itself, with others, when the nest is over: see [`present_leaving`].
    Left,
}

/// One event's doings.
struct Nest<'a, 'm, P: Live> {
    cluster: &'a Cluster,
    unit: UnitId,
    /// What its address says, at this process's node.
    place: Place,
    /// Where the thread counts.
    slot: &'a Slot,
    rights: Rights,
    /// What the presenting view could do before, by the books.
    before: Access,
    /// Is the page to be opened for reading, or closed, by the presenter? Only under [`Rights::Left`].
    is_left: bool,
    /// The pages side by side of which this is one, if the presenter knows of them.
    row: Option<&'a mut Row>,
    /// When the presenter's events happen, where that is not now. A copy may be taken for older than it is, as old as the fault it is fetched
    /// for: a notice in between may then make it be fetched again in vain, never the other way round, for whoever compares times asks
    /// whether one is later.
    now: Option<Time>,
    /// The locks taken, in order: requester, manager or home, owner.
    held: [Option<(NodeId, Locked<'a>)>; 3],
    later: Later<P::Msg>,
    /// Collects messages, if the caller joins them.
    outbox: Option<&'a mut Outbox<'m>>,
}

/// A view of this process presents an event about a unit.
pub fn present(cluster: &Cluster, unit: UnitId, demand: Demand, rights: Rights) -> Outcome {
    present_joining(cluster, unit, demand, rights, None)
}

/// The same, with a collector for messages if the caller joins them.
pub fn present_joining(
    cluster: &Cluster,
    unit: UnitId,
    demand: Demand,
    rights: Rights,
    outbox: Option<&mut Outbox<'_>>,
) -> Outcome {
    let no_nest = || unreachable!("lazy release consistency has an engine of its own");
    with_tables!(cluster.shape.family, P => Nest::<P>::present(cluster, unit, demand, rights, outbox), no_nest())
}

/// A view of this process presents a read fault, after which the presenter opens the page together with others: true if it is to.
///
/// Nests that leave pages to be closed together are in [`refresh`]. The lock of the unit is given back before the mapping
/// changes, which is right for two reasons. Only a view's own events change its mapping, so nobody else does in between: the
/// presenter is the view's only thread, or holds the view's `acquiring` lock, which whoever closes a page of it must hold. And
/// where a page is closed late, what its old mapping can still show is what a load before the acquire could have shown; a store
/// through it would be lost, so in a view of several threads a writable page is not left. Under a protocol that [`revokes`]
/// nothing may be left.
pub fn present_leaving(cluster: &Cluster, unit: UnitId, since: Time) -> (Outcome, bool) {
    let no_nest = || unreachable!("lazy release consistency has an engine of its own");
    with_tables!(cluster.shape.family, P => Nest::<P>::present_leaving(cluster, unit, since), no_nest())
}

/// A message from another node arrived, given by its words.
pub fn receive(cluster: &Cluster, from: NodeId, unit: UnitId, words: (u8, u64), attached: Attached<'_>) {
    with_tables!(cluster.shape.family, P => Nest::<P>::receive(cluster, from, unit, words, attached, None), misuse::malformed_message(cluster, from));
}

/// Joined messages arrived: what they bring about is joined likewise. False if they cannot be read.
pub fn receive_joined(cluster: &Cluster, from: NodeId, message: &[u8]) -> bool {
    let (mut outbox, mut rest) = (Outbox::of_handler(message), message);
    while !rest.is_empty() {
        let Some(Joined { unit, words, attached }) = join::next(&mut rest) else { return false };
        if unit.0 as usize >= cluster.shape.pages {
            return false;
        }
        let outbox = Some(&mut outbox);
        with_tables!(cluster.shape.family, P => Nest::<P>::receive(cluster, from, unit, words, attached, outbox), return false);
    }
    outbox.send(cluster);
    true
}

/// What this process's view may do with a unit, by the books.
pub fn access(cluster: &Cluster, unit: UnitId) -> Access {
    let view = cluster.my_view();
    with_tables!(
        cluster.shape.family,
        P => P::access(cluster.mine().lock(unit).state::<P>(), view),
        tmk::access(cluster, unit)
    )
}

/// May a release leave its view the right to write?
pub fn keeps_rights(cluster: &Cluster) -> bool {
    cluster.job.switches.rewrites == Rewrites::Keep && with_tables!(cluster.shape.family, P => P::KEEPS, false)
}

/// What this process's view may do with a unit that its release flushes now; and how many releases ago it flushed a change of the unit
/// before, if this is a release by which they are counted.
pub fn before_flush(cluster: &Cluster, unit: UnitId, release: Option<Release>) -> (Access, Option<u32>) {
    let view = cluster.my_view();
    let no_nest = || unreachable!("lazy release consistency has an engine of its own");
    with_tables!(
        cluster.shape.family,
        P => {
            let mut locked = cluster.mine().lock(unit);
            let ago = release.and_then(|release| locked.flushed_in(release));
            (P::access(locked.state::<P>(), view), ago)
        },
        no_nest()
    )
}

/// The home of a unit, as this node or the manager's memory knows it.
pub fn home(cluster: &Cluster, unit: UnitId) -> Option<NodeId> {
    let last_writer = || cluster.place(cluster.me, unit).fixed_home.or_else(|| tmk::last_writer(cluster, unit));
    with_tables!(cluster.shape.family, P => known_home::<P>(cluster, unit), last_writer())
}

/// Is the dirty list the node's, so that a release by any view flushes it?
pub fn releases_node(cluster: &Cluster) -> bool {
    with_tables!(cluster.shape.family, P => P::RELEASES_NODE, false)
}

/// Are mappings taken away while programs compute?
pub fn revokes(cluster: &Cluster) -> bool {
    with_tables!(cluster.shape.family, P => P::REVOKES, false)
}

/// May threads of this process beside the calling one touch shared memory?
pub fn has_several_threads(cluster: &Cluster) -> bool {
    cluster.mine().view(cluster.my_view()).several_threads.load(Ordering::Relaxed) != 0
}

fn known_home<P: Live>(cluster: &Cluster, unit: UnitId) -> Option<NodeId> {
    let place = cluster.place(cluster.me, unit);
    P::home(cluster.mine().lock(unit).state::<P>()).or(place.fixed_home).or_else(|| {
        // Another node may have touched it first.
        let managed = || P::managed_home(cluster.at(place.manager).lock(unit).manager::<P>());
        cluster.reaches(place.manager).then(managed).flatten()
    })
}

impl<'a, 'm, P: Live> Nest<'a, 'm, P> {
    fn present(
        cluster: &'a Cluster,
        unit: UnitId,
        demand: Demand,
        rights: Rights,
        outbox: Option<&'a mut Outbox<'m>>,
    ) -> Outcome {
        let mut nest = Self::new(cluster, unit, cluster.me);
        nest.by_view(rights);
        nest.outbox = outbox;
        if let Demand::ReadFault { since, .. } = demand {
            nest.now = Some(since);
        }
        let outcome = nest.run_demand(demand);
        nest.finish();
        outcome
    }

    fn present_leaving(cluster: &'a Cluster, unit: UnitId, since: Time) -> (Outcome, bool) {
        let mut nest = Self::new(cluster, unit, cluster.me);
        nest.by_view(Rights::Left);
        nest.now = Some(since);
        let outcome = nest.run_demand(Demand::ReadFault { view: cluster.my_view(), since });
        let is_left = nest.is_left;
        nest.finish();
        (outcome, is_left)
    }

    /// Presents an event of this process's view; a fault again where its answer came inside the nest, whose locks need not be given
    /// back before it is used.
    fn run_demand(&mut self, demand: Demand) -> Outcome {
        let me = self.cluster.me;
        let outcome = self.run_unit(me, demand.of(), Attached::Nothing);
        let is_fault = matches!(demand, Demand::ReadFault { .. } | Demand::WriteFault { .. });
        if is_fault && outcome == Outcome::Wait && self.answers_inside() {
            return self.run_unit(me, demand.of(), Attached::Nothing);
        }
        outcome
    }

    /// Has whatever this process asks been answered when the event is over?
    fn answers_inside(&self) -> bool {
        self.cluster.mesh.is_none() && !P::REVOKES
    }

    /// What happens is an event of this process's view.
    fn by_view(&mut self, rights: Rights) {
        let (me, view) = (self.cluster.me, self.cluster.my_view());
        self.rights = rights;
        self.before = P::access(self.at(me).state::<P>(), view);
    }

    fn receive(
        cluster: &'a Cluster,
        from: NodeId,
        unit: UnitId,
        (number, word): (u8, u64),
        attached: Attached<'_>,
        outbox: Option<&'a mut Outbox<'m>>,
    ) {
        let Some(msg) = P::Msg::of_words(number, word) else { misuse::malformed_message(cluster, from) };
        let mut nest = Self::new(cluster, unit, cluster.me);
        nest.outbox = outbox;
        nest.deliver(from, cluster.me, msg, attached);
        nest.finish();
    }

    fn new(cluster: &'a Cluster, unit: UnitId, at: NodeId) -> Self {
        Self::begin(cluster, (unit, cluster.place(cluster.me, unit)), meter::slot(cluster), at)
    }

    /// Made where it stays: to move half a kilobyte twice takes as long as some of what it is for.
    #[inline(always)]
    fn begin(cluster: &'a Cluster, (unit, place): (UnitId, Place), slot: &'a Slot, at: NodeId) -> Self {
        let held = [Some((at, cluster.at(at).lock(unit))), None, None];
        Self {
            cluster,
            unit,
            place,
            slot,
            rights: Rights::Shrink,
            before: Access::None,
            is_left: false,
            row: None,
            now: None,
            held,
            later: Later::new(),
            outbox: None,
        }
    }

    /// The unit at a node, locked.
    #[inline]
    fn at(&mut self, node: NodeId) -> &mut Locked<'a> {
        let mut index = 0;
        // Mostly the first; a place that is free ends the search.
        while self.held[index].as_ref().is_some_and(|(at, _)| *at != node) {
            index += 1;
            assert!(index < self.held.len(), "a nest concerns three nodes at most: requester, home, owner");
        }
        let (_, locked) = self.held[index].get_or_insert_with(|| (node, self.cluster.at(node).lock(self.unit)));
        locked
    }

    /// What the unit's address says, at a node.
    const fn place(&self, node: NodeId) -> Place {
        Place { me: node, ..self.place }
    }

    fn count(&self, counter: Counter, by: u64) {
        self.slot.count(counter, by);
    }

    /// Gives the locks back, then executes what was put aside, each message as a nest of its own.
    fn finish(&mut self) {
        self.give_back_from(0);
        while let Some(Aside { from, to, msg, kept }) = self.later.next() {
            for from in from.iter() {
                for to in to.iter() {
                    let mut nest = Self::begin(self.cluster, (self.unit, self.place), self.slot, to);
                    nest.deliver(from, to, msg, kept.attached());
                    nest.give_back_from(0);
                    self.later.append(&mut nest.later);
                }
            }
        }
    }

    /// Executes a message inside the nest. The lock that it takes is given back at its end.
    fn deliver_nested(&mut self, from: NodeId, to: NodeId, msg: P::Msg, attached: Attached<'_>) {
        let held = self.held.iter().flatten().count();
        self.deliver(from, to, msg, attached);
        self.give_back_from(held);
    }

    /// Gives all locks back but the first `held`.
    fn give_back_from(&mut self, held: usize) {
        for handler in self.held.iter_mut().skip(held).rev() {
            *handler = None;
        }
    }

    /// Runs the copy's table at a node.
    fn run_unit(&mut self, node: NodeId, event: Event<P::Msg>, attached: Attached<'_>) -> Outcome {
        self.ask_for_lines();
        let (cluster, place) = (self.cluster, self.place(node));
        let now = self.now.filter(|_| node == cluster.me).unwrap_or_else(|| cluster.at(node).tick());
        let buffers = if P::BROADCASTS { self.hint(node) } else { Buffers::default() };
        let step = P::on_unit_seeing(self.at(node).unit::<P>(), buffers, place, now, event);
        self.perform(node, &step, attached)
    }

    /// Executes a message at its receiver, by the role it is for.
    fn deliver(&mut self, from: NodeId, to: NodeId, msg: P::Msg, attached: Attached<'_>) {
        let step = match msg.role() {
            Role::Manager => P::on_manager(self.at(to).manager::<P>(), from, msg),
            Role::Home if P::BROADCASTS => return self.deliver_to_broadcaster(from, to, msg, attached),
            Role::Home => P::on_directory(self.at(to).directory::<P>(), to, from, msg),
            Role::Copy => {
                self.run_unit(to, Event::Recv { from, msg }, attached);
                return;
            }
        };
        self.perform(to, &step, attached);
    }

    /// The home, as a node knows it, or by the address.
    fn home_at(&mut self, node: NodeId) -> Option<NodeId> {
        P::home(self.at(node).state::<P>()).or(self.place.fixed_home)
    }

    /// Does a broadcast buffer of the home seem to hold the unit? Not asked by the home.
    fn hint(&mut self, node: NodeId) -> Buffers {
        let (cluster, unit) = (self.cluster, self.unit);
        let held = self.home_at(node).is_some_and(|home| home != node && cluster.at(home).holds(unit));
        Buffers { held, interval: 0 }
    }

    /// Executes a message at a home that has broadcast buffers, with the page from one if the message is about that.
    fn deliver_to_broadcaster(&mut self, from: NodeId, to: NodeId, msg: P::Msg, attached: Attached<'_>) {
        let (cluster, unit) = (self.cluster, self.unit);
        let home = cluster.at(to);
        // The lock comes first.
        let locked = self.at(to);
        let interval = home.node().interval.load(Ordering::Relaxed);
        let copied = if msg.wants_buffer() { home.take_from_buffer(unit) } else { None };
        let held = if msg.wants_buffer() { copied.is_some() } else { home.holds(unit) };
        let step = P::on_directory_seeing(locked.directory::<P>(), Buffers { held, interval }, to, from, msg);
        let attached = copied.as_ref().map_or(attached, |copied| Attached::Buffered(copied.page()));
        self.perform(to, &step, attached);
    }

    /// Of the page that is copied next.
    #[inline]
    fn ask_for_lines(&mut self) {
        if let Some(row) = &mut self.row {
            row.ask();
        }
    }

    /// Performs a step's actions at a node, in order.
    fn perform(&mut self, node: NodeId, step: &Result<Step<P::Msg>, P::Impossible>, attached: Attached<'_>) -> Outcome {
        self.ask_for_lines();
        let step = match step {
            Ok(step) => step,
            Err(impossible) => misuse::bug(self.cluster, self.unit, node, impossible),
        };
        for &action in step.actions.as_slice() {
            self.act(node, action, attached);
        }
        step.outcome
    }
}
