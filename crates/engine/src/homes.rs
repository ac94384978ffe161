//! Which node decides the home of a unit, and which one keeps what the job has once.
//!
//! A unit's *manager* decides its home by first touch, where its address does not fix one [Cashmere05 §2.1]. Units side by side have one
//! manager, in runs, so that a node that fills an array asks each manager for many homes in a row.

use finespun_protocol::page::{Place, Protocol};
use finespun_types::{NodeId, UnitId};

/// The node that keeps the tables of the heap and of the threads.
pub const KEEPER: NodeId = NodeId(0);

/// How units are dealt to managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Homes {
    nodes: u32,
    run_log2: u32,
}

impl Homes {
    /// Runs of `1 << run_log2` units go to so many nodes by turns.
    #[inline]
    #[must_use]
    pub const fn new(nodes: u32, run_log2: u32) -> Self {
        assert!(nodes > 0, "a job has a node");
        Self { nodes, run_log2 }
    }

    /// The node that decides the home.
    #[inline]
    #[must_use]
    pub const fn manager_of(&self, unit: UnitId) -> NodeId {
        let run = unit.0 >> self.run_log2;
        // A division takes as long as all the rest of a place.
        let node = if self.nodes.is_power_of_two() { run & (self.nodes - 1) } else { run % self.nodes };
        NodeId::of(node as usize)
    }

    /// What the unit's address says, at a node. `fixed`: the home that the address fixes.
    #[inline]
    #[must_use]
    pub const fn place(&self, me: NodeId, unit: UnitId, fixed: Option<NodeId>) -> Place {
        Place { me, manager: self.manager_of(unit), fixed_home: fixed }
    }
}

/// The home of a unit, as a node knows it: by its copy, else by the address, else by what its manager tells, if that can be looked at.
/// Another node may have touched the unit first, and this one has not heard of it.
pub fn known_home<P: Protocol>(
    copy: &P::Unit,
    place: Place,
    managed: impl FnOnce(NodeId) -> Option<NodeId>,
) -> Option<NodeId> {
    P::home(copy).or(place.fixed_home).or_else(|| managed(place.manager))
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn units_go_to_managers_in_runs_by_turns() {
        let homes = Homes::new(3, 2);
        let managers: Vec<u16> = (0..14).map(|unit| homes.manager_of(UnitId(unit)).0).collect();
        assert_eq!(managers, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0]);
        assert!((0..100).all(|unit| Homes::new(1, 4).manager_of(UnitId(unit)) == NodeId(0)));
    }

    #[test]
    fn every_node_manages_as_many_units_as_the_others() {
        for nodes in 1..=64 {
            let mut units = std::vec![0; nodes as usize];
            (0..nodes * 16 * 3)
                .for_each(|unit| units[usize::from(Homes::new(nodes, 4).manager_of(UnitId(unit)).0)] += 1);
            assert!(units.iter().all(|count| *count == 48), "{nodes} nodes: {units:?}");
        }
    }

    #[test]
    fn a_place_has_the_manager_and_what_the_address_fixes() {
        let fixed = Some(NodeId(3));
        let place = Homes::new(4, 0).place(NodeId(1), UnitId(6), fixed);
        assert_eq!(place, Place { me: NodeId(1), manager: NodeId(2), fixed_home: fixed });
    }
}
