//! How a job ends: events in, at most one ending out. No clock, no process: the launcher brings both.
//!
//! The difficulty is that one cause shows in several places, in any order: a node killed by SIGKILL ends its processes
//! with it, its peers see their connections close, and only then does the launcher learn of the signal. So an ending
//! is either *certain* (the first one stands), or a *suspicion*, which a certain ending replaces within
//! [`Patience::Suspicion`], and which the normal end of the job dispels.

use finespun_errors::{Code, Place, Report as Message};
use finespun_job::Report;
use nix::sys::signal::Signal;

use crate::control::{Event, Exit};
use crate::last::Death;

/// How long the launcher lets the rest of the job run on after an ending is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all: what is still running waits for something that will not come.
    None,
    /// A moment: nothing has started to be shared, and the others are about to end in the same way and may have
    /// something to say (their own usage text, for instance).
    Courtesy,
    /// A moment, in which a better explanation may come.
    Suspicion,
}

/// The end of a job that did not end as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The job's exit code.
    pub exit_code: i32,
    /// The one message; none when the program has said enough itself.
    pub message: Option<String>,
    /// What to do about those that still run.
    pub patience: Patience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Spawned,
    Started,
    Finalized,
}

#[derive(Clone, Debug)]
struct View {
    pid: Option<u32>,
    stage: Stage,
    ended: bool,
    death: Option<Death>,
}

/// Everybody who takes part, and what became of them.
#[derive(Debug)]
pub struct Roll {
    program: String,
    nodes: u32,
    views: u32,
    threads: u32,
    roll: Vec<View>,
    node_pids: Vec<u32>,
    exit_code: i32,
    ending: Option<Ending>,
}

impl Roll {
    /// Nobody has started yet.
    #[must_use]
    pub fn new(program: String, nodes: u32, views: u32, threads: u32) -> Self {
        let absent = View { pid: None, stage: Stage::Spawned, ended: false, death: None };
        let roll = vec![absent; (nodes * views) as usize];
        let node_pids = vec![0; nodes as usize];
        Self { program, nodes, views, threads, roll, node_pids, exit_code: 0, ending: None }
    }

    /// A node's service process runs.
    pub fn on_node_spawned(&mut self, node: u32, pid: u32) {
        self.node_pids[node as usize] = pid;
    }

    /// A node tells something. What it may not tell (a view that is not there) is ignored.
    pub fn on_event(&mut self, node: u32, event: Event) {
        match event {
            Event::Listening { .. } | Event::Spins(_) | Event::Gone { .. } => {}
            Event::Spawned { view, pid } => self.with(node, view, |view| view.pid = Some(pid)),
            Event::Reported { view, report } => self.on_report(node, view, report),
            Event::Ended { view, exit } => self.on_ended(node, view, exit),
        }
    }

    fn on_report(&mut self, node: u32, view: Option<u32>, report: Report) {
        match (report, view) {
            (Report::Started { .. }, Some(view)) => self.with(node, view, |view| view.stage = Stage::Started),
            (Report::Finalized, Some(view)) => self.with(node, view, |view| view.stage = Stage::Finalized),
            (Report::Started { .. } | Report::Finalized, None)
            | (Report::Locked { .. } | Report::PrivatePointer(_) | Report::Moving | Report::Moved { .. }, _) => {}
            (Report::Failed { message, exit_code, .. }, _) => {
                self.end(Ending { exit_code, message: Some(message), patience: Patience::None });
            }
            (Report::Exited { exit_code }, _) => {
                self.end(Ending { exit_code, message: None, patience: Patience::None });
            }
            (Report::PeerLost { node: lost }, _) => {
                let what = format!("node {lost} no longer answers node {node}");
                self.suspect(Code::Unreachable, Place::Node(lost), what);
            }
        }
        if self.is_main_finalized() && self.is_suspected() {
            self.ending = None;
        }
    }

    /// A process has left word of how a signal ended it; its end is told next.
    pub fn on_death(&mut self, node: u32, view: u32, death: Death) {
        self.with(node, view, |view| view.death = Some(death));
    }

    fn on_ended(&mut self, node: u32, view: u32, exit: Exit) {
        let Some(index) = self.index(node, view) else { return };
        self.roll[index].ended = true;
        let place = self.place(node, view);
        let who = self.who(node, view);
        match (exit, self.roll[index].stage) {
            (Exit::Signal(signal), _) => {
                let killed = format!("{who} was killed by {}", signal_name(signal));
                let (code, place, what) = match self.roll[index].death.take() {
                    Some(Death { code, place, what }) => (code, place, killed + &what),
                    None => (Code::Died, place, killed),
                };
                self.fail(code, place, what, 128 + signal, Patience::None);
            }
            (Exit::Code(0), Stage::Spawned) => {
                let what = format!("{who} ended without calling fsp_init");
                self.fail(Code::NeverStarted, place, what, Code::NeverStarted.exit_code(), Patience::Courtesy);
            }
            (Exit::Code(code), Stage::Spawned) => {
                self.end(Ending { exit_code: code, message: None, patience: Patience::Courtesy });
            }
            (Exit::Code(0), Stage::Started) if self.somebody_runs() && !self.is_main_finalized() => {
                // In the main model the serving processes end like this, once processor 0 has finalized; their end may
                // overtake its report.
                self.suspect(Code::Left, place, format!("{who} ended without fsp_finalize while others still ran"));
            }
            (Exit::Code(code), Stage::Started) if code != 0 && self.somebody_runs() && !self.is_main_finalized() => {
                let what = format!("{who} ended with exit code {code}, without fsp_finalize, while others still ran");
                self.fail(Code::Left, place, what, code, Patience::None);
            }
            (Exit::Code(code), Stage::Started | Stage::Finalized) => {
                if self.exit_code == 0 {
                    self.exit_code = code;
                }
            }
        }
        if self.all_ended() && self.is_suspected() {
            self.ending = None; // nobody was left waiting
        }
    }

    /// What the program has written cannot be passed on.
    pub fn on_output_lost(&mut self, message: Message) {
        self.end(Ending {
            exit_code: message.code.exit_code(),
            message: Some(message.to_string()),
            patience: Patience::None,
        });
    }

    /// Threads of the job can never go on.
    pub fn on_hang(&mut self, Message { code, place, what }: Message) {
        self.fail(code, place, what, code.exit_code(), Patience::None);
    }

    /// A node's service process ended, though nobody told it to.
    pub fn on_node_ended(&mut self, node: u32, exit: Exit) {
        let pid = self.node_pids[node as usize];
        let who = format!("the service process {pid} of node {node}");
        match exit {
            Exit::Signal(signal) => {
                let what = format!("{who} was killed by {}", signal_name(signal));
                self.fail(Code::Died, Place::Node(node), what, 128 + signal, Patience::None);
            }
            Exit::Code(code) => {
                let what = format!("{who} ended early with exit code {code}");
                self.fail(Code::Bug, Place::Node(node), what, Code::Bug.exit_code(), Patience::None);
            }
        }
    }

    /// The ending found so far, if any.
    #[must_use]
    pub const fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Have all processes of the program ended?
    #[must_use]
    pub fn all_ended(&self) -> bool {
        self.roll.iter().all(|view| view.ended)
    }

    /// The processes, by node and view, if all have called `fsp_init` and none has come to its end yet.
    #[must_use]
    pub fn in_full_swing(&self) -> Option<Vec<u32>> {
        let runs = |view: &View| view.stage == Stage::Started && !view.ended;
        self.roll.iter().map(|view| view.pid.filter(|_| runs(view))).collect()
    }

    /// The processes that run, each by its first processor.
    #[must_use]
    pub fn running(&self) -> Vec<(u32, u32)> {
        let running = self.roll.iter().zip(0..).filter(|(view, _)| !view.ended);
        running.filter_map(|(view, index)| Some((index * self.threads, view.pid?))).collect()
    }

    /// Have all processes called `fsp_init`?
    #[must_use]
    pub fn all_started(&self) -> bool {
        self.roll.iter().all(|view| view.stage != Stage::Spawned)
    }

    /// The exit code of a job without an [`Ending`]: the first that was not 0.
    #[must_use]
    pub const fn exit_code(&self) -> i32 {
        self.exit_code
    }

    fn end(&mut self, ending: Ending) {
        if self.ending.is_none() || self.is_suspected() {
            self.ending = Some(ending);
        }
    }

    fn fail(&mut self, code: Code, place: Place, what: String, exit_code: i32, patience: Patience) {
        let message = Some(Message { code, place, what }.to_string());
        self.end(Ending { exit_code, message, patience });
    }

    fn suspect(&mut self, code: Code, place: Place, what: String) {
        if self.ending.is_none() {
            self.fail(code, place, what, code.exit_code(), Patience::Suspicion);
        }
    }

    fn is_suspected(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.patience == Patience::Suspicion)
    }

    /// Has processor 0 finalized? In both models the others have then no more to wait for.
    fn is_main_finalized(&self) -> bool {
        self.roll[0].stage == Stage::Finalized
    }

    fn somebody_runs(&self) -> bool {
        self.roll.iter().any(|view| !view.ended && view.stage != Stage::Finalized)
    }

    fn index(&self, node: u32, view: u32) -> Option<usize> {
        (node < self.nodes && view < self.views).then_some((node * self.views + view) as usize)
    }

    fn with(&mut self, node: u32, view: u32, change: impl FnOnce(&mut View)) {
        if let Some(index) = self.index(node, view) {
            change(&mut self.roll[index]);
        }
    }

    fn first_processor(&self, node: u32, view: u32) -> u32 {
        (node * self.views + view) * self.threads
    }

    fn place(&self, node: u32, view: u32) -> Place {
        Place::Processor { node, processor: self.first_processor(node, view) }
    }

    /// `process 4711 (./sor)`, and with threads which processors it ran.
    fn who(&self, node: u32, view: u32) -> String {
        let index = (node * self.views + view) as usize;
        let pid = self.roll[index].pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
        let first = self.first_processor(node, view);
        let processors = match self.threads {
            1 => String::new(),
            threads => format!(", processors {first} to {}", first + threads - 1),
        };
        format!("process {pid} ({}{processors})", self.program)
    }
}

/// `SIGKILL`, or `signal 35` for one without a name.
#[must_use]
pub fn signal_name(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_owned())
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
