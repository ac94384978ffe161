//! How a job begins and ends, whoever ends it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Done, Job, Running, app, built, compile, holders, job_memory, succeed};

/// From the death of a process to the end of the job.
const NOTICED: Duration = Duration::from_secs(5);

fn endless() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("launch/endless.c", "endless", &[]))
}

fn speak() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("launch/speak.c", "speak", &[]))
}

/// A job of 2 nodes with 2 processes each, all of them at work.
fn working(transport: &str, what: &str) -> Running {
    let mut job = Job::new(&format!("-n 2 -p 2 --transport {transport}"), endless(), what).start();
    for (node, view) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        job.pid_of(node, view);
    }
    job
}

/// Ends the job in some way, and sees that it is over in time with nobody holding its memory.
fn stop(job: Running, how: impl FnOnce(&Running)) -> Done {
    let memory = job.others().into_iter().flat_map(job_memory).collect::<Vec<_>>();
    assert!(!memory.is_empty(), "a job has memory");
    let began = Instant::now();
    how(&job);
    let done = job.wait();
    let took = began.elapsed();
    assert!(took < NOTICED, "it took {took:?}\n{done}");
    assert_eq!(holders(&memory), [], "somebody still holds the job's memory\n{done}");
    done
}

fn parent_of(pid: Pid) -> Pid {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    Pid::from_raw(parent.expect("a parent"))
}

#[test]
fn killing_a_process_of_the_program_ends_the_job_and_names_it() {
    for what in ["busy", "waiting", "locked"] {
        for transport in ["shm", "tcp"] {
            for (signal, name) in [(Signal::SIGKILL, "SIGKILL"), (Signal::SIGSEGV, "SIGSEGV")] {
                let mut job = working(transport, what);
                let victim = job.pid_of(1, 0);
                let done = stop(job, |_| kill(victim, signal).expect("it runs"));
                done.assert_error("E040");
                assert_eq!(done.code, Some(128 + signal as i32), "{done}");
                for part in ["node 1, processor 2", &format!("process {victim} "), name] {
                    assert!(done.stderr.contains(part), "it names {part}\n{done}");
                }
            }
        }
    }
}

#[test]
fn killing_the_process_that_holds_the_lock_ends_the_job() {
    for transport in ["shm", "tcp"] {
        let mut job = working(transport, "locked");
        let victim = job.pid_of(1, 1);
        let done = stop(job, |_| kill(victim, Signal::SIGKILL).expect("it runs"));
        done.assert_error("E040");
        assert!(done.stderr.contains("node 1, processor 3"), "{done}");
    }
}

#[test]
fn killing_a_nodes_service_process_ends_the_job_and_names_it() {
    for what in ["busy", "waiting"] {
        for transport in ["shm", "tcp"] {
            let mut job = working(transport, what);
            let victim = parent_of(job.pid_of(1, 0));
            assert_ne!(victim, job.launcher());
            let done = stop(job, |_| kill(victim, Signal::SIGKILL).expect("it runs"));
            done.assert_error("E040");
            for part in ["node 1", &victim.to_string(), "SIGKILL"] {
                assert!(done.stderr.contains(part), "it names {part}\n{done}");
            }
        }
    }
}

#[test]
fn killing_the_launcher_ends_everything() {
    for what in ["busy", "waiting", "locked"] {
        for transport in ["shm", "tcp"] {
            let job = working(transport, what);
            let done = stop(job, |job| kill(job.launcher(), Signal::SIGKILL).expect("it runs"));
            assert_eq!(done.signal, Some(Signal::SIGKILL as i32), "{done}");
        }
    }
}

#[test]
fn killing_the_launcher_ends_also_what_is_stopped() {
    for transport in ["shm", "tcp"] {
        let mut job = Job::new(&format!("-n 2 -p 2 --transport {transport}"), endless(), "busy").in_our_group().start();
        let views = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(node, view)| job.pid_of(node, view));
        for pid in [parent_of(views[2]), views[2], views[1]] {
            kill(pid, Signal::SIGSTOP).expect("it runs");
        }
        let done = stop(job, |job| kill(job.launcher(), Signal::SIGKILL).expect("it runs"));
        assert_eq!(done.signal, Some(Signal::SIGKILL as i32), "{done}");
    }
}

#[test]
fn killing_a_process_after_another_at_once_still_gives_one_message() {
    for transport in ["shm", "tcp"] {
        let mut job = working(transport, "busy");
        let end = |&victim: &Pid| kill(victim, Signal::SIGKILL).unwrap_or(()); // it may be over already
        let victims = [job.pid_of(0, 1), job.pid_of(1, 0), job.pid_of(1, 1)];
        let done = stop(job, |_| victims.iter().for_each(end));
        done.assert_error("E040");
    }
}

#[test]
fn ctrl_c_ends_a_job_cleanly() {
    for what in ["busy", "waiting", "locked"] {
        for transport in ["shm", "tcp"] {
            let job = working(transport, what);
            let done = stop(job, |job| job.signal_group(Signal::SIGINT));
            assert_eq!(done.code, Some(128 + Signal::SIGINT as i32), "{done}");
            assert!(!done.stderr.contains("error"), "whoever interrupts needs no message\n{done}");
        }
    }
}

#[test]
fn a_signal_to_the_launcher_alone_ends_the_job_too() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let job = working("shm", "busy");
        let done = stop(job, |job| kill(job.launcher(), signal).expect("it runs"));
        assert_eq!(done.code, Some(128 + signal as i32), "{done}");
    }
}

#[test]
fn ctrl_c_on_a_terminal_ends_a_job() {
    use std::io::Write;
    let mut job = Job::new("-n 2 -p 2", endless(), "busy").on_terminal().start();
    for (node, view) in [(0, 0), (1, 1)] {
        job.pid_of(node, view);
    }
    job.input.as_mut().expect("open").write_all(b"\x03").expect("a terminal");
    let done = job.wait();
    assert_eq!(done.code, Some(130), "{done}");
}

#[test]
fn output_passes_through_unchanged() {
    for transport in ["shm", "tcp"] {
        let done = Job::new(&format!("--quiet -n 2 --transport {transport}"), speak(), "0").run();
        assert_eq!(done.code, Some(0), "{done}");
        assert_eq!(done.stdout, String::from_utf8_lossy(b"one line\nbytes \xff\x01 and no end"), "{done}");
        assert_eq!(done.stderr, "on stderr\n", "{done}");
    }
}

#[test]
fn exit_codes_pass_through() {
    for code in [0, 1, 2, 42, 127, 255] {
        let done = Job::new("--quiet -n 2", speak(), &code.to_string()).run();
        assert_eq!((done.code, done.stderr.as_str()), (Some(code), "on stderr\n"), "{done}");
    }
}

#[test]
fn a_signal_that_ends_the_program_shows_in_the_exit_code_as_in_a_shell() {
    for signal in [Signal::SIGSEGV, Signal::SIGABRT, Signal::SIGTERM, Signal::SIGFPE] {
        let done = Job::new("--quiet -n 2", speak(), &format!("0 {}", signal as i32)).run();
        done.assert_error("E040");
        assert_eq!(done.code, Some(128 + signal as i32), "{done}");
        assert!(done.stderr.contains(signal.as_str()), "{done}");
    }
}

#[test]
fn each_line_has_its_prefix_on_request() {
    let done = Job::new("--quiet --prefix -n 2", speak(), "0").run();
    let expected = String::from_utf8_lossy(b"[n0.v0] one line\n[n0.v0] bytes \xff\x01 and no end\n");
    assert_eq!(done.stdout, expected, "{done}");
    assert_eq!(done.stderr, "[n0.v0] on stderr\n", "{done}");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = || File::options().write(true).open("/dev/full").expect("it is there");
    for what in ["0", "3"] {
        let mut command = Command::new(built("bin/finespun"));
        command.args(["run", "--quiet", "--prefix", "-n", "2"]).arg(speak()).arg(what).env_remove("LD_LIBRARY_PATH");
        let output = command.stdout(full()).output().expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("finespun: error E008"), "{errors}");
        assert_ne!(output.status.code(), Some(0), "{errors}");
    }
}

#[test]
fn a_limit_of_file_sizes_is_told() {
    for blocks in [0, 100] {
        let line = format!(
            "ulimit -f {blocks}; exec {} run --quiet -n 2 {} 0",
            built("bin/finespun").display(),
            speak().display()
        );
        let output = Command::new("sh").args(["-c", &line]).env_remove("LD_LIBRARY_PATH").output().expect("a shell");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("finespun: error E006") && errors.contains("ulimit -f"), "{errors}");
        assert_eq!(output.status.code(), Some(6), "{errors}");
    }
}

#[test]
fn the_summary_is_short_and_plain_on_a_pipe() {
    let done = Job::new("-n 4 -p 2", &app("sor"), "--size tiny --verify").run();
    assert_eq!(done.code, Some(0), "{done}");
    let lines = done.stderr.lines().collect::<Vec<_>>();
    assert!((5..=14).contains(&lines.len()), "{done}");
    assert!(done.stderr.is_ascii() && !done.stderr.contains('\x1b'), "{done}");
    assert_eq!(
        lines.iter().filter(|line| line.contains('[') && line.contains(']')).count(),
        4,
        "a bar per node\n{done}"
    );
}

#[test]
fn a_terminal_gets_colour() {
    let done = Job::new("-n 2", &app("sor"), "--size tiny").on_terminal().run();
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.stdout.contains("\x1b["), "{done}");
}

#[test]
fn jobs_beside_each_other_do_not_meet() {
    let jobs = (0..4).map(|number| {
        let transport = if number % 2 == 0 { "shm" } else { "tcp" };
        Job::new(&format!("--quiet -n 2 --transport {transport}"), &app("sor"), "--size tiny --verify").start()
    });
    let jobs = jobs.collect::<Vec<_>>();
    for done in jobs.into_iter().map(Running::wait) {
        done.assert_success();
        assert!(done.stdout.contains("sor: verified"), "{done}");
    }
}

#[test]
fn a_program_runs_without_the_launcher_as_one_processor() {
    let output = succeed(Command::new(app("sor")).args(["--size", "tiny", "--verify"]));
    assert!(String::from_utf8_lossy(&output.stdout).contains("sor: verified"));
}
