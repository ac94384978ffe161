//! What /proc says of a process whose threads seem all to wait.

use std::collections::HashSet;
use std::fs;

/// Signals whose handlers run by what a thread does, which sleeps: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, and the two that
/// the C library keeps for itself.
const BY_ITSELF: [u32; 9] = [4, 5, 6, 7, 8, 11, 31, 32, 33];

/// May something happen in the process that the given threads do not do: by another thread, or by a signal's handler?
pub fn may_act(pid: u32, quiet: &HashSet<u32>) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    let mut ids = tasks.map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_quiet = |id: Option<u32>| id.is_some_and(|id| quiet.contains(&id));
    !ids.all(is_quiet) || fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| has_handlers(&status))
}

/// Does the process handle a signal that others may send?
fn has_handlers(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let Some(caught) = line.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok()) else { return true };
    let by_itself = BY_ITSELF.iter().fold(0, |all, signal| all | 1_u64 << (signal - 1));
    caught & !by_itself != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_of_signals_from_outside_count_and_those_of_faults_do_not() {
        assert!(!has_handlers("Name:\tx\nSigCgt:\t0000000000000440\n"), "SIGBUS and SIGSEGV");
        assert!(has_handlers("SigCgt:\t0000000000000442\n"), "SIGINT too");
        assert!(has_handlers("Name:\tx\n"), "nothing is known");
    }

    #[test]
    fn a_thread_that_is_not_known_may_act() {
        assert!(may_act(std::process::id(), &HashSet::new()));
        assert!(may_act(0, &HashSet::new()), "no such process");
    }
}
