//! The worlds that are explored completely, by what they are about. The counts of states are pinned: a change of the
//! protocol, meant or not, shows as another number.

pub mod broadcast;
mod common;
pub mod migration;
mod pinned;

pub use common::WORLDS;
pub use pinned::{WAYS, World};

/// The world of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static World> {
    WORLDS.iter().chain(broadcast::WORLDS).chain(migration::WORLDS).find(|world| world.name == name)
}
