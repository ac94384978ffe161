//! The threads of a program: which processors run one, and who joins it. One instance for the job, at node 0.
//!
//! ```text
//!   creator                      node 0                 processor p              joiner
//!      | release                    |                        |                      |
//!      | --- Create(any, f, x) ---> | p is idle              |                      |
//!      | <-- Created(handle) ------ | ---- Start(f, x) ----> | acquire, f(x)        |
//!      |                            | <------------------------ Join(handle) ------ |
//!      |                            |                        | release              |
//!      |                            | <-- Finished(result) - |                      |
//!      |                            | ------------------------ Joined(result) ----> | acquire
//! ```
//!
//! One thread runs per processor. A processor whose thread has ended keeps its result until the join, and is idle
//! again after it: a program that never joins runs out of processors, and is told so. A handle names the processor
//! and the *generation* of its thread, so a join that comes twice, or from an old copy of a handle, is recognised.
//!
//! As in the other machines, the release (by the creator before `Create`, by the thread before `Finished`) must be
//! complete before the event is sent. No `Begin` is undone: a process's own `main` occupies its processor for good.

use core::fmt;

use finespun_types::ProcessorId;

/// What a program holds of a thread: the bits of `fsp_thread_t`. Never 0 for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Handle(pub u64);

impl Handle {
    const fn new(processor: ProcessorId, generation: u32) -> Self {
        Self((generation as u64) << 32 | processor.0 as u64)
    }

    /// The processor that runs it, or ran it.
    #[must_use]
    pub const fn processor(self) -> ProcessorId {
        ProcessorId(self.0 as u32)
    }

    const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// What happens to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// The processor runs the program's own `main`, from here to the end of the job.
    Begin {
        /// Which.
        who: ProcessorId,
    },
    /// A thread is to run on an idle processor.
    Create {
        /// On this one, or on the next by turns over the nodes.
        on: Option<ProcessorId>,
        /// Who asks.
        by: ProcessorId,
        /// The function, as an offset in the program.
        function: u64,
        /// Its argument.
        argument: u64,
    },
    /// The thread that `who` runs has returned.
    Finished {
        /// Which.
        who: ProcessorId,
        /// What it returned.
        result: u64,
    },
    /// Answered when the thread has ended.
    Join {
        /// Which thread.
        thread: Handle,
        /// Who waits.
        by: ProcessorId,
    },
}

/// What the runtime must do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// `who` runs `function(argument)`, after an acquire, and reports `Finished`.
    Start {
        /// Which.
        who: ProcessorId,
        /// The function, as an offset in the program.
        function: u64,
        /// Its argument.
        argument: u64,
    },
    /// The answer to `Create`.
    Created {
        /// Who asked.
        by: ProcessorId,
        /// The thread.
        thread: Handle,
    },
    /// The answer to `Create` when no processor, or not that one, is idle: `FSP_BUSY`.
    Refused {
        /// Who asked.
        by: ProcessorId,
        /// Processors whose thread has ended but is not joined: joining frees them.
        unjoined: u32,
    },
    /// The answer to `Join`. `by` acquires.
    Joined {
        /// Who waited.
        by: ProcessorId,
        /// What the thread returned.
        result: u64,
    },
}

/// Why an event was refused. A refused event has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The job has no such processor (E005).
    NoProcessor {
        /// What was given.
        given: ProcessorId,
        /// How many there are.
        processors: u32,
    },
    /// The handle is none that a create returned (E005).
    NoThread {
        /// What was given.
        thread: Handle,
    },
    /// The thread has been joined already (E005).
    JoinedAlready {
        /// Which.
        thread: Handle,
    },
    /// Another processor waits for it already (E005).
    JoinPending {
        /// Which.
        thread: Handle,
        /// Who waits.
        joiner: ProcessorId,
    },
    /// A thread would wait for itself (E005).
    JoinSelf {
        /// Which.
        thread: Handle,
    },
    /// A bug of ours: the processor was in no state for this event.
    Impossible {
        /// The state of the processor.
        state: State,
        /// What was presented.
        event: Event,
    },
}

/// What a processor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It waits for work.
    Idle,
    /// It runs the program's own `main`.
    Main,
    /// It runs a thread.
    Running {
        /// Who waits for the end.
        joiner: Option<ProcessorId>,
    },
    /// Its thread has ended and is not joined.
    Finished,
}

/// What is remembered for all processors; zeros at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Header {
    /// The node whose turn it is.
    turn: u32,
    /// Processors in [`State::Finished`].
    unjoined: u32,
}

/// One processor; zeros at first: idle, and no thread yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Slot {
    /// The [`State`], as a number.
    state: u32,
    /// The number of its thread, counted from 1.
    generation: u32,
    /// Who waits for the end, plus one.
    joiner: u32,
    /// For alignment.
    reserved: u32,
    /// What the thread returned.
    result: u64,
}

impl Slot {
    fn state(&self) -> State {
        match self.state {
            0 => State::Idle,
            1 => State::Main,
            2 => State::Running { joiner: self.joiner.checked_sub(1).map(ProcessorId) },
            _ => State::Finished,
        }
    }

    fn set_state(&mut self, state: State) {
        (self.state, self.joiner) = match state {
            State::Idle => (0, 0),
            State::Main => (1, 0),
            State::Running { joiner } => (2, joiner.map_or(0, |who| who.0 + 1)),
            State::Finished => (3, 0),
        };
    }
}

/// A view of the memory, made for as long as its lock is held.
#[derive(Debug)]
pub struct Threads<'a> {
    header: &'a mut Header,
    slots: &'a mut [Slot],
    per_node: u32,
}

impl<'a> Threads<'a> {
    /// The threads in this memory, all zeros at first: one slot for each processor of the job, `per_node` of them in
    /// each node.
    ///
    /// # Panics
    /// If the slots are not whole nodes.
    pub fn new(header: &'a mut Header, slots: &'a mut [Slot], per_node: u32) -> Self {
        assert!(
            per_node > 0 && slots.len().is_multiple_of(per_node as usize),
            "every node has the same number of processors"
        );
        Self { header, slots, per_node }
    }

    /// Takes one event; `out` is called for every action, in order, under the lock. After an error nothing has
    /// changed.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn on(&mut self, event: Event, out: &mut dyn FnMut(Action)) -> Result<(), Error> {
        match event {
            Event::Begin { who } | Event::Finished { who, .. } => self.on_processor(who, event, out),
            Event::Create { on: Some(who), .. } => self.on_processor(who, event, out),
            Event::Create { on: None, by, .. } => match self.next_idle() {
                Some(who) => self.on_processor(who, event, out),
                None => {
                    out(Action::Refused { by, unjoined: self.header.unjoined });
                    Ok(())
                }
            },
            Event::Join { thread, by } => {
                let processor = thread.processor();
                let newest = self.slots.get(processor.0 as usize).map_or(0, |slot| slot.generation);
                match thread.generation() {
                    0 => Err(Error::NoThread { thread }),
                    generation if generation > newest => Err(Error::NoThread { thread }),
                    generation if generation < newest => Err(Error::JoinedAlready { thread }),
                    _ if processor == by => Err(Error::JoinSelf { thread }),
                    _ => self.on_processor(processor, event, out),
                }
            }
        }
    }

    /// What a processor does now.
    #[must_use]
    pub fn state(&self, who: ProcessorId) -> Option<State> {
        self.slots.get(who.0 as usize).map(Slot::state)
    }

    /// The heart: one row per (state of the processor concerned, event).
    #[rustfmt::skip]
    fn on_processor(&mut self, who: ProcessorId, event: Event, out: &mut dyn FnMut(Action)) -> Result<(), Error> {
        use Event::{Begin, Create, Join};
        use State::{Idle, Main, Running};

        let processors = self.slots.len() as u32;
        let slot = self.slots.get_mut(who.0 as usize).ok_or(Error::NoProcessor { given: who, processors })?;
        let state = slot.state();
        let next = match (state, event) {
            (Idle, Begin { .. }) => Main,
            (Idle, Create { by, function, argument, .. }) => {
                slot.generation = slot.generation.wrapping_add(1).max(1);
                out(Action::Start { who, function, argument });
                out(Action::Created { by, thread: Handle::new(who, slot.generation) });
                Running { joiner: None }
            }
            (Main | Running { .. } | State::Finished, Create { by, .. }) => {
                out(Action::Refused { by, unjoined: self.header.unjoined });
                state
            }

            (Running { joiner: None }, Event::Finished { result, .. }) => {
                slot.result = result;
                self.header.unjoined += 1;
                State::Finished
            }
            (Running { joiner: Some(by) }, Event::Finished { result, .. }) => {
                out(Action::Joined { by, result });
                Idle
            }

            (Running { joiner: None },         Join { by, .. })     => Running { joiner: Some(by) },
            (Running { joiner: Some(joiner) }, Join { thread, .. }) => return Err(Error::JoinPending { thread, joiner }),
            (State::Finished, Join { by, .. }) => {
                out(Action::Joined { by, result: core::mem::take(&mut slot.result) });
                self.header.unjoined -= 1;
                Idle
            }
            (Idle | Main, Join { thread, .. }) => return Err(Error::JoinedAlready { thread }),

            (Main | Running { .. } | State::Finished, Begin { .. })
            | (Idle | Main | State::Finished, Event::Finished { .. })
                => return Err(Error::Impossible { state, event }),
        };
        slot.set_state(next);
        Ok(())
    }

    /// The first idle processor of the next node that has one; the turn then goes to the node after it.
    fn next_idle(&mut self) -> Option<ProcessorId> {
        let nodes = self.slots.len() as u32 / self.per_node;
        for ahead in 0..nodes {
            let node = (self.header.turn + ahead) % nodes;
            let first = node * self.per_node;
            let of_node = &self.slots[first as usize..][..self.per_node as usize];
            if let Some(local) = of_node.iter().position(|slot| slot.state() == State::Idle) {
                self.header.turn = (node + 1) % nodes;
                return Some(ProcessorId(first + local as u32));
            }
        }
        None
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcessor { given, processors } => {
                write!(f, "there is no processor {}: the job has {processors}, counted from 0", given.0)
            }
            Self::NoThread { thread } => write!(f, "{:#x} is not the handle of a thread", thread.0),
            Self::JoinedAlready { thread } => {
                write!(f, "the thread {:#x} on processor {} has been joined already", thread.0, thread.processor().0)
            }
            Self::JoinPending { thread, joiner } => write!(
                f,
                "processor {} already waits for the end of the thread {:#x} on processor {}",
                joiner.0,
                thread.0,
                thread.processor().0
            ),
            Self::JoinSelf { thread } => {
                write!(f, "the thread {:#x} on processor {} joins itself", thread.0, thread.processor().0)
            }
            Self::Impossible { state, event } => write!(f, "{event:?} while the processor is {state:?}"),
        }
    }
}

impl core::error::Error for Error {}
