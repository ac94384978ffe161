//! What a processor of a small world does, step by step.

use finespun_sync::Event;
use finespun_types::ProcessorId;

/// One step of a script. Every step is a point where another processor may come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Present the event, and wait for its grant if it has one.
    Do(Event),
    /// `TryLock`, and skip so many steps if it fails.
    Try(Event, usize),
    /// Go on when the condition is signalled (it was queued for before).
    AwaitSignal,
    /// Go on when the condition is signalled, or stop waiting, at any time, and then skip so many steps.
    AwaitOrLeave(Event, usize),
    /// Skip so many steps if there is an item.
    SkipIfItem(usize),
    /// Go back so many steps.
    Back(usize),
    /// One more item, in the section of this mutex.
    Put(u64),
    /// One item less, in the section of this mutex.
    Take(u64),
}

/// The steps of one processor, written as a sentence.
#[derive(Clone, Debug)]
pub struct Script {
    pub who: ProcessorId,
    pub steps: Vec<Step>,
}

/// The beginning of processor `who`'s script.
pub fn p(who: u32) -> Script {
    Script { who: ProcessorId(who), steps: Vec::new() }
}

impl Script {
    fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
    fn event(self, event: Event) -> Self {
        self.then(Step::Do(event))
    }

    pub fn lock(self, mutex: u64) -> Self {
        let who = self.who;
        self.event(Event::Lock { mutex, who })
    }
    pub fn unlock(self, mutex: u64) -> Self {
        let who = self.who;
        self.event(Event::Unlock { mutex, who })
    }
    /// Lock and unlock, once.
    pub fn section(self, mutex: u64) -> Self {
        self.lock(mutex).unlock(mutex)
    }
    /// Try to lock, and unlock if that succeeds.
    pub fn try_section(self, mutex: u64) -> Self {
        let who = self.who;
        self.then(Step::Try(Event::TryLock { mutex, who }, 1)).unlock(mutex)
    }
    pub fn arrive(self, barrier: u64, count: u32) -> Self {
        self.arrive_for(barrier, count, 1)
    }
    pub fn arrive_for(self, barrier: u64, count: u32, weight: u32) -> Self {
        let who = self.who;
        self.event(Event::Arrive { barrier, count, who, weight })
    }
    pub fn set(self, flag: u64, value: u32) -> Self {
        self.event(Event::SetFlag { flag, value })
    }
    pub fn wait(self, flag: u64, value: u32) -> Self {
        let who = self.who;
        self.event(Event::WaitFlag { flag, value, who })
    }
    pub fn read(self, flag: u64) -> Self {
        let who = self.who;
        self.event(Event::ReadFlag { flag, who })
    }
    pub fn reset(self, flag: u64) -> Self {
        self.event(Event::ResetFlag { flag })
    }
    pub fn signal(self, condition: u64) -> Self {
        self.event(Event::Signal { condition })
    }
    pub fn broadcast(self, condition: u64) -> Self {
        self.event(Event::Broadcast { condition })
    }
    /// `fsp_cond_wait` as the runtime does it: queue, unlock, await, lock.
    pub fn cond_wait(self, condition: u64, mutex: u64) -> Self {
        let who = self.who;
        self.event(Event::Enqueue { condition, who }).unlock(mutex).then(Step::AwaitSignal).lock(mutex)
    }
    /// The wrong order: unlock, queue, await, lock.
    pub fn cond_wait_unlocking_first(self, condition: u64, mutex: u64) -> Self {
        let who = self.who;
        self.unlock(mutex).event(Event::Enqueue { condition, who }).then(Step::AwaitSignal).lock(mutex)
    }
    /// Lock, and unless there is an item wait for a signal or until the time is up. Who is signalled passes it on.
    pub fn wait_for_a_time(self, condition: u64, mutex: u64) -> Self {
        let who = self.who;
        self.lock(mutex)
            .then(Step::SkipIfItem(5))
            .event(Event::Enqueue { condition, who })
            .unlock(mutex)
            .then(Step::AwaitOrLeave(Event::Leave { condition, who }, 3))
            .lock(mutex)
            .signal(condition)
            .unlock(mutex)
    }
    /// Lock, wait in a loop until there is an item, take it, unlock.
    pub fn consume(self, condition: u64, mutex: u64) -> Self {
        self.lock(mutex)
            .then(Step::SkipIfItem(5))
            .cond_wait(condition, mutex)
            .then(Step::Back(5))
            .then(Step::Take(mutex))
            .unlock(mutex)
    }
    /// The same with the wrong order in its wait.
    pub fn consume_unlocking_first(self, condition: u64, mutex: u64) -> Self {
        self.lock(mutex)
            .then(Step::SkipIfItem(5))
            .cond_wait_unlocking_first(condition, mutex)
            .then(Step::Back(5))
            .then(Step::Take(mutex))
            .unlock(mutex)
    }
    /// Lock, add an item, signal, unlock.
    pub fn produce(self, condition: u64, mutex: u64) -> Self {
        self.lock(mutex).then(Step::Put(mutex)).signal(condition).unlock(mutex)
    }
    /// Lock, add an item without telling anybody, unlock.
    pub fn put(self, mutex: u64) -> Self {
        self.lock(mutex).then(Step::Put(mutex)).unlock(mutex)
    }
}
