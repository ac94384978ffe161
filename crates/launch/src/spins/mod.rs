//! Watches a node's processes for a racy wait: a processor that reads a word of shared memory in a loop, and that nothing but an
//! acquire, which the loop has none of, would bring the word's new value.
//!
//! ```text
//!   every sixth of the time   /proc: which threads have run and never waited since the last look?  (who computes, or spins)
//!   of these, one look each   stopped by ptrace for some microseconds: instruction and registers
//!   all looks of the whole time within a few instructions?  then `code` reads the loop; `Spin` tells the launcher
//! ```
//!
//! Nothing of this is in the program's processes: no signal, no timer, no handler, nothing to do at a call or fault. A process that
//! waits (in the engine or in the kernel) is never stopped, and one that computes only once in a while: two files read and 5 us a look.

pub mod code;
mod process;
pub mod wording;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use code::Endless;
use serde::{Deserialize, Serialize};

use crate::sys::trace::{self, Registers};
use process::{Space, Thread};

/// How many looks make up the time.
const LOOKS: u32 = 6;
/// Looks within so many bytes of code are at one loop.
const WINDOW: u64 = 128;

/// A word that a loop reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// Its address.
    pub address: u64,
    /// Its place in the frames of its node.
    pub offset: u64,
    /// Its bytes.
    pub size: u32,
}

/// A processor that spins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spin {
    /// Its process.
    pub view: u32,
    /// Its number, where its thread tells.
    pub processor: Option<u32>,
    /// The loop's instruction that reads, or its first.
    pub at: u64,
    /// Where the executable is loaded.
    pub image: u64,
    /// Is the loop in the executable, not in a library?
    pub in_image: bool,
    /// For how long at least.
    pub seconds: u64,
    /// What it reads; nothing: the loop is empty.
    pub words: Vec<Word>,
}

/// What has been seen of a thread since it last waited.
#[derive(Debug)]
struct Seen {
    view: u32,
    pid: i32,
    last: Thread,
    /// It was stopped since, which the kernel counts as a wait.
    stopped: bool,
    looks: Vec<(Instant, Registers)>,
}

/// Watches the processes of one node.
#[derive(Debug)]
pub struct Watch {
    time: Duration,
    next: Instant,
    threads: HashMap<i32, Seen>,
}

impl Watch {
    /// Tells of spins that last this long.
    #[must_use]
    pub fn new(time: Duration, now: Instant) -> Self {
        Self { time, next: now + time / LOOKS, threads: HashMap::new() }
    }

    /// When to look again.
    #[must_use]
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Looks at the processes, given by view and number, if it is time; what comes of it comes by [`Watch::on_stopped`].
    pub fn look(&mut self, now: Instant, processes: &[(u32, i32)]) {
        if now < self.next {
            return;
        }
        self.next = now + self.time / LOOKS;
        let mut threads = HashMap::new();
        for &(view, pid) in processes {
            for thread in process::threads(pid) {
                let fresh = || Seen { view, pid, last: thread, stopped: false, looks: Vec::new() };
                let mut seen = self.threads.remove(&thread.id).unwrap_or_else(fresh);
                if thread.waits > seen.last.waits + u64::from(std::mem::take(&mut seen.stopped)) {
                    seen.looks.clear();
                } else if thread.ran != seen.last.ran {
                    // Refused where a debugger is at work already, or the machine forbids it: then nothing is told.
                    let _ = trace::stop(thread.id);
                }
                seen.last = thread;
                threads.insert(thread.id, seen);
            }
        }
        self.threads = threads;
    }

    /// A thread has stopped for us, before it could take this signal.
    pub fn on_stopped(&mut self, thread: i32, signal: i32, now: Instant) -> Option<Spin> {
        let registers = trace::registers(thread).map(|registers| caller_of(thread, registers));
        let _ = trace::let_go(thread, signal);
        let (seen, registers) = (self.threads.get_mut(&thread)?, registers.ok()?);
        seen.stopped = true;
        let began = seen.add(now, registers);
        // Looks come a little early or late.
        if now - began + self.time / (4 * LOOKS) < self.time || seen.looks.len() < LOOKS as usize / 2 {
            return None;
        }
        let space = Space::of(seen.pid)?;
        let looks: Vec<_> = std::mem::take(&mut seen.looks).into_iter().map(|(_, registers)| registers).collect();
        let (at, loads) = match code::endless(&looks, &space)? {
            Endless::Empty { at } => (at, Vec::new()),
            Endless::Waits(loads) => (loads.first()?.at, loads),
        };
        let word = |load: &code::Load| {
            Some(Word { address: load.address, offset: space.offset(load.address)?, size: load.size as u32 })
        };
        let words = loads.iter().filter_map(word).collect();
        Some(Spin {
            view: seen.view,
            processor: process::processor(seen.pid, thread),
            at,
            image: space.image.start,
            in_image: space.image.contains(&at),
            seconds: (now - began).as_secs_f64().round() as u64,
            words,
        })
    }
}

impl Seen {
    /// One more look, which begins anew where it is at another loop. When the first of them was.
    fn add(&mut self, now: Instant, registers: Registers) -> Instant {
        if self.looks.iter().any(|(_, other)| other.at.abs_diff(registers.at) > WINDOW) {
            self.looks.clear();
        }
        self.looks.push((now, registers));
        self.looks[0].0
    }
}

/// Where a process has loaded its executable; 0 if that is not known.
#[must_use]
pub fn image_of(pid: u32) -> u64 {
    Space::of(pid.cast_signed()).map_or(0, |space| space.image.start)
}

/// A thread in a system call that a loop makes in each turn, `sched_yield`, is where that call returns to: the C library's
/// function for it is nothing but the call, and so the address stands on top of the stack.
fn caller_of(thread: i32, registers: Registers) -> Registers {
    const SYSCALL: u64 = 0x050f;
    const STACK: usize = 4;
    let is_in_call = trace::word(thread, registers.at.wrapping_sub(2)).is_ok_and(|code| code & 0xffff == SYSCALL);
    match trace::word(thread, registers.general[STACK]) {
        Ok(at) if is_in_call => Registers { at, ..registers },
        Ok(_) | Err(_) => registers,
    }
}
