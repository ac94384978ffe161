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
        match P::ahead(nest.at(cluster.me).state::<P>(), cluster.place(cluster.me, unit), view) {
            Ahead::No => return Tried::Refused,
            Ahead::Mapped => return Tried::WasOpen,
            Ahead::HasCopy => {}
            kind @ (Ahead::Again | Ahead::First) => match nest.is_read_at_home() {
                Some(true) => {}
                // Who may not look at the home goes by what was: whose page was shared before will be shared again.
                None if kind == Ahead::Again => {}
                Some(false) | None => return Tried::Refused,
            },
        }
        let outcome = nest.run_unit(cluster.me, Demand::ReadFault { view, since }.of(), Attached::Nothing);
        let is_left = nest.is_left;
        nest.finish();
        match outcome {
            Outcome::Wait => Tried::Asked,
            Outcome::Done if is_left => Tried::Left,
            Outcome::Done => Tried::WasOpen,
            Outcome::Begun => misuse::bug(cluster, unit, cluster.me, &"a read fault began a flush"),
        }
    }

    /// Do others read the page, by its home's entry? `None` if this process may not look there. Over the home's lock, which
    /// the fault would take next.
    fn is_read_at_home(&mut self) -> Option<bool> {
        let (cluster, me) = (self.cluster, self.cluster.me);
        let may_look = |at: NodeId| at == me || (cluster.variant.metadata == Way::Direct && cluster.reaches(at));
        let place = cluster.place(me, self.unit);
        let known = place.fixed_home.or_else(|| P::home(self.at(me).state::<P>()));
        let home = match known {
            Some(home) => home,
            None if !may_look(place.manager) => return None,
            None => {
                let held = self.held.iter().flatten().count();
                let home = P::managed_home(self.at(place.manager).manager::<P>());
                self.give_back_from(held);
                // None if nobody has touched the page: not for a guess to decide whose it is.
                home?
            }
        };
        may_look(home).then(|| P::is_read(self.at(home).directory::<P>()))
    }
}
