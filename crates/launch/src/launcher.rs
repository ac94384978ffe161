//! The launcher: makes the memory, starts the nodes, hears everybody, ends the job.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Stdio};
use std::time::{Duration, Instant};

use finespun_errors::{Code, Place, Report as Message};
use finespun_job::{ENV_CONTROL, ENV_JOB, ENV_NODE, ENV_SOCKETS, ENV_VIEW, Faults, Job, PrivatePointer, Report};
use finespun_runtime::{last, limits};
use finespun_sys::{descriptors, machine, passing};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stdin};

use crate::control::{Command, Event, Exit, Lines};
use crate::diagnosis::Diagnosis;
use crate::globals;
use crate::hangs;
use crate::last::{Other, death};
use crate::memory::{self, Memory};
use crate::names;
use crate::output::{self, Output, WriteEnds};
use crate::plan::{Outcome, Plan, Wanted};
use crate::pointers;
use crate::private_locks::{PrivateLocks, Use};
use crate::reap;
use crate::spins::Spin;
use crate::spins::wording::Wording;
use crate::sys::{self, Inheritance};
use crate::verdict::{Ending, Patience, Roll};

/// How long a job that is interrupted may take to end by itself.
const AFTER_INTERRUPT: Duration = Duration::from_secs(2);
/// How long the rest of a job may run on after [`Patience::Courtesy`] and [`Patience::Suspicion`].
const COURTESY: Duration = Duration::from_millis(500);
const SUSPICION: Duration = Duration::from_millis(1000);
/// How long nodes may take to end after the last process of the program.
const FINISH: Duration = Duration::from_secs(2);

/// Runs a job to its end. Call it from the main thread, once: it makes this process a child subreaper and ends all
/// its children. An error that ends the job is shown on stderr, once; the result is only an error if nothing was started.
///
/// # Errors
/// E006 when the machine refuses something.
pub fn run(plan: Plan) -> Result<Outcome, Message> {
    let handled = handled_signals();
    let result = run_with_signals(plan, &handled);
    if result.is_err() {
        reap::kill_all();
    }
    let _ = handled.thread_unblock(); // from here on a signal ends the launcher as any other program
    result.map_err(|error| {
        let what = limits::refused("launching the job", &error);
        Message { code: Code::Machine, place: Place::Launcher, what }
    })
}

/// What ends the job or tells of children; but a signal that the user has had ignored (nohup) stays ignored. That must
/// be seen to here: a signal that is blocked, as for a signalfd, is delivered even when ignored.
fn handled_signals() -> SigSet {
    let ignored = machine::ignored_signals();
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        if ignored >> (signal as u32 - 1) & 1 == 0 {
            set.add(signal);
        }
    }
    set.add(Signal::SIGCHLD);
    set
}

fn run_with_signals(plan: Plan, handled: &SigSet) -> io::Result<Outcome> {
    handled.thread_block()?;
    // Not unblocked again: what meets a limit of file sizes is told as an error of the call. The program has the signal as ever.
    sys::limit_signal().thread_block()?;
    nix::sys::prctl::set_child_subreaper(true)?;
    let (mut launcher, output) = Launcher::start(plan, handled)?;
    launcher.supervise()?;
    let mut outcome = launcher.conclude()?;
    drop(launcher);
    handled.thread_unblock()?; // a reader that no longer reads shall not keep us from being interrupted
    let lost = output.and_then(Output::drain);
    if let Some(error) = lost.filter(|_| outcome.is_complete) {
        let message = unwritten(&error.to_string());
        let _ = io::stderr().write_all(format!("{message}\n").as_bytes()); // nobody reads: the exit code says it
        outcome.exit_code = if outcome.exit_code == 0 { message.code.exit_code() } else { outcome.exit_code };
    }
    Ok(outcome)
}

struct Launcher {
    job: Job,
    memory: Vec<Memory>,
    watch: Option<OwnedFd>,
    pointers: Vec<PrivatePointer>,
    signals: SignalFd,
    nodes: Vec<Node>,
    roll: Roll,
    ports: Vec<Option<u16>>,
    faults: Option<Faults>,
    begun: Option<Instant>,
    finalized: Option<Instant>,
    interrupted: Option<i32>,
    deadline: Option<Instant>,
    kills_before: u64,
    wording: Wording,
    program: PathBuf,
    locks: PrivateLocks,
    told: Wanted,
    /// Where the thread that writes the output says why it cannot.
    unwritten: Option<PipeReader>,
    hangs: hangs::Watch,
}

struct Node {
    pid: Pid,
    /// None when it is closed, as below.
    control: Option<Lines>,
    /// Where the node's service reports.
    service: Option<Lines>,
    ended: bool,
}

impl Launcher {
    fn start(plan: Plan, handled: &SigSet) -> io::Result<(Self, Option<Output>)> {
        let Plan { mut job, file, command, prefix, told } = plan;
        let memory = (0..job.nodes).map(|node| Memory::create(&job, node)).collect::<io::Result<Vec<_>>>()?;
        job.memory = memory.iter().map(Memory::numbers).collect();
        let watch = job.checks.globals.then(memory::watch_table).transpose()?;
        job.watch = watch.as_ref().map(AsRawFd::as_raw_fd);
        // Open until the nodes have it.
        let is_asked = job.messages.loopback.is_some();
        let loopback = is_asked.then(|| memory::Loopback::create(job.nodes)).transpose()?;
        job.messages.loopback = loopback.as_ref().map(memory::Loopback::numbers);
        // With prefixes each process writes to descriptors of its own.
        let gathering = (job.nodes * job.views > 1 && !prefix).then(gathering).transpose()?;
        job.gathering = gathering.as_ref().map(|ends| ends.each_ref().map(AsRawFd::as_raw_fd));
        let name = command.first().map_or_else(String::new, |name| name.display().to_string());
        let mut launcher = Self {
            signals: SignalFd::with_flags(handled, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?,
            memory,
            watch,
            pointers: Vec::new(),
            nodes: Vec::new(),
            roll: Roll::new(name, job.nodes, job.views, job.threads),
            ports: vec![None; job.nodes as usize],
            faults: None,
            begun: None,
            finalized: None,
            interrupted: None,
            deadline: None,
            kills_before: machine::out_of_memory_kills(),
            wording: Wording::new(file.clone()),
            program: file.clone(),
            locks: PrivateLocks::default(),
            told,
            unwritten: None,
            hangs: hangs::Watch::default(),
            job,
        };
        let start = Start {
            file,
            command,
            job_fd: memory::sealed("finespun-job", &serde_json::to_vec(&launcher.job)?)?,
            token: launcher.job.has_sockets().then(make_token).transpose()?,
            open_files: if prefix { Some(output::raise_open_files()?) } else { None },
        };
        let (output, write_ends) = if prefix {
            let (output, write_ends, unwritten) = Output::start(launcher.job.nodes, launcher.job.views)?;
            launcher.unwritten = Some(unwritten);
            (Some(output), write_ends)
        } else {
            (None, Vec::new())
        };
        let mut write_ends = write_ends.into_iter();
        for node in 0..launcher.job.nodes {
            launcher.spawn(node, write_ends.next(), &start)?;
        }
        dup2_stdin(File::open("/dev/null")?)?; // processor 0 has it
        Ok((launcher, output))
    }

    fn spawn(&mut self, node: u32, outputs: Option<WriteEnds>, start: &Start) -> io::Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        // The same executable, also when its file has meanwhile been replaced.
        let mut command = process::Command::new("/proc/self/exe");
        command.arg0("finespun").arg(crate::node::SUBCOMMAND).arg("--").arg(&start.file).args(&start.command);
        command.env(ENV_JOB, start.job_fd.as_raw_fd().to_string()).env(ENV_NODE, node.to_string());
        command.env(ENV_CONTROL, theirs.as_raw_fd().to_string()).env_remove(ENV_VIEW).env_remove(ENV_SOCKETS);
        if node != 0 {
            command.stdin(Stdio::null());
        }
        let (service, service_theirs) = UnixStream::pair()?;
        let token = start.token.as_ref().map(AsRawFd::as_raw_fd);
        let outputs_numbers = outputs.as_ref().map(|ends| ends.iter().map(numbers_of).collect::<Vec<_>>());
        let mut descriptors = self.job.descriptors_at(node);
        descriptors.extend([start.job_fd.as_raw_fd(), theirs.as_raw_fd(), service_theirs.as_raw_fd()]);
        descriptors.extend(token);
        descriptors.extend(outputs_numbers.iter().flatten().flatten());
        // SIGCONT, not SIGKILL: the node is to end its own descendants first (see the crate's description).
        // A node takes the same signals as we do, and so they stay blocked until it can.
        let inheritance = Inheritance {
            descriptors,
            parent_death: Signal::SIGCONT,
            open_files: start.open_files,
            unblocked: SigSet::empty(),
            cores: None,
        };
        let child = sys::spawn(&mut command, inheritance)?;
        let control = Lines::new(ours);
        control.send(&Command::Begin { token, service: service_theirs.as_raw_fd(), outputs: outputs_numbers })?;
        let pid = Pid::from_raw(child.id().cast_signed());
        self.nodes.push(Node { pid, control: Some(control), service: Some(Lines::new(service)), ended: false });
        self.roll.on_node_spawned(node, child.id());
        Ok(())
    }

    /// Until all processes of the program have ended, or the job must.
    fn supervise(&mut self) -> io::Result<()> {
        while !self.roll.all_ended() {
            self.set_deadline();
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            let processes = self.roll.in_full_swing();
            let until_look = processes.is_some().then(|| self.hangs.left(Instant::now()));
            self.wait(left.into_iter().chain(until_look).min())?;
            self.hear_of_output();
            for node in 0..self.nodes.len() {
                self.hear(node)?;
            }
            self.take_signals()?;
            if let Some(processes) = self.roll.in_full_swing() {
                self.look_for_hangs(&processes);
            }
        }
        Ok(())
    }

    /// Output that cannot be written ends the job: the program goes on in vain.
    fn hear_of_output(&mut self) {
        let is_ready = |pipe: &PipeReader| {
            let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
        };
        let Some(mut pipe) = self.unwritten.take_if(|pipe| is_ready(pipe)) else { return };
        let mut why = String::new();
        if pipe.read_to_string(&mut why).is_ok_and(|length| length > 0) {
            self.roll.on_output_lost(unwritten(&why));
        }
    }

    /// Ends a job whose threads can never go on, if it is time for a look.
    fn look_for_hangs(&mut self, processes: &[u32]) {
        let scene = hangs::Scene { job: &self.job, memory: &self.memory, program: &self.program };
        if let Some(report) = self.hangs.look(Instant::now(), scene, processes) {
            self.roll.on_hang(report);
        }
    }

    fn set_deadline(&mut self) {
        if self.interrupted.is_some() {
            return;
        }
        let Some(ending) = self.roll.ending() else {
            self.deadline = None; // a suspicion may have been dispelled
            return;
        };
        let now = Instant::now();
        match ending.patience {
            Patience::None => self.deadline = Some(now),
            Patience::Courtesy => self.deadline = self.deadline.or(Some(now + COURTESY)),
            Patience::Suspicion => self.deadline = self.deadline.or(Some(now + SUSPICION)),
        }
    }

    fn wait(&self, left: Option<Duration>) -> io::Result<()> {
        let streams = self.nodes.iter().flat_map(|node| node.control.iter().chain(&node.service));
        let output = self.unwritten.as_ref().map(AsFd::as_fd);
        let fds = [self.signals.as_fd()].into_iter().chain(output).chain(streams.map(AsFd::as_fd));
        let mut fds = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect::<Vec<_>>();
        // Rounded up, so that the deadline is over when the wait is.
        let timeout = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in what a node and its service have said.
    fn hear(&mut self, node: usize) -> io::Result<()> {
        for line in take_lines(&mut self.nodes[node].service)? {
            let report = serde_json::from_str(&line)?;
            self.on_event(node, Event::Reported { view: None, report })?;
        }
        for line in take_lines(&mut self.nodes[node].control)? {
            self.on_event(node, serde_json::from_str(&line)?)?;
        }
        Ok(())
    }

    fn on_event(&mut self, node: usize, mut event: Event) -> io::Result<()> {
        if let Event::Reported { report: Report::Failed { message, image, .. }, .. } = &mut event {
            *message = names::named(message, &self.program, *image);
        }
        match &event {
            Event::Listening { port } => self.on_listening(node, *port),
            Event::Reported { report: Report::Started { faults }, .. } => self.faults = Some(*faults),
            Event::Reported { report: Report::PrivatePointer(found), .. } => self.pointers.push(found.clone()),
            Event::Reported { report: Report::Finalized, .. } => self.finalized = Some(Instant::now()),
            Event::Gone { pid, exit } => self.tell_all(&Command::Gone { pid: *pid, exit: *exit }),
            Event::Spins(spin) => return self.on_spin(u32::try_from(node).map_err(io::Error::other)?, spin),
            Event::Reported { view, report: Report::Locked { call, address, image } } => {
                self.on_locked((node, view.unwrap_or(0)), call, (*address, *image))?;
            }
            Event::Ended { view, exit: Exit::Signal(_) } => self.on_killed(node, *view),
            Event::Spawned { .. } | Event::Reported { .. } | Event::Ended { exit: Exit::Code(_), .. } => {}
        }
        self.roll.on_event(u32::try_from(node).map_err(io::Error::other)?, event);
        if self.begun.is_none() && self.roll.all_started() {
            self.begun = Some(Instant::now());
        }
        Ok(())
    }

    /// A signal has ended a process, which may have left word of it.
    fn on_killed(&mut self, node: usize, view: u32) {
        let (memory, number) = (&self.memory[node], node as u32);
        let told = last::read(memory.segment.as_fd(), memory.frames.as_fd(), &self.job, number, view);
        // The signal is told in any case.
        let Ok(Some(told)) = told else { return };
        let died = (number * self.job.views + view) * self.job.threads;
        let others = self.roll.running().into_iter().filter(|&(processor, _)| processor != died);
        let others = others.filter_map(|(processor, pid)| Other::of(processor, pid)).collect::<Vec<_>>();
        self.roll.on_death(number, view, death(&told, &self.program, &self.job, &others));
    }

    /// Ends the job where that was asked for; else the loop may be right all the same, for all that is known, and is pointed out.
    fn on_spin(&mut self, node: u32, spin: &Spin) -> io::Result<()> {
        let Some(report) = self.wording.report(&self.job, &self.memory, node, spin) else { return Ok(()) };
        if self.job.checks.spins.is_none() {
            let text = format!("{}\n  the job goes on, and the loop with it\n", report.as_warning());
            let _ = io::stderr().write_all(text.as_bytes()); // nobody reads: nothing to be done
            return Ok(());
        }
        let report = Report::Failed { message: report.to_string(), exit_code: report.code.exit_code(), image: 0 };
        self.roll.on_event(node, Event::Reported { view: Some(spin.view), report });
        Ok(())
    }

    /// A process uses a lock of the C library in a private variable.
    fn on_locked(&mut self, (node, view): (usize, u32), call: &str, (address, image): (u64, u64)) -> io::Result<()> {
        let node = u32::try_from(node).map_err(io::Error::other)?;
        let processor = (node * self.job.views + view) * self.job.threads;
        let lock = Use { by: (node, view), processor, call, address, image };
        if let Some(report) = self.locks.used(lock, &self.program) {
            let (message, exit_code) = (report.to_string(), report.code.exit_code());
            let report = Report::Failed { message, exit_code, image: 0 };
            self.roll.on_event(node, Event::Reported { view: Some(view), report });
        }
        Ok(())
    }

    /// When all listen, all are told where.
    fn on_listening(&mut self, node: usize, port: u16) {
        self.ports[node] = Some(port);
        let Some(ports) = self.ports.iter().copied().collect::<Option<Vec<_>>>() else { return };
        self.tell_all(&Command::Peers { ports });
    }

    fn tell_all(&self, command: &Command) {
        for control in self.nodes.iter().filter_map(|node| node.control.as_ref()) {
            let _ = control.send(command); // if it is gone, SIGCHLD says so
        }
    }

    fn take_signals(&mut self) -> io::Result<()> {
        while let Some(signal) = self.signals.read_signal()? {
            match signal.ssi_signo.cast_signed() {
                libc::SIGCHLD => self.reap()?,
                number => self.interrupt(number, signal.ssi_code == libc::SI_KERNEL),
            }
        }
        Ok(())
    }

    /// The job shall end. A signal of the terminal has reached everybody already; any other came to us alone. At the
    /// second one patience ends.
    fn interrupt(&mut self, number: i32, is_from_terminal: bool) {
        if self.interrupted.is_some() {
            self.deadline = Some(Instant::now());
            return;
        }
        self.interrupted = Some(number);
        self.deadline = Some(Instant::now() + AFTER_INTERRUPT);
        if !is_from_terminal {
            self.tell_all(&Command::Signal { signal: number });
        }
    }

    /// Takes note of nodes that have ended; other children were left to us by them.
    fn reap(&mut self) -> io::Result<()> {
        loop {
            let (pid, exit) = match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Exit::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Exit::Signal(signal as i32)),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let Some(node) = self.nodes.iter().position(|node| node.pid == pid && !node.ended) else { continue };
            self.nodes[node].ended = true;
            self.hear(node)?; // what it said comes before its end
            if !self.roll.all_ended() {
                self.roll.on_node_ended(u32::try_from(node).map_err(io::Error::other)?, exit);
            }
        }
    }

    /// Ends what still runs, says why if it must be said, and collects the counters.
    fn conclude(&mut self) -> io::Result<Outcome> {
        let ended = Instant::now();
        let ending = self.roll.ending().cloned();
        let is_complete = ending.is_none() && self.interrupted.is_none();
        if is_complete {
            self.finish()?;
        } else if self.interrupted.is_none() {
            self.show(ending.as_ref());
        }
        reap::kill_all();
        let exit_code = match (self.interrupted, ending) {
            (Some(signal), _) => 128 + signal,
            (None, Some(ending)) => ending.exit_code,
            (None, None) => self.roll.exit_code(),
        };
        let read = self.told.is_for(is_complete).then_some(&self.memory);
        let nodes = read.into_iter().flatten().map(|memory| memory::read(memory, &self.job));
        let nodes = nodes.collect::<io::Result<Vec<_>>>();
        // Of a job that was ended, the message has told why: what keeps the launcher from its counters may be the same.
        let nodes = nodes.or_else(|error| if is_complete { Err(error) } else { Ok(Vec::new()) })?;
        let elapsed = self.begun.map(|begun| self.finalized.unwrap_or(ended).saturating_duration_since(begun));
        Ok(Outcome {
            exit_code,
            is_complete,
            elapsed: elapsed.unwrap_or_default(),
            faults: self.faults,
            nodes,
            diagnosis: self.diagnose()?,
        })
    }

    /// What the checks have found, however the job has ended.
    fn diagnose(&self) -> io::Result<Diagnosis> {
        let mut diagnosis = Diagnosis::default();
        if let Some(table) = &self.watch {
            diagnosis.add(globals::diagnose(table.as_fd(), &self.job)?);
        }
        if self.job.checks.pointers {
            diagnosis.add(pointers::diagnose(&self.pointers, &self.job));
        }
        Ok(diagnosis)
    }

    /// One write, so that it cannot be mixed with the output of others.
    fn show(&self, ending: Option<&Ending>) {
        let Some(Ending { exit_code, message: Some(message), .. }) = ending else { return };
        let is_starved = *exit_code == 128 + libc::SIGKILL && machine::out_of_memory_kills() > self.kills_before;
        let note =
            if is_starved { "\n  note: the kernel has ended processes for want of memory during this run" } else { "" };
        let _ = io::stderr().write_all(format!("{message}{note}\n").as_bytes()); // nobody reads: nothing to be done
    }

    /// Lets the nodes end by themselves, so that their services have counted everything.
    fn finish(&mut self) -> io::Result<()> {
        self.tell_all(&Command::Finish);
        let deadline = Instant::now() + FINISH;
        while self.nodes.iter().any(|node| !node.ended) && Instant::now() < deadline && self.interrupted.is_none() {
            self.wait(Some(deadline.saturating_duration_since(Instant::now())))?;
            for node in 0..self.nodes.len() {
                self.hear(node)?;
            }
            self.take_signals()?;
        }
        Ok(())
    }
}

/// Where processes meet that will share their descriptors. Open until the nodes have it.
fn gathering() -> io::Result<[OwnedFd; 2]> {
    let [read, written] = passing::pair()?;
    Ok([descriptors::aside(read)?, descriptors::aside(written)?])
}

fn unwritten(why: &str) -> Message {
    let what = format!("the program's output, with prefixes: {why}");
    Message { code: Code::Output, place: Place::Launcher, what }
}

/// What all nodes are started with.
struct Start {
    file: PathBuf,
    command: Vec<OsString>,
    job_fd: OwnedFd,
    token: Option<OwnedFd>,
    open_files: Option<(u64, u64)>,
}

/// The lines that are there; the stream is dropped when it is closed.
fn take_lines(stream: &mut Option<Lines>) -> io::Result<Vec<String>> {
    let Some(open) = stream else { return Ok(Vec::new()) };
    let received = open.receive()?;
    if received.closed {
        *stream = None;
    }
    Ok(received.lines)
}

fn numbers_of(ends: &[io::PipeWriter; 2]) -> [RawFd; 2] {
    [ends[0].as_raw_fd(), ends[1].as_raw_fd()]
}

/// 32 random bytes in a memfd: never in an argument or a variable, where other users could read them.
fn make_token() -> io::Result<OwnedFd> {
    let mut token = [0; 32];
    getrandom::fill(&mut token).map_err(io::Error::other)?;
    memory::sealed("finespun-token", &token)
}
