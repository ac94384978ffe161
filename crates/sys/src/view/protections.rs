//! Rights by mprotect: design A of docs/kernel.md, the fallback where userfaultfd is refused.
//!
//! The kernel keeps one mapping per run of pages with equal rights, and lets a process have `vm.max_map_count` of
//! them (65,530 by default); 1 GiB with every second page open would need 262,144. At the limit mprotect says
//! ENOMEM, and then we withdraw rights from more pages than asked, which makes mappings equal and merges them:
//!
//! - in both cases first: the mappings that single pages had for themselves ([`super::apart`]).
//! - to *withdraw*: the aligned 64 KiB around the pages, else 2 MiB, else the whole view. The last needs no new
//!   mapping, so it works at any limit.
//! - to *grant*: an eighth of the view, the next one each time, so that pages just used survive most rounds; after
//!   all eight, the whole view; and if the program itself has eaten every mapping, the ballast.
//!
//! The *ballast* is memory of alternating rights that holds [`BALLAST`] mappings for this moment: a single
//! instruction may need several pages at once (a gather 16, each perhaps across a page border), and without that
//! many mappings each of its faults would close a page that another one opened, for ever.

use super::Pages;
use super::apart::Apart;
use crate::PAGE_BYTES;
use crate::maps::max_map_count;
use crate::memory::{self, Mapping};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// How many mappings a process may have where nobody changed it.
const MAPPINGS: u64 = 65_530;

/// Mappings in reserve: 32 pages (a gather of 16 elements, each across a page border), two mappings for each.
const BALLAST: usize = 64;

/// Aligned runs to try, in pages, before the whole view: 64 KiB and 2 MiB.
const RUNS: [u32; 2] = [16, 512];

/// Parts of the view of which one is given up to win mappings.
const PARTS: u32 = 8;

/// The rights of one view.
#[derive(Debug)]
pub(super) struct Protections {
    range: Pages,
    next_part: AtomicU32,
    coarse: AtomicU64,
    apart: Apart,
    ballast: Option<Ballast>,
}

impl Protections {
    /// For a mapping at `range` that has no rights yet.
    pub(super) fn new(range: Pages) -> io::Result<Self> {
        let apart = Apart::new(range.count, max_map_count().unwrap_or(MAPPINGS))?;
        // A process so short of mappings that it cannot have a ballast is still served, as long as they last.
        let ballast = Ballast::new().ok();
        Ok(Self { range, next_part: AtomicU32::new(0), coarse: AtomicU64::new(0), apart, ballast })
    }

    /// The pages have a window from now on.
    pub(super) fn open_window(&mut self, range: Pages) {
        self.range = range;
    }

    pub(super) fn coarse_invalidations(&self) -> u64 {
        self.coarse.load(Ordering::Relaxed)
    }

    /// Gives one page exactly these rights.
    pub(super) fn grant(&self, page: u32, rights: i32) -> io::Result<()> {
        let pages = page..page + 1;
        if self.set_or_join(&pages, rights)? {
            self.apart.given_alone(self.range, page);
            return Ok(());
        }
        for _ in 0..PARTS {
            self.withdraw_next_part()?;
            if self.set(&pages, rights)? {
                return Ok(());
            }
        }
        self.withdraw_all()?;
        if self.set(&pages, rights)? {
            return Ok(());
        }
        if let Some(ballast) = &self.ballast {
            ballast.release();
        }
        if self.set(&pages, rights)? { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENOMEM)) }
    }

    /// Gives a run of pages exactly these rights; for want of mappings one after the other, and perhaps not to all of them.
    pub(super) fn grant_run(&self, pages: Range<u32>, rights: i32) -> io::Result<()> {
        if self.set_or_join(&pages, rights)? {
            self.apart.given_together(self.range, pages);
            return Ok(());
        }
        pages.into_iter().try_for_each(|page| self.grant(page, rights))
    }

    /// Lowers the rights of pages to these or, for want of mappings, of more pages to none.
    pub(super) fn withdraw(&self, pages: Range<u32>, rights: i32) -> io::Result<()> {
        if pages.is_empty() || self.set_or_join(&pages, rights)? {
            return Ok(());
        }
        for run in RUNS {
            let start = pages.start / run * run;
            let end = pages.end.div_ceil(run).saturating_mul(run).min(self.range.count);
            if self.set(&(start..end), libc::PROT_NONE)? {
                self.coarse.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        }
        self.withdraw_all()
    }

    fn withdraw_next_part(&self) -> io::Result<()> {
        let part = self.next_part.fetch_add(1, Ordering::Relaxed) % PARTS;
        let border = |part: u32| (u64::from(self.range.count) * u64::from(part) / u64::from(PARTS)) as u32;
        let pages = border(part)..border(part + 1);
        // Also when the borders of the part cannot be cut out: the kernel goes from mapping to mapping, and those it
        // passed before it failed are withdrawn.
        if !pages.is_empty() {
            self.set(&pages, libc::PROT_NONE)?;
            self.coarse.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn withdraw_all(&self) -> io::Result<()> {
        self.coarse.fetch_add(1, Ordering::Relaxed);
        let done = self.set(&(0..self.range.count), libc::PROT_NONE)?;
        if done { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENOMEM)) }
    }

    /// The same as [`Self::set`], again if mappings could be won without loss of rights.
    fn set_or_join(&self, pages: &Range<u32>, rights: i32) -> io::Result<bool> {
        Ok(self.set(pages, rights)? || (self.apart.join_all(self.range) && self.set(pages, rights)?))
    }

    /// False if the kernel is out of mappings; the pages may then be changed in part.
    fn set(&self, pages: &Range<u32>, rights: i32) -> io::Result<bool> {
        for piece in self.range.pieces(pages) {
            let (start, bytes) = self.range.pointer(&piece);
            crate::calls::one();
            // SAFETY: the pages lie in the view: checked in `View`, or computed here from its page count. Its rights
            // are ours to change, and whoever uses its addresses is prepared for faults.
            match unsafe { memory::protect(start, bytes, rights) } {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Mappings held back for the worst moment, given up once.
#[derive(Debug)]
struct Ballast {
    mapping: Mapping,
    released: AtomicBool,
}

impl Ballast {
    fn new() -> io::Result<Self> {
        let mapping = Mapping::anonymous(BALLAST * PAGE_BYTES)?;
        for page in (1..BALLAST).step_by(2) {
            mapping.protect(page * PAGE_BYTES..(page + 1) * PAGE_BYTES, libc::PROT_READ)?;
        }
        Ok(Self { mapping, released: AtomicBool::new(false) })
    }

    /// Makes one mapping of it. Needs none itself: its borders are borders already.
    fn release(&self) {
        if !self.released.swap(true, Ordering::Relaxed) {
            // Nothing in it is read or written. A failure shows in the next mprotect of the view.
            let _ = self.mapping.protect(0..self.mapping.bytes(), libc::PROT_NONE);
        }
    }
}
