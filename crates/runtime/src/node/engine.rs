//! The two engines of memory consistency, and the one place where a job's is chosen.
//!
//! ```text
//!   Home   a unit has a home: nest, with the tables of one of five families
//!   Lazy   no home, intervals and vector times: tmk
//! ```
//!
//! [`crate::node::cluster::Cluster::join`] chooses. What all parts of the runtime ask of an engine is in [`crate::consistency`].

use finespun_protocol::Family;

/// A job's engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Home-based, with these tables.
    Home(Tables),
    /// Lazy release consistency.
    Lazy,
}

/// The tables of a home-based protocol: each has the name of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// See [`finespun_protocol::cashmere`].
    Cashmere,
    /// See [`finespun_protocol::cashmere::broadcast`].
    Broadcasting,
    /// See [`finespun_protocol::cashmere::migration`].
    Migrating,
    /// See [`finespun_protocol::strings::update`].
    StringsRc,
    /// See [`finespun_protocol::strings::invalidate`].
    StringsSc,
}

impl Engine {
    /// The engine that runs a family's protocols.
    pub const fn of(family: Family) -> Self {
        match family {
            Family::Cashmere => Self::Home(Tables::Cashmere),
            Family::Broadcasting => Self::Home(Tables::Broadcasting),
            Family::Migrating => Self::Home(Tables::Migrating),
            Family::StringsRc => Self::Home(Tables::StringsRc),
            Family::StringsSc => Self::Home(Tables::StringsSc),
            Family::Tmk => Self::Lazy,
        }
    }

    /// Must the manager of an object hear of every release, and tell at every grant? Then no processor changes an object's word beside
    /// its table.
    pub const fn tells_managers(self) -> bool {
        match self {
            Self::Home(_) => false,
            Self::Lazy => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lazy_release_consistency_tells_managers() {
        assert!(Engine::of(Family::Tmk).tells_managers());
        let homes = [Family::Cashmere, Family::Broadcasting, Family::Migrating, Family::StringsRc, Family::StringsSc];
        assert!(homes.iter().all(|family| !Engine::of(*family).tells_managers()));
    }
}
