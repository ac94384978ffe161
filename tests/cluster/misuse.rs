//! What a program or a user can do wrong: each mistake ends in one message with its number, soon, and leaves nothing.
//!
//! The mistakes are made by `tests/c/misuse/cases.c`, over both transports: by the last processor, which is on the last
//! node.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::support::{Done, Job, app, compile, offers_userfaultfd, without_addresses};

fn cases() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("misuse/cases.c", "cases", &["-Wno-free-nonheap-object"]))
}

fn run_case(flags: &str, case: &str) -> Done {
    Job::new(flags, cases(), case).limit(20).run()
}

/// One processor makes the mistake; the job ends with this number. The message must name the culprit and not repeat.
fn ends_with(number: &str, case: &str) {
    for transport in ["shm", "tcp"] {
        let done = run_case(&format!("-n 2 -p 2 --heap 64M --transport {transport}"), case);
        done.assert_error(number);
        assert!(done.stderr.contains("(node 1, processor 3)"), "it names who\n{done}");
    }
}

macro_rules! mistakes {
    ($($name:ident: $case:literal => $number:literal,)*) => { $(
        #[test]
        fn $name() {
            ends_with($number, $case);
        }
    )* };
}

mistakes! {
    unlocking_a_mutex_that_is_free_is_an_error: "unlock_free" => "E020",
    unlocking_a_mutex_that_another_holds_is_an_error: "unlock_foreign" => "E020",
    unlocking_twice_is_an_error: "unlock_twice" => "E020",
    waiting_on_a_condition_without_the_mutex_is_an_error: "wait_unlocked" => "E020",
    locking_a_mutex_again_is_an_error: "relock" => "E022",
    a_barrier_of_no_processors_is_an_error: "barrier_of_none" => "E005",
    a_mutex_at_null_is_an_error: "mutex_null" => "E005",
    a_mutex_in_private_memory_is_an_error: "mutex_private" => "E011",
    freeing_memory_of_malloc_is_an_error: "free_foreign" => "E051",
    freeing_the_inside_of_a_small_object_is_an_error: "free_interior" => "E051",
    freeing_the_inside_of_a_large_object_is_an_error: "free_interior_of_pages" => "E051",
    freeing_twice_is_an_error: "free_twice" => "E051",
    freeing_what_was_never_allocated_is_an_error: "free_never_allocated" => "E051",
    realloc_of_freed_memory_is_an_error: "realloc_freed" => "E051",
    a_full_heap_is_an_error: "heap_exhausted" => "E050",
    an_absurd_size_is_an_error: "malloc_absurd" => "E050",
    the_largest_size_of_all_is_an_error: "malloc_all_bytes" => "E050",
    a_product_that_overflows_is_an_error: "calloc_overflow" => "E050",
    an_alignment_that_is_no_power_of_two_is_an_error: "alignment_odd" => "E005",
    an_alignment_that_is_too_large_is_an_error: "alignment_huge" => "E005",
    a_node_that_is_not_there_is_an_error: "malloc_on_node_99" => "E005",
    memory_dealt_in_blocks_of_nothing_is_an_error: "distributed_by_nothing" => "E005",
    taking_the_rights_to_shared_memory_away_is_an_error: "mprotect_none" => "E055",
    making_shared_memory_read_only_is_an_error: "mprotect_read" => "E055",
    unmapping_shared_memory_is_an_error: "munmap_shared" => "E055",
    mapping_something_over_shared_memory_is_an_error: "mmap_over_shared" => "E055",
    moving_shared_memory_is_an_error: "mremap_shared" => "E055",
    a_thread_on_a_processor_that_is_not_there_is_an_error: "thread_on_99" => "E005",
    a_thread_of_no_function_is_an_error: "thread_of_nothing" => "E005",
    a_thread_of_a_function_in_a_library_is_an_error: "thread_in_a_library" => "E005",
    joining_no_thread_is_an_error: "join_nothing" => "E005",
    starting_twice_is_an_error: "init_twice" => "E081",
    leaving_by_exit_while_others_wait_is_an_error: "exit_3" => "E041",
    leaving_without_a_word_while_others_wait_is_an_error: "exit_hard" => "E041",
    leaving_with_a_mutex_held_is_an_error: "die_with_the_lock" => "E041",
    a_crash_is_an_error: "null_store" => "E040",
    an_abort_is_reported: "abort_with_17" => "E042",
}

/// The message comes from those who wait.
#[test]
fn returning_from_main_while_others_wait_is_an_error() {
    for transport in ["shm", "tcp"] {
        run_case(&format!("-n 2 -p 2 --transport {transport}"), "return_early").assert_error("E041");
    }
}

#[test]
fn the_exit_code_is_the_programs_own_where_it_has_one() {
    for (case, code) in
        [("exit_3", 3), ("abort_with_17", 17), ("die_with_the_lock", 5), ("null_store", 128 + libc::SIGSEGV)]
    {
        let done = run_case("-n 2", case);
        assert_eq!(done.code, Some(code), "{done}");
    }
}

/// The message of a crash says what was wanted where, by which function, and what lies there.
#[test]
fn a_crash_is_told_with_its_address_and_what_lies_there() {
    let cases = [
        (
            "null_store",
            "E040",
            "SIGSEGV: a store to 0x8, in null_store",
            "; the pointer is null, or is computed from null",
        ),
        (
            "store_to_a_constant",
            "E040",
            ", in store_to_a_constant",
            "; what is there may be read only: a constant, or code",
        ),
        ("load_by_nonsense", "E040", "SIGSEGV: an access to no address, in load_by_nonsense", "; the pointer is none"),
        (
            "follow_anothers_pointer",
            "E044",
            "0x150000000008, in follow_anothers_pointer",
            "; only the process of processor 0 (node 0) has something there: ",
        ),
        (
            "crash_in_a_library",
            "E040",
            ", in a library that was called in crash_in_a_library",
            "; the pointer is null, or is computed from null",
        ),
    ];
    for (case, number, what, lies) in cases {
        for faults in ["uffd", "mprotect"] {
            if faults == "uffd" && !offers_userfaultfd() {
                continue;
            }
            let done = run_case(&format!("-n 2 --faults {faults}"), case);
            done.assert_error(number);
            assert_eq!(done.code, Some(128 + libc::SIGSEGV), "{done}");
            assert!(done.stderr.contains("(node 1, processor 1)"), "it names who\n{done}");
            assert!(done.stderr.contains(what) && done.stderr.contains(lies), "{done}");
        }
    }
}

#[test]
fn an_abort_is_told_with_the_line_that_called_it() {
    let done = run_case("-n 2", "abort_itself");
    done.assert_error("E040");
    assert_eq!(done.code, Some(128 + libc::SIGABRT), "{done}");
    let what = "was killed by SIGABRT, in a library that was called in abort_itself";
    assert!(done.stderr.contains(what) && done.stderr.contains("(node 1, processor 1)"), "{done}");
}

#[test]
fn trying_a_mutex_again_is_busy_or_an_error_but_never_a_second_holder() {
    for transport in ["shm", "tcp"] {
        let done = run_case(&format!("-n 2 --quiet --transport {transport}"), "retrylock");
        assert!(done.code == Some(0) || done.stderr.contains("finespun: error E022"), "{done}");
    }
}

#[test]
fn threads_of_the_programs_own_are_not_called_processors() {
    for transport in ["shm", "tcp"] {
        let flags = format!("-n 2 --transport {transport}");
        let done = run_case(&flags, "unlock_in_own_thread");
        done.assert_error("E020");
        assert!(done.stderr.contains("(node 1, thread 0 of the program's own): unlock"), "{done}");
        let done = run_case(&flags, "unlock_of_own_thread");
        done.assert_error("E020");
        let text =
            "(node 1, processor 1): unlock of the mutex at ADDRESS, which thread 0 of the program's own (node 1) holds";
        assert!(without_addresses(&done.stderr).contains(text), "{done}");
    }
}

#[test]
fn processors_that_disagree_about_a_barrier_are_told_so() {
    for transport in ["shm", "tcp"] {
        run_case(&format!("-n 2 -p 2 --transport {transport}"), "barrier_counts").assert_error("E021");
    }
}

/// Under userfaultfd the rights are not what is missing, so the fault would come for ever; mprotect just gives them back.
#[test]
fn rights_that_are_taken_away_past_the_c_library_are_noticed() {
    for case in ["call_mprotect_none", "call_mprotect_read"] {
        if offers_userfaultfd() {
            for transport in ["shm", "tcp"] {
                let done = run_case(&format!("-n 2 --faults uffd --transport {transport}"), case);
                done.assert_error("E055");
                assert!(done.stderr.contains("(node 1, processor 1)"), "it names who\n{done}");
            }
        }
        let done = run_case("-n 2 --quiet --faults mprotect", case);
        done.assert_success();
        assert_eq!(done.stdout, "the page has 2\n", "{done}");
    }
}

#[test]
fn private_memory_may_be_mapped_as_ever() {
    run_case("-n 2 -p 2 --quiet", "private_mappings").assert_success();
}

#[test]
fn main_that_waits_alone_at_the_barrier_of_all_is_told_so() {
    for flags in ["-n 2 --transport shm", "-n 2 -p 2 -t 2 --transport tcp", "-n 2 --barrier flat --protocol tmk"] {
        run_case(flags, "barrier_in_main").assert_error("E025");
    }
    let done = run_case("-n 1", "barrier_in_main");
    assert_eq!(done.code, Some(0), "{done}");
}

#[test]
fn calls_before_the_start_and_after_the_end_are_errors() {
    for case in ["before_init", "lock_before_init", "parallel_before_init", "after_finalize"] {
        for transport in ["shm", "tcp"] {
            run_case(&format!("-n 2 --transport {transport}"), case).assert_error("E004");
        }
    }
}

#[test]
fn a_program_that_never_starts_is_told_so() {
    for transport in ["shm", "tcp"] {
        let done = run_case(&format!("-n 3 --transport {transport}"), "never_init");
        done.assert_error("E003");
        assert_eq!(done.code, Some(3), "{done}");
        Job::new(&format!("-n 2 --transport {transport}"), Path::new("/bin/true"), "").run().assert_error("E003");
    }
}

#[test]
fn a_child_made_by_fork_that_calls_the_library_is_told_so() {
    for case in ["fork_and_call", "fork_and_touch"] {
        for transport in ["shm", "tcp"] {
            let done = run_case(&format!("-n 2 --transport {transport}"), case);
            assert_eq!(done.stderr.matches("finespun: error E080").count(), 1, "{done}");
            assert_eq!(done.code, Some(80), "what the child ended with, passed on by its parent\n{done}");
        }
    }
}

#[test]
fn nodes_that_run_different_builds_are_told_so() {
    let other = compile("misuse/cases.c", "cases-other", &["-Wno-free-nonheap-object", "-DOTHER", "-O1"]);
    let folder = TempDir::new().expect("a folder");
    let script = folder.path().join("pick");
    let text = format!(
        "#!/bin/sh\nif [ \"$FINESPUN_NODE\" = 1 ]; then exec {} \"$@\"; fi\nexec {} \"$@\"\n",
        other.display(),
        cases().display()
    );
    fs::write(&script, text).expect("writable");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("ours");
    for transport in ["shm", "tcp"] {
        Job::new(&format!("-n 2 --transport {transport}"), &script, "").run().assert_error("E060");
    }
}

#[test]
fn mistakes_are_returned_to_a_program_that_asks_for_it() {
    let program = compile("misuse/returned.c", "returned", &["-Wno-free-nonheap-object", "-Wno-use-after-free"]);
    for transport in ["shm", "tcp"] {
        let done = Job::new(&format!("-n 2 -t 2 --quiet --transport {transport}"), &program, "").run();
        done.assert_success();
        assert_eq!(done.stdout, "returned: 0 failures\n", "{done}");
    }
}

#[test]
fn wrong_flags_and_counts_say_what_was_expected() {
    let sor = app("sor");
    for (flags, expected) in [
        ("-n 0", "1 to 64"),
        ("-n 65", "1 to 64"),
        ("-n -3", "1 to 64"),
        ("-n 99999999999999999999", "1 to 64"),
        ("-n two", "1 to 64"),
        ("-p 0", "1 to 32"),
        ("-t 1000", "1 to 64"),
        ("-n 64 -p 32", "at most 1024"),
        ("--transport pigeon", "shm, tcp"),
        ("--faults always", "auto, uffd, mprotect"),
        ("--protocol mesi", "csm-2l"),
        ("--protocol csm-ms --transport tcp", "csm-none"),
        ("--protocol csm-1l-dms -t 2", "expected -t 1"),
        ("--protocol csm-1l-dms -n 16 -p 8", "at most 64"),
        ("--heap 1", "heap"),
        ("--heap=-5G", "heap"),
        ("--heap 999999T", "heap"),
        ("--nodez 4", "--nodez"),
    ] {
        let done = Job::new(flags, &sor, "--size tiny").run();
        done.assert_error("E001");
        assert_eq!(done.code, Some(2), "{done}");
        assert!(done.stderr.contains(expected), "it says {expected}\n{done}");
        assert!(done.stdout.is_empty(), "nothing was started\n{done}");
    }
}

#[test]
fn the_environment_is_held_to_the_same_rules() {
    for (name, value) in [("FINESPUN_NODES", "0"), ("FINESPUN_FAULTS", "x"), ("FINESPUN_HEAP", "lots")] {
        let done = Job::new("", &app("sor"), "--size tiny").env(name, value).run();
        done.assert_error("E001");
    }
    let done = Job::new("--quiet", &app("sor"), "--size tiny").env("FINESPUN_NODEZ", "3").run();
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.stderr.contains("FINESPUN_NODEZ is not known"), "{done}");
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let folder = TempDir::new().expect("a folder");
    let text = folder.path().join("text");
    fs::write(&text, "no program").expect("writable");
    for program in [Path::new("./no-such-program"), Path::new("no-such-program-in-path"), &text, folder.path()] {
        let done = Job::new("-n 2", program, "").run();
        done.assert_error("E002");
        assert_eq!(done.code, Some(127), "{done}");
        assert!(done.stderr.contains(&program.display().to_string()), "{done}");
    }
    Job::command(&["run", "-n", "2"]).run().assert_error("E001");
}

#[test]
fn a_file_for_statistics_that_cannot_be_written_is_refused_before_the_run() {
    let done = Job::new("--stats /no/such/folder/out.json", &app("sor"), "--size tiny").run();
    done.assert_error("E007");
    assert!(done.stdout.is_empty(), "nothing was started\n{done}");
}
