//! A hang in words: who waits for what, and why that never comes.

use finespun_errors::{Code, Report};
use finespun_runtime::waits::{Doing, Look, Nodes};
use finespun_sync::stuck::{Party, Verdict, Wait};
use finespun_sync::{Awaited, Need};

/// Threads that a message names one by one, at most.
const NAMED_MAX: usize = 6;

/// Barriers below this address are the runtime's own: that of collective allocations, beside the barrier of all.
const OBJECTS_FROM: u64 = 4096;

/// The report of a verdict on what was seen.
pub fn report(nodes: &Nodes, look: &Look, verdict: Verdict) -> Report {
    let scene = Scene { nodes, look };
    let (code, about, what) = match verdict {
        Verdict::Circle(first) => (Code::Deadlock, first, scene.circle(first)),
        Verdict::Abandoned(waiter) => (Code::HeldByEnded, waiter, scene.abandoned(waiter)),
        Verdict::Barrier(waiter) => (Code::BarrierNever, waiter, scene.with_others(waiter)),
        Verdict::Nobody(waiter) => (Code::AllWait, waiter, scene.with_others(waiter)),
    };
    Report { code, place: nodes.place(about), what }
}

struct Scene<'a> {
    nodes: &'a Nodes,
    look: &'a Look,
}

impl Scene<'_> {
    fn circle(&self, first: usize) -> String {
        let mut parts = vec![self.clause(first)];
        let mut at = self.awaited_by(first);
        while let Some(party) = at.filter(|party| *party != first) {
            if parts.len() == NAMED_MAX {
                parts.push("and so on, back to the first".to_owned());
                break;
            }
            parts.push(self.clause(party));
            at = self.awaited_by(party);
        }
        parts.join("; ")
    }

    fn abandoned(&self, waiter: usize) -> String {
        let held = self.clause(waiter);
        format!("{held}, and the thread that locked it there has ended")
    }

    /// The waiter, then what the other threads of the job do.
    fn with_others(&self, waiter: usize) -> String {
        let doing = |party: &usize| self.look.seen[*party].doing;
        let others: Vec<_> =
            (0..self.look.seen.len()).filter(|party| *party != waiter && doing(party) != Doing::Vacant).collect();
        let (alike, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|party| doing(party) == doing(&waiter));
        let mut parts = vec![self.clause(waiter)];
        match alike.as_slice() {
            [] => {}
            [other] => parts.push(format!("so does {}", self.nodes.name(*other))),
            _ => parts.push(format!("so do {} others", alike.len())),
        }
        parts.extend(others.iter().take(NAMED_MAX).map(|&party| self.clause(party)));
        if let Some(more) = others.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            parts.push(format!("and {more} more"));
        }
        let processors = &self.look.seen[..self.nodes.processors()];
        match processors.iter().filter(|seen| seen.doing == Doing::Vacant).count() {
            0 => {}
            1 => parts.push("one processor runs nothing".to_owned()),
            vacant => parts.push(format!("{vacant} processors run nothing")),
        }
        parts.join("; ")
    }

    fn awaited_by(&self, party: usize) -> Option<usize> {
        match self.look.seen[party].party() {
            Party::Waits(Wait::Unlock(by) | Wait::End(by)) => Some(by),
            Party::Waits(Wait::Arrivals { .. } | Wait::All | Wait::Anyone) | Party::Vacant | Party::Runs => None,
        }
    }

    /// `processor 1 (node 0) waits for the mutex at 0x2000, which processor 2 (node 1) holds`
    fn clause(&self, party: usize) -> String {
        let who = self.nodes.name(party);
        match self.look.seen[party].doing {
            Doing::Vacant => format!("{who} runs nothing"),
            Doing::Runs => format!("{who} runs"),
            Doing::All => format!("{who} waits at fsp_barrier_all"),
            Doing::Joins(thread) => {
                format!("{who} waits for the end of the thread that is {}", self.nodes.name(thread))
            }
            Doing::JoinsAll => format!("{who} waits for the end of all threads"),
            Doing::Ended => format!("{who} has come to the end of its program"),
            Doing::Object(awaited) => format!("{who} {}", self.wait(awaited)),
        }
    }

    fn wait(&self, Awaited { object, kind, need }: Awaited) -> String {
        let kind = kind.name();
        match need {
            Need::Unlock(holder) => {
                format!("waits for the {kind} at {object:#x}, which {} holds", self.nodes.name(holder.0 as usize))
            }
            Need::Readers(1) => format!("waits for the {kind} at {object:#x}, which one thread has locked to read"),
            Need::Readers(count) => {
                format!("waits for the {kind} at {object:#x}, which {count} threads have locked to read")
            }
            Need::Arrivals { count, arrived } if object < OBJECTS_FROM => {
                format!("waits in fsp_malloc_all, where {arrived} of {count} processes have come")
            }
            Need::Arrivals { count, arrived } => {
                format!("waits at the {kind} at {object:#x}, where {arrived} of {count} have arrived")
            }
            Need::Value { now, until } => {
                format!("waits for the {kind} at {object:#x} to reach {until}, which is at {now}")
            }
            Need::Signal => format!("waits for a signal of the {kind} at {object:#x}"),
            Need::FromElsewhere => format!("waits for the {kind} at {object:#x}"),
        }
    }
}
