//! What the runtime asks of an engine about units, and about itself.

use finespun_types::{Access, NodeId, UnitId};

use crate::consistency::nest;
use crate::consistency::tmk::copy;
use crate::node::cluster::Cluster;
use crate::node::engine::{Engine, Tables};

/// What this process's view may do with a unit, by the books.
pub fn access(cluster: &Cluster, unit: UnitId) -> Access {
    match cluster.engine {
        Engine::Home(tables) => nest::access(cluster, tables, unit),
        Engine::Lazy => copy::access(cluster, unit),
    }
}

/// The home of a unit, as this node or the manager's memory knows it. Without homes: the node that wrote it last, the nearest to one.
pub fn home(cluster: &Cluster, unit: UnitId) -> Option<NodeId> {
    match cluster.engine {
        Engine::Home(tables) => nest::home(cluster, tables, unit),
        Engine::Lazy => cluster.place(cluster.me, unit).fixed_home.or_else(|| copy::last_writer(cluster, unit)),
    }
}

/// The tables under which mappings are taken away while programs compute, if the job has such.
pub const fn revoking(cluster: &Cluster) -> Option<Tables> {
    match cluster.engine {
        Engine::Home(tables) if nest::revokes(tables) => Some(tables),
        Engine::Home(_) | Engine::Lazy => None,
    }
}

/// Has any node touched a unit, as far as this one knows? `None`: its manager knows.
pub fn is_touched(cluster: &Cluster, unit: UnitId) -> Option<bool> {
    let place = cluster.place(cluster.me, unit);
    match cluster.engine {
        _ if place.fixed_home.is_some() => Some(true),
        Engine::Home(_) => cluster.reach.maps(place.manager).then(|| cluster.at(place.manager).has_given_home(unit)),
        Engine::Lazy => Some(copy::has_heard_of(cluster, unit)),
    }
}

/// Does the release of one view cover the stores of all views of its node?
pub const fn releases_whole_node(cluster: &Cluster) -> bool {
    match cluster.engine {
        Engine::Home(Tables::StringsRc | Tables::StringsSc) => true,
        Engine::Home(Tables::Cashmere | Tables::Broadcasting | Tables::Migrating) | Engine::Lazy => false,
    }
}
