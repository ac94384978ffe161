//! Watches a job for threads that can never go on: circles of mutexes, barriers that cannot fill, waits that no thread is left to end.
//!
//! ```text
//!   every second   who waits for whom (`finespun_runtime::waits`), and who of them is stuck (`finespun_sync::stuck`)?
//!   some are       /proc: does anything else run in the job, that may let them go on?
//!   still are, in the same sleep, at the next look and right after it: the job ends with one message
//! ```
//!
//! The program's processes do nothing for it. What a thread may do that is not asleep in the engine is not known, so nothing is said while
//! one is there that could help: one that computes, reads a file, sleeps or waits with a time limit, one that the program made itself, or a
//! handler that a signal from outside may start. Of a circle that is independent: it never opens.

mod process;
mod wording;

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use finespun_errors::Report;
use finespun_job::Job;
use finespun_runtime::waits::{Look, Nodes};
use finespun_sync::stuck::{Party, Verdict, World};

use crate::memory::Memory;
use crate::names;
use crate::spins::image_of;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches a job.
#[derive(Default)]
pub struct Watch {
    next: Option<Instant>,
    nodes: Option<Nodes>,
    /// The last look, if some were stuck.
    before: Option<Look>,
}

/// What there is to look at.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The job.
    pub job: &'a Job,
    /// The nodes' memory.
    pub memory: &'a [Memory],
    /// The program.
    pub program: &'a Path,
}

impl Watch {
    /// How long until it is time for a look, once all processes have started.
    pub fn left(&mut self, now: Instant) -> Duration {
        self.next.get_or_insert(now + PAUSE).saturating_duration_since(now)
    }

    /// Looks, if it is time. `processes` are the numbers of all, by node and view; all have started, and none has ended its part.
    pub fn look(&mut self, now: Instant, scene: Scene<'_>, processes: &[u32]) -> Option<Report> {
        if !self.left(now).is_zero() {
            return None;
        }
        self.next = Some(now + PAUSE);
        if self.nodes.is_none() {
            let memory = scene.memory.iter().map(|memory| (memory.segment.as_fd(), memory.frames.as_fd()));
            // Without them nothing is told; that they cannot be mapped has other causes, and other signs.
            self.nodes = Nodes::map(memory, scene.job).ok();
        }
        let nodes = self.nodes.as_ref()?;
        let before = self.before.take();
        let look = nodes.look()?;
        let (verdict, stuck) = judge(nodes, &look, processes)?;
        let is_as_in = |other: &Look| stuck.iter().all(|&party| other.seen[party] == look.seen[party]);
        if !before.is_some_and(|before| is_as_in(&before)) {
            self.before = Some(look);
            return None;
        }
        // The same before and after: nothing changed while it was looked at.
        if !nodes.look().is_some_and(|after| is_as_in(&after)) {
            return None;
        }
        let Report { code, place, what } = wording::report(nodes, &look, verdict);
        let image = processes.first().map_or(0, |&pid| image_of(pid));
        Some(Report { code, place, what: names::named(&what, scene.program, image) })
    }
}

/// What is to be said, and who is stuck.
fn judge(nodes: &Nodes, look: &Look, processes: &[u32]) -> Option<(Verdict, Vec<usize>)> {
    let parties: Vec<Party> = look.seen.iter().map(finespun_runtime::waits::Seen::party).collect();
    let judged = |outsiders| {
        let world = World { parties: &parties, processors: nodes.processors(), outsiders };
        let mut free = vec![false; parties.len()];
        world.can_go_on(&mut free);
        let verdict = world.verdict(&free)?;
        Some((verdict, (0..free.len()).filter(|&party| !free[party]).collect()))
    };
    let found = judged(false)?;
    let outsiders = processes.iter().any(|&pid| process::may_act(pid, &look.quiet));
    if outsiders { judged(true) } else { Some(found) }
}
