//! Memory consistency, as the rest of the runtime asks for it: each question goes to the engine that the job has ([`crate::node::engine`]).
//!
//! ```text
//!   faults, program calls --> fault, release, acquire        policy          --> early: what it guesses, presented early
//!   messages              --> receive                        sync driver     --> along: what grants and releases tell
//!   barrier               --> collection                     program, limits --> units: what is known of a page
//!                                   |                  |
//!                          nest (home-based)      tmk (lazy)
//! ```

pub mod along;
pub mod attached;
pub mod early;
pub mod guesses;
pub mod join;
pub mod mappings;
pub mod nest;
pub mod policy;
pub mod revoke;
pub mod rights;
pub mod tmk;
pub mod units;

use finespun_protocol::page::Time;
use finespun_types::{NodeId, UnitId};

use crate::consistency::attached::Attached;
use crate::consistency::nest::{Here, steps as home};
use crate::consistency::tmk::asks;
use crate::consistency::tmk::collect::Collection;
use crate::consistency::tmk::{arrivals, steps as lazy};
use crate::messages::wire::Letter;
use crate::node::cluster::Cluster;
use crate::node::engine::Engine;
use crate::node::{hooks, misuse};

/// Serves a fault of this process's view: the page is there when this returns, to read or to write.
pub fn fault(here: Here<'_>, unit: UnitId, writes: bool, since: Time) {
    let (cluster, _) = here;
    match cluster.engine {
        Engine::Home(tables) => home::fault(here, tables, unit, writes, since),
        Engine::Lazy => asks::fault(cluster, unit, writes),
    }
}

/// Release: what this process's processors have stored is where their next acquirers will find it.
pub fn release(cluster: &Cluster) {
    if let Some(told) = hooks::stores() {
        told.releases();
    }
    match cluster.engine {
        Engine::Home(tables) => home::release(cluster, tables),
        Engine::Lazy => lazy::release(cluster),
    }
}

/// Would a release do nothing? False also where that is not looked at.
#[inline(always)]
pub fn has_nothing_to_release(cluster: &Cluster) -> bool {
    match cluster.engine {
        Engine::Home(tables) => home::has_nothing_to_release(cluster, tables),
        Engine::Lazy => false,
    }
}

/// Acquire: obeys every write notice that has come.
pub fn acquire(cluster: &Cluster) {
    match cluster.engine {
        Engine::Home(tables) => home::acquire(cluster, tables),
        Engine::Lazy => lazy::acquire(cluster),
    }
}

/// Would an acquire do nothing? False also where that is not looked at.
#[inline(always)]
pub fn has_nothing_to_acquire(cluster: &Cluster) -> bool {
    match cluster.engine {
        Engine::Home(tables) => home::has_nothing_to_acquire(cluster, tables),
        Engine::Lazy => false,
    }
}

/// Does what another node releases change this node's copies, or their rights, without being asked for?
pub fn brings_news(cluster: &Cluster) -> bool {
    match cluster.engine {
        Engine::Home(_) => true,
        Engine::Lazy => false,
    }
}

/// A message of another node's engine came.
pub fn receive(cluster: &Cluster, from: NodeId, letter: Letter<'_>) {
    match cluster.engine {
        Engine::Home(tables) => {
            let attached = Attached::of(&letter).filter(|_| (letter.unit as usize) < cluster.shape.pages);
            let Some(attached) = attached else { misuse::malformed_message(cluster, from) };
            nest::receive(cluster, tables, from, UnitId(letter.unit), letter.msg, attached);
        }
        Engine::Lazy => arrivals::receive(cluster, from, letter),
    }
}

/// Several came in one.
pub fn receive_joined(cluster: &Cluster, from: NodeId, letters: &[u8]) {
    let is_read = match cluster.engine {
        Engine::Home(tables) => nest::receive_joined(cluster, tables, from, letters),
        Engine::Lazy => false,
    };
    if !is_read {
        misuse::malformed_message(cluster, from);
    }
}

/// The collection that follows the barrier of all that was just passed, for `weight` processors of this node.
pub fn collection(cluster: &Cluster, weight: u32) -> Option<Collection> {
    match cluster.engine {
        Engine::Home(_) => None,
        Engine::Lazy => Collection::wished(cluster, weight),
    }
}
