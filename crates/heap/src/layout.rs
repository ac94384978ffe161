//! The address says the home: which part of the shared space belongs to which home policy.
//!
//! ```text
//! page 0            L                  2 L                  2.5 L                         4 L
//! +-----------------+------------------+--------------------+------+------+-- ... --+------+
//! | first touch     | on 0 | on 1 | .. | dealt by 1 page    | by 2 | by 4 |         | 4096 |
//! +-----------------+------------------+--------------------+------+------+-- ... --+------+
//!   L pages           L / nodes each     L / 2                L / 8 each
//! ```
//!
//! L is the limit. Every node computes a page's home from this alone, without a table and without asking. Every part
//! begins at a multiple of 2 MiB if pages are of 4 KiB, so the whole is 4 L and at most one such step for each part.
//!
//! The parts are address space, not memory: memory is counted against the limit in one place, wherever it lies. Not
//! every part can be as large as the limit, as there would be 78 of them and page numbers are 32 bits. First touch
//! has room for everything. A node's part is its even share, so a program that spreads its data evenly can fill the
//! heap so. When a part is full although memory is left, the allocation goes elsewhere (`Heap::alloc` says where):
//! the home of a page decides the speed of a program, never its result.

use finespun_types::{NODES_MAX, NodeId, PAGE_BYTES, UnitSize};

/// Parts begin at multiples of this many pages, 2 MiB of the smallest: the largest alignment an allocation can ask for.
pub(crate) const STEP_PAGES: u32 = 512;

/// The largest block in which memory is dealt to nodes: 2^12 pages.
pub const BLOCK_LOG2_MAX: u8 = 12;

/// The largest limit: 2^28 pages, 1 TiB of the smallest.
pub const LIMIT_PAGES_MAX: u32 = 1 << 28;

/// Parts of the space: first touch, one for each node, one for each block size.
pub(crate) const ARENAS: usize = 1 + NODES_MAX + 1 + BLOCK_LOG2_MAX as usize;

/// How pages get their home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The first node to touch the page becomes its home.
    FirstTouch,
    /// This node.
    On(NodeId),
    /// Dealt to the nodes in blocks, block-cyclic; the first block is at node 0.
    Cyclic {
        /// A block has 2 to this power pages; at most [`BLOCK_LOG2_MAX`].
        block_pages_log2: u8,
    },
}

/// Which part of the space has which policy. A value to copy: every process makes the same from the job's limit and
/// number of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    page: UnitSize,
    limit: u32,
    nodes: u32,
    /// Pages of one node's part.
    on_each: u32,
    /// Where the part dealt page by page begins, its length, and the length of those with larger blocks.
    cyclic_start: u32,
    cyclic_first: u32,
    cyclic_each: u32,
}

/// A part: its place among the tables of parts, and its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arena {
    pub index: usize,
    pub start: u32,
    pub pages: u32,
}

impl Layout {
    /// The layout for a limit in pages of a size, rounded up to a part's beginning, and a number of nodes. `None` unless both are at
    /// least 1 and at most [`LIMIT_PAGES_MAX`] and [`NODES_MAX`], and a page of the heap is at least a page of memory.
    #[must_use]
    pub fn new(limit_pages: u32, nodes: u32, page: UnitSize) -> Option<Self> {
        if page.bytes() < PAGE_BYTES {
            return None;
        }
        if !(1..=LIMIT_PAGES_MAX).contains(&limit_pages) || !(1..=NODES_MAX as u32).contains(&nodes) {
            return None;
        }
        let round = |pages: u32| pages.next_multiple_of(STEP_PAGES);
        let limit = round(limit_pages);
        let on_each = round(limit.div_ceil(nodes));
        Some(Self {
            page,
            limit,
            nodes,
            on_each,
            cyclic_start: limit + nodes * on_each,
            cyclic_first: round(limit / 2),
            cyclic_each: round(limit / 8),
        })
    }

    /// The size of a page: the unit of coherence, since homes are the units'.
    #[must_use]
    pub const fn page(&self) -> UnitSize {
        self.page
    }

    /// The limit of memory, in pages, after rounding.
    #[must_use]
    pub const fn limit_pages(&self) -> u32 {
        self.limit
    }

    /// The nodes among which memory is dealt.
    #[must_use]
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The length of the space: page numbers are below this. The table of pages has as many entries.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.cyclic_start + self.cyclic_first + BLOCK_LOG2_MAX as u32 * self.cyclic_each
    }

    /// The policy of a page of the space; [`Policy::FirstTouch`] outside of it.
    #[inline]
    #[must_use]
    pub fn policy_of(&self, page: u32) -> Policy {
        if page < self.limit || page >= self.pages() {
            Policy::FirstTouch
        } else if page < self.cyclic_start {
            Policy::On(NodeId::of(((page - self.limit) / self.on_each) as usize))
        } else {
            Policy::Cyclic { block_pages_log2: self.block_log2_of(page) }
        }
    }

    /// The home of a page, if its address decides it: `None` for memory homed by first touch.
    #[inline]
    #[must_use]
    pub fn home_of(&self, page: u32) -> Option<NodeId> {
        match self.policy_of(page) {
            Policy::FirstTouch => None,
            Policy::On(node) => Some(node),
            Policy::Cyclic { block_pages_log2: log2 } => {
                let block = (page - self.cyclic_start_of(log2)) >> log2;
                Some(NodeId::of((block % self.nodes) as usize))
            }
        }
    }

    fn block_log2_of(&self, page: u32) -> u8 {
        let at = page - self.cyclic_start;
        if at < self.cyclic_first { 0 } else { (1 + (at - self.cyclic_first) / self.cyclic_each) as u8 }
    }

    fn cyclic_start_of(&self, block_log2: u8) -> u32 {
        match block_log2 {
            0 => self.cyclic_start,
            larger => self.cyclic_start + self.cyclic_first + (u32::from(larger) - 1) * self.cyclic_each,
        }
    }

    /// Does the policy name a node and a block size that exist?
    pub(crate) fn has(&self, policy: Policy) -> bool {
        match policy {
            Policy::FirstTouch => true,
            Policy::On(node) => u32::from(node.0) < self.nodes,
            Policy::Cyclic { block_pages_log2 } => block_pages_log2 <= BLOCK_LOG2_MAX,
        }
    }

    /// The part of a policy that [exists](Self::has).
    pub(crate) fn arena(&self, policy: Policy) -> Arena {
        match policy {
            Policy::FirstTouch => Arena { index: 0, start: 0, pages: self.limit },
            Policy::On(node) => {
                let start = self.limit + u32::from(node.0) * self.on_each;
                Arena { index: 1 + usize::from(node.0), start, pages: self.on_each }
            }
            Policy::Cyclic { block_pages_log2: log2 } => {
                let pages = if log2 == 0 { self.cyclic_first } else { self.cyclic_each };
                Arena { index: 1 + NODES_MAX + usize::from(log2), start: self.cyclic_start_of(log2), pages }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts() -> impl Iterator<Item = Layout> {
        let limits = [1, 512, 513, 4096, 100_000, 1 << 20, LIMIT_PAGES_MAX - 1, LIMIT_PAGES_MAX];
        limits
            .into_iter()
            .flat_map(|limit| [1, 2, 3, 7, 8, 63, 64].map(|nodes| Layout::new(limit, nodes, UnitSize::PAGE).unwrap()))
    }

    fn policies(layout: Layout) -> impl Iterator<Item = Policy> {
        let on = (0..layout.nodes as u16).map(|node| Policy::On(NodeId(node)));
        let cyclic = (0..=BLOCK_LOG2_MAX).map(|block_pages_log2| Policy::Cyclic { block_pages_log2 });
        [Policy::FirstTouch].into_iter().chain(on).chain(cyclic)
    }

    #[test]
    fn the_parts_tile_the_space_in_order_and_pages_know_their_part() {
        for layout in layouts() {
            let mut end = 0;
            for policy in policies(layout) {
                let arena = layout.arena(policy);
                assert_eq!(arena.start, end, "{policy:?} of {layout:?}");
                assert!(arena.pages > 0 && arena.start.is_multiple_of(STEP_PAGES));
                end = arena.start + arena.pages;
                for page in [arena.start, arena.start + arena.pages / 2, end - 1] {
                    assert_eq!(layout.policy_of(page), policy, "page {page} of {layout:?}");
                }
            }
            assert_eq!(end, layout.pages());
        }
    }

    #[test]
    fn the_space_is_four_times_the_limit_and_at_most_two_mib_a_part() {
        for layout in layouts() {
            let parts = 1 + u64::from(layout.nodes) + 13;
            let small = parts * u64::from(STEP_PAGES);
            assert!(u64::from(layout.pages()) <= 4 * u64::from(layout.limit_pages()) + small, "{layout:?}");
        }
    }

    #[test]
    fn homes_follow_from_the_address() {
        let layout = Layout::new(1 << 16, 3, UnitSize::PAGE).unwrap();
        assert_eq!(layout.home_of(5), None);
        let at = |policy, page| layout.home_of(layout.arena(policy).start + page);
        assert_eq!(at(Policy::On(NodeId(2)), 100), Some(NodeId(2)));
        for log2 in 0..=BLOCK_LOG2_MAX {
            let policy = Policy::Cyclic { block_pages_log2: log2 };
            let pages = layout.arena(policy).pages;
            for block in 0..9.min(pages >> log2) {
                let expected = Some(NodeId::of((block % 3) as usize));
                assert_eq!(at(policy, block << log2), expected);
                assert_eq!(at(policy, (block << log2) + (1 << log2) - 1), expected);
            }
        }
        assert_eq!(layout.home_of(layout.pages()), None);
    }

    #[test]
    fn impossible_jobs_have_no_layout() {
        for (limit, nodes) in [(0, 1), (1, 0), (LIMIT_PAGES_MAX + 1, 1), (1, 65)] {
            assert_eq!(Layout::new(limit, nodes, UnitSize::PAGE), None);
        }
        assert_eq!(UnitSize::of(PAGE_BYTES / 2).and_then(|page| Layout::new(1, 1, page)), None);
    }
}
