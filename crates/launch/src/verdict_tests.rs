use finespun_job::{Faults, Report};

use super::{Ending, Patience, Roll};
use crate::control::{Event, Exit};

/// A job of two nodes with one process each, of which both have called fsp_init.
fn started() -> Roll {
    let mut roll = spawned();
    roll.on_event(0, reported(Report::Started { faults: Faults::Uffd }));
    roll.on_event(1, reported(Report::Started { faults: Faults::Uffd }));
    assert!(roll.all_started());
    roll
}

fn spawned() -> Roll {
    let mut roll = Roll::new("./sor".into(), 2, 1, 1);
    for node in 0..2 {
        roll.on_node_spawned(node, 100 + node);
        roll.on_event(node, Event::Spawned { view: 0, pid: 200 + node });
    }
    roll
}

const fn reported(report: Report) -> Event {
    Event::Reported { view: Some(0), report }
}

const fn ended(exit: Exit) -> Event {
    Event::Ended { view: 0, exit }
}

fn ending(roll: &Roll) -> (i32, Patience, String) {
    let Ending { exit_code, message, patience } = roll.ending().expect("an ending").clone();
    let first_line = message.unwrap_or_default().lines().next().unwrap_or_default().to_owned();
    (exit_code, patience, first_line)
}

#[test]
fn a_job_whose_processes_all_finalize_ends_with_the_first_code_that_is_not_0() {
    let mut roll = started();
    for node in 0..2 {
        roll.on_event(node, reported(Report::Finalized));
    }
    roll.on_event(1, ended(Exit::Code(0)));
    assert!(!roll.all_ended());
    roll.on_event(0, ended(Exit::Code(7)));
    assert!(roll.all_ended() && roll.ending().is_none());
    assert_eq!(roll.exit_code(), 7);
}

#[test]
fn a_signal_names_process_processor_node_and_signal() {
    let mut roll = started();
    roll.on_event(1, ended(Exit::Signal(9)));
    let what = "finespun: error E040 (node 1, processor 1): process 201 (./sor) was killed by SIGKILL";
    assert_eq!(ending(&roll), (137, Patience::None, what.into()));
}

#[test]
fn a_process_with_threads_is_named_by_all_its_processors() {
    let mut roll = Roll::new("./lu".into(), 1, 2, 4);
    roll.on_event(0, Event::Spawned { view: 1, pid: 77 });
    roll.on_event(0, Event::Ended { view: 1, exit: Exit::Signal(11) });
    let what = "(node 0, processor 4): process 77 (./lu, processors 4 to 7) was killed by SIGSEGV";
    assert!(ending(&roll).2.ends_with(what));
}

#[test]
fn a_lost_peer_gives_way_to_the_signal_that_killed_it() {
    let mut roll = started();
    roll.on_event(0, Event::Reported { view: None, report: Report::PeerLost { node: 1 } });
    let what = "finespun: error E043 (node 1): node 1 no longer answers node 0";
    assert_eq!(ending(&roll), (43, Patience::Suspicion, what.into()));
    roll.on_node_ended(1, Exit::Signal(9));
    let what = "finespun: error E040 (node 1): the service process 101 of node 1 was killed by SIGKILL";
    assert_eq!(ending(&roll), (137, Patience::None, what.into()));
}

#[test]
fn the_first_certain_ending_stands() {
    let mut roll = started();
    roll.on_event(1, reported(Report::Failed { message: "first".into(), exit_code: 20, image: 0 }));
    roll.on_event(0, reported(Report::Failed { message: "second".into(), exit_code: 21, image: 0 }));
    roll.on_event(0, Event::Reported { view: None, report: Report::PeerLost { node: 1 } });
    roll.on_node_ended(1, Exit::Signal(9));
    assert_eq!(ending(&roll), (20, Patience::None, "first".into()));
}

#[test]
fn a_program_that_never_called_init_is_told_so() {
    let mut roll = spawned();
    roll.on_event(0, ended(Exit::Code(0)));
    let what = "finespun: error E003 (node 0, processor 0): process 200 (./sor) ended without calling fsp_init";
    assert_eq!(ending(&roll), (3, Patience::Courtesy, what.into()));
}

#[test]
fn a_failure_before_init_passes_its_code_on_without_a_message() {
    let mut roll = spawned();
    roll.on_event(1, ended(Exit::Code(2)));
    assert_eq!(ending(&roll), (2, Patience::Courtesy, String::new()));
}

#[test]
fn leaving_while_others_run_is_named_with_the_code() {
    let mut roll = started();
    roll.on_event(1, ended(Exit::Code(5)));
    let what = "process 201 (./sor) ended with exit code 5, without fsp_finalize, while others still ran";
    let (code, patience, message) = ending(&roll);
    assert_eq!((code, patience), (5, Patience::None));
    assert!(message.ends_with(what) && message.contains("E041"));
}

#[test]
fn leaving_with_success_is_only_suspected_until_processor_0_finalizes() {
    let mut roll = started();
    roll.on_event(1, ended(Exit::Code(0)));
    assert_eq!((ending(&roll).0, ending(&roll).1), (41, Patience::Suspicion));
    roll.on_event(0, reported(Report::Finalized));
    assert!(roll.ending().is_none(), "a serving process of the main model has overtaken the report");
    roll.on_event(0, ended(Exit::Code(0)));
    assert!(roll.ending().is_none() && roll.all_ended());
}

#[test]
fn the_only_process_may_end_without_finalizing() {
    let mut roll = Roll::new("./sor".into(), 1, 1, 1);
    roll.on_event(0, reported(Report::Started { faults: Faults::Mprotect }));
    roll.on_event(0, ended(Exit::Code(9)));
    assert!(roll.ending().is_none());
    assert_eq!(roll.exit_code(), 9);
}

#[test]
fn a_service_process_that_ends_early_is_a_bug() {
    let mut roll = started();
    roll.on_node_ended(0, Exit::Code(101));
    assert_eq!(ending(&roll).0, 99);
}

#[test]
fn a_node_cannot_speak_of_views_that_are_not_there() {
    let mut roll = started();
    roll.on_event(1, Event::Ended { view: 1, exit: Exit::Signal(9) });
    roll.on_event(7, ended(Exit::Signal(9)));
    assert!(roll.ending().is_none());
}
