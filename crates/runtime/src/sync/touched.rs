//! Which pages may hold something. What no node has touched is zero everywhere: it needs neither to be cleared nor to be copied, and a
//! look at it would make the caller its home.
//!
//! A page's manager knows, because the first node that touches the page asks it for the home. If the manager's memory is not mapped
//! here, the manager is asked by a message, for its next run of touched pages at once. Lazy release consistency has no
//! managers. There a page that this node has not heard of was not written by any store that this one must see.

use std::ops::Range;

use finespun_types::{NODES_MAX, NodeId, UnitId};

/// The most units that a manager looks at for one question, so that its other messages wait for less than a millisecond.
const LOOKS: u32 = 1 << 16;

/// What is known here of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Something may be in it.
    Touched,
    /// It is zero.
    Untouched,
    /// This node knows.
    By(NodeId),
}

/// What a manager answers: of its units below `end`, those from `start` on were touched. Those before were not, from the first that the
/// question was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The first touched unit.
    pub start: u32,
    /// The first behind it of which nothing is said.
    pub end: u32,
}

/// A walk over units in their order.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    next: u32,
    end: u32,
    told: [Told; NODES_MAX],
}

impl Walk {
    /// Over these.
    pub const fn over(units: Range<u32>) -> Self {
        Self { next: units.start, end: units.end, told: [Told { start: 0, end: 0 }; NODES_MAX] }
    }

    /// The next run of units in which something may be; `None` behind the last. `ask` brings a manager's answer about units.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn next_run<E>(
        &mut self,
        known: impl Fn(UnitId) -> Known,
        mut ask: impl FnMut(NodeId, Range<u32>) -> Result<Told, E>,
    ) -> Result<Option<Range<u32>>, E> {
        while self.next < self.end && !self.is_touched(&known, &mut ask)? {
            self.next += 1;
        }
        let start = self.next;
        while self.next < self.end && self.is_touched(&known, &mut ask)? {
            self.next += 1;
        }
        Ok((start < self.next).then_some(start..self.next))
    }

    fn is_touched<E>(
        &mut self,
        known: impl Fn(UnitId) -> Known,
        mut ask: impl FnMut(NodeId, Range<u32>) -> Result<Told, E>,
    ) -> Result<bool, E> {
        match known(UnitId(self.next)) {
            Known::Touched => Ok(true),
            Known::Untouched => Ok(false),
            Known::By(manager) => {
                let told = &mut self.told[usize::from(manager.0)];
                while told.end <= self.next {
                    *told = ask(manager, self.next..self.end)?;
                }
                Ok(told.start <= self.next)
            }
        }
    }
}

/// A manager's answer: the first run of touched units. `touched` says nothing of a unit that another node manages. The answer ends behind
/// the first of the units, so that the asker gets on.
pub fn answer(units: Range<u32>, touched: impl Fn(UnitId) -> Option<bool>) -> Told {
    let limit = units.start.saturating_add(LOOKS).min(units.end).max(units.start.saturating_add(1));
    let mut looks = (units.start..limit).filter_map(|unit| Some((unit, touched(UnitId(unit))?)));
    let start = looks.find(|(_, is_touched)| *is_touched).map_or(limit, |(unit, _)| unit);
    let end = looks.find(|(_, is_touched)| !is_touched).map_or(limit, |(unit, _)| unit);
    Told { start, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of node 0 of two, which manage 16 units each by turns.
    fn answer_of(manager: u16, units: Range<u32>, touched: impl Fn(u32) -> bool) -> Told {
        answer(units, |unit| (unit.0 / 16 % 2 == u32::from(manager)).then(|| touched(unit.0)))
    }

    fn told(start: u32, end: u32) -> Told {
        Told { start, end }
    }

    #[test]
    fn a_manager_answers_with_its_next_run_of_touched_units() {
        let touched = |unit| (40..44).contains(&unit);
        assert_eq!(answer_of(0, 3..200, touched), told(40, 44));
        assert_eq!(answer_of(0, 41..200, touched), told(41, 44));
        assert_eq!(answer_of(0, 44..200, touched), told(200, 200));
    }

    #[test]
    fn units_of_other_managers_do_not_end_a_run() {
        assert_eq!(answer_of(0, 0..200, |unit| (10..70).contains(&unit)), told(10, 70));
        assert_eq!(answer_of(1, 0..200, |_| true), told(16, 200));
    }

    #[test]
    fn an_answer_is_bounded_and_always_gets_on() {
        assert_eq!(answer_of(0, 5..u32::MAX, |_| false), told(5 + LOOKS, 5 + LOOKS));
        assert_eq!(answer_of(0, 9..9, |_| true), told(9, 10));
    }

    /// The runs that a walk of node 0 finds, and how often it asks node 1.
    fn walk(units: Range<u32>, touched: impl Fn(u32) -> bool) -> (Vec<(u32, u32)>, u32) {
        let (mut walk, mut asked, mut runs) = (Walk::over(units), 0, Vec::new());
        let known = |unit: UnitId| match (unit.0 / 16 % 2, touched(unit.0)) {
            (0, true) => Known::Touched,
            (0, false) => Known::Untouched,
            (_, _) => Known::By(NodeId(1)),
        };
        let mut ask = |manager: NodeId, units| {
            asked += 1;
            Ok::<_, ()>(answer_of(manager.0, units, &touched))
        };
        while let Some(run) = walk.next_run(known, &mut ask).expect("never") {
            runs.push((run.start, run.end));
        }
        (runs, asked)
    }

    #[test]
    fn a_walk_finds_what_was_touched_and_asks_once_for_each_run_of_a_manager() {
        assert_eq!(walk(3..5000, |_| false), (vec![], 1));
        assert_eq!(walk(3..5000, |_| true), (vec![(3, 5000)], 1));
        assert_eq!(walk(0..200, |unit| [5, 6, 18, 199].contains(&unit)), (vec![(5, 7), (18, 19), (199, 200)], 2));
        assert_eq!(walk(7..7, |_| true), (vec![], 0));
        let far = 3 * LOOKS + 20;
        assert_eq!(walk(0..4 * LOOKS, |unit| unit == far), (vec![(far, far + 1)], 5));
    }
}
