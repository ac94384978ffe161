//! Breadth-first search over every interleaving of a small world.

use std::collections::{HashSet, VecDeque};

use crate::script::Script;
use crate::world::{Bug, Delivery, Setting, World};

/// What the search found.
#[derive(Debug)]
pub struct Report {
    /// How many distinct states were reached.
    pub states: usize,
    /// The first violation, with the moves that lead to it.
    pub violation: Option<(String, Vec<String>)>,
}

/// Every interleaving of these scripts.
pub fn explore(delivery: Delivery, scripts: &[Script]) -> Report {
    explore_with_bug(delivery, scripts, |_, _, _, _| {})
}

/// The same with a seeded bug, to show that the search can fail.
pub fn explore_with_bug(delivery: Delivery, scripts: &[Script], bug: Bug) -> Report {
    let setting = Setting { scripts: scripts.to_vec(), delivery, bug };
    let first = World::new(&setting);
    let mut seen = HashSet::from([first.clone()]);
    let mut parents = vec![(0, String::new())];
    let mut queue = VecDeque::from([(first, 0)]);
    while let Some((mut world, id)) = queue.pop_front() {
        let moves = world.moves(&setting);
        if moves.is_empty()
            && let Err(why) = world.check_end(&setting)
        {
            return Report { states: seen.len(), violation: Some((why, path(&parents, id))) };
        }
        for next in moves {
            let mut after = world.clone();
            if let Err(why) = after.step(&setting, next) {
                parents.push((id, format!("{next:?}")));
                return Report { states: seen.len(), violation: Some((why, path(&parents, parents.len() - 1))) };
            }
            if seen.insert(after.clone()) {
                parents.push((id, format!("{next:?}")));
                queue.push_back((after, parents.len() - 1));
            }
        }
    }
    Report { states: seen.len(), violation: None }
}

fn path(parents: &[(usize, String)], mut id: usize) -> Vec<String> {
    let mut names = Vec::new();
    while id != 0 {
        names.push(parents[id].1.clone());
        id = parents[id].0;
    }
    names.reverse();
    names
}
