//! Programs that close descriptors they have not opened, as daemons do.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::support::{Done, Job, compile};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("misuse/descriptors.c", "descriptors", &[]))
}

fn run(transport: &str, arguments: &str) -> Done {
    Job::new(&format!("--quiet -n 2 -p 2 --transport {transport}"), program(), arguments).limit(20).run()
}

#[test]
fn closing_every_descriptor_by_the_c_library_leaves_the_job_its_own() {
    for transport in ["shm", "tcp"] {
        for how in ["loop", "closefrom", "close_range", "dup2"] {
            for when in ["early", "amid"] {
                if (how, when) == ("dup2", "early") {
                    continue; // that leaves no number to open anything with
                }
                let done = run(transport, &format!("{how} {when}"));
                done.assert_success();
                assert_eq!(done.stdout, "sum 400\n", "{done}");
            }
        }
    }
}

#[test]
fn closing_the_jobs_descriptors_by_system_calls_is_told() {
    for transport in ["shm", "tcp"] {
        let done = run(transport, "raw");
        done.assert_error("E082");
        assert!(done.stderr.contains("(node 1)") && done.stderr.contains("process "), "{done}");
        // Each process meets it by itself, before it is part of the job.
        let done = run(transport, "raw early");
        assert!(done.stderr.contains("finespun: error E082") && !done.stderr.contains("panicked"), "{done}");
        assert_eq!(done.code, Some(82), "{done}");
    }
}

#[test]
fn closing_everything_after_the_end_is_nobodys_business() {
    for transport in ["shm", "tcp"] {
        let done = run(transport, "none late");
        done.assert_success();
        assert_eq!(done.stdout, "sum 400\n", "{done}");
    }
}
