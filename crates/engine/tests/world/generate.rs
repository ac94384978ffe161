//! Random programs without data races, which always come to an end.
//!
//! A program is made in the order of one of its executions, the *witness*: each of its steps appends operations to scripts. A vector
//! clock for each processor says what happens before what in every execution, not only in the witness. So an access is appended only
//! where all accesses that conflict happen before it, or under the word's mutex; and a processor waits only for what the witness did
//! before. Mutexes order nothing here: another execution takes them in another order.
//!
//! Each step draws from a source of its own: a program without some of the steps is sound too. That is how a failure is made small.

use finespun_heap::Policy;
use finespun_types::NodeId;

use crate::program::{ALL, Op, PROCESSORS_MAX, Program, Shape, Sync, Word};
use crate::random::Random;

/// What happens before a processor's next operation, by processor.
type Clock = [u16; PROCESSORS_MAX];

/// The most allocations of a program.
const OBJECTS_MAX: usize = 12;

fn covers(clock: &Clock, other: &Clock) -> bool {
    clock.iter().zip(other).all(|(has, needed)| has >= needed)
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(has, more)| *has = (*has).max(*more));
}

/// Who may use a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Any processor, as the clocks allow.
    Ordered,
    /// The holder of this mutex.
    Under(Sync),
    /// What a condition is about.
    Counter,
    /// This processor only, and its signal handler.
    Own(usize),
    /// Any processor at any time.
    Racy,
}

/// A word of an allocation, in the witness.
#[derive(Clone)]
struct State {
    rule: Rule,
    /// It was stored to since its allocation, or is of fresh memory.
    has_value: bool,
    writes: Clock,
    reads: Clock,
}

/// A flag: its value is the number of clocks, those of its setters.
#[derive(Clone, Default)]
struct Flag(Vec<Clock>);

/// A condition, its mutex, and the word that it is about. One processor counts that up.
#[derive(Clone)]
struct Condition {
    condition: Sync,
    mutex: Sync,
    counter: Word,
    owner: usize,
    /// The only processor that waits, where a signal must do.
    waiter: Option<usize>,
    reached: Vec<Clock>,
}

/// Barriers beside that of all, with their members.
#[derive(Clone)]
struct Circle {
    barrier: Sync,
    members: Vec<usize>,
}

struct Witness {
    program: Program,
    clocks: Vec<Clock>,
    /// By allocation; empty when it was freed.
    objects: Vec<Vec<State>>,
    mutexes: Vec<Sync>,
    conditions: Vec<Condition>,
    flags: Vec<(Sync, Flag)>,
    circles: Vec<Circle>,
}

/// So many steps has the program of this seed.
pub fn steps(seed: u64) -> usize {
    let mut random = Random::new(seed).fork(1);
    let most = random.of(&[12, 30, 60, 120]);
    4 + random.below(most)
}

/// The program of a seed, with these of its steps.
pub fn program(shape: Shape, seed: u64, steps: impl IntoIterator<Item = usize>) -> Program {
    let source = Random::new(seed).fork(2);
    let mut witness = Witness::new(shape, &mut source.fork(0));
    for step in steps {
        witness.step(&mut source.fork(1 + step as u64));
    }
    witness.end();
    witness.program
}

impl Witness {
    fn new(shape: Shape, random: &mut Random) -> Self {
        let processors = shape.processors();
        let (scripts, handlers) = (vec![Vec::new(); processors], vec![None; processors]);
        let program = Program { shape, scripts, handlers, racy: Vec::new(), objects: 0, syncs: usize::from(ALL) + 1 };
        let mut witness = Self {
            program,
            clocks: vec![[0; PROCESSORS_MAX]; processors],
            objects: Vec::new(),
            mutexes: Vec::new(),
            conditions: Vec::new(),
            flags: Vec::new(),
            circles: Vec::new(),
        };
        let hot = random.once_in(2);
        for _ in 0..if hot { 1 } else { random.within(1..5) } {
            let words = if hot { random.of(&[4, 8, 16]) } else { random.of(&[1, 2, 4, 16, 24]) };
            witness.allocate(0, words, random);
        }
        // Fresh memory is zero.
        witness.objects.iter_mut().flatten().for_each(|state| state.has_value = true);
        witness.mutexes = (0..random.within(1..5)).map(|_| witness.sync()).collect();
        witness.flags = (0..random.within(1..4)).map(|_| (witness.sync(), Flag::default())).collect();
        witness.add_conditions(random);
        witness.add_circles(random);
        if random.once_in(3) {
            witness.add_handlers(random);
        }
        if random.once_in(4) {
            witness.add_races(random);
        }
        for who in 1..processors {
            witness.push(0, Op::Start(who as u8));
            let clock = witness.clocks[0];
            join(&mut witness.clocks[who], &clock);
        }
        witness.deal_rules(random);
        witness
    }

    fn add_conditions(&mut self, random: &mut Random) {
        for number in 0..random.below(3) {
            let (object, owner) = (self.objects.len() - 1, random.below(self.clocks.len()));
            let Some(state) = self.objects[object].get_mut(number) else { return };
            state.rule = Rule::Counter;
            let counter = Word { object: object as u8, word: number as u8 };
            let waiter = random.once_in(2).then(|| random.below(self.clocks.len())).filter(|waiter| *waiter != owner);
            let (condition, mutex) = (self.sync(), self.sync());
            self.conditions.push(Condition { condition, mutex, counter, owner, waiter, reached: Vec::new() });
        }
    }

    fn add_handlers(&mut self, random: &mut Random) {
        for who in 0..self.clocks.len() {
            if let Some(word) = self.claim(Rule::Own(who), random) {
                self.program.handlers[who] = Some(word);
            }
        }
    }

    fn add_races(&mut self, random: &mut Random) {
        for _ in 0..random.within(1..4) {
            let claimed = self.claim(Rule::Racy, random);
            self.program.racy.extend(claimed);
        }
    }

    /// A word for good.
    fn claim(&mut self, rule: Rule, random: &mut Random) -> Option<Word> {
        let object = random.below(self.objects.len());
        let word = random.below(self.objects[object].len());
        let state = &mut self.objects[object][word];
        if state.rule != Rule::Ordered {
            return None;
        }
        state.rule = rule;
        Some(Word { object: object as u8, word: word as u8 })
    }

    fn add_circles(&mut self, random: &mut Random) {
        for _ in 0..random.below(3) {
            let mut members: Vec<usize> = (0..self.clocks.len()).collect();
            while members.len() > 2 && !random.once_in(3) {
                members.remove(random.below(members.len()));
            }
            let barrier = self.sync();
            self.circles.push(Circle { barrier, members });
        }
    }

    fn sync(&mut self) -> Sync {
        self.program.syncs += 1;
        self.program.syncs as u8 - 1
    }

    fn push(&mut self, who: usize, op: Op) {
        self.clocks[who][who] += 1;
        self.program.scripts[who].push(op);
    }

    /// Each word whose uses all processors know gets a rule anew. After a barrier of all that is every word, if no processor is outside it.
    fn deal_rules(&mut self, random: &mut Random) {
        let locked = random.of(&[1, 2, 4]);
        let clocks = &self.clocks;
        let is_known =
            |state: &State| clocks.iter().all(|clock| covers(clock, &state.writes) && covers(clock, &state.reads));
        let dealt = |state: &&mut State| matches!(state.rule, Rule::Ordered | Rule::Under(_)) && is_known(state);
        for state in self.objects.iter_mut().flatten().filter(dealt) {
            let under = state.has_value && random.below(5) < locked;
            state.rule = if under { Rule::Under(random.of(&self.mutexes)) } else { Rule::Ordered };
        }
    }

    fn step(&mut self, random: &mut Random) {
        let who = random.below(self.clocks.len());
        match random.below(26) {
            0..6 => self.accesses(who, &[], random),
            6..13 => self.section(who, random),
            13..15 => self.set(who, random),
            15..17 => self.wait(who, random),
            17 | 18 => self.count(random),
            19 | 20 => self.test(random),
            21 => self.meet(random),
            22 => self.come_together(random),
            _ => self.use_heap(who, random),
        }
    }

    /// A few accesses, mostly of neighbours.
    fn accesses(&mut self, who: usize, held: &[Sync], random: &mut Random) {
        let mut near = random.below(self.objects.len());
        let mut taken_back = None;
        for _ in 0..random.within(1..6) {
            if random.once_in(4) {
                near = random.below(self.objects.len());
            }
            let Some((at, loads, stores)) = self.usable(who, near, held, random) else { continue };
            match (loads, stores, random.below(8)) {
                (true, _, 0..4) | (true, false, _) => self.load(who, at),
                // What is stored and taken back without a release in between tells no other node.
                (true, true, 6 | 7) if taken_back.is_none() && !self.program.racy.contains(&at) => {
                    self.store(who, at, Op::Store(at));
                    taken_back = Some(at);
                }
                (_, true, _) if taken_back != Some(at) => self.store(who, at, Op::Store(at)),
                (false, false, _) | (_, true, _) => {}
            }
        }
        if let Some(at) = taken_back {
            self.store(who, at, Op::PutBack(at));
        }
    }

    /// A word that the processor may use, and how. Tries a few.
    fn usable(&self, who: usize, near: usize, held: &[Sync], random: &mut Random) -> Option<(Word, bool, bool)> {
        for attempt in 0..8 {
            let object = if attempt < 5 { near } else { random.below(self.objects.len()) };
            if self.objects[object].is_empty() {
                continue;
            }
            let word = random.below(self.objects[object].len());
            let (loads, stores) = self.may(who, &self.objects[object][word], held);
            if loads || stores {
                return Some((Word { object: object as u8, word: word as u8 }, loads, stores));
            }
        }
        None
    }

    /// May the processor load the word, and store to it?
    fn may(&self, who: usize, state: &State, held: &[Sync]) -> (bool, bool) {
        let clock = &self.clocks[who];
        match state.rule {
            Rule::Counter => (false, false),
            Rule::Own(owner) => (owner == who, false),
            Rule::Racy => (true, true),
            Rule::Under(mutex) => (held.contains(&mutex), held.contains(&mutex)),
            Rule::Ordered => {
                let loads = covers(clock, &state.writes);
                (loads && state.has_value, loads && covers(clock, &state.reads))
            }
        }
    }

    fn load(&mut self, who: usize, at: Word) {
        self.push(who, Op::Load(at));
        let now = self.clocks[who][who];
        self.objects[usize::from(at.object)][usize::from(at.word)].reads[who] = now;
    }

    fn store(&mut self, who: usize, at: Word, op: Op) {
        self.push(who, op);
        let now = self.clocks[who][who];
        let state = &mut self.objects[usize::from(at.object)][usize::from(at.word)];
        state.writes[who] = now;
        state.has_value = true;
    }

    /// Accesses with mutexes held. They are taken in one order, so that no program blocks itself.
    fn section(&mut self, who: usize, random: &mut Random) {
        let first = random.below(self.mutexes.len());
        let last = first + random.below(2).min(self.mutexes.len() - 1 - first);
        let held = self.mutexes[first..=last].to_vec();
        for (place, &mutex) in held.iter().enumerate() {
            self.push(who, Op::Lock(mutex));
            self.accesses(who, &held[..=place], random);
        }
        for (place, &mutex) in held.iter().enumerate() {
            self.accesses(who, &held[place..], random);
            self.push(who, Op::Unlock(mutex));
        }
    }

    fn set(&mut self, who: usize, random: &mut Random) {
        let number = random.below(self.flags.len());
        let (flag, before) = (self.flags[number].0, &self.flags[number].1.0);
        // Who sees a value must know what all its setters knew.
        if before.last().is_none_or(|last| covers(&self.clocks[who], last)) {
            let value = before.len() as u32 + 1;
            self.push(who, Op::Set { flag, value });
            let clock = self.clocks[who];
            self.flags[number].1.0.push(clock);
        }
    }

    fn wait(&mut self, who: usize, random: &mut Random) {
        let number = random.below(self.flags.len());
        let (flag, sets) = (self.flags[number].0, self.flags[number].1.0.len());
        if sets > 0 {
            let value = sets - random.below(sets.min(2));
            self.push(who, Op::Await { flag, value: value as u32 });
            let known = self.flags[number].1.0[value - 1];
            join(&mut self.clocks[who], &known);
            self.accesses(who, &[], random);
        }
    }

    /// Counts up what a condition is about.
    fn count(&mut self, random: &mut Random) {
        if self.conditions.is_empty() {
            return;
        }
        let number = random.below(self.conditions.len());
        let Condition { condition, mutex, counter, owner, waiter, .. } = self.conditions[number].clone();
        let early = random.once_in(2);
        let tell = if waiter.is_some() { Op::Signal(condition) } else { Op::Broadcast(condition) };
        self.push(owner, Op::Lock(mutex));
        self.store(owner, counter, Op::Store(counter));
        let clock = self.clocks[owner];
        self.conditions[number].reached.push(clock);
        if early {
            self.push(owner, tell);
        }
        self.accesses(owner, &[mutex], random);
        self.push(owner, Op::Unlock(mutex));
        if !early {
            self.push(owner, tell);
        }
    }

    /// Waits for a condition.
    fn test(&mut self, random: &mut Random) {
        if self.conditions.is_empty() {
            return;
        }
        let number = random.below(self.conditions.len());
        let Condition { condition, mutex, counter, waiter, reached, .. } = self.conditions[number].clone();
        let who = waiter.unwrap_or_else(|| random.below(self.clocks.len()));
        let Some(known) = reached.last() else { return };
        self.push(who, Op::Lock(mutex));
        self.push(who, Op::Test { condition, mutex, counter, until: reached.len() as u32 });
        join(&mut self.clocks[who], known);
        self.accesses(who, &[mutex], random);
        self.push(who, Op::Unlock(mutex));
    }

    /// A barrier of all.
    fn meet(&mut self, random: &mut Random) {
        let members: Vec<usize> = (0..self.clocks.len()).filter(|who| self.program.shape.meets(*who)).collect();
        self.gather(&members, Op::Meet(ALL));
        self.deal_rules(random);
    }

    /// A barrier of some.
    fn come_together(&mut self, random: &mut Random) {
        if !self.circles.is_empty() {
            let Circle { barrier, members } = self.circles[random.below(self.circles.len())].clone();
            self.gather(&members, Op::Barrier { barrier, count: members.len() as u8 });
        }
    }

    fn gather(&mut self, members: &[usize], op: Op) {
        let mut all = [0; PROCESSORS_MAX];
        for &who in members {
            self.push(who, op);
            join(&mut all, &self.clocks[who]);
        }
        members.iter().for_each(|&who| join(&mut self.clocks[who], &all));
    }

    fn use_heap(&mut self, who: usize, random: &mut Random) {
        let object = random.below(self.objects.len());
        if random.once_in(2) && self.may_free(who, object) {
            self.push(who, Op::Free(object as u8));
            self.objects[object].clear();
        } else if self.objects.len() < OBJECTS_MAX {
            let words = random.of(&[1, 1, 3, 8, 20]);
            self.allocate(who, words, random);
            let object = self.objects.len() - 1;
            for word in (0..words).filter(|_| random.once_in(2)).collect::<Vec<_>>() {
                let at = Word { object: object as u8, word: word as u8 };
                self.store(who, at, Op::Store(at));
            }
        }
    }

    fn allocate(&mut self, who: usize, words: usize, random: &mut Random) {
        let nodes = self.program.shape.nodes;
        let policy = match random.below(4) {
            0 => Policy::On(NodeId::of(random.below(nodes))),
            1 => Policy::Cyclic { block_pages_log2: random.below(2) as u8 },
            _ => Policy::FirstTouch,
        };
        let object = self.objects.len() as u8;
        self.push(who, Op::Allocate { object, words: words as u8, policy });
        let mut writes = [0; PROCESSORS_MAX];
        writes[who] = self.clocks[who][who];
        let state = State { rule: Rule::Ordered, has_value: false, writes, reads: [0; PROCESSORS_MAX] };
        self.objects.push(vec![state; words]);
        self.program.objects = self.objects.len();
    }

    /// Does every use of the allocation happen before?
    fn may_free(&self, who: usize, object: usize) -> bool {
        let (clock, words) = (&self.clocks[who], &self.objects[object]);
        let over = |state: &State| covers(clock, &state.writes) && covers(clock, &state.reads);
        !words.is_empty() && words.iter().all(|state| state.rule == Rule::Ordered && over(state))
    }

    /// Processor 0 joins all threads, then loads every word.
    fn end(&mut self) {
        for who in 1..self.clocks.len() {
            self.push(0, Op::Join(who as u8));
        }
        for (object, words) in self.objects.clone().iter().enumerate() {
            for word in (0..words.len()).filter(|&word| words[word].has_value) {
                self.push(0, Op::Load(Word { object: object as u8, word: word as u8 }));
            }
        }
    }
}
