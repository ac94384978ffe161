//! Read faults that have not happened yet: see [`crate::ahead`].

use finespun_protocol::cashmere::variants::Way;
use finespun_protocol::page::{Ahead, Demand, Outcome, Time};
use finespun_types::{NodeId, UnitId};

use super::{Attached, Nest, Rights};
use crate::cluster::Cluster;
use crate::live::Live;
use crate::misuse;

/// What became of such a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// The page would not be fetched now. The stream ends here for the time being.
    Refused,
    /// Open already.
    WasOpen,
    /// To be opened by the caller.
    Left,
    /// The answer is awaited: to be presented as a fault.
    Asked,
}

impl<'a, P: Live> Nest<'a, '_, P> {
    pub(super) fn try_ahead(cluster: &'a Cluster, unit: UnitId, since: Time) -> Tried {
        let view = cluster.my_view();
        let mut nest = Self::of_view(cluster, unit, Rights::Left);
        let fault = Demand::ReadFault { view, since };
        let present = |nest: &mut Self| nest.run_unit(cluster.me, fault.of(), Attached::Nothing);
        match P::ahead(nest.at(cluster.me).state::<P>(), cluster.place(cluster.me, unit), view) {
            Ahead::No => return Tried::Refused,
            Ahead::Mapped => return Tried::WasOpen,
            Ahead::HasCopy => {}
            kind @ (Ahead::Again | Ahead::First) => {
                if nest.home().is_none() && nest.is_chosen() {
                    // Brings the name of the home, and nothing else yet: the manager's lock may not be taken over the home's.
                    present(&mut nest);
                }
                match nest.is_read_at_home() {
                    Some(true) => {}
                    // Who may not look at the home goes by what was: whose page was shared before will be shared again.
                    None if kind == Ahead::Again => {}
                    Some(false) | None => return Tried::Refused,
                }
            }
        }
        let mut outcome = present(&mut nest);
        if outcome == Outcome::Wait && cluster.mesh.is_none() {
            // The answer came inside the nest, whose locks need not be given back before it is used.
            outcome = present(&mut nest);
        }
        let is_left = nest.is_left;
        nest.finish();
        match outcome {
            Outcome::Wait => Tried::Asked,
            Outcome::Done if is_left => Tried::Left,
            Outcome::Done => Tried::WasOpen,
            Outcome::Begun => misuse::bug(cluster, unit, cluster.me, &"a read fault began a flush"),
        }
    }

    /// The home, as this node knows it.
    fn home(&mut self) -> Option<NodeId> {
        let me = self.cluster.me;
        self.cluster.place(me, self.unit).fixed_home.or_else(|| P::home(self.at(me).state::<P>()))
    }

    fn may_look_at(&self, node: NodeId) -> bool {
        let cluster = self.cluster;
        node == cluster.me || (cluster.variant.metadata == Way::Direct && cluster.reaches(node))
    }

    /// Has somebody touched the page, so that it has a home? A guess does not decide whose it is. False if this process may not
    /// look at the manager.
    fn is_chosen(&mut self) -> bool {
        let manager = self.cluster.place(self.cluster.me, self.unit).manager;
        if !self.may_look_at(manager) {
            return false;
        }
        let held = self.held.iter().flatten().count();
        let home = P::managed_home(self.at(manager).manager::<P>());
        self.give_back_from(held);
        home.is_some()
    }

    /// Do others read the page, by its home's entry? `None` if the home is not known, or this process may not look there. Over the
    /// home's lock, which the fault would take next.
    fn is_read_at_home(&mut self) -> Option<bool> {
        let home = self.home().filter(|home| self.may_look_at(*home))?;
        Some(P::is_read(self.at(home).directory::<P>()))
    }
}
