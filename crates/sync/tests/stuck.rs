//! Who can never go on, held beside a model that tries everything that threads may do.

use std::collections::HashSet;

use finespun_sync::stuck::{Party, Verdict, Wait, World};

const MUTEXES: usize = 2;
const BARRIERS: usize = 2;

/// What a thread of the model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Vacant,
    Runs,
    Lock(usize),
    Barrier(usize),
    All,
    Anyone,
    End(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Model<const N: usize> {
    at: [At; N],
    holder: [usize; MUTEXES],
    missing: [u32; BARRIERS],
    processors: usize,
    outsiders: bool,
}

impl<const N: usize> Model<N> {
    fn parties(&self) -> [Party; N] {
        self.at.map(|at| match at {
            At::Vacant => Party::Vacant,
            At::Runs => Party::Runs,
            At::Lock(mutex) => Party::Waits(Wait::Unlock(self.holder[mutex])),
            At::Barrier(which) => Party::Waits(Wait::Arrivals { barrier: which as u64, missing: self.missing[which] }),
            At::All => Party::Waits(Wait::All),
            At::Anyone => Party::Waits(Wait::Anyone),
            At::End(of) => Party::Waits(Wait::End(of)),
        })
    }

    /// Can a job get there? The barrier of all is for processors and opens when all are there, a join is of a thread that has not ended,
    /// and what a thread waits for it does not hold.
    fn is_possible(&self) -> bool {
        let all_at_all = self.at[..self.processors].iter().all(|at| *at == At::All);
        !all_at_all
            && self.at.iter().enumerate().all(|(who, at)| match at {
                At::Lock(mutex) => self.holder[*mutex] != who,
                At::All => who < self.processors,
                At::End(of) => *of != who && self.at[*of] != At::Vacant,
                At::Vacant | At::Runs | At::Barrier(_) | At::Anyone => true,
            })
    }

    /// Every state that is one action further.
    fn next(&self, to: &mut Vec<Self>) {
        let running: Vec<usize> = (0..N).filter(|who| self.at[*who] == At::Runs).collect();
        if self.outsiders || !running.is_empty() {
            for who in 0..N {
                if matches!(self.at[who], At::Vacant | At::Anyone) {
                    to.push(self.with(|model| model.at[who] = At::Runs));
                }
            }
        }
        for who in running {
            self.next_of(who, to);
        }
    }

    fn next_of(&self, who: usize, to: &mut Vec<Self>) {
        for mutex in (0..MUTEXES).filter(|mutex| self.holder[*mutex] == who) {
            for heir in (0..N).filter(|heir| self.at[*heir] == At::Lock(mutex)) {
                to.push(self.with(|model| (model.holder[mutex], model.at[heir]) = (heir, At::Runs)));
            }
        }
        to.push(self.with(|model| {
            model.at[who] = At::Vacant;
            model.wake(At::End(who));
        }));
        for barrier in (0..BARRIERS).filter(|barrier| self.at.contains(&At::Barrier(*barrier))) {
            to.push(self.with(|model| {
                model.at[who] = At::Barrier(barrier);
                model.missing[barrier] -= 1;
                if model.missing[barrier] == 0 {
                    model.wake(At::Barrier(barrier));
                }
            }));
        }
        if who < self.processors {
            to.push(self.with(|model| {
                model.at[who] = At::All;
                if model.at[..model.processors].iter().all(|at| *at == At::All) {
                    model.wake(At::All);
                }
            }));
        }
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut model = self.clone();
        change(&mut model);
        model
    }

    fn wake(&mut self, waiting: At) {
        for at in self.at.iter_mut().filter(|at| **at == waiting) {
            *at = At::Runs;
        }
    }

    /// Who runs in some state that can be reached.
    fn can_run(&self) -> [bool; N] {
        let (mut seen, mut left, mut ran) = (HashSet::from([self.clone()]), vec![self.clone()], [false; N]);
        let mut next = Vec::new();
        while let Some(model) = left.pop() {
            for (ran, at) in ran.iter_mut().zip(model.at) {
                *ran |= at == At::Runs;
            }
            if ran == [true; N] {
                break;
            }
            model.next(&mut next);
            left.extend(next.drain(..).filter(|model| seen.insert(model.clone())));
        }
        ran
    }

    fn check(&self) {
        let parties = self.parties();
        let world = World { parties: &parties, processors: self.processors, outsiders: self.outsiders };
        let mut free = [false; N];
        world.can_go_on(&mut free);
        assert_eq!(free, self.can_run(), "{self:?}");
        let verdict = world.verdict(&free);
        let is_accused = |who: usize| !free[who] && matches!(parties[who], Party::Waits(_));
        let any_stuck = (0..N).any(is_accused);
        match verdict {
            None => assert!(!any_stuck, "{self:?}"),
            Some(Verdict::Circle(who) | Verdict::Abandoned(who) | Verdict::Barrier(who) | Verdict::Nobody(who)) => {
                assert!(is_accused(who), "{self:?}: {verdict:?}");
            }
        }
    }
}

/// All that a thread can do in a job of `n` parties.
fn doings(n: usize) -> Vec<At> {
    let mut all = vec![At::Vacant, At::Runs, At::All, At::Anyone];
    all.extend((0..MUTEXES).map(At::Lock));
    all.extend((0..BARRIERS).map(At::Barrier));
    all.extend((0..n).map(At::End));
    all
}

/// World number `number`; all numbers below the second value give all worlds.
fn model<const N: usize>(mut number: usize) -> (Model<N>, usize) {
    let (doings, mut count) = (doings(N), 1);
    let mut pick = |choices: usize| {
        let chosen = number % choices;
        number /= choices;
        count *= choices;
        chosen
    };
    let at = std::array::from_fn(|_| doings[pick(doings.len())]);
    let holder = std::array::from_fn(|_| pick(N));
    let missing = std::array::from_fn(|_| pick(3) as u32 + 1);
    let processors = N - pick(2);
    let outsiders = pick(2) == 1;
    (Model { at, holder, missing, processors, outsiders }, count)
}

#[test]
fn the_stuck_are_those_that_no_sequence_of_actions_lets_go_on() {
    let (_, count) = model::<3>(0);
    let possible = (0..count).map(|number| model::<3>(number).0).filter(Model::is_possible);
    let checked = possible.map(|model| model.check()).count();
    assert!(checked > 100_000, "{checked}");
}

#[test]
fn so_are_those_of_larger_worlds() {
    let (_, count) = model::<5>(0);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut checked = 0;
    while checked < 3_000 {
        // Knuth's MMIX; the low bits of such a generator are poor.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (model, _) = model::<5>((state >> 16) as usize % count);
        if model.is_possible() {
            model.check();
            checked += 1;
        }
    }
}
