//! One job: how it is started, what came of it, and that nothing is left of it.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// How long a job may take that is not expected to be slow; the machine may be busy.
const LIMIT: Duration = Duration::from_secs(60);
/// How long processes may need to be gone when nobody is there to wait for them.
const GONE: Duration = Duration::from_secs(5);
/// The environment variable that marks the processes of a job.
const MARK: &str = "CLUSTER_TEST";
/// `cargo test` sets it, so that programs would find another libfinespun than their own.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// The project's folder.
pub fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).expect("the crate lies two folders below").to_owned()
}

/// A file that `make` built.
pub fn built(name: &str) -> PathBuf {
    let path = root().join("build").join(name);
    assert!(path.exists(), "{} is not there: these tests are run by `make test-cluster`", path.display());
    path
}

/// An application.
pub fn app(name: &str) -> PathBuf {
    built(&format!("apps/{name}"))
}

/// A protocol that a job can run, as the command lists it.
pub struct Protocol {
    /// What a user calls it.
    pub name: String,
    /// The transports it runs over.
    pub transports: Vec<&'static str>,
    /// Every process is a node of its own.
    pub one_level: bool,
}

/// All protocols, from the command itself: whoever adds one has it tested.
pub fn protocols() -> Vec<Protocol> {
    let listed = succeed(Command::new(built("bin/finespun")).args(["run", "--protocol", "list"]));
    let listed = String::from_utf8(listed.stdout).expect("text");
    let mut protocols = Vec::<Protocol>::new();
    for line in listed.lines() {
        let [name, transport, levels] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not three words: {line}")
        };
        let transport = ["shm", "tcp"].into_iter().find(|known| *known == transport).expect("a transport");
        match protocols.last_mut().filter(|last| last.name == name) {
            Some(last) => last.transports.push(transport),
            None => protocols.push(Protocol {
                name: name.to_owned(),
                transports: vec![transport],
                one_level: levels == "1",
            }),
        }
    }
    protocols
}

/// Compiles one of the C programs under `tests/c` against the built library, once for each name.
pub fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let folder = root().join("build/tests");
    fs::create_dir_all(&folder).expect("writable");
    let (program, new) = (folder.join(name), folder.join(format!("{name}.new{}", process::id())));
    let mut command = Command::new("cc");
    command.args(["-O2", "-std=c11", "-Wall", "-Wextra", "-Werror"]).args(flags);
    command.arg("-Wno-array-bounds"); // for the programs that crash on purpose
    command.arg("-o").arg(&new).arg(root().join("tests/c").join(source));
    command.arg("-I").arg(root().join("include")).arg("-L").arg(built("lib"));
    command.args(["-lfinespun", "-lpthread", "-lm", "-Wl,-rpath,$ORIGIN/../lib"]);
    succeed(&mut command);
    fs::rename(&new, &program).expect("one file system");
    program
}

/// The number of the only line with this text in a source of the project.
#[track_caller]
pub fn line_with(source: &str, text: &str) -> usize {
    let contents = std::fs::read_to_string(root().join(source)).expect("readable");
    let found: Vec<_> = (1..).zip(contents.lines()).filter(|(_, line)| line.contains(text)).collect();
    let [(number, _)] = found.as_slice() else { panic!("{text}: {found:?}") };
    *number
}

/// A text with `ADDRESS` for each hexadecimal number in it.
pub fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "ADDRESS" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.env_remove(LIBRARY_PATH).output().expect("the command starts");
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The fault mechanisms this machine offers, as `finespun doctor` sees it.
pub fn offers_userfaultfd() -> bool {
    static OFFERED: OnceLock<bool> = OnceLock::new();
    *OFFERED.get_or_init(|| {
        let done = Job::command(&["doctor"]).run();
        done.stdout.lines().any(|line| line.contains("ok") && line.contains("faults: userfaultfd, user mode"))
    })
}

/// A job to be run.
#[derive(Clone, Debug)]
pub struct Job {
    words: Vec<String>,
    environment: Vec<(String, String)>,
    limit: Duration,
    is_checked: bool,
    has_stats: bool,
    on_terminal: bool,
    in_our_group: bool,
}

impl Job {
    /// `finespun WORDS`.
    pub fn command(words: &[&str]) -> Self {
        Self {
            words: words.iter().map(|&word| word.to_owned()).collect(),
            environment: Vec::new(),
            limit: LIMIT,
            is_checked: false,
            has_stats: false,
            on_terminal: false,
            in_our_group: false,
        }
    }

    /// `finespun run FLAGS PROGRAM ARGS`, flags and arguments as in a shell without quotes.
    pub fn new(flags: &str, program: &Path, args: &str) -> Self {
        let program = program.to_str().expect("a plain name");
        let words = ["run"].into_iter().chain(flags.split_whitespace()).chain([program]);
        Self::command(&words.chain(args.split_whitespace()).collect::<Vec<_>>())
    }

    /// With a variable in its environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With another time limit.
    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// With the command and the library that have their assertions in.
    pub fn checked(mut self) -> Self {
        self.is_checked = true;
        self
    }

    /// With `--stats`.
    pub fn stats(mut self) -> Self {
        self.has_stats = true;
        self
    }

    /// On a terminal of its own: what is typed into it is the job's input.
    pub fn on_terminal(mut self) -> Self {
        self.on_terminal = true;
        self
    }

    /// In the process group of the tests, as from a script. In one of its own, the kernel wakes what is stopped there when the launcher
    /// ends: nobody else could.
    pub fn in_our_group(mut self) -> Self {
        self.in_our_group = true;
        self
    }

    /// From start to end.
    pub fn run(self) -> Done {
        self.start().wait()
    }

    /// Starts it.
    pub fn start(self) -> Running {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let folder = TempDir::new().expect("a folder");
        let finespun = built(if self.is_checked { "checked/bin/finespun" } else { "bin/finespun" });
        let mut words = self.words.clone();
        if self.has_stats {
            let stats = folder.path().join("stats.json").display().to_string();
            words.splice(1..1, ["--stats".to_owned(), stats]);
        }
        let line = format!("{} {}", finespun.display(), words.join(" "));
        let mut command = if self.on_terminal {
            let mut script = with_default_signals(Path::new("script"));
            script.args(["-qefc", &format!("exec {line}"), "/dev/null"]);
            script
        } else {
            let mut command = with_default_signals(&finespun);
            command.args(&words);
            command
        };
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FINESPUN_")) {
            command.env_remove(name);
        }
        command.env_remove(LIBRARY_PATH);
        if self.is_checked {
            // The name that the loader looks for: without it the other library would be found.
            let library = built("checked/lib/libfinespun.so.0");
            command.env(LIBRARY_PATH, library.parent().expect("a folder"));
        }
        let mark = format!("{}.{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        command.envs(self.environment.iter().cloned()).env(MARK, &mark).current_dir(folder.path());
        if !self.in_our_group {
            command.process_group(0);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().expect("finespun starts");
        let stdout = lines_of(child.stdout.take().expect("a pipe"));
        let stderr = lines_of(child.stderr.take().expect("a pipe"));
        let input = child.stdin.take();
        Running { child, input, stdout, stderr, seen: String::new(), mark, line, folder, started, limit: self.limit }
    }
}

/// Whoever runs the tests may have had signals ignored (a shell does so for what it starts in the background).
fn with_default_signals(program: &Path) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=INT,TERM,HUP,QUIT,PIPE").arg(program);
    command
}

/// Each line as it comes, with its end.
fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut bytes = Vec::new();
        while stream.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            if sender.send(String::from_utf8_lossy(&bytes).into_owned()).is_err() {
                return;
            }
            bytes.clear();
        }
    });
    receiver
}

/// A job that runs.
pub struct Running {
    child: Child,
    pub input: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    seen: String,
    mark: String,
    line: String,
    folder: TempDir,
    started: Instant,
    limit: Duration,
}

/// A test that fails half-way ends its job.
impl Drop for Running {
    fn drop(&mut self) {
        for pid in marked(&self.mark) {
            let _ = kill(pid, Signal::SIGKILL); // it may have ended meanwhile
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    pub fn launcher(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// The job's processes besides the launcher.
    pub fn others(&self) -> Vec<Pid> {
        marked(&self.mark).into_iter().filter(|&pid| pid != self.launcher()).collect()
    }

    /// Signals the launcher's process group, as a terminal does.
    pub fn signal_group(&self, signal: Signal) {
        killpg(self.launcher(), signal).expect("it runs");
    }

    fn left(&self) -> Duration {
        self.limit.saturating_sub(self.started.elapsed())
    }

    /// Reads the output until it has what is wanted.
    pub fn read_until<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> T {
        loop {
            if let Some(found) = find(&self.seen) {
                return found;
            }
            match self.stdout.recv_timeout(self.left()) {
                Ok(line) => self.seen += &line,
                Err(end) => {
                    let errors = self.stderr.try_iter().collect::<String>();
                    panic!("{}\n{end} before the output came; so far:\n{}{errors}", self.line, self.seen);
                }
            }
        }
    }

    /// The process that has said `up PID NODE VIEW` of itself.
    pub fn pid_of(&mut self, node: u32, view: u32) -> Pid {
        let place = format!(" {node} {view}");
        self.read_until(|text| {
            let mut ups = text.lines().filter_map(|line| line.trim_end().strip_prefix("up "));
            let pid = ups.find_map(|up| up.strip_suffix(&place)?.parse().ok())?;
            Some(Pid::from_raw(pid))
        })
    }

    /// Waits for the end. A job over its time limit is killed, and its output shown.
    pub fn wait(mut self) -> Done {
        drop(self.input.take());
        let out = drain(&self.stdout, self.started + self.limit);
        let err = drain(&self.stderr, self.started + self.limit);
        let (Ok(out), Ok(err)) = (&out, &err) else {
            let text = |of: &Result<String, String>| of.clone().unwrap_or_else(|text| text);
            let state = states(&marked(&self.mark));
            panic!(
                "{}\nstill runs after {:?}, or somebody holds its output; its processes:\n{state}\nstdout:\n{}{}\nstderr:\n{}",
                self.line,
                self.limit,
                self.seen,
                text(&out),
                text(&err)
            );
        };
        let status = self.child.wait().expect("ours");
        let elapsed = self.started.elapsed();
        let is_killed = status.signal().is_some();
        let deadline = Instant::now() + GONE;
        // When the launcher itself was killed, nobody has waited for the rest.
        while is_killed && !marked(&self.mark).is_empty() && Instant::now() < deadline {
            thread::yield_now();
        }
        let left = marked(&self.mark);
        assert!(left.is_empty(), "{}\nprocesses are left behind:\n{}", self.line, states(&left));
        let stats = File::open(self.folder.path().join("stats.json")).ok();
        let stats = stats.map(|file| serde_json::from_reader(file).expect("--stats writes JSON"));
        Done {
            line: self.line.clone(),
            code: status.code(),
            signal: status.signal(),
            stdout: std::mem::take(&mut self.seen) + out,
            stderr: err.clone(),
            stats,
            elapsed,
        }
    }
}

/// All lines up to the end of the stream, or those until the deadline.
fn drain(lines: &Receiver<String>, deadline: Instant) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => text += &line,
            Err(RecvTimeoutError::Disconnected) => return Ok(text),
            Err(RecvTimeoutError::Timeout) => return Err(text),
        }
    }
}

/// How a job ended.
pub struct Done {
    pub line: String,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub stats: Option<Value>,
    pub elapsed: Duration,
}

/// For the message of an assertion.
impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, code, signal, stdout, stderr, elapsed, .. } = self;
        write!(f, "{line}\nexit code {code:?}, signal {signal:?}, {elapsed:?}\nstdout:\n{stdout}\nstderr:\n{stderr}")
    }
}

impl Done {
    /// It came to a good end.
    #[track_caller]
    pub fn assert_success(&self) {
        assert_eq!(self.code, Some(0), "{self}");
        assert!(!self.stderr.contains("error"), "{self}");
    }

    /// It ended with one message, which has this number, soon.
    #[track_caller]
    pub fn assert_error(&self, number: &str) {
        self.assert_message(number);
        assert!(self.code.is_some_and(|code| code != 0), "{self}");
        assert!(self.elapsed < Duration::from_secs(10), "that took too long\n{self}");
    }

    /// It had one message, which has this number.
    #[track_caller]
    pub fn assert_message(&self, number: &str) {
        assert_eq!(self.stderr.matches("finespun: error E").count(), 1, "one message\n{self}");
        assert!(self.stderr.contains(&format!("finespun: error {number}")), "expected {number}\n{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
    }
}

/// The processes with this mark in their environment.
fn marked(mark: &str) -> Vec<Pid> {
    let wanted = format!("{MARK}={mark}");
    let is_marked = |&pid: &Pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    pids().filter(is_marked).collect()
}

fn pids() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").expect("procfs").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid::from_raw)
}

/// One line for each process: who it is and what it waits for.
fn states(pids: &[Pid]) -> String {
    let of = |pid: Pid| {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default().replace('\0', " ");
        let state = read("status").lines().filter(|line| line.starts_with("State:")).collect::<String>();
        format!("  {pid} {} {state} in {}\n", read("cmdline"), read("wchan"))
    };
    pids.iter().map(|&pid| of(pid)).collect()
}

/// The memory of a job that a process has open: device and inode.
pub fn job_memory(pid: Pid) -> Vec<(u64, u64)> {
    open_files(pid).filter(|(path, _)| path.to_string_lossy().contains("memfd:finespun")).map(|(_, id)| id).collect()
}

/// Everybody who still has some of this memory open.
pub fn holders(memory: &[(u64, u64)]) -> Vec<Pid> {
    pids().filter(|&pid| open_files(pid).any(|(_, id)| memory.contains(&id))).collect()
}

fn open_files(pid: Pid) -> impl Iterator<Item = (PathBuf, (u64, u64))> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let about = fs::metadata(entry.path()).ok()?;
        Some((fs::read_link(entry.path()).ok()?, (about.dev(), about.ino())))
    })
}
