//! A folder of its own for each test, programs in it, jobs of them, and the proof that nothing is left of them.
#![allow(dead_code)] // each test program uses a part

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// No job of these tests takes longer, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the scripts may say to their node.
const PRELUDE: &str = r#"#!/bin/bash
# The node may be gone before we have said it: that is no message of ours.
say() { printf '%s\n' "$1" >&"$FINESPUN_CONTROL"; } 2>/dev/null
started() { say '{"started":{"faults":"uffd"}}'; }
finalized() { say '"finalized"'; }
failed() { say "{\"failed\":{\"message\":\"$1\",\"exit_code\":$2}}"; }
# Something to wait for that never comes. Opened first: bash misreads a trap that runs while it reads a substitution.
exec {never}<> <(:)
# By turns, since a signal may come just before read sleeps, and its trap runs only after.
forever() { while true; do read -r -t 0.1 -u "$never"; done; }
"#;

/// Whoever runs the tests may have had signals ignored (a shell does so for what it starts in the background).
fn with_default_signals(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,TERM,HUP,QUIT,PIPE", program]);
    command
}

pub struct World {
    folder: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn sorted_lines(&self) -> Vec<&str> {
        let mut lines = self.stdout.lines().collect::<Vec<_>>();
        lines.sort_unstable();
        lines
    }
}

impl World {
    pub fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder") }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("a plain name").to_owned()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("readable")
    }

    /// An executable file.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        path
    }

    pub fn run(&self, flags: &[&str], script: &str) -> Done {
        self.run_with(flags, script, &[])
    }

    pub fn run_with(&self, flags: &[&str], script: &str, args: &[&str]) -> Done {
        self.start(flags, script, args).wait()
    }

    pub fn start(&self, flags: &[&str], script: &str, args: &[&str]) -> Job {
        self.start_in(&[], flags, script, args)
    }

    pub fn start_in(&self, environment: &[(&str, &str)], flags: &[&str], script: &str, args: &[&str]) -> Job {
        let program = self.file("program", &format!("{PRELUDE}{script}\n"));
        let args = [&["run"], flags, &[program.as_str()], args].concat();
        self.spawn(environment, &args)
    }

    pub fn finespun(&self, args: &[&str]) -> Done {
        self.spawn(&[], args).wait()
    }

    /// With a terminal of its own (by util-linux's `script`): what is typed on it is the job's input.
    pub fn start_on_terminal(&self, flags: &[&str], script: &str) -> Job {
        let program = self.file("program", &format!("{PRELUDE}{script}\n"));
        let line = [&[env!("CARGO_BIN_EXE_finespun"), "run"], flags, &[program.as_str()]].concat().join(" ");
        let mut command = with_default_signals("script");
        command.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm");
        self.spawn_command(command, &[])
    }

    /// As `nohup` does: with SIGHUP ignored.
    pub fn start_without_hangup(&self, flags: &[&str], script: &str) -> Job {
        let program = self.file("program", &format!("{PRELUDE}{script}\n"));
        let mut command = Command::new("bash");
        command.args(["-c", "trap '' HUP; exec \"$@\"", "bash", env!("CARGO_BIN_EXE_finespun"), "run"]);
        command.args(flags).arg(program);
        self.spawn_command(command, &[])
    }

    fn spawn(&self, environment: &[(&str, &str)], args: &[&str]) -> Job {
        let mut command = with_default_signals(env!("CARGO_BIN_EXE_finespun"));
        command.args(args);
        self.spawn_command(command, environment)
    }

    fn spawn_command(&self, mut command: Command, environment: &[(&str, &str)]) -> Job {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("FINESPUN_") {
                command.env_remove(name);
            }
        }
        command.env_remove("NO_COLOR").envs(environment.iter().copied()).env("WORLD", self.folder.path());
        command.current_dir(self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("finespun starts");
        let stdout = child.stdout.take().map(BufReader::new);
        let watchdog = watch(child.id().cast_signed());
        Job { child, stdout, seen: String::new(), mark: self.folder.path().display().to_string(), watchdog }
    }
}

pub struct Job {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    seen: String,
    mark: String,
    watchdog: Sender<()>,
}

/// A job that hangs is killed, so that its test fails instead of hanging too.
fn watch(launcher: i32) -> Sender<()> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        if receiver.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = kill(Pid::from_raw(launcher), Signal::SIGKILL);
        }
    });
    sender
}

/// A test that fails half-way ends its job.
impl Drop for Job {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Job {
    pub fn with_input(mut self, text: &str) -> Self {
        self.type_in(text.as_bytes());
        drop(self.child.stdin.take());
        self
    }

    pub fn type_in(&mut self, text: &[u8]) {
        self.child.stdin.as_mut().expect("a pipe").write_all(text).expect("somebody reads");
    }

    pub fn launcher(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Reads the output until it is as wanted.
    pub fn read_until(&mut self, is_there: impl Fn(&str) -> bool) {
        let stdout = self.stdout.as_mut().expect("not closed");
        while !is_there(&self.seen) {
            assert!(stdout.read_line(&mut self.seen).expect("text") > 0, "the job ended: {}", self.seen);
        }
    }

    /// The process that has said `up PID NODE.VIEW` of itself; waits until it has.
    pub fn pid_of(&mut self, place: &str) -> i32 {
        let find = |text: &str| {
            let pid = text.lines().find_map(|line| line.strip_prefix("up ")?.trim_end().strip_suffix(place))?;
            pid.trim().parse::<i32>().ok()
        };
        self.read_until(|text| find(text).is_some());
        find(&self.seen).expect("read until it is there")
    }

    pub fn read_one_line_and_close(&mut self) {
        let mut stdout = self.stdout.take().expect("not closed");
        assert!(stdout.read_line(&mut self.seen).expect("text") > 0);
    }

    pub fn kill(&self, pid: i32, signal: i32) {
        kill(Pid::from_raw(pid), Signal::try_from(signal).expect("a signal")).expect("it runs");
    }

    /// Waits for the end, and until no process of the job is left.
    pub fn wait(mut self) -> Done {
        drop(self.child.stdin.take());
        let mut errors = self.child.stderr.take().expect("a pipe");
        let reader = thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).expect("text");
            text
        });
        if let Some(mut stdout) = self.stdout.take() {
            stdout.read_to_string(&mut self.seen).expect("text");
        }
        let status = self.child.wait().expect("ours");
        let _ = self.watchdog.send(()); // in time, or not: the status says
        let is_killed = status.signal().is_some();
        let deadline = Instant::now() + PATIENCE;
        // When the launcher itself is killed nobody waits for the others, so they may take a moment. Otherwise nothing
        // may be left at once.
        while is_killed && !marked(&self.mark).is_empty() && Instant::now() < deadline {
            thread::yield_now();
        }
        assert_eq!(marked(&self.mark), Vec::<String>::new(), "processes are left behind");
        let stderr = reader.join().expect("read");
        Done { code: status.code(), signal: status.signal(), stdout: std::mem::take(&mut self.seen), stderr }
    }
}

pub fn parent_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let after_name = stat.rsplit_once(')').expect("a name in parentheses").1;
    after_name.split_whitespace().nth(1).and_then(|field| field.parse().ok()).expect("a parent")
}

/// The command lines of all processes that carry this world's mark in their environment.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("WORLD={mark}");
    let has_mark = |folder: &std::path::Path| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let processes = fs::read_dir("/proc").expect("procfs").flatten().map(|entry| entry.path());
    let found = processes.filter(|folder| has_mark(folder));
    found
        .map(|folder| String::from_utf8_lossy(&fs::read(folder.join("cmdline")).unwrap_or_default()).replace('\0', " "))
        .collect()
}
