//! Wrong command lines, and the commands that start no job.

mod world;

use world::World;

/// The exit code and the first line of stderr.
fn refused(world: &World, args: &[&str]) -> (Option<i32>, String) {
    let done = world.finespun(args);
    assert_eq!(done.stdout, "", "{args:?}");
    (done.code, done.stderr.lines().next().unwrap_or_default().to_owned())
}

#[test]
fn what_cannot_be_understood_is_e001_with_what_was_expected() {
    let world = World::new();
    for (args, expected) in [
        (vec!["run", "-n", "0", "true"], "from 1 to 64"),
        (vec!["run", "-n", "65", "true"], "from 1 to 64"),
        (vec!["run", "-n", "-3", "true"], "from 1 to 64"),
        (vec!["run", "-p", "33", "true"], "from 1 to 32"),
        (vec!["run", "-t", "1000000000000", "true"], "from 1 to 64"),
        (vec!["run", "-n", "64", "-p", "32", "true"], "2048 processors; at most 1024"),
        (vec!["run", "--heap", "0", "true"], "from 2M to 1T"),
        (vec!["run", "--heap", "lots", "true"], "a size like 512M or 8G"),
        (vec!["run", "--transport", "udp", "true"], "shm, tcp"),
        (vec!["run", "--protocol", "mesi", "true"], "there is: auto, csm-2l"),
        (vec!["check", "mesi"], "csm-2l, csm-dms, csm-ms, csm-s, csm-none"),
        (vec!["run", "--nodse", "2", "true"], "'--nodes'"),
        (vec!["run"], "expected a program"),
        (vec!["explain", "E777"], "\"E777\" is no number"),
        (vec!["fly"], "unrecognized subcommand 'fly'"),
    ] {
        let (code, line) = refused(&world, &args);
        assert_eq!(code, Some(2), "{args:?}");
        assert!(line.starts_with("finespun: error E001: ") && line.contains(expected), "{args:?}: {line}");
    }
}

#[test]
fn a_program_that_cannot_be_started_is_e002_before_anything_starts() {
    let world = World::new();
    let plain = world.path("plain.txt");
    std::fs::write(&plain, "text").expect("writable");
    for (program, expected) in [
        ("./nowhere", "no such file"),
        ("no-such-program", "along PATH"),
        (plain.as_str(), "not executable"),
        ("/tmp", "directory"),
    ] {
        let (code, line) = refused(&world, &["run", "-n", "4", program]);
        assert_eq!(code, Some(127));
        assert!(line.starts_with("finespun: error E002: ") && line.contains(expected), "{line}");
    }
}

#[test]
fn a_stats_file_that_cannot_be_written_is_found_before_the_run() {
    let world = World::new();
    let done = world.run(&["--stats", "/no/such/folder/out.json"], "echo ran");
    assert_eq!((done.code, done.stdout.as_str()), (Some(7), ""));
    assert!(done.stderr.starts_with("finespun: error E007: /no/such/folder/out.json: "), "{}", done.stderr);
    let (code, line) = refused(&world, &["report", "/dev/null"]);
    assert!(code == Some(7) && line.contains("is not what --stats writes"), "{line}");
}

#[test]
fn the_environment_says_the_same_as_flags_and_flags_win() {
    let world = World::new();
    let script = "started; echo here; finalized";
    let environment = [("FINESPUN_NODES", "3"), ("FINESPUN_QUIET", "1"), ("FINESPUN_TRANSPORT", "tcp")];
    let done = world.start_in(&environment, &[], script, &[]).wait();
    assert_eq!((done.stdout.lines().count(), done.stderr.as_str()), (3, ""));
    let done = world.start_in(&environment, &["-n", "2"], script, &[]).wait();
    assert_eq!(done.stdout.lines().count(), 2);
    let done = world.start_in(&[("FINESPUN_NODES", "many")], &[], script, &[]).wait();
    assert!(done.stderr.starts_with("finespun: error E001: invalid value 'many'"), "{}", done.stderr);
}

#[test]
fn the_fault_mechanism_is_said_by_the_job_alone() {
    let world = World::new();
    let script = "started; echo \"${FINESPUN_FAULTS-unset}\"; cat /proc/$$/fd/$FINESPUN_JOB; finalized";
    let done = world.start_in(&[("FINESPUN_FAULTS", "uffd")], &["-q", "--faults", "mprotect"], script, &[]).wait();
    assert!(done.stdout.starts_with("unset\n") && done.stdout.contains("\"faults\":\"mprotect\""), "{}", done.stdout);
    let done = world.start_in(&[("FINESPUN_FAULTS", "uffd")], &["-q"], script, &[]).wait();
    assert!(done.stdout.contains("\"faults\":\"uffd\""), "{}", done.stdout);
}

#[test]
fn a_misspelt_variable_is_pointed_out() {
    let world = World::new();
    let done = world.start_in(&[("FINESPUN_FAULT", "uffd")], &["-q"], "started; finalized", &[]).wait();
    let expected = "finespun: warning: the environment variable FINESPUN_FAULT is not known; the nearest that is: FINESPUN_FAULTS\n";
    assert_eq!(done.stderr, expected);
}

#[test]
fn every_error_is_explained() {
    let world = World::new();
    let list = world.finespun(&["explain"]);
    for code in finespun_errors::Code::ALL {
        assert!(list.stdout.contains(&format!("{code}  ")));
        let one = world.finespun(&["explain", &code.to_string()]);
        assert!(one.code == Some(0) && one.stdout.contains(code.why()) && one.stdout.contains(code.fix()));
    }
}

#[test]
fn a_choice_that_means_nothing_is_refused() {
    let world = World::new();
    for (flags, says) in [
        (["--receive", "signal", "--transport", "shm"].as_slice(), "--receive signal is about how messages are served"),
        (&["--server", "iterative"], "csm-2l over shm sends none"),
        (&["--strings", "P", "--transport", "shm"], "expected --transport tcp"),
        (&["--strings", "P", "--transport", "tcp", "-t", "2"], "--strings P makes P threads of -p P"),
        (&["--strings", "S", "--transport", "tcp", "-t", "2"], "expected -t 1"),
        (&["--strings", "X", "--transport", "tcp"], "invalid value 'X'"),
        (&["--locks", "spin"], "invalid value 'spin'"),
        (&["--cores", "two"], "invalid value 'two'"),
    ] {
        let (code, line) = refused(&world, &[&["run"], flags, &["/bin/true"]].concat());
        assert!(code == Some(2) && line.contains("E001") && line.contains(says), "{flags:?}: {line}");
    }
}

#[test]
fn a_preset_is_in_the_description_of_the_job_and_a_flag_wins_over_it() {
    let world = World::new();
    let script = "started; cat /proc/$$/fd/$FINESPUN_JOB; finalized";
    let of = |flags: &[&str]| {
        world.start(&[&["-q", "-n", "1", "-p", "2", "--transport", "tcp"], flags].concat(), script, &[]).wait()
    };
    let single = of(&["--strings", "S"]).stdout;
    assert!(single.contains("\"nodes\":2,\"views\":1,\"threads\":1"), "{single}");
    assert!(single.contains("\"server\":\"iterative\",\"receive\":\"signal\""), "{single}");
    let threads = of(&["--strings", "B", "--barrier", "flat"]).stdout;
    assert!(threads.contains("\"nodes\":1,\"views\":1,\"threads\":2"), "{threads}");
    assert!(threads.contains("\"locks\":\"migratory\",\"barrier\":\"flat\",\"server\":\"concurrent\""), "{threads}");
}

#[test]
fn help_version_and_the_list_of_protocols_go_to_stdout() {
    let world = World::new();
    assert_eq!(world.finespun(&["--version"]).stdout, format!("finespun {}\n", env!("CARGO_PKG_VERSION")));
    assert!(world.finespun(&["run", "--help"]).stdout.contains("--transport"));
    assert!(world.finespun(&["run", "--protocol", "help"]).stdout.contains("\ncsm-2l "));
}

#[test]
fn the_service_process_is_not_for_users() {
    let done = World::new().finespun(&["node", "--", "/bin/true", "true"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("for the launcher only"), "{}", done.stderr);
}

#[test]
fn the_doctor_says_what_is_used() {
    let done = World::new().finespun(&["doctor"]);
    assert_eq!(done.code, Some(0));
    for part in ["userfaultfd", "memfd", "cores", "memory", "address", "loopback", "mappings", "diffs", "ASLR"] {
        assert!(done.stdout.contains(part), "{part} is missing:\n{}", done.stdout);
    }
    assert!(
        done.stdout.lines().all(|line| line.starts_with(" ok   ") || line.starts_with(" warn ")),
        "{}",
        done.stdout
    );
}
