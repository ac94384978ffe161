//! Who waits for whom in a job, as a process that has all nodes' memory sees it from outside.
//!
//! ```text
//!   slots          which threads sleep in the engine, and for what                     (`asleep`)
//!   tables         is it so still, and what would end it: who holds, how many arrived   (`finespun_sync::Awaited`)
//!   thread table   where threads run, who joins whom
//! ```
//!
//! A thread counts as waiting only if the table at the manager has it in a queue, or the barrier's round has not changed. A request or a
//! grant under way is in no table: its thread counts as running. So what is seen here of one thread can change only by what
//! another does. The threads are looked at one after the other. If three looks see one and the same sleep of each of them ([`Seen`] is
//! equal), all of them slept as long as the second look took, and what it saw was so at one moment.
//!
//! Locks are tried only: they may be held by a process that was killed.

use std::collections::HashSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use finespun_errors::Place;
use finespun_job::Job;
use finespun_job::switches::Locks;
use finespun_sync::stuck::{Party, Wait};
use finespun_sync::threads::State;
use finespun_sync::{Awaited, Kind, Need, place};
use finespun_types::{NodeId, ProcessorId, ViewId};

use crate::node::carriers::ALL;
use crate::node::names;
use crate::sys::asleep::{ROUND, Sleep, THREADS, WORK};
use crate::sys::segment::Segment;
use crate::sys::shape::{GUESTS, SEATS, STRIPE_WORDS, STRIPES, Shape};
use crate::sys::slot::Slot;

/// What is at a party of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// No thread.
    Vacant,
    /// A thread that runs, for all that is known.
    Runs,
    /// One that waits for an object.
    Object(Awaited),
    /// One at the barrier of all.
    All,
    /// One that waits for the end of the thread at this party.
    Joins(usize),
    /// Main, which waits until no other thread runs.
    JoinsAll,
    /// One that has come to the end of its program and waits for the other processes.
    Ended,
}

/// A party as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it does.
    pub doing: Doing,
    sleep: Option<Sleep>,
}

/// What was seen of a job.
#[derive(Clone, Debug)]
pub struct Look {
    /// Every party, processors first.
    pub seen: Vec<Seen>,
    /// Threads of the operating system that run nothing now, and will not before another thread makes them.
    pub quiet: HashSet<u32>,
}

/// All nodes' memory.
pub struct Nodes {
    nodes: Vec<Segment>,
    shape: Shape,
    migrate: bool,
}

impl Seen {
    /// What it is in a question about all of them.
    #[must_use]
    pub const fn party(&self) -> Party {
        match self.doing {
            Doing::Vacant => Party::Vacant,
            Doing::Runs => Party::Runs,
            Doing::All => Party::Waits(Wait::All),
            Doing::Joins(thread) => Party::Waits(Wait::End(thread)),
            Doing::JoinsAll | Doing::Ended => Party::Waits(Wait::Anyone),
            Doing::Object(Awaited { object, need, .. }) => match need {
                Need::Unlock(holder) => Party::Waits(Wait::Unlock(holder.0 as usize)),
                Need::Arrivals { count, arrived } => {
                    Party::Waits(Wait::Arrivals { barrier: object, missing: count.saturating_sub(arrived) })
                }
                Need::Value { .. } | Need::Signal | Need::Readers(_) => Party::Waits(Wait::Anyone),
                Need::FromElsewhere => Party::Runs,
            },
        }
    }
}

impl Nodes {
    /// Maps the memory of all nodes: segment and frames of each.
    ///
    /// # Errors
    /// The kernel's.
    pub fn map<'a>(memory: impl Iterator<Item = (BorrowedFd<'a>, BorrowedFd<'a>)>, job: &Job) -> io::Result<Self> {
        let shape = Shape::of(job);
        let nodes = memory.map(|(segment, frames)| Segment::map(segment, frames, shape)).collect::<io::Result<_>>()?;
        Ok(Self { nodes, shape, migrate: job.switches.locks == Locks::Migratory })
    }

    /// Processors of the job.
    #[must_use]
    pub const fn processors(&self) -> usize {
        self.shape.processors()
    }

    /// Where a party stands, for messages.
    #[must_use]
    pub fn place(&self, party: usize) -> Place {
        let number = party as u32;
        match names::guest(number, self.processors() as u32) {
            None => Place::Processor { node: self.node_of(party) as u32, processor: number },
            Some((node, name)) => Place::Thread { node, name },
        }
    }

    /// What a party is called in the middle of a message.
    #[must_use]
    pub fn name(&self, party: usize) -> String {
        match names::guest(party as u32, self.processors() as u32) {
            None => format!("processor {party} (node {})", self.node_of(party)),
            Some((node, name)) => format!("{name} (node {node})"),
        }
    }

    /// The node of a party.
    #[must_use]
    pub const fn node_of(&self, party: usize) -> usize {
        let (each, all) = (self.shape.processors_per_node(), self.shape.processors());
        if party < all { party / each } else { (party - all) / GUESTS }
    }

    /// Looks at everybody; `None` if a lock was taken.
    #[must_use]
    pub fn look(&self) -> Option<Look> {
        let threads = self.threads()?;
        let mut look = Look { seen: Vec::with_capacity(threads.states.len()), quiet: self.helpers() };
        for party in 0..threads.states.len() {
            let seen = self.see(party, &threads)?;
            if let (Some(sleep), false) = (seen.sleep, seen.doing == Doing::Runs) {
                look.quiet.insert(sleep.thread);
            }
            look.seen.push(seen);
        }
        Some(look)
    }

    fn threads(&self) -> Option<Threads> {
        let read = |threads: &mut finespun_sync::threads::Threads<'_>| {
            let parties = 0..self.shape.waiters() as u32;
            let states: Vec<_> = parties.map(|who| threads.state(ProcessorId(who)).unwrap_or(State::Idle)).collect();
            Threads { states, quiet: threads.awaits_quiet() }
        };
        self.nodes.first()?.try_with_threads(read)
    }

    fn helpers(&self) -> HashSet<u32> {
        let views = (0..self.shape.views).map(|view| ViewId(view as u8));
        let all = self.nodes.iter().flat_map(|node| views.clone().flat_map(|view| &node.view(view).helpers));
        all.map(|thread| thread.load(Ordering::Relaxed)).filter(|thread| *thread != 0).collect()
    }

    /// One party; `None` if a lock was taken.
    fn see(&self, party: usize, threads: &Threads) -> Option<Seen> {
        let Some((node, slot)) = self.occupied(party, threads.states[party]) else {
            return Some(Seen { doing: Doing::Vacant, sleep: None });
        };
        let sleep = slot.asleep_for.read();
        let doing = match (threads.states[party], sleep) {
            // Its thread has told that it has ended, or none was there yet.
            (State::Idle | State::Finished, _) if party < self.processors() => Doing::Vacant,
            (_, None) => Doing::Runs,
            (_, Some(sleep)) => self.doing(party, (node, slot), sleep, threads)?,
        };
        // Asleep all the time that this took.
        let is_same = slot.asleep_for.read() == sleep;
        Some(Seen { doing: if is_same { doing } else { Doing::Runs }, sleep })
    }

    /// The node and the slot of a party where a thread may be. Others' slots are not looked at: that would make pages of them.
    fn occupied(&self, party: usize, state: State) -> Option<(usize, &Slot)> {
        let (node, all) = (self.node_of(party), self.processors());
        let each = self.shape.processors_per_node();
        let memory = self.nodes.get(node)?;
        if party < all {
            return Some((node, memory.slot(party % each)));
        }
        let guest = (party - all) % GUESTS;
        let is_there = match guest.checked_sub(SEATS) {
            None => matches!(state, State::Main | State::Running { .. } | State::Detached),
            Some(bit) => bit < 32 && memory.node().guests.load(Ordering::Relaxed) >> bit & 1 == 1,
        };
        is_there.then(|| (node, memory.slot(each + guest)))
    }

    fn doing(&self, party: usize, (node, slot): (usize, &Slot), sleep: Sleep, threads: &Threads) -> Option<Doing> {
        let is_granted = slot.granted.load(Ordering::SeqCst) != 0;
        Some(match sleep.what {
            ROUND if self.nodes[node].node().barrier_round.load(Ordering::SeqCst) == sleep.old => Doing::All,
            THREADS if !is_granted => threads.awaited_by(party),
            ROUND | THREADS | WORK => Doing::Runs,
            object => match self.awaited(party, node, object)? {
                // Its signal, or its grant, is there, or came before.
                Some(Awaited { kind: Kind::Condition, .. }) if slot.signalled.load(Ordering::SeqCst) != 0 => {
                    Doing::Runs
                }
                Some(Awaited { kind, .. }) if kind != Kind::Condition && is_granted => Doing::Runs,
                Some(awaited) => self.object(awaited),
                None => Doing::Runs,
            },
        })
    }

    fn object(&self, awaited: Awaited) -> Doing {
        match (awaited.object, awaited.need) {
            (ALL, Need::Arrivals { count, .. }) if count as usize == self.processors() => Doing::All,
            (ALL, _) => Doing::Ended,
            (_, Need::FromElsewhere) => Doing::Runs,
            (_, _) => Doing::Object(awaited),
        }
    }

    /// What a party waits for at an object, as the table says that it waits in; the outer `None` if its lock was taken.
    fn awaited(&self, party: usize, node: usize, object: u64) -> Option<Option<Awaited>> {
        let who = ProcessorId(party as u32);
        let at = place(object, self.shape.nodes as u32, STRIPES as u32, STRIPE_WORDS as u32);
        let stripe = at.table as usize;
        let in_table = |node: usize| {
            let found = self.nodes.get(node)?.try_with_table(stripe, |table| table.wait_of(who))?;
            Some(found.filter(|awaited| awaited.object == object))
        };
        let NodeId(manager) = at.node;
        let mut found = in_table(usize::from(manager))?;
        if found.is_none() && self.migrate {
            found = in_table(node)?;
        }
        if let Some(awaited) = found.as_mut().filter(|awaited| awaited.need == Need::FromElsewhere) {
            for node in &self.nodes {
                if let Some(holder) = node.try_with_table(stripe, |table| table.migratory_holder(object))? {
                    awaited.need = Need::Unlock(holder);
                }
            }
        }
        Some(found)
    }
}

/// What the keeper of the job's threads knows.
struct Threads {
    states: Vec<State>,
    quiet: Option<ProcessorId>,
}

impl Threads {
    /// What a party waits for here; it runs if it does not.
    fn awaited_by(&self, party: usize) -> Doing {
        let me = ProcessorId(party as u32);
        if self.quiet == Some(me) {
            return Doing::JoinsAll;
        }
        let joined = self.states.iter().position(|state| *state == State::Running { joiner: Some(me) });
        joined.map_or(Doing::Runs, Doing::Joins)
    }
}
