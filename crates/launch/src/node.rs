//! A node's service process: `finespun node -- FILE NAME ARGS...`, started by the launcher only.
//!
//! It wires its node to the others, starts the program's processes, keeps the service running, and passes on what it
//! hears. It decides nothing: that is the launcher's. It ends when the launcher says so or is gone.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{self, Stdio};
use std::time::{Duration, Instant};

use finespun_errors::{Code, Place, Report as Message};
use finespun_job::switches;
use finespun_job::{ENV_CONTROL, ENV_FAULTS, ENV_JOB, ENV_KEEP, ENV_NODE, ENV_SOCKETS, ENV_VIEW, Job, Report};
use finespun_protocol::Family;
use finespun_sys::descriptors;
use finespun_sys::process::Cores;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, dup2_stdin};

use crate::control::{Command, Event, Exit, Lines};
use crate::spins::Watch;
use crate::sys::trace::{Waited, next_child};
use crate::sys::{self, Inheritance};
use crate::{memory, mesh, reap, service};

/// The hidden first argument that makes the executable a node's service process.
pub const SUBCOMMAND: &str = "node";

/// Runs the service process; the arguments are those after [`SUBCOMMAND`] and `--`. Returns the exit code.
#[must_use]
pub fn main(args: Vec<OsString>) -> i32 {
    let mut node = match Node::enter(args) {
        Ok(node) => node,
        Err(error) => {
            eprintln!("finespun: `finespun {SUBCOMMAND}` is for the launcher only: {error}");
            return Code::Usage.exit_code();
        }
    };
    if let Err((code, what)) = node.start() {
        let message = Message { code, place: Place::Node(node.number), what }.to_string();
        let report = Report::Failed { message, exit_code: code.exit_code(), image: 0 };
        // If that fails too, the launcher is gone and nobody is left to tell.
        let _ = node.launcher.send(&Event::Reported { view: None, report });
    }
    let end = node.serve();
    if let Some(service) = node.service.take() {
        service.stop();
    }
    reap::kill_all();
    match end {
        End::Finished => 0,
        End::Terminated => die_by(Signal::SIGTERM),
    }
}

enum End {
    /// The launcher said so, or is gone.
    Finished,
    /// By a signal: of a user, or of the kernel because the launcher is gone.
    Terminated,
}

struct Node {
    job: Job,
    job_fd: RawFd,
    number: u32,
    program: Vec<OsString>,
    signals: SignalFd,
    launcher: Lines,
    sockets: Vec<Option<OwnedFd>>,
    service: Option<service::Running>,
    views: Vec<View>,
    watch: Option<Watch>,
}

struct View {
    pid: Pid,
    reports: Option<Lines>,
    finalized: bool,
    ended: bool,
    /// It begins anew as another process, whose number is still to come.
    moving: bool,
}

impl View {
    /// Has it closed the stream to us although it goes on? A process that ends, or executes another program, gives up its memory
    /// before its descriptors.
    fn has_lost_its_stream(&self) -> bool {
        let maps = || fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        self.reports.is_none()
            && !self.finalized
            && !self.ended
            && !self.moving
            && maps().contains("memfd:finespun-frames")
    }
}

/// A process of the program has closed what it needs to be part of the job.
fn closed(pid: Pid, place: Place) -> Report {
    let code = Code::Closed;
    let what = format!("process {pid} has closed its descriptors of the job by system calls of its own");
    Report::Failed { message: Message { code, place, what }.to_string(), exit_code: code.exit_code(), image: 0 }
}

type Failure = (Code, String);

/// How long a processor may spin where nobody has asked. Long beside any wait inside a node that a program might make by a loop.
const SPIN_SECONDS: u32 = 10;

/// The numbers in the launcher's first line ([`Command::Begin`]).
struct Begin {
    token: Option<RawFd>,
    service: RawFd,
    outputs: Option<Vec<[RawFd; 2]>>,
}

impl Node {
    /// Takes over what was inherited. Signals first: from here on the end of the launcher is noticed in `serve`.
    fn enter(program: Vec<OsString>) -> io::Result<Self> {
        let handled = handled_signals();
        handled.thread_block()?;
        let signals = SignalFd::with_flags(&handled, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        nix::sys::prctl::set_child_subreaper(true)?;
        let [job_fd, number, control] = [ENV_JOB, ENV_NODE, ENV_CONTROL].map(number_from);
        let (job_fd, number, control) = (job_fd?, number?, control?);
        sys::close_on_exec(job_fd)?;
        sys::close_on_exec(control)?;
        let job: Job = serde_json::from_slice(&memory::contents(sys::duplicate(job_fd)?.as_fd())?)?;
        let number = u32::try_from(number).ok().filter(|&number| number < job.nodes).ok_or(Errno::EINVAL)?;
        if job.switches.cores == switches::Cores::One {
            finespun_sys::process::stay_on_one_cpu(number as usize)?;
        }
        let launcher = Lines::from_fd(sys::duplicate(control)?);
        let watch = spin_time(&job).map(|time| Watch::new(time, Instant::now()));
        let (sockets, views) = (Vec::new(), Vec::new());
        Ok(Self { job, job_fd, number, program, signals, launcher, sockets, service: None, views, watch })
    }

    fn start(&mut self) -> Result<(), Failure> {
        let refuse = |doing: &str, error: io::Error| (Code::Machine, format!("{doing}: {error}"));
        let Begin { token, service, outputs } =
            self.begin().map_err(|error| refuse("what the launcher says", error))?;
        for fd in self.job.descriptors_at(self.number) {
            sys::close_on_exec(fd).map_err(|error| refuse("the node's memory", error))?;
        }
        if let Some(token) = token {
            self.sockets = self.wire(token)?;
        }
        let reports = sys::duplicate(service).map_err(|error| refuse("the service's stream", error))?;
        let service = service::start(&self.job, self.number, &self.sockets, reports);
        self.service = Some(service.map_err(|error| refuse("the node's service", error))?);
        for view in 0..self.job.views {
            let outputs = outputs.as_ref().and_then(|outputs| outputs.get(view as usize)).copied();
            self.spawn(view, outputs).map_err(|error| self.spawn_failure(&error))?;
        }
        // Only processor 0 reads the terminal or pipe; nobody else shall keep a pipe open.
        dup2_stdin(File::open("/dev/null").map_err(|error| refuse("/dev/null", error))?)
            .map_err(|error| refuse("dup2", error.into()))
    }

    /// The launcher's first line; its descriptors are ours alone from then on.
    fn begin(&mut self) -> io::Result<Begin> {
        let Command::Begin { token, service, outputs } = serde_json::from_str(&self.launcher.wait_line()?)? else {
            return Err(Errno::EPROTO.into());
        };
        let numbers = token.iter().chain([&service]).chain(outputs.iter().flatten().flatten());
        numbers.copied().try_for_each(sys::close_on_exec)?;
        Ok(Begin { token, service, outputs })
    }

    fn wire(&mut self, token: RawFd) -> Result<Vec<Option<OwnedFd>>, Failure> {
        let token = sys::duplicate(token).and_then(|token| memory::contents(token.as_fd()));
        let token = token.map_err(|error| (Code::Machine, format!("the job's token: {error}")))?;
        let token =
            token.as_slice().try_into().map_err(|_| (Code::Bug, "the job's token has a wrong length".into()))?;
        let launcher = &mut self.launcher;
        let exchange = |port| {
            launcher.send(&Event::Listening { port })?;
            match serde_json::from_str(&launcher.wait_line()?)? {
                Command::Peers { ports } => Ok(ports),
                Command::Begin { .. } | Command::Signal { .. } | Command::Gone { .. } | Command::Finish => {
                    Err(Errno::EINTR.into())
                }
            }
        };
        mesh::wire_mesh(&self.job, self.number, token, exchange)
    }

    fn spawn(&mut self, view: u32, outputs: Option<[RawFd; 2]>) -> io::Result<()> {
        let [file, name, args @ ..] = self.program.as_slice() else { return Err(Errno::EINVAL.into()) };
        let (reports, theirs) = UnixStream::pair()?;
        let theirs = descriptors::aside(theirs)?;
        let mut command = process::Command::new(file);
        command.arg0(name).args(args);
        command.env(ENV_JOB, self.job_fd.to_string()).env(ENV_NODE, self.number.to_string());
        command.env(ENV_VIEW, view.to_string()).env(ENV_CONTROL, theirs.as_raw_fd().to_string());
        command.env_remove(ENV_FAULTS); // the job says it: a flag has won over the variable
        if self.sockets.is_empty() {
            command.env_remove(ENV_SOCKETS);
        } else {
            command.env(ENV_SOCKETS, socket_list(&self.sockets));
        }
        if (self.number, view) != (0, 0) {
            command.stdin(Stdio::null());
        }
        if let Some([stdout, stderr]) = outputs {
            command.stdout(sys::duplicate(stdout)?).stderr(sys::duplicate(stderr)?);
        }
        let mut descriptors = self.job.descriptors_at(self.number);
        descriptors.extend([self.job_fd, theirs.as_raw_fd()]);
        descriptors.extend(self.sockets.iter().flatten().map(AsRawFd::as_raw_fd));
        command.env(ENV_KEEP, descriptors.iter().map(RawFd::to_string).collect::<Vec<_>>().join(","));
        let inheritance = Inheritance {
            descriptors,
            parent_death: Signal::SIGKILL,
            open_files: None,
            unblocked: handled_signals() | sys::limit_signal(),
            cores: self.cores_of(view),
        };
        let child = sys::spawn(&mut command, inheritance)?;
        let pid = Pid::from_raw(child.id().cast_signed());
        self.views.push(View {
            pid,
            reports: Some(Lines::new(reports)),
            finalized: false,
            ended: false,
            moving: false,
        });
        self.launcher.send(&Event::Spawned { view, pid: child.id() })
    }

    /// The cores that a view's processors are pinned to.
    fn cores_of(&self, view: u32) -> Option<Cores> {
        let threads = self.job.threads as usize;
        let first = (self.number * self.job.views + view) as usize * threads;
        self.job.pinned.as_ref().and_then(|pinned| pinned.cores.get(first..first + threads)).map(Cores::of)
    }

    fn spawn_failure(&self, error: &io::Error) -> Failure {
        let name = self.program.get(1).map_or_else(String::new, |name| name.display().to_string());
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOENT) => {
                (Code::Program, format!("{name}: {error} (for a script: is its interpreter, after #!, there?)"))
            }
            Some(Errno::EACCES | Errno::ENOEXEC | Errno::ELIBBAD | Errno::E2BIG) => {
                (Code::Program, format!("{name}: {error}"))
            }
            _ => (Code::Machine, format!("starting {name}: {error}")),
        }
    }

    /// Passes on what is heard until the end.
    fn serve(&mut self) -> End {
        loop {
            if self.wait().is_err() {
                return End::Finished;
            }
            match self.take_signals() {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(_) => return End::Finished,
            }
            if self.pass_reports().is_err() || self.obey().is_err() {
                return End::Finished;
            }
            self.look();
        }
    }

    fn wait(&self) -> io::Result<()> {
        let streams = self.views.iter().filter_map(|view| view.reports.as_ref());
        let fds = [self.signals.as_fd(), self.launcher.as_fd()].into_iter().chain(streams.map(AsFd::as_fd));
        let mut fds = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect::<Vec<_>>();
        // Rounded up, so that it is time to look when the wait is over.
        let left = self.watch.as_ref().map(|watch| watch.next().saturating_duration_since(Instant::now()));
        let timeout = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take_signals(&mut self) -> io::Result<Option<End>> {
        while let Some(signal) = self.signals.read_signal()? {
            match Signal::try_from(signal.ssi_signo.cast_signed()) {
                Ok(Signal::SIGTERM) => return Ok(Some(End::Terminated)),
                Ok(Signal::SIGCHLD) => self.reap()?,
                _ => {} // of the terminal: the launcher sees to it
            }
        }
        Ok(None)
    }

    /// Takes note of all children that have ended; those that are no views were left to us by the program.
    fn reap(&mut self) -> io::Result<()> {
        loop {
            let (pid, exit) = match next_child()? {
                Waited::Code(pid, code) => (pid, Exit::Code(code)),
                Waited::Signal(pid, signal) => (pid, Exit::Signal(signal)),
                Waited::Stopped(thread, signal) => {
                    self.on_stopped(thread, signal)?;
                    continue;
                }
                Waited::Nothing => return Ok(()),
            };
            if !self.on_gone(pid, exit)? {
                self.launcher.send(&Event::Gone { pid, exit })?;
            }
        }
    }

    /// A process has ended: false if it is none of our views.
    fn on_gone(&mut self, pid: i32, exit: Exit) -> io::Result<bool> {
        self.pass_reports()?; // what it said comes before its end, and may say that it goes on as another
        let Some(view) = self.views.iter().position(|view| view.pid.as_raw() == pid && !view.ended) else {
            return Ok(false);
        };
        if !self.views[view].moving {
            self.views[view].ended = true;
            self.launcher.send(&Event::Ended { view: number(view), exit })?;
        }
        Ok(true)
    }

    /// Looks for processors that spin, if it is time.
    fn look(&mut self) {
        let running = self.views.iter().enumerate().filter(|(_, view)| !view.ended);
        let processes: Vec<_> = running.map(|(index, view)| (number(index), view.pid.as_raw())).collect();
        if let Some(watch) = &mut self.watch {
            watch.look(Instant::now(), &processes);
        }
    }

    /// A thread stopped because it is looked at.
    fn on_stopped(&mut self, thread: i32, signal: i32) -> io::Result<()> {
        match self.watch.as_mut().and_then(|watch| watch.on_stopped(thread, signal, Instant::now())) {
            Some(spin) => self.launcher.send(&Event::Spins(spin)),
            None => Ok(()),
        }
    }

    fn pass_reports(&mut self) -> io::Result<()> {
        for (view, process) in self.views.iter_mut().enumerate() {
            pass(process, number(view), self.number, &self.launcher)?;
            if process.has_lost_its_stream() {
                let report = closed(process.pid, Place::Node(self.number));
                self.launcher.send(&Event::Reported { view: Some(number(view)), report })?;
                process.finalized = true; // no more is expected of it
            }
        }
        Ok(())
    }

    /// Does what the launcher says; an error is the end.
    fn obey(&mut self) -> io::Result<()> {
        let received = self.launcher.receive()?;
        for line in received.lines {
            match serde_json::from_str(&line)? {
                Command::Begin { .. } | Command::Peers { .. } => {} // only while starting
                Command::Signal { signal } => self.signal_views(signal),
                Command::Gone { pid, exit } => drop(self.on_gone(pid, exit)?),
                Command::Finish => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        if received.closed { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Children of ours or of another node: their numbers are theirs until they are reaped, which is told at once.
    fn signal_views(&self, signal: i32) {
        let Ok(signal) = Signal::try_from(signal) else { return };
        for view in self.views.iter().filter(|view| !view.ended) {
            let _ = kill(view.pid, signal); // it may just have ended
        }
    }
}

/// Passes the reports that are there on to the launcher; forgets the stream when it is closed.
fn pass(process: &mut View, view: u32, node: u32, launcher: &Lines) -> io::Result<()> {
    let Some(reports) = &mut process.reports else { return Ok(()) };
    let received = reports.receive()?;
    if received.closed {
        process.reports = None;
    }
    for line in received.lines {
        let report = serde_json::from_str(&line).unwrap_or_else(|_| foreign(node, &line));
        process.finalized |= matches!(report, Report::Finalized);
        process.moving |= matches!(report, Report::Moving);
        if let Report::Moved { pid } = report {
            (process.pid, process.moving) = (Pid::from_raw(pid.cast_signed()), false);
            launcher.send(&Event::Spawned { view, pid })?;
        }
        launcher.send(&Event::Reported { view: Some(view), report })?;
    }
    Ok(())
}

/// A line that is no report: the program was built with another Finespun.
fn foreign(node: u32, line: &str) -> Report {
    let code = Code::Builds;
    let shown = line.chars().take(80).collect::<String>();
    let what = format!("a process reports what this version does not know: {shown}");
    Report::Failed {
        message: Message { code, place: Place::Node(node), what }.to_string(),
        exit_code: code.exit_code(),
        image: 0,
    }
}

/// How long a processor spins before it is told of. On one node nothing is ever stale, and under a protocol without acquires neither:
/// there only who asks has it looked for.
fn spin_time(job: &Job) -> Option<Duration> {
    let is_asked = job.checks.spins.is_some();
    let seconds = job.checks.spins.unwrap_or(SPIN_SECONDS);
    let can_be = job.nodes > 1 && (is_asked || job.family() != Family::StringsSc);
    (can_be && seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("at most 32 views")
}

/// A terminal's signals go to the whole process group, so to us too: what they mean for the job is for the launcher to
/// decide. They are taken and ignored here; the program has them as it was given them.
fn handled_signals() -> SigSet {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD] {
        set.add(signal);
    }
    set
}

fn number_from(variable: &str) -> io::Result<i32> {
    let value = env::var(variable).map_err(io::Error::other)?;
    value.parse().map_err(io::Error::other)
}

/// `7,-1,9`: the descriptor to each node, -1 for ourselves.
fn socket_list(sockets: &[Option<OwnedFd>]) -> String {
    let numbers = sockets.iter().map(|socket| socket.as_ref().map_or(-1, AsRawFd::as_raw_fd).to_string());
    numbers.collect::<Vec<_>>().join(",")
}

/// Ends this process by the signal it has taken, as if it had not been taken. Returns only if that fails.
fn die_by(signal: Signal) -> i32 {
    let _ = raise(signal);
    let mut set = SigSet::empty();
    set.add(signal);
    let _ = set.thread_unblock();
    128 + signal as i32
}
