//! What /proc and the control groups say: how much memory a job may plan with, and which signals are ignored.

use std::fs;
use std::path::{Path, PathBuf};

const HUGE: u64 = 2 << 20;
const HEAP_MOST: u64 = 64 << 30;
/// Version 1 of control groups writes "no limit" as a number about as large as there is.
const NO_LIMIT: u64 = 1 << 60;

/// The heap of a job that does not say: the available memory, at most 64 GiB, in whole 2 MiB.
#[must_use]
pub fn default_heap_bytes() -> u64 {
    let available = available_bytes().unwrap_or(HEAP_MOST).min(HEAP_MOST);
    (available / HUGE * HUGE).max(HUGE)
}

/// The memory that new programs may use: what the kernel calls available, and what our control groups leave.
#[must_use]
pub fn available_bytes() -> Option<u64> {
    let free = fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo_bytes(&text, "MemAvailable"));
    free.into_iter().chain(cgroup_bytes()).min()
}

/// What the control groups above us leave, if any of them has a limit.
#[must_use]
pub fn cgroup_bytes() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let left = cgroup_folders(&groups).into_iter().filter_map(|folder| left_in(&folder));
    left.min()
}

/// How many processes the kernel has ended for want of memory, on this machine and since it started.
#[must_use]
pub fn out_of_memory_kills() -> u64 {
    fs::read_to_string("/proc/vmstat").ok().and_then(|text| vmstat(&text, "oom_kill")).unwrap_or(0)
}

/// The signals this process ignores: signal `n` is bit `n - 1`.
#[must_use]
pub fn ignored_signals() -> u64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|text| signal_mask(&text, "SigIgn")).unwrap_or(0)
}

fn signal_mask(status: &str, name: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

fn vmstat(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Our group and all above it, of version 2 (`0::/a/b`) and of version 1's memory controller (`4:memory:/a/b`).
fn cgroup_folders(groups: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            _ if controllers.split(',').any(|name| name == "memory") => Path::new("/sys/fs/cgroup/memory"),
            _ => continue,
        };
        let group = Path::new(path.trim_start_matches('/'));
        folders.extend(group.ancestors().map(|ancestor| root.join(ancestor)));
    }
    folders
}

fn left_in(folder: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    if limit >= NO_LIMIT {
        return None;
    }
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    Some(limit.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{HUGE, cgroup_folders, default_heap_bytes, meminfo_bytes, signal_mask, vmstat};

    #[test]
    fn meminfo_is_read_by_whole_names() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   12 kB\n";
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(12 * 1024));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
    }

    #[test]
    fn vmstat_is_read_by_whole_names() {
        assert_eq!(vmstat("oom_kill_x 1\noom_kill 2\nnr_free_pages 3\n", "oom_kill"), Some(2));
        assert_eq!(vmstat("nr_free_pages 3\n", "oom_kill"), None);
    }

    #[test]
    fn signal_masks_are_hexadecimal() {
        assert_eq!(signal_mask("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n", "SigIgn"), Some(0x1001));
    }

    #[test]
    fn every_group_above_ours_counts() {
        let folders = cgroup_folders("0::/a/b\n4:cpu:/x\n5:hugetlb,memory:/c\n");
        let expected = [
            "/sys/fs/cgroup/a/b",
            "/sys/fs/cgroup/a",
            "/sys/fs/cgroup/",
            "/sys/fs/cgroup/memory/c",
            "/sys/fs/cgroup/memory/",
        ];
        assert_eq!(folders, expected.map(PathBuf::from));
    }

    #[test]
    fn the_default_heap_is_whole_huge_pages() {
        assert!(default_heap_bytes() >= HUGE && default_heap_bytes().is_multiple_of(HUGE));
    }
}
