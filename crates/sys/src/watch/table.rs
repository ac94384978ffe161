//! The table of a job's accesses to its private variables: a memfd that every process maps, and the launcher reads.
//!
//! ```text
//!   header | writers: a word for each byte | readers of process 0: a word for each byte | of process 1 | ...
//! ```
//!
//! - *writers*: who was the first to change the byte's value;
//! - *readers* of a process: where it read the byte after another process had changed it; [`OWN`] once it has stored there itself.
//!
//! It is as sparse as the accesses are. A byte has the first mistake told of it; nothing is taken back, but for what a process
//! reads and then stores itself: that cannot be told from a count or a cache of its own.

use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::record::{Entry, OWN, Record};
use crate::memory::Mapping;
use crate::{PAGE_BYTES, invalid};

/// The size of the memfd: more than any program needs, since only what is touched takes memory.
pub const TABLE_BYTES: usize = 1 << 42;
/// The page in front.
pub const HEADER_BYTES: usize = PAGE_BYTES;
/// Room for the program's path.
pub const PATH_MAX: usize = HEADER_BYTES - size_of::<Header>();

/// What stands at the table's beginning.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// See [`State`].
    pub state: AtomicU64,
    /// Where the variables begin, as the linker has it.
    pub start: AtomicU64,
    /// How many bytes they have.
    pub bytes: AtomicU64,
    /// Accesses looked at.
    pub accesses: AtomicU64,
    /// The length of the program's path, which follows the header.
    pub path: AtomicU64,
}

/// What has become of the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum State {
    /// No process has come so far.
    Waiting = 0,
    /// Variables are watched.
    Watching = 1,
    /// They are shared, so there is nothing to watch.
    Shared = 2,
}

impl State {
    /// What a header says.
    #[must_use]
    pub const fn of(word: u64) -> Self {
        match word {
            1 => Self::Watching,
            2 => Self::Shared,
            _ => Self::Waiting,
        }
    }
}

/// Where a section's word for a byte stands in the file; section 0 is the writers', 1 + p that of the readers in process p.
#[must_use]
pub const fn place(section: usize, bytes: usize, byte: usize) -> usize {
    HEADER_BYTES + (section * bytes + byte) * size_of::<u64>()
}

/// The table as a process has it.
#[derive(Debug)]
pub struct Table {
    mapping: Mapping,
    start: usize,
    bytes: usize,
    process: usize,
    processors_each: u32,
}

/// Whose table it is.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// The process, counted over the job.
    pub process: usize,
    /// How many processors each process has.
    pub processors_each: u32,
    /// How many processes there are.
    pub processes: usize,
}

impl Table {
    /// Maps it, and says in it what is watched: the same in every process.
    pub fn map(fd: BorrowedFd<'_>, own: Own, link: Range<usize>, program: &OsStr) -> io::Result<Self> {
        let bytes = link.len();
        let size = place(1 + own.processes, bytes, 0);
        if size > TABLE_BYTES {
            return Err(invalid());
        }
        let mapping = Mapping::shared(fd, size)?;
        let Own { process, processors_each, .. } = own;
        let table = Self { mapping, start: link.start, bytes, process, processors_each };
        let path = program.as_bytes();
        let path = &path[..path.len().min(PATH_MAX)];
        // SAFETY: the header's page has room for so many bytes behind the header; all processes write the same.
        unsafe {
            let to = table.mapping.as_ptr().add(size_of::<Header>());
            std::ptr::copy_nonoverlapping(path.as_ptr(), to, path.len());
        }
        let header = table.header();
        header.start.store(link.start as u64, Ordering::Relaxed);
        header.bytes.store(bytes as u64, Ordering::Relaxed);
        header.path.store(path.len() as u64, Ordering::Relaxed);
        header.state.store(State::Watching as u64, Ordering::Release);
        Ok(table)
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header of atomics, which any bytes are valid for.
        unsafe { &*self.mapping.as_ptr().cast::<Header>() }
    }

    fn word(&self, section: usize, byte: usize) -> &AtomicU64 {
        assert!(byte < self.bytes);
        // SAFETY: `byte` is inside the section, and the mapping has this process's section and the writers' (`map`).
        unsafe { &*self.mapping.as_ptr().add(place(section, self.bytes, byte)).cast::<AtomicU64>() }
    }

    /// The bytes of an access that are watched, by their number.
    fn bytes_of(&self, address: usize, size: usize) -> Range<usize> {
        let first = address.saturating_sub(self.start).min(self.bytes);
        first..(first + size).min(self.bytes)
    }

    /// This process is about to load. `address` is the linker's.
    pub fn reads(&self, address: usize, size: usize, record: Record) {
        self.header().accesses.fetch_add(1, Ordering::Relaxed);
        for (before, byte) in self.bytes_of(address, size).enumerate() {
            let Entry::By(writer) = Entry::decode(self.word(0, byte).load(Ordering::Relaxed)) else { continue };
            if (writer.processor / self.processors_each) as usize != self.process {
                let mine = self.word(1 + self.process, byte);
                // The first of the best; never after a store of our own.
                let better = |known| record.at(before).is_better_than(Entry::decode(known));
                let new = record.at(before).encode();
                let _ = mine.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| better(known).then_some(new));
            }
        }
    }

    /// This process is about to store: from now on these bytes are its own.
    pub fn writes(&self, address: usize, size: usize) {
        self.header().accesses.fetch_add(1, Ordering::Relaxed);
        for byte in self.bytes_of(address, size) {
            self.word(1 + self.process, byte).store(OWN, Ordering::Relaxed);
        }
    }

    /// The store has changed this byte.
    pub fn changed(&self, address: usize, record: Record) {
        for byte in self.bytes_of(address, 1) {
            let first = self.word(0, byte);
            let _ = first.compare_exchange(0, record.encode(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Says in the table that the program's variables are shared.
pub fn nothing_to_watch(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mapping = Mapping::shared(fd, HEADER_BYTES)?;
    // SAFETY: as in `Table::header`.
    let header = unsafe { &*mapping.as_ptr().cast::<Header>() };
    header.state.store(State::Shared as u64, Ordering::Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};

    use super::*;

    const LINK: Range<usize> = 0x40_0000..0x40_1000;

    fn table(fd: &OwnedFd, process: usize) -> Table {
        let own = Own { process, processors_each: 2, processes: 2 };
        Table::map(fd.as_fd(), own, LINK, OsStr::new("./program")).expect("mapped")
    }

    fn two() -> [Table; 2] {
        let fd = crate::memory::create(c"watch", TABLE_BYTES).expect("a memfd");
        [table(&fd, 0), table(&fd, 1)]
    }

    const fn by(processor: u32) -> Record {
        Record { processor, instruction: 0x40_0500, in_library: false, before: 0 }
    }

    fn of_reader(table: &Table, byte: usize) -> Entry {
        Entry::decode(table.word(1 + table.process, byte).load(Ordering::Relaxed))
    }

    #[test]
    fn what_another_process_has_changed_before_is_noted_with_its_bytes() {
        let [one, other] = two();
        one.writes(LINK.start + 8, 4);
        one.changed(LINK.start + 9, by(1));
        other.reads(LINK.start + 8, 4, by(2));
        assert_eq!(
            [8, 9, 10].map(|byte| of_reader(&other, byte)),
            [Entry::Empty, Entry::By(by(2).at(1)), Entry::Empty]
        );
    }

    #[test]
    fn what_was_read_before_the_change_and_what_the_own_process_changed_is_none() {
        let [one, other] = two();
        other.reads(LINK.start, 8, by(3));
        one.writes(LINK.start, 8);
        one.changed(LINK.start, by(0));
        one.reads(LINK.start, 8, by(1));
        assert_eq!([of_reader(&other, 0), of_reader(&one, 0)], [Entry::Empty, Entry::Own]);
    }

    #[test]
    fn a_process_that_stores_there_itself_before_or_after_has_its_own() {
        let [one, other] = two();
        one.changed(LINK.start, by(0));
        one.changed(LINK.start + 8, by(0));
        other.writes(LINK.start, 4);
        other.reads(LINK.start, 4, by(2));
        other.reads(LINK.start + 8, 4, by(2));
        other.writes(LINK.start + 8, 4);
        assert_eq!([0, 8].map(|byte| of_reader(&other, byte)), [Entry::Own, Entry::Own]);
    }

    #[test]
    fn what_the_program_reads_itself_stands_before_what_a_library_may_have_read_too_far() {
        let [one, other] = two();
        one.changed(LINK.start + 8, by(0));
        let library = Record { in_library: true, instruction: 1, ..by(2) };
        other.reads(LINK.start, 32, library);
        assert_eq!(of_reader(&other, 8), Entry::By(library.at(8)));
        other.reads(LINK.start + 8, 4, by(2));
        other.reads(LINK.start + 8, 4, by(3));
        other.reads(LINK.start, 32, library);
        assert_eq!(of_reader(&other, 8), Entry::By(by(2)));
    }

    #[test]
    fn accesses_across_the_ends_are_cut() {
        let [one, other] = two();
        one.writes(LINK.end - 2, 8);
        one.changed(LINK.end - 1, by(0));
        one.changed(LINK.end, by(0));
        other.reads(LINK.end - 1, 64, by(2));
        assert_eq!(of_reader(&other, LINK.len() - 1), Entry::By(by(2)));
    }
}
