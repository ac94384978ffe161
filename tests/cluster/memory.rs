//! What memory costs that is little used: pages of frames, faults and pages that cross between nodes, counted.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::fspcc;
use crate::support::{Done, Job, built, compile, root};

/// What little use may cost: far more than one page, far less than the table.
const LITTLE: u64 = 8;

fn sparse() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compile("memory/sparse.c", "sparse", &[]))
}

fn run(flags: &str, program: &Path, arguments: &str) -> Done {
    let done = Job::new(&format!("--quiet {flags}"), program, arguments).stats().run();
    done.assert_success();
    done
}

fn count(done: &Done, name: &str) -> u64 {
    let stats = done.stats.as_ref().expect("a file");
    stats[name].as_u64().unwrap_or_else(|| panic!("{name} is missing\n{done}"))
}

/// Pages of frames that each node has.
fn frames(done: &Done) -> Vec<u64> {
    let nodes = done.stats.as_ref().expect("a file")["per_node"].as_array().expect("a list");
    nodes.iter().map(|node| node["frame_bytes"].as_u64().expect("a size") / 4096).collect()
}

#[test]
fn zeroed_memory_that_was_never_used_costs_nothing() {
    for flags in ["-n 2", "-n 2 --transport tcp", "-n 2 --protocol tmk", "-n 2 --protocol strings-rc"] {
        let once = run(flags, sparse(), "calloc");
        assert_eq!((count(&once, "write_faults"), count(&once, "read_faults")), (1, 0), "{once}");
        assert_eq!(frames(&once), [1, 0], "{once}");
        let all = run(flags, sparse(), "all");
        assert_eq!((count(&all, "write_faults"), count(&all, "read_faults")), (1, 2), "{all}");
        assert!(frames(&all).iter().sum::<u64>() <= 3, "{all}");
    }
}

#[test]
fn zeroed_memory_is_at_home_where_it_is_used() {
    for flags in ["-n 2", "-n 2 --transport tcp"] {
        let done = run(flags, sparse(), "used");
        assert_eq!([count(&done, "page_transfers"), count(&done, "diffs"), count(&done, "twins")], [0; 3], "{done}");
        assert_eq!(frames(&done), [256, 256], "{done}");
    }
}

#[test]
fn only_what_was_used_is_cleared_or_copied() {
    for flags in ["-n 2", "-n 2 --transport tcp", "-n 2 --protocol tmk", "-n 2 --protocol strings-rc --transport tcp"] {
        for kind in ["again", "realloc"] {
            let done = run(flags, sparse(), kind);
            assert!(count(&done, "write_faults") + count(&done, "read_faults") <= LITTLE, "{done}");
            assert!(frames(&done).iter().sum::<u64>() <= LITTLE, "{done}");
        }
    }
}

#[test]
fn only_variables_that_were_used_are_fetched_for_the_exit_and_for_a_child() {
    let source = root().join("tests/c/memory/table.c");
    let program = fspcc::build("fspcc", &["--share-globals"], &[source], "table");
    for (flags, arguments) in
        [("-n 2", ""), ("-n 2", "fork"), ("-n 2 --transport tcp", ""), ("-n 2 --protocol tmk", "")]
    {
        let done = run(flags, &program, arguments);
        // The 32 pages that node 1 has used, and the program's other variables.
        assert!((32..32 + LITTLE).contains(&count(&done, "page_transfers")), "{done}");
        assert!(count(&done, "read_faults") <= 32 + LITTLE, "{done}");
        assert_eq!(frames(&done)[1], 32, "{done}");
    }
}

#[test]
fn shared_memory_is_gone_after_the_end_and_an_access_is_told() {
    let program = compile("memory/after_end.c", "after_end", &[]);
    for flags in ["-n 2", "-n 1 --faults mprotect", "-n 2 --transport tcp"] {
        for (what, told) in [("load", "a load from"), ("store", "a store to"), ("exit", "a store to")] {
            let done = Job::new(&format!("--quiet {flags}"), &program, what).run();
            done.assert_error("E004");
            assert!(done.stderr.contains(&format!("{told} shared memory, at 0x")), "{done}");
        }
        Job::new(&format!("--quiet {flags}"), &program, "nothing").run().assert_success();
    }
    let alone = Command::new(&program).arg("store").env_remove("LD_LIBRARY_PATH").output().expect("it starts");
    let told = String::from_utf8_lossy(&alone.stderr);
    assert!(alone.status.code() == Some(4) && told.contains("finespun: error E004"), "{told}");
}

#[test]
fn sizes_that_cannot_be_are_refused_where_malloc_is_shared() {
    let source = root().join("tests/c/fspcc/sizes.c");
    let program = fspcc::build("fspcc", &["--share-malloc"], &[source], "sizes");
    Job::new("--quiet -n 2", &program, "").run().assert_success();
}

/// A job under a limit of this shell's: what it says.
fn limited(limit: &str, words: &[&str]) -> (Option<i32>, String) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]).arg(built("bin/finespun")).args(words);
    let output = shell.env_remove("LD_LIBRARY_PATH").output().expect("a shell");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[track_caller]
fn assert_one_message(told: &str, parts: &[&str]) {
    assert_eq!(told.matches("finespun: error E").count(), 1, "one message\n{told}");
    assert!(told.contains("finespun: error E006"), "{told}");
    for part in parts {
        assert!(told.contains(part), "{part} is missing\n{told}");
    }
}

/// The limit is raised to what each message asks for: a node's service process maps less than one of the program.
#[test]
fn a_limit_of_addresses_is_told_with_what_was_tried() {
    let program = sparse().to_str().expect("a plain name");
    for (transport, messages) in [("shm", 1), ("tcp", 2)] {
        let words = ["run", "-q", "-n", "2", "--heap", "256M", "--transport", transport, program, "calloc"];
        let mut limit = 2 << 20;
        for _ in 0..messages {
            let (code, told) = limited(&format!("-v {limit}"), &words);
            assert_eq!(code, Some(6), "{told}");
            assert_one_message(&told, &["for a heap of 256.0 MiB (--heap) on 2 nodes", "finespun run --heap"]);
            assert_one_message(&told, &["Cannot allocate memory", "the limit of address space is", "GiB (ulimit -v)"]);
            let needed = told.split("mapping ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
            let needed = needed.unwrap_or_else(|| panic!("no number of GiB\n{told}"));
            // And the program itself.
            limit = ((needed + 0.5) * 1048576.0) as u64;
        }
        let (code, told) = limited(&format!("-v {limit}"), &words);
        assert_eq!(code, Some(0), "{limit} KiB\n{told}");
    }
}

#[test]
fn a_limit_of_files_is_told() {
    let program = sparse().to_str().expect("a plain name");
    let (code, told) = limited("-n 12", &["run", "-q", "-n", "2", program, "calloc"]);
    assert_eq!(code, Some(6), "{told}");
    assert_one_message(&told, &["the limit of open files is 12 (ulimit -n)"]);
}
