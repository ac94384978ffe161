//! `finespun run` with bash scripts in the program's place: they speak the same lines to their node as the runtime
//! does, so that the mechanics of a job can be tested by themselves.

mod world;

use world::{Job, World};

/// What a well-behaved process does.
const GOOD: &str = "started; finalized";

#[test]
fn output_and_exit_code_pass_through_unchanged() {
    let world = World::new();
    let done = world.run(&["-q", "-n", "1"], "started; printf 'no line end'; echo oops >&2; finalized; exit 7");
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(7), "no line end", "oops\n"));
}

#[test]
fn every_process_knows_its_place_and_gets_the_arguments() {
    let world = World::new();
    let script = r#"started; echo "$FINESPUN_NODE.$FINESPUN_VIEW $*"; finalized"#;
    let done = world.run_with(&["-q", "-n", "2", "-p", "2"], script, &["--size", "8"]);
    assert_eq!(done.sorted_lines(), ["0.0 --size 8", "0.1 --size 8", "1.0 --size 8", "1.1 --size 8"]);
    assert_eq!(done.code, Some(0));
}

#[test]
fn the_first_exit_code_that_is_not_0_is_the_jobs() {
    let world = World::new();
    let done = world.run(&["-q", "-n", "3"], "started; finalized; if [ $FINESPUN_NODE = 1 ]; then exit 9; fi");
    assert_eq!((done.code, done.stderr.as_str()), (Some(9), ""));
}

#[test]
fn only_processor_0_reads_the_input() {
    let world = World::new();
    let script = r#"started; echo "$FINESPUN_NODE:$(cat)"; finalized"#;
    let done = world.start(&["-q", "-n", "2"], script, &[]).with_input("from the pipe\n").wait();
    assert_eq!(done.sorted_lines(), ["0:from the pipe", "1:"]);
}

#[test]
fn prefixed_lines_are_whole_and_all_there() {
    let world = World::new();
    let script = "started; for i in {1..500}; do printf 'line '; echo $i; done; printf last; finalized";
    let done = world.run(&["-q", "--prefix", "-n", "2", "-p", "2"], script);
    assert_eq!(done.code, Some(0));
    for process in ["[n0.v0] ", "[n0.v1] ", "[n1.v0] ", "[n1.v1] "] {
        let lines = done.stdout.lines().filter_map(|line| line.strip_prefix(process)).collect::<Vec<_>>();
        let expected = (1..=500).map(|i| format!("line {i}")).chain(["last".into()]).collect::<Vec<_>>();
        assert_eq!(lines, expected);
    }
    assert_eq!(done.stdout.lines().count(), 4 * 501);
}

#[test]
fn over_tcp_every_process_has_a_connection_to_every_other_node_and_its_own_memory_only() {
    let world = World::new();
    let script = r#"started; echo "$FINESPUN_SOCKETS" | tr ',' '\n' | grep -vc -- -1; readlink /proc/$$/fd/* | grep -c memfd:; finalized"#;
    let done = world.run(&["-q", "-n", "4", "--transport", "tcp"], script);
    assert_eq!(done.sorted_lines(), ["3", "3", "3", "3", "3", "3", "3", "3"], "{}", done.stderr);
}

#[test]
fn the_token_is_in_no_argument_variable_or_descriptor_of_the_program() {
    let world = World::new();
    let script = r#"started; readlink /proc/$$/fd/*; tr '\0' '\n' </proc/$$/environ; finalized"#;
    let done = world.run(&["-q", "-n", "2", "--transport", "tcp"], script);
    assert!(done.stdout.contains("memfd:finespun-job") && !done.stdout.to_lowercase().contains("token"));
}

#[test]
fn killing_a_process_of_the_program_ends_the_job_with_one_message() {
    let world = World::new();
    let mut job =
        world.start(&["-n", "2", "-p", "2"], "started; echo up $$ $FINESPUN_NODE.$FINESPUN_VIEW; forever", &[]);
    let victim = job.pid_of("1.0");
    job.kill(victim, libc::SIGKILL);
    let done = job.wait();
    assert_eq!(done.code, Some(137));
    let message = format!("finespun: error E040 (node 1, processor 2): process {victim} (");
    assert!(done.stderr.starts_with(&message) && done.stderr.contains("was killed by SIGKILL"), "{}", done.stderr);
    assert_eq!(done.stderr.matches("finespun: error").count(), 1, "{}", done.stderr);
}

#[test]
fn killing_a_service_process_ends_the_job_with_one_message() {
    for transport in ["shm", "tcp"] {
        let world = World::new();
        let mut job = world.start(
            &["-n", "2", "--transport", transport],
            "started; echo up $$ $FINESPUN_NODE.$FINESPUN_VIEW; forever",
            &[],
        );
        let victim = world::parent_of(job.pid_of("1.0"));
        job.kill(victim, libc::SIGKILL);
        let done = job.wait();
        assert_eq!(done.code, Some(137));
        let message =
            format!("finespun: error E040 (node 1): the service process {victim} of node 1 was killed by SIGKILL");
        assert!(done.stderr.starts_with(&message), "{}", done.stderr);
        assert_eq!(done.stderr.matches("finespun: error").count(), 1);
    }
}

#[test]
fn killing_the_launcher_leaves_nothing_not_even_what_the_program_started() {
    let world = World::new();
    let mut job =
        world.start(&["-n", "2"], "started; sleep 1000 & echo up $$ $FINESPUN_NODE.$FINESPUN_VIEW; forever", &[]);
    job.pid_of("0.0");
    job.pid_of("1.0");
    let launcher = job.launcher();
    job.kill(launcher, libc::SIGKILL);
    assert_eq!(job.wait().signal, Some(libc::SIGKILL));
}

#[test]
fn what_the_program_leaves_behind_is_ended_with_the_job() {
    let world = World::new();
    let done = world.run(&["-q", "-n", "2"], "started; (sleep 1000 >/dev/null 2>&1 &) ; finalized");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_signal_to_the_launcher_reaches_every_process() {
    for (signal, name) in [(libc::SIGINT, "INT"), (libc::SIGTERM, "TERM"), (libc::SIGHUP, "HUP")] {
        let world = World::new();
        let script =
            format!("trap 'echo told; exit 0' {name}; started; echo up $$ $FINESPUN_NODE.$FINESPUN_VIEW; forever");
        let mut job = world.start(&["-n", "2"], &script, &[]);
        job.pid_of("0.0");
        job.pid_of("1.0");
        let launcher = job.launcher();
        job.kill(launcher, signal);
        let done = job.wait();
        assert_eq!((done.code, done.stderr.as_str()), (Some(128 + signal), ""), "{name}");
        assert_eq!(done.stdout.matches("told").count(), 2, "{name}");
    }
}

#[test]
fn ctrl_c_on_a_terminal_reaches_every_process_once() {
    let world = World::new();
    let script = "trap 'echo told' INT; trap 'exit 0' USR1; started; echo up $$ $FINESPUN_NODE.$FINESPUN_VIEW; forever";
    let mut job = world.start_on_terminal(&["-n", "2"], script);
    let programs = [job.pid_of("0.0"), job.pid_of("1.0")];
    job.type_in(b"\x03");
    job.read_until(|text| text.matches("told").count() == 2);
    programs.iter().for_each(|&program| job.kill(program, libc::SIGUSR1));
    let done = job.wait();
    assert_eq!((done.code, done.stdout.matches("told").count()), (Some(130), 2), "{}", done.stdout);
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let world = World::new();
    let script = "trap 'finalized; exit 0' USR1; started; echo up $$ $FINESPUN_NODE.$FINESPUN_VIEW; forever";
    let mut job = world.start_without_hangup(&["-q"], script);
    let program = job.pid_of("0.0");
    let launcher = job.launcher();
    job.kill(launcher, libc::SIGHUP);
    job.kill(program, libc::SIGUSR1);
    let done = job.wait();
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_terminal_gets_colour_unless_it_is_unwanted() {
    let world = World::new();
    let done = world.start_on_terminal(&["-n", "1"], GOOD).wait();
    assert!(done.stdout.contains("\x1b[32m"), "{}", done.stdout);
    let done = world.start_on_terminal(&["-n", "1", "--quiet"], GOOD).wait();
    assert_eq!(done.stdout, "");
}

#[test]
fn a_program_that_ignores_the_signal_is_killed() {
    let world = World::new();
    let mut job =
        world.start(&["-n", "2"], "trap '' TERM; started; echo up $$ $FINESPUN_NODE.$FINESPUN_VIEW; forever", &[]);
    job.pid_of("0.0");
    job.pid_of("1.0");
    let launcher = job.launcher();
    job.kill(launcher, libc::SIGTERM);
    job.kill(launcher, libc::SIGTERM); // the second one ends the patience
    assert_eq!(job.wait().code, Some(143));
}

#[test]
fn a_program_that_never_calls_init_is_told_so() {
    let world = World::new();
    let done = world.run(&["-n", "2"], "echo hello");
    assert_eq!((done.code, done.stdout.as_str()), (Some(3), "hello\nhello\n"));
    assert!(done.stderr.starts_with("finespun: error E003"), "{}", done.stderr);
    assert_eq!(done.stderr.matches("finespun: error").count(), 1);
}

#[test]
fn a_program_that_refuses_its_arguments_ends_the_job_with_its_own_code() {
    let world = World::new();
    let done = world.run(&["-n", "2"], "echo usage >&2; exit 64");
    assert_eq!((done.code, done.stderr.as_str()), (Some(64), "usage\nusage\n"));
}

#[test]
fn leaving_while_others_run_is_named() {
    for (code, expected) in [(0, 41), (5, 5)] {
        let world = World::new();
        let script = format!("started; if [ $FINESPUN_NODE = 1 ]; then exit {code}; fi; forever");
        let done = world.run(&["-n", "2"], &script);
        assert_eq!(done.code, Some(expected));
        assert!(done.stderr.starts_with("finespun: error E041 (node 1, processor 1): process "), "{}", done.stderr);
    }
}

#[test]
fn serving_processes_may_end_when_processor_0_has_finalized() {
    let world = World::new();
    let script = "started; if [ $FINESPUN_NODE = 0 ]; then finalized; fi";
    let done = world.run(&["-q", "-n", "4"], script);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_first_failure_is_shown_once() {
    let world = World::new();
    let script = r#"started; failed "finespun: error E020: as reported" 20; forever"#;
    let done = world.run(&["-n", "4"], script);
    assert_eq!((done.code, done.stderr.as_str()), (Some(20), "finespun: error E020: as reported\n"));
}

#[test]
fn a_program_built_with_another_finespun_is_told_so() {
    let world = World::new();
    let done = world.run(&["-n", "1"], r#"echo '{"greeting":"hello"}' >&$FINESPUN_CONTROL; forever"#);
    assert_eq!(done.code, Some(60));
    assert!(done.stderr.starts_with("finespun: error E060 (node 0): "), "{}", done.stderr);
}

#[test]
fn an_interpreter_that_is_not_there_is_named_as_the_likely_cause() {
    let world = World::new();
    let program = world.file("program", "#!/no/such/interpreter\n");
    let done = world.finespun(&["run", "-n", "2", program.as_str()]);
    assert_eq!(done.code, Some(127));
    assert!(done.stderr.contains("E002") && done.stderr.contains("interpreter"), "{}", done.stderr);
}

#[test]
fn the_summary_is_on_stderr_and_quiet_turns_it_off() {
    let world = World::new();
    let loud = world.run(&["-n", "2", "-t", "2"], GOOD);
    assert!(loud.stdout.is_empty() && loud.stderr.is_ascii());
    assert!(loud.stderr.contains("2 nodes x 2 processors (1 x 2 threads), csm-2l over shm, uffd"), "{}", loud.stderr);
    assert!(loud.stderr.lines().count() <= 14);
    assert_eq!(world.run(&["-n", "2", "--quiet"], GOOD).stderr, "");
}

#[test]
fn stats_are_written_and_can_be_shown_again() {
    let world = World::new();
    let path = world.path("out.json");
    let run = world.run(&["-n", "2", "--stats", &path], &format!("{GOOD}; exit 3"));
    let stats: serde_json::Value = serde_json::from_str(&world.read("out.json")).expect("JSON");
    assert_eq!((&stats["nodes"], &stats["exit_code"], &stats["faults"]), (&2.into(), &3.into(), &"uffd".into()));
    assert_eq!(stats["breakdown"].as_array().map(Vec::len), Some(2));
    let again = world.finespun(&["report", &path]);
    assert_eq!((again.code, again.stdout), (Some(0), run.stderr));
}

#[test]
fn a_job_with_the_most_processes_of_a_node_works() {
    let world = World::new();
    let done = world.run(&["-q", "-n", "2", "-p", "32", "--prefix"], "started; echo here; finalized");
    assert_eq!((done.code, done.stdout.lines().count()), (Some(0), 64));
}

#[test]
fn a_reader_that_goes_away_ends_the_program_as_it_would_without_us() {
    let world = World::new();
    let mut job: Job = world.start(&["-q", "--prefix"], "started; while echo line; do :; done; exit 99", &[]);
    job.read_one_line_and_close();
    let done = job.wait();
    assert_eq!(done.code, Some(128 + libc::SIGPIPE), "{}", done.stderr);
}
