//! Ends every descendant of this process.
//!
//! The caller must be a child subreaper (`prctl(PR_SET_CHILD_SUBREAPER)`): then a process whose parent ends becomes
//! our child, before its parent can be waited for. So "kill all children, wait for one, look again" reaches the whole
//! tree, also what starts new processes meanwhile.

use std::fs;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getpid};

/// Kills and reaps all descendants; returns when there are none. A descendant we may not kill (of another user) is left.
pub fn kill_all() {
    loop {
        let refused = children().into_iter().any(|child| kill(child, Signal::SIGKILL) == Err(Errno::EPERM));
        match waitpid(Pid::from_raw(-1), None) {
            _ if refused => return,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return, // ECHILD: none left
        }
    }
}

/// The direct children, ended or not.
fn children() -> Vec<Pid> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let mut found = Vec::new();
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => found.extend(list.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw)),
            // A kernel without CONFIG_PROC_CHILDREN, or a task that has just ended: look at everybody's parent.
            Err(_) => return children_by_parent(),
        }
    }
    found
}

fn children_by_parent() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|&pid| parent_of(pid) == Some(getpid().as_raw())).map(Pid::from_raw).collect()
}

/// The parent of a process, from the fourth field of its stat line; the second is a name in parentheses.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::unistd::Pid;

    #[test]
    fn both_ways_to_list_children_find_a_child() {
        let mut child = Command::new("sleep").arg("100").spawn().expect("sleep starts");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
        assert!(super::children().contains(&pid));
        assert!(super::children_by_parent().contains(&pid));
        child.kill().expect("it runs");
        child.wait().expect("it is ours");
        assert!(!super::children_by_parent().contains(&pid));
    }
}
