//! Files and arrows: circles, the arrows that tie them, floors.

use std::collections::BTreeSet;

/// Files by number, and which uses which.
pub struct Graph {
    names: Vec<String>,
    uses: Vec<BTreeSet<usize>>,
    /// The circle that each file belongs to; numbers grow upwards: what a file uses has a smaller one, or the same.
    circle_of: Vec<usize>,
}

impl Graph {
    /// `uses[a]` holds the files that `a` uses; an arrow of a file to itself is none.
    pub fn new(names: Vec<String>, mut uses: Vec<BTreeSet<usize>>) -> Self {
        for (file, uses) in uses.iter_mut().enumerate() {
            uses.remove(&file);
        }
        let circle_of = Tarjan::new(&uses).circles();
        Self { names, uses, circle_of }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn name(&self, file: usize) -> &str {
        &self.names[file]
    }

    pub fn uses(&self, file: usize) -> impl Iterator<Item = usize> + '_ {
        self.uses[file].iter().copied()
    }

    pub fn arrows(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.len()).flat_map(|from| self.uses(from).map(move |to| (from, to)))
    }

    /// Sets of two files and more that reach each other.
    pub fn circles(&self) -> Vec<Vec<usize>> {
        let count = self.circle_of.iter().max().map_or(0, |&last| last + 1);
        let members = |circle| (0..self.len()).filter(|&file| self.circle_of[file] == circle).collect::<Vec<_>>();
        (0..count).map(members).filter(|files| files.len() > 1).collect()
    }

    /// A small set of arrows without which the files of `circle` form none: those that go up in an order that leaves few
    /// of them, found by taking the file with the fewest users among the rest, again and again.
    pub fn ties(&self, circle: &[usize]) -> Vec<(usize, usize)> {
        let mut rest: BTreeSet<usize> = circle.iter().copied().collect();
        let mut ties = Vec::new();
        while !rest.is_empty() {
            let among = |file: usize, rest: &BTreeSet<usize>| {
                rest.iter().filter(|&&user| self.uses[user].contains(&file)).count()
            };
            let used = |file: usize, rest: &BTreeSet<usize>| self.uses[file].intersection(rest).count();
            let top = *rest
                .iter()
                .min_by_key(|&&file| (among(file, &rest), usize::MAX - used(file, &rest)))
                .expect("a file is left");
            rest.remove(&top);
            ties.extend(rest.iter().filter(|&&user| self.uses[user].contains(&top)).map(|&user| (user, top)));
        }
        ties
    }

    /// How many floors the files stand on.
    pub fn floors(&self) -> usize {
        (0..self.len()).map(|file| self.floor(file) + 1).max().unwrap_or(0)
    }

    pub fn on_floor(&self, floor: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter(move |&file| self.floor(file) == floor)
    }

    /// How many files stand below, one under the other; a circle counts as one.
    fn floor(&self, file: usize) -> usize {
        let mut floors = vec![0; self.len()];
        for circle in 0..=self.circle_of[file] {
            let members: Vec<usize> = (0..self.len()).filter(|&member| self.circle_of[member] == circle).collect();
            let below = members.iter().flat_map(|&member| self.uses(member)).filter(|&to| self.circle_of[to] != circle);
            let floor = below.map(|to| floors[to] + 1).max().unwrap_or(0);
            members.iter().for_each(|&member| floors[member] = floor);
        }
        floors[file]
    }
}

/// Tarjan's strongly connected components.
struct Tarjan<'a> {
    uses: &'a [BTreeSet<usize>],
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    stack: Vec<usize>,
    circle_of: Vec<Option<usize>>,
    visited: usize,
    circles: usize,
}

impl<'a> Tarjan<'a> {
    fn new(uses: &'a [BTreeSet<usize>]) -> Self {
        let len = uses.len();
        Self {
            uses,
            index: vec![None; len],
            low: vec![0; len],
            stack: Vec::new(),
            circle_of: vec![None; len],
            visited: 0,
            circles: 0,
        }
    }

    fn circles(mut self) -> Vec<usize> {
        for file in 0..self.uses.len() {
            if self.index[file].is_none() {
                self.visit(file);
            }
        }
        self.circle_of.into_iter().map(|circle| circle.expect("every file was visited")).collect()
    }

    fn visit(&mut self, file: usize) -> usize {
        let index = self.visited;
        self.visited += 1;
        self.index[file] = Some(index);
        self.low[file] = index;
        self.stack.push(file);
        for &to in &self.uses[file] {
            let low = match self.index[to] {
                None => self.visit(to),
                Some(index) if self.circle_of[to].is_none() => index,
                Some(_) => continue,
            };
            self.low[file] = self.low[file].min(low);
        }
        if self.low[file] == index {
            while let Some(member) = self.stack.pop() {
                self.circle_of[member] = Some(self.circles);
                if member == file {
                    break;
                }
            }
            self.circles += 1;
        }
        self.low[file]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[(usize, usize)], len: usize) -> Graph {
        let mut uses = vec![BTreeSet::new(); len];
        arrows.iter().for_each(|&(from, to)| {
            uses[from].insert(to);
        });
        Graph::new((0..len).map(|file| file.to_string()).collect(), uses)
    }

    #[test]
    fn files_in_a_row_form_no_circle_and_stand_on_floors() {
        let graph = graph(&[(0, 1), (1, 2), (0, 2), (3, 3)], 4);
        assert!(graph.circles().is_empty());
        assert_eq!((0..4).map(|file| graph.floor(file)).collect::<Vec<_>>(), [2, 1, 0, 0]);
    }

    #[test]
    fn files_that_reach_each_other_form_one_circle() {
        let graph = graph(&[(0, 1), (1, 2), (2, 0), (2, 3), (4, 0)], 5);
        assert_eq!(graph.circles(), [vec![0, 1, 2]]);
        assert_eq!(graph.ties(&[0, 1, 2]).len(), 1);
        assert_eq!((graph.floor(0), graph.floor(3), graph.floor(4)), (1, 0, 2));
    }

    #[test]
    fn two_circles_are_told_apart() {
        let graph = graph(&[(0, 1), (1, 0), (2, 3), (3, 2), (1, 2)], 4);
        assert_eq!(graph.circles().len(), 2);
    }
}
