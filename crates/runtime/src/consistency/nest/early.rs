//! Events that a policy presents early ([`crate::consistency::policy`]): faults that have not happened, and what they bring in an acquire.
//!
//! **What a guess may take.** A guess never decides a home: the page goes to the node that touches it. An exclusive mode is ended by one where
//! the [`Guess`] is good: if the view has read the page right behind its neighbour before, or if the page of the fault itself was
//! found exclusive elsewhere, so that the stream runs over what another node has just written. If the guess is wrong the owner
//! pays: a twin, a comparison and a notice at its next release, and a fault at its next store after that, some 5 us, beside
//! the page that crossed in vain. Who may not look at the home, over messages, cannot know which pages are exclusive: a known one is
//! asked for like any other, one that comes for the first time only behind a long stream, and if its home is known.

use finespun_engine::Acquire;
use finespun_protocol::page::{Ahead, Demand, Outcome, Protocol, Time};
use finespun_types::{Access, NodeId, UnitId};

use super::scene::{self, Early, Scene};
use super::{Broadcasting, Cashmere, Here, Migrating, Nest, StringsRc, StringsSc};
use crate::consistency::guesses::{Guess, Guessed, Obeyed, Tried};
use crate::consistency::mappings::Change;
use crate::node::cluster::Cluster;
use crate::node::engine::Tables;
use crate::node::{meter, misuse};
use crate::sys::frames::Row;
use crate::sys::live::Live;

/// Presents a read fault that has not happened, unless it would take more from another node than the guess is worth.
pub fn try_ahead(cluster: &Cluster, tables: Tables, guessed: Guessed, row: &mut Row, since: Time) -> Tried {
    with_tables!(tables, P => Nest::<P>::try_ahead(cluster, guessed, row, since))
}

/// A view of this process obeys a write notice, and may fetch the page anew at once, if it was open to read. Only under the view's
/// `acquiring` lock.
pub fn obey(
    here: Here<'_>,
    tables: Tables,
    unit: UnitId,
    copies: Option<&mut Row>,
    (since, refreshes): (Time, bool),
) -> Obeyed {
    with_tables!(tables, P => Nest::<P>::obey(here, unit, copies, since, refreshes))
}

/// A view of this process presents a read fault that has happened. The caller opens the page with others.
pub fn read(cluster: &Cluster, tables: Tables, unit: UnitId, since: Time) -> Tried {
    with_tables!(tables, P => Nest::<P>::read(cluster, unit, since))
}

/// Has another node the page exclusively, as far as this process may see?
pub fn is_taken(cluster: &Cluster, tables: Tables, unit: UnitId) -> bool {
    with_tables!(tables, P => Nest::<P>::is_taken(cluster, unit))
}

/// May the protocol serve a fault with others, and an acquire fetch pages anew?
pub const fn reads_ahead(tables: Tables) -> bool {
    with_tables!(tables, P => P::READS_AHEAD)
}

impl<'a, P: Live> Nest<'a, '_, P> {
    /// Has another node the page exclusively, as far as this process may see?
    fn is_taken(cluster: &'a Cluster, unit: UnitId) -> bool {
        let mut nest = Nest::<P>::new((cluster, meter::slot(cluster)), unit, None);
        nest.scene.home_entry().is_some_and(|entry| P::is_exclusive(entry))
    }

    fn try_ahead(cluster: &'a Cluster, guessed: Guessed, row: &'a mut Row, since: Time) -> Tried {
        let Guessed { unit, guess } = guessed;
        scene::with_room::<P, _>(|room| {
            let mut nest = Nest::<P>::new((cluster, meter::slot(cluster)), unit, room);
            nest.scene.by_view(Change::Together);
            // The clock does not tick for each page of a run.
            nest.scene.early = Early { since: Some(since), copies: Some(row) };
            match nest.scene.meaning() {
                Ahead::No => return Tried::Refused,
                Ahead::Mapped => return Tried::WasOpen,
                Ahead::HasCopy => {}
                kind @ (Ahead::Again | Ahead::First) => {
                    if nest.scene.home().is_none() && nest.scene.is_chosen() {
                        // Brings the name of the home, and nothing else yet: the manager's lock may not be taken over the home's.
                        nest.run_once(Demand::ReadFault { view: cluster.my_view(), since });
                    }
                    if nest.scene.home().is_none() || !nest.scene.is_worth(guess, kind) {
                        return Tried::Refused;
                    }
                }
            }
            nest.tried(since)
        })
    }

    fn obey(here: Here<'a>, unit: UnitId, copies: Option<&'a mut Row>, since: Time, refreshes: bool) -> Obeyed {
        scene::with_room::<P, _>(|room| {
            let mut nest = Nest::<P>::new(here, unit, room);
            nest.scene.by_view(Change::Together);
            nest.scene.early.copies = copies;
            nest.run_once(Acquire { view: here.0.my_view() }.demand());
            let wanted = nest.scene.wanted;
            let obeyed = match wanted.is_left() {
                false => Obeyed::Stands,
                // The view's next load, presented now.
                true if refreshes && wanted.before() == Access::Read => {
                    if nest.read_early(since) {
                        Obeyed::Refreshed
                    } else {
                        Obeyed::Asked
                    }
                }
                true => Obeyed::Closes,
            };
            nest.finish();
            obeyed
        })
    }

    fn read(cluster: &'a Cluster, unit: UnitId, since: Time) -> Tried {
        scene::with_room::<P, _>(|room| {
            let mut nest = Nest::<P>::new((cluster, meter::slot(cluster)), unit, room);
            nest.scene.by_view(Change::Together);
            nest.scene.early.since = Some(since);
            nest.tried(since)
        })
    }

    /// Presents a read fault, and ends the nest.
    fn tried(&mut self, since: Time) -> Tried {
        let is_there = self.read_early(since);
        let is_wanted = self.scene.wanted.is_left();
        self.finish();
        match (is_there, is_wanted) {
            (false, _) => Tried::Asked,
            (true, true) => Tried::Wanted,
            (true, false) => Tried::WasOpen,
        }
    }

    /// Presents a read fault that has not happened. Is the page there? Else the answer is awaited.
    fn read_early(&mut self, since: Time) -> bool {
        let cluster = self.scene.cluster;
        match self.run_demand(Demand::ReadFault { view: cluster.my_view(), since }) {
            Outcome::Wait => false,
            Outcome::Done => true,
            Outcome::Begun => misuse::bug(cluster, self.scene.unit, cluster.me, &"a read fault began a flush"),
        }
    }
}

/// What the tables tell beside the transaction.
impl<P: Live> Scene<'_, '_, P> {
    /// What a fault of this process's view would mean now.
    fn meaning(&mut self) -> Ahead {
        let (me, view, place) = (self.cluster.me, self.cluster.my_view(), self.place);
        P::ahead(self.at(me).state::<P>(), place, view)
    }

    /// The home, as this node knows it: whom the fault would ask. Where homes move, the address fixes only the first of them, and a lock
    /// of an earlier home over that of a later one would close a circle.
    fn home(&mut self) -> Option<NodeId> {
        let me = self.cluster.me;
        self.home_at(me)
    }

    fn may_look_at(&self, node: NodeId) -> bool {
        self.cluster.reach.looks_at(node)
    }

    /// Has somebody touched the page, so that it has a home? A guess does not decide whose it is. False if this process may not
    /// look at the manager.
    fn is_chosen(&mut self) -> bool {
        let manager = self.place.manager;
        if !self.may_look_at(manager) {
            return false;
        }
        let held = self.held.iter().flatten().count();
        let home = P::managed_home(self.at(manager).manager::<P>());
        self.give_back_from(held);
        home.is_some()
    }

    /// Does the guess justify to fetch the page? Looks at the home over the lock that the fault would take next.
    fn is_worth(&mut self, guess: Guess, kind: Ahead) -> bool {
        if guess == Guess::Known {
            return true;
        }
        let ends = guess.may_end_exclusive_mode();
        match self.home_entry() {
            Some(entry) => P::is_read(entry) || (ends && P::is_exclusive(entry)),
            // Who may not look goes by what was: whose page was shared before will be shared again.
            None => ends || kind == Ahead::Again,
        }
    }

    /// The home's entry, if the home is known and this process may look there.
    fn home_entry(&mut self) -> Option<&P::Directory> {
        let home = self.home().filter(|home| self.may_look_at(*home))?;
        Some(self.at(home).directory::<P>())
    }
}
