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
//! `Create` is refused when no processor is idle. `Spawn`, for programs that make as many threads as they like,
//! takes an idle processor, and where none is left a *seat*, a place for one more thread of a node whose
//! processors all have work. A seat is in every way as a processor here, and has a processor's number above theirs.
//!
//! One thread runs per processor, or seat. A processor whose thread has ended keeps its result until the join, and is idle
//! again after it: a program that never joins runs out of processors, and is told so. A handle names the processor
//! and the *generation* of its thread, so a join that comes twice, or from an old copy of a handle, is recognised.
//!
//! As in the other machines, the release (by the creator before `Create`, by the thread before `Finished`) must be
//! complete before the event is sent. No `Begin` is undone: a process's own `main` occupies its processor for good.

use core::fmt;

use finespun_types::catalogue::Field;
use finespun_types::{ProcessorId, messages};

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

messages! {
    /// What happens to threads.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Event in 3 words {
        /// The processor runs the program's own `main`, from here to the end of the job.
        1 Begin {
            /// Which.
            who: ProcessorId,
        },
        /// A thread is to run on an idle processor.
        2 Create {
            /// On this one, or on the next by turns over the nodes.
            on: Option<ProcessorId>,
            /// Who asks.
            by: ProcessorId,
            /// The function, as an offset in the program.
            function: u64,
            /// Its argument.
            argument: u64,
        },
        /// A thread is to run on an idle processor, or beside others.
        6 Spawn {
            /// At this node, or by turns over the nodes.
            near: Option<u32>,
            /// Who asks.
            by: ProcessorId,
            /// The function, as an offset in the program.
            function: u64,
            /// Its argument.
            argument: u64,
        },
        /// The thread that `who` runs has returned.
        4 Finished {
            /// Which.
            who: ProcessorId,
            /// What it returned.
            result: u64,
        },
        /// Answered when the thread has ended.
        5 Join {
            /// Which thread.
            thread: Handle,
            /// Who waits.
            by: ProcessorId,
        },
        /// Nobody will join the thread: its place is idle again when it ends.
        8 Detach {
            /// Which thread.
            thread: Handle,
            /// Who asks.
            by: ProcessorId,
        },
        /// Answered when no thread runs any more.
        9 Quiet {
            /// Who waits. One at a time.
            by: ProcessorId,
        },
    }
}

impl Event {
    /// Does who sends it pass on what it has stored?
    #[must_use]
    pub const fn releases(self) -> bool {
        match self {
            Self::Create { .. } | Self::Spawn { .. } | Self::Finished { .. } => true,
            Self::Begin { .. } | Self::Join { .. } | Self::Detach { .. } | Self::Quiet { .. } => false,
        }
    }
}

impl Field for Handle {
    const BYTES: u32 = size_of::<u64>() as u32;

    fn to_number(self) -> u64 {
        self.0
    }
    fn of_number(number: u64) -> Option<Self> {
        Some(Self(number))
    }
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
        /// The thread.
        thread: Handle,
    },
    /// The answer to `Create` and `Spawn`.
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
    /// The answer to `Detach` and `Quiet`.
    Done {
        /// Who asked.
        by: ProcessorId,
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
    /// The thread is detached: nobody can join it, or detach it again (E005).
    Detached {
        /// Which.
        thread: Handle,
    },
    /// The job has no such node (E005).
    NoNode {
        /// What was given.
        given: u32,
        /// How many there are.
        nodes: u32,
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
    /// It runs a thread that nobody joins.
    Detached,
}

/// What is remembered for all processors; zeros at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Header {
    /// The node whose turn it is.
    turn: u32,
    /// Processors in [`State::Finished`].
    unjoined: u32,
    /// Processors in [`State::Running`] and [`State::Detached`].
    running: u32,
    /// Who waits until there are none, plus one.
    quiet: u32,
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
            3 => State::Finished,
            _ => State::Detached,
        }
    }

    fn set_state(&mut self, state: State) {
        (self.state, self.joiner) = match state {
            State::Idle => (0, 0),
            State::Main => (1, 0),
            State::Running { joiner } => (2, joiner.map_or(0, |who| who.0 + 1)),
            State::Finished => (3, 0),
            State::Detached => (4, 0),
        };
    }
}

/// A view of the memory, made for as long as its lock is held.
#[derive(Debug)]
pub struct Threads<'a> {
    header: &'a mut Header,
    slots: &'a mut [Slot],
    /// The processors are first among the slots, then the seats.
    processors: u32,
    per_node: u32,
    seats: Seats,
}

/// The seats of each node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seats {
    /// So many numbers above those of the processors belong to each node.
    pub numbers: u32,
    /// The first so many of them are seats.
    pub usable: u32,
}

impl<'a> Threads<'a> {
    /// The threads in this memory, all zeros at first: one slot for each processor of the job, `per_node` of them in
    /// each node; no seats.
    ///
    /// # Panics
    /// If the slots are not whole nodes.
    pub fn new(header: &'a mut Header, slots: &'a mut [Slot], per_node: u32) -> Self {
        Self::with_seats(header, slots, per_node, Seats::default())
    }

    /// The same, with slots for the seats of every node behind those of the processors.
    ///
    /// # Panics
    /// If the slots are not whole nodes.
    pub fn with_seats(header: &'a mut Header, slots: &'a mut [Slot], per_node: u32, seats: Seats) -> Self {
        let of_node = (per_node + seats.numbers) as usize;
        assert!(per_node > 0 && slots.len().is_multiple_of(of_node), "every node has the same number of processors");
        let processors = (slots.len() / of_node) as u32 * per_node;
        Self { header, slots, processors, per_node, seats }
    }

    /// Takes one event; `out` is called for every action, in order, under the lock. After an error nothing has
    /// changed.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn on(&mut self, event: Event, out: &mut dyn FnMut(Action)) -> Result<(), Error> {
        match event {
            Event::Begin { who } | Event::Finished { who, .. } => self.on_processor(who, event, out),
            Event::Create { on: Some(given), .. } if given.0 >= self.processors => {
                Err(Error::NoProcessor { given, processors: self.processors })
            }
            Event::Create { on: Some(who), .. } => self.on_processor(who, event, out),
            Event::Create { on: None, by, .. } => match self.next_idle() {
                Some(who) => self.on_processor(who, event, out),
                None => {
                    out(Action::Refused { by, unjoined: self.header.unjoined });
                    Ok(())
                }
            },
            Event::Spawn { near: Some(given), .. } if given >= self.nodes() => {
                Err(Error::NoNode { given, nodes: self.nodes() })
            }
            Event::Spawn { near, by, .. } => match self.next_place(near) {
                Some(who) => self.on_processor(who, event, out),
                None => {
                    out(Action::Refused { by, unjoined: self.header.unjoined });
                    Ok(())
                }
            },
            Event::Quiet { by } => {
                match self.header.running {
                    0 => out(Action::Done { by }),
                    _ => self.header.quiet = by.0 + 1,
                }
                Ok(())
            }
            Event::Join { thread, by } | Event::Detach { thread, by } => {
                let processor = thread.processor();
                let newest = self.slots.get(processor.0 as usize).map_or(0, |slot| slot.generation);
                match thread.generation() {
                    0 => Err(Error::NoThread { thread }),
                    generation if generation > newest => Err(Error::NoThread { thread }),
                    generation if generation < newest => Err(Error::JoinedAlready { thread }),
                    _ if processor == by && matches!(event, Event::Join { .. }) => Err(Error::JoinSelf { thread }),
                    _ => self.on_processor(processor, event, out),
                }
            }
        }
    }

    /// How many threads run, besides main.
    #[must_use]
    pub const fn running(&self) -> u32 {
        self.header.running
    }

    /// Who waits until no thread runs.
    #[must_use]
    pub fn awaits_quiet(&self) -> Option<ProcessorId> {
        self.header.quiet.checked_sub(1).map(ProcessorId)
    }

    /// What a processor does now.
    #[must_use]
    pub fn state(&self, who: ProcessorId) -> Option<State> {
        self.slots.get(who.0 as usize).map(Slot::state)
    }

    /// The heart: one row per (state of the processor concerned, event).
    #[rustfmt::skip]
    fn on_processor(&mut self, who: ProcessorId, event: Event, out: &mut dyn FnMut(Action)) -> Result<(), Error> {
        use Event::{Begin, Create, Detach, Join, Quiet, Spawn};
        use State::{Detached, Idle, Main, Running};

        let processors = self.processors;
        let slot = self.slots.get_mut(who.0 as usize).ok_or(Error::NoProcessor { given: who, processors })?;
        let state = slot.state();
        let next = match (state, event) {
            (Idle, Begin { .. }) => Main,
            (Idle, Create { by, function, argument, .. } | Spawn { by, function, argument, .. }) => {
                slot.generation = slot.generation.wrapping_add(1).max(1);
                let thread = Handle::new(who, slot.generation);
                out(Action::Start { who, function, argument, thread });
                out(Action::Created { by, thread });
                self.header.running += 1;
                Running { joiner: None }
            }
            (Main | Running { .. } | State::Finished | Detached, Create { by, .. } | Spawn { by, .. }) => {
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
            (Detached, Event::Finished { .. }) => Idle,

            (Running { joiner: None },         Join { by, .. })     => Running { joiner: Some(by) },
            (Running { joiner: Some(joiner) }, Join { thread, .. }) => return Err(Error::JoinPending { thread, joiner }),
            (State::Finished, Join { by, .. }) => {
                out(Action::Joined { by, result: core::mem::take(&mut slot.result) });
                self.header.unjoined -= 1;
                Idle
            }
            (Idle | Main, Join { thread, .. } | Detach { thread, .. }) => return Err(Error::JoinedAlready { thread }),

            (Running { joiner: None },         Detach { by, .. })     => { out(Action::Done { by }); Detached }
            (Running { joiner: Some(joiner) }, Detach { thread, .. }) => return Err(Error::JoinPending { thread, joiner }),
            (State::Finished, Detach { by, .. }) => {
                out(Action::Done { by });
                self.header.unjoined -= 1;
                Idle
            }
            (Detached, Join { thread, .. } | Detach { thread, .. }) => return Err(Error::Detached { thread }),

            (Main | Running { .. } | State::Finished | Detached, Begin { .. })
            | (Idle | Main | State::Finished, Event::Finished { .. })
            | (Idle | Main | Running { .. } | State::Finished | Detached, Quiet { .. })
                => return Err(Error::Impossible { state, event }),
        };
        slot.set_state(next);
        if let Event::Finished { .. } = event {
            self.one_thread_less(out);
        }
        Ok(())
    }

    fn one_thread_less(&mut self, out: &mut dyn FnMut(Action)) {
        self.header.running -= 1;
        if self.header.running == 0
            && let Some(by) = core::mem::take(&mut self.header.quiet).checked_sub(1)
        {
            out(Action::Done { by: ProcessorId(by) });
        }
    }

    const fn nodes(&self) -> u32 {
        self.processors / self.per_node
    }

    /// Where a thread that may be one of several goes: to an idle processor, else to a seat of the node that has most left.
    fn next_place(&mut self, near: Option<u32>) -> Option<ProcessorId> {
        let idle = match near {
            None => self.next_idle(),
            Some(node) => self.idle_of(node),
        };
        idle.or_else(|| self.next_seat(near))
    }

    /// A seat of the given node, or of the one with the fewest taken: of equals the one whose turn comes first.
    fn next_seat(&mut self, near: Option<u32>) -> Option<ProcessorId> {
        let nodes = self.nodes();
        let by_turns = (0..nodes).map(|ahead| (self.header.turn + ahead) % nodes);
        let of_node = |node: u32| {
            let first = self.processors + node * self.seats.numbers;
            first..first + self.seats.usable
        };
        let is_idle = |seat: &u32| self.slots[*seat as usize].state() == State::Idle;
        let left = |node: &u32| of_node(*node).filter(is_idle).count();
        let node = match near {
            Some(node) => node,
            // `max_by_key` takes the last of equals.
            None => by_turns.rev().max_by_key(left)?,
        };
        let seat = of_node(node).find(is_idle)?;
        self.header.turn = (node + 1) % nodes;
        Some(ProcessorId(seat))
    }

    /// The first idle processor of the next node that has one; the turn then goes to the node after it.
    fn next_idle(&mut self) -> Option<ProcessorId> {
        let nodes = self.nodes();
        for ahead in 0..nodes {
            let node = (self.header.turn + ahead) % nodes;
            if let Some(idle) = self.idle_of(node) {
                self.header.turn = (node + 1) % nodes;
                return Some(idle);
            }
        }
        None
    }

    /// The first idle processor of a node.
    fn idle_of(&self, node: u32) -> Option<ProcessorId> {
        let first = node * self.per_node;
        let of_node = &self.slots[first as usize..][..self.per_node as usize];
        let local = of_node.iter().position(|slot| slot.state() == State::Idle)?;
        Some(ProcessorId(first + local as u32))
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
            Self::Detached { thread } => {
                write!(f, "the thread {:#x} on processor {} is detached", thread.0, thread.processor().0)
            }
            Self::NoNode { given, nodes } => write!(f, "there is no node {given}: the job has {nodes}, counted from 0"),
            Self::Impossible { state, event } => write!(f, "{event:?} while the processor is {state:?}"),
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::Event;
    use finespun_types::catalogue::assert_wide_codec;

    #[test]
    fn every_event_survives_the_wire() {
        assert_wide_codec(Event::has_number, Event::of_words, Event::words);
    }
}
