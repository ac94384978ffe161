//! A write notice obeyed, and the page fetched anew in the same nest: see [`crate::refresh`].

use finespun_engine::Acquire;
use finespun_protocol::page::Time;
use finespun_types::{Access, UnitId};

use super::scene;
use super::{Broadcasting, Cashmere, Family, Migrating, Nest, Rights, StringsRc, StringsSc};
use crate::cluster::Cluster;
use crate::live::Live;
use crate::sys::frames::Row;

/// What became of a page that a notice names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obeyed {
    /// Nothing is left to do: it is new enough, or not mapped, or closed already.
    Stands,
    /// To be closed by the caller.
    Closes,
    /// Fetched anew; it stays open.
    Refreshed,
    /// The answer is awaited, to be presented as a fault; it stays open.
    Asked,
}

/// A view of this process obeys a write notice; and may fetch the page anew at once, if it was open to read: see
/// [`crate::refresh`]. Only under the view's `acquiring` lock, for the reasons that [`super::present_leaving`] gives.
pub fn obey(cluster: &Cluster, unit: UnitId, row: Option<&mut Row>, since: Time, refreshes: bool) -> Obeyed {
    let no_nest = || unreachable!("lazy release consistency has an engine of its own");
    with_tables!(cluster.shape.family, P => Nest::<P>::obey(cluster, unit, row, since, refreshes), no_nest())
}

impl<'a, P: Live> Nest<'a, '_, P> {
    fn obey(cluster: &'a Cluster, unit: UnitId, row: Option<&'a mut Row>, since: Time, refreshes: bool) -> Obeyed {
        let mut room = scene::room::<P>();
        let mut nest = Nest::<P>::new(cluster, unit, &mut room);
        nest.scene.by_view(Rights::Left);
        nest.scene.row = row;
        nest.run_once(Acquire { view: cluster.my_view() }.demand());
        let obeyed = match nest.scene.is_left {
            false => Obeyed::Stands,
            // The view's next load, presented now.
            true if refreshes && nest.scene.before == Access::Read => {
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
    }
}
