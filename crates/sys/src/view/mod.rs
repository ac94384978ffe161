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

mod apart;
mod marks;
mod pages;
mod protections;
mod userfault;

pub use userfault::Remote;

use crate::memory::{self, Mapping};
use crate::process::ForkMark;
use crate::{PAGE_BYTES, descriptors, invalid};
use marks::Marks;
use pages::{CHUNK, Pages};
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
    /// Which pages may have rights.
    open: Marks,
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
        unsafe { memory::advise(mapping.as_ptr(), mapping.bytes(), libc::MADV_DONTFORK) }?;
        mapping.leave_out_of_cores();
        let carrier = match mechanism {
            Mechanism::Uffd => {
                Carrier::Userfault(Userfault::new(range, descriptors::aside(frames.try_clone_to_owned()?)?)?)
            }
            Mechanism::Mprotect => Carrier::Protections(Protections::new(range)?),
        };
        Ok(Self { range, carrier, open: Marks::new(range.count)?, process: ForkMark::new()?, mapping })
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

    /// Lets a run of pages stand at addresses of their own, without rights, in place of whatever is mapped there; in the
    /// space they are not to be found any more. Before the view is used; once. The view never unmaps them.
    ///
    /// # Safety
    /// Nobody uses what is mapped at these addresses now, and whoever uses them from now on is prepared for faults.
    pub unsafe fn open_window(&mut self, frames: BorrowedFd<'_>, address: usize, pages: Range<u32>) -> io::Result<()> {
        if !self.range.window().is_empty() {
            return Err(invalid());
        }
        let range = self.range.with_window(address, &pages)?;
        let (start, bytes) = range.pointer(&pages);
        let offset = pages.start as usize * PAGE_BYTES;
        let rights = initial_protection(self.mechanism());
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: what the range held is given up by the caller (contract), and no other mapping lies in it.
        unsafe { memory::map(start, bytes, rights, flags, Some((frames, offset))) }?;
        // SAFETY: the range was mapped just now; the advice takes effect in children of fork only.
        unsafe { memory::advise(start, bytes, libc::MADV_DONTFORK) }?;
        match &mut self.carrier {
            Carrier::Userfault(userfault) => userfault.open_window(range, &pages)?,
            Carrier::Protections(protections) => protections.open_window(range),
        }
        self.range = range;
        Ok(())
    }

    /// Takes the pages of the space away for good: each access to one faults from now on. The addresses stay taken, so that nothing else is mapped
    /// there. The window stays.
    pub fn close(&self) -> io::Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let (start, bytes) = (self.mapping.as_ptr(), self.mapping.bytes());
        // SAFETY: MAP_FIXED replaces exactly the mapping that self owns; whoever uses its pages gets a signal.
        unsafe { memory::map(start, bytes, libc::PROT_NONE, flags, None) }.map(drop)
    }

    /// Has the pages that may be open put into a core, should the process end now. The others are left out, because a core with all
    /// of them would have the size of the space. Pages in the window are always in it. Stops where the kernel has no more mappings.
    pub fn put_into_core(&self) {
        if !self.is_ours() {
            return;
        }
        for piece in self.open.runs().flat_map(|run| self.range.pieces(&run)) {
            let (start, bytes) = self.range.pointer(&piece);
            // SAFETY: pages of our own mapping; the advice changes no byte of them.
            if unsafe { memory::advise(start, bytes, libc::MADV_DODUMP) }.is_err() {
                return;
            }
        }
    }

    /// The addresses of the window; empty if there is none.
    #[must_use]
    pub fn window(&self) -> Range<usize> {
        self.range.window()
    }

    /// The number of pages.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.range.count
    }

    /// The page an address lies in, if it lies in the view.
    #[must_use]
    #[inline]
    pub fn page_of(&self, address: usize) -> Option<u32> {
        self.range.page_of(address)
    }

    /// Where a page of the view stands.
    #[must_use]
    pub fn address_of(&self, page: u32) -> usize {
        self.range.span(&(page..page + 1)).0
    }

    /// Makes the page read-only: loads go through, stores fault. Whatever it was before.
    pub fn map_read(&self, page: u32) -> io::Result<()> {
        self.opens(&(page..page.saturating_add(1)))?;
        match &self.carrier {
            Carrier::Userfault(userfault) => userfault.map_read(page),
            Carrier::Protections(protections) => protections.grant(page, libc::PROT_READ),
        }
    }

    /// Makes a run of pages readable that have no rights by the caller's books, with as few system calls as the kernel
    /// allows. A page that has rights nevertheless may keep them, or be left with the right to read.
    pub fn map_read_run(&self, pages: Range<u32>) -> io::Result<()> {
        self.opens(&pages)?;
        match &self.carrier {
            Carrier::Userfault(userfault) => userfault.map_read_run(pages),
            Carrier::Protections(protections) => protections.grant_run(pages, libc::PROT_READ),
        }
    }

    /// Makes the page writable. Whatever it was before.
    pub fn map_write(&self, page: u32) -> io::Result<()> {
        self.opens(&(page..page.saturating_add(1)))?;
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
            Carrier::Userfault(userfault) => userfault.invalidate(pages.clone()),
            Carrier::Protections(protections) => protections.withdraw(pages.clone(), libc::PROT_NONE),
        }?;
        self.open.clear(&pages);
        Ok(())
    }

    /// The same for pages in any order, with as few ranges and system calls as the kernel allows: what lies between them goes with them
    /// where it is closed anyhow. Pages given in ascending order cost least. If it fails, some of them are done.
    pub fn invalidate_scattered(&self, pages: &[u32]) -> io::Result<()> {
        for chunk in pages.chunks(CHUNK) {
            let mut sorted = [0; CHUNK];
            let sorted = &mut sorted[..chunk.len()];
            sorted.copy_from_slice(chunk);
            sorted.sort_unstable();
            let last = sorted[sorted.len() - 1];
            self.ready(&(last..last.saturating_add(1)))?;
            let mut ranges = self.open.join(self.range.runs(sorted));
            match &self.carrier {
                Carrier::Userfault(userfault) => userfault.invalidate_ranges(ranges)?,
                Carrier::Protections(protections) => {
                    ranges.try_for_each(|range| protections.withdraw(range, libc::PROT_NONE))?;
                }
            }
            self.range.runs(sorted).for_each(|run| self.open.clear(&run));
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

    /// Likewise, and they are about to be opened.
    fn opens(&self, pages: &Range<u32>) -> io::Result<()> {
        self.ready(pages)?;
        self.open.set(pages);
        Ok(())
    }

    /// True in the process that made the view, false in a child of fork, which has none.
    #[must_use]
    #[inline]
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
