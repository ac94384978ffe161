//! The shared heap: where allocations lie in the shared space.
//!
//! A pure data structure over plain memory that the caller provides ([`Tables`]), all-zero at first. The processes
//! of a node map it at different addresses and use it one at a time, under a lock of the caller's; nothing in it is
//! a pointer. It never touches the shared memory itself: an allocation is an offset in the space.
//!
//! - [`Layout`]: the address of a page says how it gets its home, by arithmetic.
//! - Whole pages are runs with free runs joined (`runs`); sizes up to 2 KiB are slots in pages of one node (`small`).
//! - Every page in use counts against the limit, in one place: `Heap::charge`.
//!
//! Every operation takes a bounded number of steps, but for naming the allocation around a wrong pointer.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod layout;
mod runs;
mod small;
mod tables;

pub use layout::{BLOCK_LOG2_MAX, LIMIT_PAGES_MAX, Layout, Policy};
pub use tables::{Header, Page, Span, Tables};

use core::fmt;
use core::ops::Range;

use finespun_types::{NodeId, PAGE_BYTES};

use crate::layout::{Arena, STEP_PAGES};
use crate::runs::Runs;
use crate::small::{Slot, Spans, class_for};
use crate::tables::Entry;

/// The smallest alignment, that of every allocation.
pub const ALIGN_MIN: u64 = 16;

/// The largest alignment that can be asked for, 2 MiB.
pub const ALIGN_MAX: u64 = STEP_PAGES as u64 * PAGE_BYTES as u64;

/// An allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Where it begins, in bytes from the start of the space.
    pub offset: u64,
    /// How many bytes may be used, at least as many as asked for.
    pub usable: u64,
    /// How many of them, from the first on, an earlier allocation may have had. No allocation has had the others.
    pub reused: u64,
    /// The policy that its pages have: the one asked for, unless that one's part of the space was full.
    pub policy: Policy,
}

/// What was freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The usable bytes of the allocation.
    pub usable: u64,
    /// The pages that now hold nothing: their frames can be given back. Empty when other small allocations remain.
    pub pages: Range<u32>,
}

/// Why an offset cannot be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFree {
    /// It lies behind the space.
    Outside,
    /// No allocation was ever there.
    NeverAllocated,
    /// What was there is free already.
    AlreadyFreed,
    /// It points into an allocation.
    Interior {
        /// Where that allocation begins, which is what could be freed.
        start: u64,
    },
}

impl fmt::Display for BadFree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside => f.write_str("it lies outside the shared heap"),
            Self::NeverAllocated => f.write_str("no allocation was ever there"),
            Self::AlreadyFreed => f.write_str("it is free already"),
            Self::Interior { start } => write!(f, "it points into the allocation that begins at offset {start:#x}"),
        }
    }
}

impl core::error::Error for BadFree {}

/// A live allocation, found by its offset.
enum Live {
    Run { arena: Arena, start: u32, len: u32 },
    Slot { span: u32, page: u32, offset: u64, bytes: u64 },
}

/// The heap, for as long as the caller holds its lock.
#[derive(Debug)]
pub struct Heap<'t> {
    layout: Layout,
    tables: Tables<'t>,
}

impl<'t> Heap<'t> {
    /// The heap in `tables`. Costs nothing: nothing is read or set up.
    ///
    /// # Panics
    /// If the tables are shorter than the layout asks for.
    #[must_use]
    pub fn new(layout: Layout, tables: Tables<'t>) -> Self {
        assert!(tables.pages.len() >= layout.pages() as usize, "the table of pages covers the space");
        assert!(tables.spans.len() >= layout.limit_pages() as usize, "every page may be a span");
        Self { layout, tables }
    }

    /// Allocates `size` bytes (0 counts as 1) for a processor of `node`. Memory by first touch may share pages with
    /// other allocations of this node; memory of the other policies is whole pages.
    ///
    /// When a policy's part of the space is full, another one's is taken: for dealt memory smaller blocks, then
    /// larger ones; at last, first touch. `None` if memory is exhausted, or too scattered, or the alignment is not
    /// a power of two up to [`ALIGN_MAX`], or a node or block size does not exist.
    pub fn alloc(&mut self, size: u64, align: u64, policy: Policy, node: NodeId) -> Option<Placement> {
        let is_sound = align.is_power_of_two() && align <= ALIGN_MAX && self.layout.has(policy);
        if !is_sound || u32::from(node.0) >= self.layout.nodes() {
            return None;
        }
        let (size, align) = (size.max(1), align.max(ALIGN_MIN));
        if policy == Policy::FirstTouch
            && let Some(class) = class_for(size, align)
        {
            return self.alloc_slot(class, node);
        }
        let page = self.page();
        let len = u32::try_from(size.div_ceil(page)).ok()?;
        let align_pages = (align / page).max(1) as u32;
        preferences(policy).find_map(|policy| self.alloc_run(len, align_pages, policy))
    }

    /// Frees the allocation that begins at `offset`.
    ///
    /// # Errors
    /// [`BadFree`] says why there is none; nothing changes then.
    pub fn free(&mut self, offset: u64) -> Result<Freed, BadFree> {
        match self.live(offset)? {
            Live::Run { arena, start, len } => {
                self.runs(arena).give(start - arena.start, len);
                self.refund(len);
                Ok(Freed { usable: u64::from(len) * self.page(), pages: start..start + len })
            }
            Live::Slot { span, page, offset, bytes } => {
                if !self.spans().give(span, offset) {
                    return Ok(Freed { usable: bytes, pages: page..page });
                }
                self.runs(self.layout.arena(Policy::FirstTouch)).give(page, 1);
                self.refund(1);
                Ok(Freed { usable: bytes, pages: page..page + 1 })
            }
        }
    }

    /// The usable bytes of the allocation that begins at `offset`; `None` if there is none.
    #[must_use]
    pub fn usable(&mut self, offset: u64) -> Option<u64> {
        match self.live(offset).ok()? {
            Live::Run { len, .. } => Some(u64::from(len) * self.page()),
            Live::Slot { bytes, .. } => Some(bytes),
        }
    }

    /// Bytes of all pages in use: what counts against the limit.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.tables.header.used_pages * self.page()
    }

    /// The largest size that could be allocated now by first touch. For messages: it looks at every free run of about
    /// the largest length.
    #[must_use]
    pub fn largest_free(&mut self) -> u64 {
        let unused = u64::from(self.layout.limit_pages()) - self.tables.header.used_pages;
        let longest = self.runs(self.layout.arena(Policy::FirstTouch)).longest();
        unused.min(u64::from(longest)) * self.page()
    }

    fn alloc_run(&mut self, len: u32, align_pages: u32, policy: Policy) -> Option<Placement> {
        if !self.has_room(len) {
            return None;
        }
        let arena = self.layout.arena(policy);
        // Other parts begin at a multiple of every alignment; dealt memory begins with a block of node 0.
        let step = match policy {
            Policy::FirstTouch | Policy::On(_) => align_pages,
            Policy::Cyclic { block_pages_log2 } => lcm(self.layout.nodes() << block_pages_log2, align_pages),
        };
        let (first, reused) = self.runs(arena).take(len, step)?;
        self.charge(len);
        let page = self.page();
        let bytes = |pages: u32| u64::from(pages) * page;
        Some(Placement { offset: bytes(arena.start + first), usable: bytes(len), reused: bytes(reused), policy })
    }

    fn alloc_slot(&mut self, class: usize, node: NodeId) -> Option<Placement> {
        let span = match self.spans().partial(node, class) {
            Some(span) => span,
            None => self.add_span(class, node)?,
        };
        let (slot, is_reused) = self.spans().take(span);
        let Span { page, .. } = self.tables.spans[span as usize];
        let usable = self.tables.spans[span as usize].slot_bytes();
        let reused = if is_reused { usable } else { 0 };
        Some(Placement { offset: u64::from(page) * self.page() + slot, usable, reused, policy: Policy::FirstTouch })
    }

    fn add_span(&mut self, class: usize, node: NodeId) -> Option<u32> {
        if !self.has_room(1) {
            return None;
        }
        let arena = self.layout.arena(Policy::FirstTouch);
        let (page, reused) = self.runs(arena).take(1, 1)?;
        self.charge(1);
        let span = self.spans().add(Span::new(page, class, node, reused > 0));
        self.runs(arena).set(page, Entry::Span { span });
        Some(span)
    }

    /// The live allocation that begins at `offset`.
    fn live(&mut self, offset: u64) -> Result<Live, BadFree> {
        let bytes = self.page();
        let page = u32::try_from(offset / bytes).map_err(|_| BadFree::Outside)?;
        if page >= self.layout.pages() {
            return Err(BadFree::Outside);
        }
        let arena = self.layout.arena(self.layout.policy_of(page));
        let runs = self.runs(arena);
        match runs.entry(page - arena.start) {
            Some(Entry::Run { len }) if offset.is_multiple_of(bytes) => Ok(Live::Run { arena, start: page, len }),
            Some(Entry::Run { .. }) => Err(BadFree::Interior { start: u64::from(page) * bytes }),
            Some(Entry::Span { span }) => self.live_slot(span, page, offset),
            Some(Entry::Free { .. } | Entry::FreeEnd { .. }) => Err(BadFree::AlreadyFreed),
            Some(Entry::Nothing) => match runs.containing(page - arena.start) {
                Some((start, Entry::Run { .. })) => {
                    Err(BadFree::Interior { start: u64::from(arena.start + start) * bytes })
                }
                Some((_, Entry::Nothing | Entry::Free { .. } | Entry::FreeEnd { .. } | Entry::Span { .. })) | None => {
                    Err(BadFree::AlreadyFreed)
                }
            },
            None if page - arena.start < runs.arena.highest => Err(BadFree::AlreadyFreed),
            None => Err(BadFree::NeverAllocated),
        }
    }

    fn live_slot(&self, span: u32, page: u32, offset: u64) -> Result<Live, BadFree> {
        let (in_page, slots) = (offset % self.page(), self.tables.spans[span as usize]);
        match slots.slot_at(in_page) {
            Slot::NeverUsed => Err(BadFree::NeverAllocated),
            Slot::Free => Err(BadFree::AlreadyFreed),
            Slot::InUse { start } if start == in_page => {
                Ok(Live::Slot { span, page, offset: in_page, bytes: slots.slot_bytes() })
            }
            Slot::InUse { start } => Err(BadFree::Interior { start: u64::from(page) * self.page() + start }),
        }
    }

    /// Bytes of a page.
    #[must_use]
    pub const fn page(&self) -> u64 {
        self.layout.page().bytes() as u64
    }

    fn runs(&mut self, arena: Arena) -> Runs<'_> {
        let pages = arena.start as usize..(arena.start + arena.pages) as usize;
        Runs { arena: &mut self.tables.header.arenas[arena.index], pages: &mut self.tables.pages[pages] }
    }

    fn spans(&mut self) -> Spans<'_> {
        Spans { page: self.page(), header: &mut *self.tables.header, spans: &mut *self.tables.spans }
    }

    fn has_room(&self, pages: u32) -> bool {
        self.tables.header.used_pages + u64::from(pages) <= u64::from(self.layout.limit_pages())
    }

    fn charge(&mut self, pages: u32) {
        self.tables.header.used_pages += u64::from(pages);
    }

    fn refund(&mut self, pages: u32) {
        self.tables.header.used_pages -= u64::from(pages);
    }
}

/// The policies to try, the one asked for first.
fn preferences(policy: Policy) -> impl Iterator<Item = Policy> {
    let others = match policy {
        Policy::FirstTouch | Policy::On(_) => 0..0,
        Policy::Cyclic { .. } => 0..BLOCK_LOG2_MAX + 1,
    };
    let asked = match policy {
        Policy::FirstTouch | Policy::On(_) => 0,
        Policy::Cyclic { block_pages_log2 } => block_pages_log2,
    };
    let smaller = others.clone().filter(move |log2| *log2 < asked).rev();
    let larger = others.filter(move |log2| *log2 > asked);
    let dealt = smaller.chain(larger).map(|block_pages_log2| Policy::Cyclic { block_pages_log2 });
    let last = (policy != Policy::FirstTouch).then_some(Policy::FirstTouch);
    [policy].into_iter().chain(dealt).chain(last)
}

/// The least common multiple of a number of pages and a power of two.
fn lcm(pages: u32, power: u32) -> u32 {
    let missing = power.trailing_zeros().saturating_sub(pages.trailing_zeros());
    pages << missing
}

#[cfg(test)]
mod tests {
    use finespun_types::UnitSize;
    use std::boxed::Box;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn an_emptied_heap_has_no_list_left() {
        let layout = Layout::new(4096, 2, UnitSize::PAGE).unwrap();
        let mut header = Box::new(Header::EMPTY);
        let mut pages = vec![Page::default(); layout.pages() as usize];
        let mut spans = vec![Span::default(); layout.limit_pages() as usize];
        let tables = Tables { header: &mut header, pages: &mut pages, spans: &mut spans };
        let mut heap = Heap::new(layout, tables);
        let policies = [Policy::FirstTouch, Policy::On(NodeId(1)), Policy::Cyclic { block_pages_log2: 2 }];
        let sizes = [1, 700, 700, 2048, 4096, 50_000, 9000, 200_000];
        let requests = policies.into_iter().flat_map(|policy| sizes.map(|size| (size, policy)));
        let mut live: Vec<u64> =
            requests.map(|(size, policy)| heap.alloc(size, 1, policy, NodeId(0)).unwrap().offset).collect();
        // Every other one first, so that there are free runs of many lengths to join.
        let second: Vec<u64> = live.iter().copied().skip(1).step_by(2).collect();
        live.retain(|offset| !second.contains(offset));
        for offset in second.into_iter().chain(live) {
            heap.free(offset).unwrap();
        }
        // What may stay: marks of what was ever in use, and unused spans kept for the next.
        assert!(header.spans_made > 0 && header.arenas[0].highest > 0);
        (header.spans_made, header.spans_free) = (0, 0);
        header.arenas.iter_mut().for_each(|arena| arena.highest = 0);
        assert_eq!(*header, Header::EMPTY);
    }
}
