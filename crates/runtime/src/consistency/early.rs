//! What a policy presents early ([`crate::consistency::policy`]): read faults that have not happened, or that are served with others.

use finespun_protocol::page::Time;
use finespun_types::UnitId;

use crate::consistency::guesses::{Guessed, Tried};
use crate::consistency::nest::early as home;
use crate::consistency::tmk::asks as lazy;
use crate::messages::wait;
use crate::node::cluster::Cluster;
use crate::node::engine::Engine;
use crate::sys::frames::Row;

/// Presents a read fault that has not happened, unless it would take more from another node than the guess is worth.
pub fn try_ahead(cluster: &Cluster, guessed: Guessed, row: &mut Row, since: Time) -> Tried {
    match cluster.engine {
        Engine::Home(tables) => home::try_ahead(cluster, tables, guessed, row, since),
        Engine::Lazy => lazy::try_ahead(cluster, guessed.unit),
    }
}

/// A view of this process presents a read fault that has happened. The caller opens the page with others.
pub fn read(cluster: &Cluster, unit: UnitId, since: Time) -> Tried {
    match cluster.engine {
        Engine::Home(tables) => home::read(cluster, tables, unit, since),
        Engine::Lazy => lazy::read(cluster, unit),
    }
}

/// Presents a read fault until its answer has come: true if the caller opens the page. Over messages the thread sleeps between two looks.
pub fn until_read(cluster: &Cluster, unit: UnitId, since: Time) -> bool {
    loop {
        let last = wait::last_event(cluster);
        match read(cluster, unit, since) {
            Tried::Wanted => return true,
            Tried::WasOpen | Tried::Refused => return false,
            Tried::Asked => {}
        }
        // Without messages the answer came inside the transaction.
        if cluster.reach.sends_messages() {
            cluster.flush_messages();
            wait::for_event(cluster, last);
        }
    }
}

/// Has another node the page exclusively, as far as this process may see?
pub fn is_taken(cluster: &Cluster, unit: UnitId) -> bool {
    match cluster.engine {
        Engine::Home(tables) => home::is_taken(cluster, tables, unit),
        Engine::Lazy => false,
    }
}

/// May the engine serve a fault with others? The lazy one only where no answer has to be awaited.
pub const fn reads_ahead(cluster: &Cluster) -> bool {
    match cluster.engine {
        Engine::Home(tables) => home::reads_ahead(tables),
        Engine::Lazy => cluster.reach.is_direct(),
    }
}

/// May an acquire fetch pages anew?
pub const fn refreshes(cluster: &Cluster) -> bool {
    match cluster.engine {
        Engine::Home(tables) => home::reads_ahead(tables),
        Engine::Lazy => false,
    }
}
