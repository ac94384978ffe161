//! What /proc says of a process of the program: its threads, its mappings, its memory.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::code::Memory;

/// A thread, and how often it has waited and how long it has run, so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub id: i32,
    /// Times that it gave up its core because it had to wait.
    pub waits: u64,
    /// Time on a core, in ticks of 10 ms.
    pub ran: u64,
}

/// The threads of a process; none if it is gone.
pub fn threads(pid: i32) -> Vec<Thread> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| thread(pid, id)).collect()
}

fn thread(pid: i32, id: i32) -> Option<Thread> {
    let read = |name| fs::read_to_string(format!("/proc/{pid}/task/{id}/{name}")).ok();
    // The second field is a name in parentheses; the 14th and 15th are time in user and system mode.
    let stat = read("stat")?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut time = || fields.next()?.parse::<u64>().ok();
    let ran = time()? + time()?;
    let status = read("status")?;
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()?;
    Some(Thread { id, waits, ran })
}

/// The processor that a thread is, if it is one of several of its process: the runtime has named it.
pub fn processor(pid: i32, thread: i32) -> Option<u32> {
    let name = fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm")).ok()?;
    name.trim().strip_prefix("fsp-")?.parse().ok()
}

/// A mapping of the job's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frames {
    start: u64,
    end: u64,
    offset: u64,
}

/// A process's memory as its threads see it.
pub struct Space {
    memory: File,
    frames: Vec<Frames>,
    /// Where the executable is loaded.
    pub image: Range<u64>,
}

impl Space {
    /// Of a process that runs; `None` if it is gone, or we may not look.
    pub fn of(pid: i32) -> Option<Self> {
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let executable = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let executable = executable.to_str()?;
        let lines = || maps.lines().filter_map(line);
        let frames =
            lines().filter(|(_, name)| name.contains("memfd:finespun-frames")).map(|(frames, _)| frames).collect();
        let of_image = || lines().filter(|(_, name)| *name == executable).map(|(mapping, _)| mapping);
        let image = of_image().map(|mapping| mapping.start).min()?..of_image().map(|mapping| mapping.end).max()?;
        Some(Self { memory, frames, image })
    }

    /// Where in the node's frames an address of shared memory is.
    pub fn offset(&self, address: u64) -> Option<u64> {
        let found = self.frames.iter().find(|frames| (frames.start..frames.end).contains(&address))?;
        Some(address - found.start + found.offset)
    }
}

impl Memory for Space {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.memory.read_exact_at(bytes, address).is_ok()
    }

    fn is_shared(&self, address: u64) -> bool {
        self.offset(address).is_some()
    }
}

/// A line of the list of mappings, and what is mapped.
fn line(text: &str) -> Option<(Frames, &str)> {
    let mut words = text.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end, offset) = (number(start)?, number(end)?, number(words.nth(1)?)?);
    Some((Frames { start, end, offset }, words.nth(2)?.trim()))
}

#[cfg(test)]
mod tests {
    use super::{Space, line, threads};
    use crate::spins::code::Memory;

    #[test]
    fn this_process_is_seen_as_it_is() {
        let me = std::process::id().cast_signed();
        let all = threads(me);
        assert!(all.iter().any(|thread| thread.id == me), "{all:?}");
        let (space, word) = (Space::of(me).expect("ours"), 0x1234_5678_u64);
        let mut bytes = [0; 8];
        assert!(space.read((&raw const word).addr() as u64, &mut bytes));
        assert_eq!(u64::from_le_bytes(bytes), word);
        assert!(!space.read(8, &mut bytes) && !space.is_shared(8) && !space.image.is_empty());
    }

    #[test]
    fn a_mapping_of_frames_tells_the_place_in_them() {
        let text =
            "200000000000-200000004000 rw-s 00003000 00:01 42                 /memfd:finespun-frames-n1 (deleted)";
        let (frames, name) = line(text).expect("a mapping");
        assert_eq!((frames.start, frames.end, frames.offset), (0x2000_0000_0000, 0x2000_0000_4000, 0x3000));
        assert_eq!(name, "/memfd:finespun-frames-n1 (deleted)");
        assert_eq!(line("7f00-7f10 rw-p 00000000 00:00 0 ").map(|(_, name)| name), Some(""));
    }
}
