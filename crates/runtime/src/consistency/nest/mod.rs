//! Runs the engine's transactions on the live memory: presents events to the protocol's tables and performs the actions.
//!
//! A *nest* is a [`Transaction`] of this process while it is inside, with the unit that it is about ([`Scene`]). The table runs under the
//! unit's lock. What it sends to its home, its manager or itself is executed inside, under the locks of the unit at the nodes concerned,
//! where this process reaches their memory. That is the form `DMS`: the requester runs the home's handler, so that no process is woken.
//! What the job's variant sends as a message leaves the nest. The checker interleaves the same transactions.
//!
//! [`Nest`] is written over the trait [`Live`], for every home-based protocol; [`present`] and [`receive`] pick the job's.
//!
//! **Locks.** One lock for each (node, unit), over the copy and the home's entries there. A handler that is nested in another
//! takes the lock of its node, if the nest has it not, and gives it back at its end, as in the checker. Under Cashmere the
//! order is requester, manager or home, exclusive owner. There is no cycle: whoever holds the lock at
//! an exclusive owner as a requester wants nothing more (its copy answers every event itself), the manager answers from
//! its own entry, and the question to the manager is a nest of its own. Where homes move, the home is whom the requester's hint
//! names: hints lead from earlier homes to later ones, and what a former home passes on is a message.
//! Notices go from releaser to sharers, which might
//! be releasing the same unit in the other direction: they are executed after the nest, each under locks of its own, and
//! the release is not over before. Under Strings' protocols updates are put aside likewise, and what goes to a home.

use std::marker::PhantomData;

use finespun_diff::DiffBuffer;
use finespun_engine::{Transaction, homes};
use finespun_job::switches::Rewrites;
use finespun_protocol::cashmere::Cashmere;
use finespun_protocol::cashmere::broadcast::Broadcasting;
use finespun_protocol::cashmere::migration::Migrating;
use finespun_protocol::page::{Carried, Demand, Outcome, Protocol};
use finespun_protocol::strings::{invalidate::StringsSc, update::StringsRc};
use finespun_types::{Access, NodeId, UnitId};

use crate::consistency::attached::Attached;
use crate::consistency::join::{self, Joined, Outbox};
use crate::consistency::mappings::{Change, Wanted};
use crate::node::cluster::Cluster;
use crate::node::engine::Tables;
use crate::node::{meter, misuse};
use crate::sys::buffers::Copied;
use crate::sys::live::Live;
use crate::sys::segment::Release;
use crate::sys::slot::Slot;

/// Evaluates an expression with a home-based protocol's tables, which have its name.
macro_rules! with_tables {
    ($tables:expr, $P:ident => $body:expr) => {
        with_tables!(@of Cashmere Broadcasting Migrating StringsRc StringsSc; $tables, $P => $body)
    };
    (@of $($name:ident)*; $tables:expr, $P:ident => $body:expr) => {
        match $tables {
            $(Tables::$name => {
                type $P = $name;
                $body
            })*
        }
    };
}

pub mod early;
mod scene;
pub mod steps;

use scene::{Early, Scene};

/// A transaction of this process, and the unit that it is about.
struct Nest<'a, 'm, P: Live> {
    transaction: Transaction<P, Attached<'a>>,
    scene: Scene<'a, 'm, P>,
}

/// This process, and where the thread counts that runs its transactions.
pub type Here<'a> = (&'a Cluster, &'a Slot);

/// A view of this process presents an event about a unit. A release presents by [`flush`].
pub fn present(here: Here<'_>, tables: Tables, unit: UnitId, demand: Demand, change: Change) -> Outcome {
    with_tables!(tables, P => Nest::<P>::present(here, unit, demand, change, None))
}

/// A release of this process's view flushes a unit, with a collector for messages if the caller joins them.
pub fn flush(
    here: Here<'_>,
    tables: Tables,
    unit: UnitId,
    demand: Demand,
    change: Change,
    outbox: Option<&mut Outbox<'_>>,
) -> Outcome {
    let release = (&mut DiffBuffer::new(), outbox);
    with_tables!(tables, P => Nest::<P>::present(here, unit, demand, change, Some(release)))
}

/// A message from another node arrived, given by its words.
pub fn receive(
    cluster: &Cluster,
    tables: Tables,
    from: NodeId,
    unit: UnitId,
    words: (u8, u64),
    attached: Attached<'_>,
) {
    with_tables!(tables, P => Nest::<P>::receive(cluster, from, unit, words, attached, None));
}

/// Joined messages arrived: what they bring about is joined likewise. False if they cannot be read.
pub fn receive_joined(cluster: &Cluster, tables: Tables, from: NodeId, message: &[u8]) -> bool {
    let (mut outbox, mut rest) = (Outbox::of_handler(message), message);
    while !rest.is_empty() {
        let Some(Joined { unit, words, attached }) = join::next(&mut rest) else { return false };
        if unit.0 as usize >= cluster.shape.pages {
            return false;
        }
        let outbox = Some(&mut outbox);
        with_tables!(tables, P => Nest::<P>::receive(cluster, from, unit, words, attached, outbox));
    }
    outbox.send(cluster);
    true
}

/// What this process's view may do with a unit, by the books.
pub fn access(cluster: &Cluster, tables: Tables, unit: UnitId) -> Access {
    let view = cluster.my_view();
    with_tables!(tables, P => P::access(cluster.mine().lock(unit).state::<P>(), view))
}

/// May a release leave its view the right to write?
pub fn keeps_rights(cluster: &Cluster, tables: Tables) -> bool {
    cluster.job.switches.rewrites == Rewrites::Keep && with_tables!(tables, P => P::KEEPS)
}

/// What this process's view may do with a unit that its release flushes now; and how many releases ago it flushed a change of the unit
/// before, if this is a release by which they are counted.
pub fn before_flush(
    cluster: &Cluster,
    tables: Tables,
    unit: UnitId,
    release: Option<Release>,
) -> (Access, Option<u32>) {
    let view = cluster.my_view();
    with_tables!(
        tables,
        P => {
            let mut locked = cluster.mine().lock(unit);
            let ago = release.and_then(|release| locked.flushed_in(release));
            (P::access(locked.state::<P>(), view), ago)
        }
    )
}

/// The home of a unit, as this node or the manager's memory knows it.
pub fn home(cluster: &Cluster, tables: Tables, unit: UnitId) -> Option<NodeId> {
    with_tables!(tables, P => known_home::<P>(cluster, unit))
}

/// Is the dirty list the node's, so that a release by any view flushes it?
pub const fn releases_node(tables: Tables) -> bool {
    with_tables!(tables, P => P::RELEASES_NODE)
}

/// Are mappings taken away while programs compute?
pub const fn revokes(tables: Tables) -> bool {
    with_tables!(tables, P => P::REVOKES)
}

fn known_home<P: Live>(cluster: &Cluster, unit: UnitId) -> Option<NodeId> {
    let place = cluster.place(cluster.me, unit);
    let copy = *cluster.mine().lock(unit).state::<P>();
    homes::known_home::<P>(&copy, place, |manager| {
        let managed = || P::managed_home(cluster.at(manager).lock(unit).manager::<P>());
        cluster.reach.maps(manager).then(managed).flatten()
    })
}

impl<'a, 'm, P: Live> Nest<'a, 'm, P> {
    fn present(
        here: Here<'a>,
        unit: UnitId,
        demand: Demand,
        change: Change,
        release: Option<(&'a mut DiffBuffer, Option<&'a mut Outbox<'m>>)>,
    ) -> Outcome {
        scene::with_room::<P, _>(|room| {
            let mut nest = Nest::<P>::new(here, unit, room);
            nest.scene.by_view(change);
            if let Some((buffer, outbox)) = release {
                (nest.scene.buffer, nest.scene.outbox) = (Some(buffer), outbox);
            }
            if let Demand::ReadFault { since, .. } = demand {
                nest.scene.early.since = Some(since);
            }
            let outcome = nest.run_demand(demand);
            nest.finish();
            outcome
        })
    }

    fn receive(
        cluster: &'a Cluster,
        from: NodeId,
        unit: UnitId,
        (number, word): (u8, u64),
        attached: Attached<'a>,
        outbox: Option<&'a mut Outbox<'m>>,
    ) {
        let Some(msg) = P::Msg::of_words(number, word) else { misuse::malformed_message(cluster, from) };
        scene::with_room::<P, _>(|room| {
            let mut nest = Nest::<P>::new((cluster, meter::slot(cluster)), unit, room);
            nest.scene.outbox = outbox;
            nest.transaction.deliver(&mut nest.scene, from, cluster.me, msg, attached);
            nest.transaction.run(&mut nest.scene);
            nest.finish();
        });
    }

    /// The unit, locked at this process's node. Made where it stays, in one expression: to move a kilobyte takes as long as some of what
    /// it is for.
    #[inline(always)]
    fn new((cluster, slot): Here<'a>, unit: UnitId, room: Option<&'a mut Copied>) -> Self {
        let place = cluster.place(cluster.me, unit);
        let held = [Some((cluster.me, cluster.mine().lock(unit))), None, None];
        Self {
            transaction: Transaction::new(),
            scene: Scene {
                cluster,
                unit,
                place,
                slot,
                wanted: Wanted::new(Change::Shrink, Access::None),
                early: Early::default(),
                held,
                buffer: None,
                room,
                outbox: None,
                protocol: PhantomData,
            },
        }
    }

    /// Presents an event of this process's view; a fault again where its answer came inside the nest, whose locks need not be given
    /// back before it is used.
    fn run_demand(&mut self, demand: Demand) -> Outcome {
        let outcome = self.run_once(demand);
        let is_fault = matches!(demand, Demand::ReadFault { .. } | Demand::WriteFault { .. });
        if is_fault && outcome == Outcome::Wait && self.scene.answers_inside() {
            return self.run_once(demand);
        }
        outcome
    }

    /// Presents an event of this process's view, with all that it brings about inside.
    fn run_once(&mut self, demand: Demand) -> Outcome {
        let Self { transaction, scene } = self;
        let me = scene.cluster.me;
        let outcome = transaction.present(scene, me, demand.of());
        transaction.run(scene);
        outcome
    }

    /// Executes what was put aside, each message under locks of its own. The nest's own are given back before; where nothing was put
    /// aside, with the nest.
    #[inline(always)]
    fn finish(&mut self) {
        let Self { transaction, scene } = self;
        if !transaction.is_over() {
            scene.give_back_from(0);
            scene.leave_presenter();
            transaction.finish(scene);
        }
    }
}
