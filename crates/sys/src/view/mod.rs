//! A process's view of its node's frames, whose rights change page by page.
//!
//! The view and the engine's own mapping show the same memfd. Rights decide only what the application's loads and
//! stores do here: with too few of them they fault, and [`crate::faults`] brings the fault to the engine, which fills
//! the frame through its own mapping and then opens the page here.
//!
//! ```text
//!              map_read                    upgrade
//!     none --------------> read-only -----------------> writable
//!      ^ \____________________|______ map_write ___________^ |
//!      |                      |  ^______ protect ____________|
//!      +----- invalidate -----+---------- invalidate --------+
//! ```
//!
//! Two mechanisms carry the rights, same interface (docs/kernel.md, designs B and A):
//! - [`Mechanism::Uffd`]: userfaultfd. One mapping whatever the rights, but the kernel may take a page out of the
//!   view on its own (memory pressure), so a page can fault though nobody withdrew it.
//! - [`Mechanism::Mprotect`]: each change of rights may split a mapping in two, and a process may have only
//!   `vm.max_map_count` (65,530) of them. At the limit the view withdraws *more than asked*.
//!
//! **Therefore the caller's books may say more than the view grants, never less**: whoever answers a fault on a page
//! that is open by the books calls [`View::map_read`] or [`View::map_write`] again, and that is all.
//!
//! Every method may be called by any thread of the process and in the fault handler: they make system calls, use
//! atomics and the stack (under 4 KiB), and neither allocate nor lock. Calls on *different* pages may run at the
//! same time; calls on the *same* page are the caller's to put in order (the unit's lock does), or the last one wins.
//!
//! In a child made by fork the range is not mapped (`MADV_DONTFORK`): touching it is a fault there, not stale data. The
//! methods fail there with `ESRCH`: the userfaultfd that the child inherits would change the *parent's* rights, and the
//! handler, believing that it had opened the page, would be called for ever.

mod protections;
mod userfault;

pub use userfault::Remote;

use crate::memory::Mapping;
use crate::process::ForkMark;
use crate::{PAGE_BYTES, check};
use protections::Protections;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use userfault::Userfault;
pub(crate) use userfault::{features, try_everything};

/// How the rights of a view are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Userfaultfd: user mode, SIGBUS in the faulting thread, synchronous write-protect.
    Uffd,
    /// SIGSEGV and mprotect.
    Mprotect,
}

/// A mapping of the frames whose rights change page by page. Pages are numbered from 0 at its start.
#[derive(Debug)]
pub struct View {
    range: Pages,
    carrier: Carrier,
    process: ForkMark,
    /// Dropped last: the rights go before the addresses.
    mapping: Mapping,
}

#[derive(Debug)]
enum Carrier {
    Userfault(Userfault),
    Protections(Protections),
}

impl View {
    /// Maps the first `bytes` of `frames` at `base`, which must be free, without any rights. `None` takes
    /// userfaultfd if the machine offers it, else mprotect; found by trying. `bytes` is a multiple of the page.
    pub fn new(frames: BorrowedFd<'_>, base: usize, bytes: usize, wanted: Option<Mechanism>) -> io::Result<Self> {
        let mechanism = choose(wanted);
        let mapping = Mapping::shared_with(frames, base, bytes, initial_protection(mechanism))?;
        Self::over(mapping, frames, mechanism)
    }

    /// The same in place of a reservation ([`Mapping::reserve`]), all of it.
    pub fn in_reservation(reservation: Mapping, frames: BorrowedFd<'_>, wanted: Option<Mechanism>) -> io::Result<Self> {
        let mechanism = choose(wanted);
        let mapping = reservation.replace(frames, initial_protection(mechanism))?;
        Self::over(mapping, frames, mechanism)
    }

    fn over(mapping: Mapping, frames: BorrowedFd<'_>, mechanism: Mechanism) -> io::Result<Self> {
        let range = Pages::new(mapping.address(), mapping.bytes())?;
        // SAFETY: the advice is for exactly the mapping we own, and takes effect in children of fork only.
        check(unsafe { libc::madvise(mapping.as_ptr().cast(), mapping.bytes(), libc::MADV_DONTFORK) })?;
        let carrier = match mechanism {
            Mechanism::Uffd => Carrier::Userfault(Userfault::new(range, frames.try_clone_to_owned()?)?),
            Mechanism::Mprotect => Carrier::Protections(Protections::new(range)),
        };
        Ok(Self { range, carrier, process: ForkMark::new()?, mapping })
    }

    /// What carries the rights.
    #[must_use]
    pub const fn mechanism(&self) -> Mechanism {
        match &self.carrier {
            Carrier::Userfault(_) => Mechanism::Uffd,
            Carrier::Protections(_) => Mechanism::Mprotect,
        }
    }

    /// The addresses of the view: what [`crate::faults::install`] wants.
    #[must_use]
    pub fn addresses(&self) -> Range<usize> {
        self.mapping.address()..self.mapping.address() + self.mapping.bytes()
    }

    /// The number of pages.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.range.count
    }

    /// The page an address lies in, if it lies in the view.
    #[must_use]
    pub fn page_of(&self, address: usize) -> Option<u32> {
        let page = address.checked_sub(self.range.base)? / PAGE_BYTES;
        u32::try_from(page).ok().filter(|&page| page < self.range.count)
    }

    /// Makes the page read-only: loads go through, stores fault. Whatever it was before.
    pub fn map_read(&self, page: u32) -> io::Result<()> {
        self.ready(&(page..page.saturating_add(1)))?;
        match &self.carrier {
            Carrier::Userfault(userfault) => userfault.map_read(page),
            Carrier::Protections(protections) => protections.grant(page, libc::PROT_READ),
        }
    }

    /// Makes the page writable. Whatever it was before.
    pub fn map_write(&self, page: u32) -> io::Result<()> {
        self.ready(&(page..page.saturating_add(1)))?;
        match &self.carrier {
            Carrier::Userfault(userfault) => userfault.map_write(page),
            Carrier::Protections(protections) => protections.grant(page, libc::PROT_READ | libc::PROT_WRITE),
        }
    }

    /// Makes a read-only page writable: [`View::map_write`] for the price of one system call where that takes two.
    /// If the kernel has meanwhile taken the page out of the view, this has no effect: the store faults again, the
    /// books say writable, and `map_write` answers.
    pub fn upgrade(&self, page: u32) -> io::Result<()> {
        self.ready(&(page..page.saturating_add(1)))?;
        match &self.carrier {
            Carrier::Userfault(userfault) => userfault.write_protect(page..page + 1, false),
            Carrier::Protections(protections) => protections.grant(page, libc::PROT_READ | libc::PROT_WRITE),
        }
    }

    /// Makes writable pages read-only. Every page of the range must be writable or read-only by the caller's books:
    /// under mprotect a page without rights would become readable.
    pub fn protect(&self, pages: Range<u32>) -> io::Result<()> {
        self.ready(&pages)?;
        match &self.carrier {
            Carrier::Userfault(userfault) => userfault.write_protect(pages, true),
            Carrier::Protections(protections) => protections.withdraw(pages, libc::PROT_READ),
        }
    }

    /// Takes all rights to the pages away. Whatever they were before.
    pub fn invalidate(&self, pages: Range<u32>) -> io::Result<()> {
        self.ready(&pages)?;
        match &self.carrier {
            Carrier::Userfault(userfault) => userfault.invalidate(pages),
            Carrier::Protections(protections) => protections.withdraw(pages, libc::PROT_NONE),
        }
    }

    /// The same for pages in any order, with as few system calls as the kernel allows. Pages given in ascending order
    /// cost least. If it fails, some of them are done.
    pub fn invalidate_scattered(&self, pages: &[u32]) -> io::Result<()> {
        for chunk in pages.chunks(CHUNK) {
            let mut sorted = [0; CHUNK];
            let sorted = &mut sorted[..chunk.len()];
            sorted.copy_from_slice(chunk);
            sorted.sort_unstable();
            let last = sorted[sorted.len() - 1];
            self.ready(&(last..last.saturating_add(1)))?;
            match &self.carrier {
                Carrier::Userfault(userfault) => userfault.invalidate_runs(Runs(sorted))?,
                Carrier::Protections(protections) => {
                    for run in Runs(sorted) {
                        protections.withdraw(run, libc::PROT_NONE)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The pages are ours, and so is the process. An error and no panic: the fault handler may be the caller.
    fn ready(&self, pages: &Range<u32>) -> io::Result<()> {
        if !self.process.is_ours() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        self.range.check(pages)
    }

    /// True in the process that made the view, false in a child of fork, which has none.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.process.is_ours()
    }

    /// How often more was invalidated than asked, for want of mappings. Always 0 with userfaultfd.
    #[must_use]
    pub fn coarse_invalidations(&self) -> u64 {
        match &self.carrier {
            Carrier::Userfault(_) => 0,
            Carrier::Protections(protections) => protections.coarse_invalidations(),
        }
    }

    /// The userfaultfd, for another process of the node to make a [`Remote`] of.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.carrier {
            Carrier::Userfault(userfault) => Some(userfault.descriptor()),
            Carrier::Protections(_) => None,
        }
    }
}

/// Pages that one batch of scattered invalidations handles: 512 bytes of numbers and 2 KiB of ranges on the stack.
const CHUNK: usize = 128;

fn choose(wanted: Option<Mechanism>) -> Mechanism {
    wanted.unwrap_or_else(|| if try_everything().is_ok() { Mechanism::Uffd } else { Mechanism::Mprotect })
}

/// Userfaultfd needs a mapping with rights, whose missing pages then fault.
const fn initial_protection(mechanism: Mechanism) -> i32 {
    match mechanism {
        Mechanism::Uffd => libc::PROT_READ | libc::PROT_WRITE,
        Mechanism::Mprotect => libc::PROT_NONE,
    }
}

/// Where the pages of a view are.
#[derive(Clone, Copy, Debug)]
struct Pages {
    base: usize,
    count: u32,
}

impl Pages {
    fn new(base: usize, bytes: usize) -> io::Result<Self> {
        let count = u32::try_from(bytes / PAGE_BYTES).map_err(|_| invalid())?;
        if !base.is_multiple_of(PAGE_BYTES) || !bytes.is_multiple_of(PAGE_BYTES) || count == 0 {
            return Err(invalid());
        }
        Ok(Self { base, count })
    }

    fn check(self, pages: &Range<u32>) -> io::Result<()> {
        if pages.start <= pages.end && pages.end <= self.count { Ok(()) } else { Err(invalid()) }
    }

    /// Address and length in bytes of a range that was checked.
    fn span(self, pages: &Range<u32>) -> (usize, usize) {
        (self.base + pages.start as usize * PAGE_BYTES, (pages.end - pages.start) as usize * PAGE_BYTES)
    }

    fn pointer(self, pages: &Range<u32>) -> (*mut libc::c_void, usize) {
        let (address, bytes) = self.span(pages);
        (std::ptr::with_exposed_provenance_mut(address), bytes)
    }
}

fn invalid() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}

/// The runs of neighbours in sorted page numbers, which may repeat.
struct Runs<'a>(&'a [u32]);

impl Iterator for Runs<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        let (&first, mut rest) = self.0.split_first()?;
        let mut end = first + 1;
        while let Some((&page, later)) = rest.split_first().filter(|&(&page, _)| page <= end) {
            end = page + 1;
            rest = later;
        }
        self.0 = rest;
        Some(first..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_pages_are_merged_into_runs() {
        let runs: Vec<_> = Runs(&[1, 2, 2, 3, 7, 9, 10]).collect();
        assert_eq!(runs, [1..4, 7..8, 9..11]);
        assert_eq!(Runs(&[]).next(), None);
    }

    #[test]
    fn pages_outside_the_view_are_refused() {
        let pages = Pages::new(0x2000_0000_0000, 4 * PAGE_BYTES).unwrap();
        assert!(pages.check(&(3..4)).is_ok() && pages.check(&(4..5)).is_err());
        assert!(pages.check(&(0..4)).is_ok() && pages.check(&(2..5)).is_err());
        #[expect(clippy::reversed_empty_ranges, reason = "that is the bad argument")]
        let reversed = 3..2;
        assert!(pages.check(&reversed).is_err());
        assert!(Pages::new(0x2000_0000_0800, PAGE_BYTES).is_err());
        assert!(Pages::new(0x2000_0000_0000, 100).is_err());
    }
}
