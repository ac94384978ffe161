//! Adaptive broadcast in real jobs.

use crate::support::{Done, Job, app};

fn gauss(flags: &str) -> (Done, [u64; 3]) {
    let done = Job::new(&format!("{flags} --quiet"), &app("gauss"), "--size 128 --verify").stats().run();
    done.assert_success();
    let count = |name: &str| done.stats.as_ref().expect("a file")[name].as_u64().expect("a count");
    let counts = ["broadcasts", "broadcast_hits", "page_transfers"].map(count);
    (done, counts)
}

/// One producer and many consumers of each row.
#[test]
fn pivot_rows_are_broadcast_and_taken_from_buffers() {
    for flags in ["-n 4 --protocol csm-adb", "-n 2 -p 2 --protocol csm-1l-adb", "-n 3 -p 2 --protocol csm-adb"] {
        let (done, [broadcasts, hits, transfers]) = gauss(flags);
        assert!(broadcasts > 0 && hits > 0, "{flags}: {broadcasts} broadcasts, {hits} hits\n{done}");
        assert!(transfers > 0, "the first reader of a row gets it by message\n{done}");
    }
}

#[test]
fn nothing_is_broadcast_where_nobody_asked_for_it_or_one_node_reads() {
    for flags in ["-n 4 --protocol csm-ms", "-n 2 -p 2 --protocol csm-adb"] {
        let (done, [broadcasts, hits, _]) = gauss(flags);
        assert_eq!((broadcasts, hits), (0, 0), "{flags}\n{done}");
    }
}
