//! Which threads of a job can never go on: a pure question about who waits for whom.
//!
//! ```text
//!   processor 0 --waits for the mutex that--> processor 1 holds
//!       ^                                          |
//!       +---- holds the mutex that <--waits for ---+         a circle: neither goes on, whatever the others do
//! ```
//!
//! A *party* is a place where a thread of the job can be: a processor, a seat, a slot for a thread of the program's own. What a party that
//! runs will do is unknown, so everything is taken as possible that the library allows it: to unlock what it holds, to set any flag, to
//! signal, to start a thread at a vacant party, to arrive at any barrier, to end. A party *can go on* if it runs, or if what it waits for
//! can be done by parties that can go on. That is the least set with this property; [`World::can_go_on`] finds it.
//!
//! The rest is stuck for ever. So a right program is never accused: while one party of it runs, all that a signal, a flag or
//! a new thread could end is taken to end. What is left then are circles, and barriers that want more than there are.

/// A place where a thread can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// No thread is there. Any that runs may start one.
    Vacant,
    /// A thread is there and runs, or may go on by itself.
    Runs,
    /// A thread is there and waits for others.
    Waits(Wait),
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// That the thread at this party unlocks something.
    Unlock(usize),
    /// That the thread at this party ends.
    End(usize),
    /// At a barrier, for so many more arrivals.
    Arrivals {
        /// Which barrier.
        barrier: u64,
        /// How many more.
        missing: u32,
    },
    /// At the barrier of all processors.
    All,
    /// What any thread may do: set a flag, signal, stop reading.
    Anyone,
}

/// A job at one moment.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// Its parties, processors first.
    pub parties: &'a [Party],
    /// How many of them are processors.
    pub processors: usize,
    /// Something beside the parties runs that may do what a thread may.
    pub outsiders: bool,
}

/// Why threads can never go on. The number is the party that the message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits for itself, by way of others.
    Circle(usize),
    /// It waits for the unlock of what a thread held that has ended.
    Abandoned(usize),
    /// It waits at a barrier where not enough can arrive.
    Barrier(usize),
    /// It waits for what any thread may do, and every thread waits.
    Nobody(usize),
}

impl World<'_> {
    /// Marks in `free` who can go on; it has one element for each party.
    ///
    /// # Panics
    /// If it has not.
    pub fn can_go_on(&self, free: &mut [bool]) {
        assert_eq!(free.len(), self.parties.len(), "one mark for each party");
        for (free, party) in free.iter_mut().zip(self.parties) {
            *free = *party == Party::Runs;
        }
        let mut somebody = self.outsiders || free.contains(&true);
        loop {
            let mut changed = false;
            for index in 0..free.len() {
                if !free[index] && self.is_freed(index, free, somebody) {
                    (free[index], somebody, changed) = (true, true, true);
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Can it go on, if those marked can?
    fn is_freed(&self, index: usize, free: &[bool], somebody: bool) -> bool {
        match self.parties[index] {
            Party::Runs => true,
            Party::Vacant | Party::Waits(Wait::Anyone) => somebody,
            Party::Waits(Wait::Unlock(by) | Wait::End(by)) => free.get(by).copied().unwrap_or(true),
            Party::Waits(Wait::Arrivals { barrier, missing }) => {
                let comes = |(party, free): &(&Party, &bool)| **free && !is_at(party, barrier);
                self.parties.iter().zip(free).filter(comes).count() >= missing as usize
            }
            Party::Waits(Wait::All) => {
                let comes = |(party, free): (&Party, &bool)| *free || *party == Party::Waits(Wait::All);
                somebody && self.parties.iter().zip(free).take(self.processors).all(comes)
            }
        }
    }

    /// What is to be said of those that cannot go on: the nearest to a cause. `None` if all can, or none of the others has a thread.
    #[must_use]
    pub fn verdict(&self, free: &[bool]) -> Option<Verdict> {
        let stuck = || (0..self.parties.len()).filter(|index| !free[*index]);
        let waits = |index: usize| match self.parties[index] {
            Party::Waits(wait) => Some(wait),
            Party::Vacant | Party::Runs => None,
        };
        let first = |of: fn(Wait) -> bool| stuck().find(|index| waits(*index).is_some_and(of));
        let is_abandoned = |index: &usize| match waits(*index) {
            Some(Wait::Unlock(by)) => self.parties.get(by) == Some(&Party::Vacant),
            Some(Wait::End(_) | Wait::Arrivals { .. } | Wait::All | Wait::Anyone) | None => false,
        };
        stuck()
            .find(|index| self.is_in_circle(*index))
            .map(Verdict::Circle)
            .or_else(|| stuck().find(is_abandoned).map(Verdict::Abandoned))
            .or_else(|| first(|wait| matches!(wait, Wait::Arrivals { .. })).map(Verdict::Barrier))
            .or_else(|| first(|wait| wait == Wait::All).map(Verdict::Barrier))
            .or_else(|| first(|wait| wait == Wait::Anyone).map(Verdict::Nobody))
    }

    /// The one party that this one waits for, if it is one.
    #[must_use]
    pub fn waits_for(&self, index: usize) -> Option<usize> {
        match self.parties.get(index)? {
            Party::Waits(Wait::Unlock(by) | Wait::End(by)) => Some(*by),
            Party::Waits(Wait::Arrivals { .. } | Wait::All | Wait::Anyone) | Party::Vacant | Party::Runs => None,
        }
    }

    fn is_in_circle(&self, index: usize) -> bool {
        let mut at = index;
        for _ in 0..self.parties.len() {
            match self.waits_for(at) {
                Some(next) if next == index => return true,
                Some(next) => at = next,
                None => return false,
            }
        }
        false
    }
}

fn is_at(party: &Party, here: u64) -> bool {
    matches!(party, Party::Waits(Wait::Arrivals { barrier, .. }) if *barrier == here)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: [bool; 4] = [true; 4];

    fn judge(parties: &[Party], processors: usize) -> (Option<Verdict>, [bool; 4]) {
        let world = World { parties, processors, outsiders: false };
        let mut free = FREE;
        world.can_go_on(&mut free[..parties.len()]);
        (world.verdict(&free[..parties.len()]), free)
    }

    #[test]
    fn a_circle_is_stuck_whatever_others_do() {
        let parties = [Party::Runs, Party::Waits(Wait::Unlock(2)), Party::Waits(Wait::Unlock(1)), Party::Vacant];
        assert_eq!(judge(&parties, 4), (Some(Verdict::Circle(1)), [true, false, false, true]));
    }

    #[test]
    fn while_one_runs_a_flag_may_be_set_and_a_mutex_left_behind_may_be_unlocked() {
        let parties = [Party::Runs, Party::Waits(Wait::Anyone), Party::Waits(Wait::Unlock(3)), Party::Vacant];
        assert_eq!(judge(&parties, 4), (None, FREE));
        let parties = [Party::Waits(Wait::End(2)), Party::Vacant, Party::Waits(Wait::Unlock(1))];
        assert_eq!(judge(&parties, 3).0, Some(Verdict::Abandoned(2)));
    }

    #[test]
    fn a_barrier_that_wants_more_than_there_are_is_stuck_though_others_run() {
        let at = |missing| Party::Waits(Wait::Arrivals { barrier: 8, missing });
        assert_eq!(judge(&[Party::Runs, at(2), Party::Vacant], 3).0, None);
        assert_eq!(judge(&[Party::Runs, at(3), Party::Vacant], 3).0, Some(Verdict::Barrier(1)));
        assert_eq!(judge(&[at(1), Party::Vacant, Party::Vacant], 2).0, Some(Verdict::Barrier(0)));
    }

    #[test]
    fn the_barrier_of_all_needs_every_processor_and_nobody_else() {
        let all = Party::Waits(Wait::All);
        assert_eq!(judge(&[Party::Waits(Wait::End(1)), all, Party::Vacant], 3).0, Some(Verdict::Barrier(1)));
        assert_eq!(judge(&[Party::Runs, all, Party::Vacant], 3).0, None);
        let circle = [Party::Runs, all, Party::Waits(Wait::Unlock(3)), Party::Waits(Wait::Unlock(2))];
        assert!(!judge(&circle, 3).1[1] && judge(&circle, 2).1[1]);
    }

    #[test]
    fn vacant_parties_alone_are_no_mistake() {
        assert_eq!(judge(&[Party::Vacant, Party::Vacant], 2).0, None);
    }
}
