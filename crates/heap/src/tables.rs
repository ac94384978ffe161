//! The heap's memory: integers only, numbers instead of pointers, so that processes can share it at any address.
//!
//! Zeroed memory is an empty heap, and only entries of pages and spans in use are ever touched: of a sparse mapping,
//! nothing else costs memory. References to an entry are its number plus one, and zero is none.

use finespun_types::NODES_MAX;

use crate::layout::ARENAS;

/// Lists of free runs: lengths below 2^30.
pub(crate) const BINS: usize = 224;

/// Sizes of slots.
pub(crate) const CLASSES: usize = 20;

/// What the heap knows as a whole; about 80 KB, of which only the parts in use are touched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// Pages allocated, the one account against the limit.
    pub(crate) used_pages: u64,
    /// Spans that were ever made, and a list of those no longer in use.
    pub(crate) spans_made: u32,
    pub(crate) spans_free: u32,
    /// Spans with a free slot, a list for each node and size class.
    pub(crate) partial: [[u32; CLASSES]; NODES_MAX],
    pub(crate) arenas: [ArenaHeader; ARENAS],
}

impl Header {
    /// An empty heap: all zero.
    pub const EMPTY: Self = Self {
        used_pages: 0,
        spans_made: 0,
        spans_free: 0,
        partial: [[0; CLASSES]; NODES_MAX],
        arenas: [const { ArenaHeader { top: 0, highest: 0, bins_in_use: [0; 4], bins: [0; BINS] } }; ARENAS],
    };
}

/// A part of the space. Its pages from `top` on are free; those below are runs, one behind the other, in use or free.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct ArenaHeader {
    pub top: u32,
    /// The highest `top` ever: pages from there on were never allocated.
    pub highest: u32,
    /// Which lists of free runs are not empty, a bit for each.
    pub bins_in_use: [u64; 4],
    /// Free runs below `top` by length; see `runs`.
    pub bins: [u32; BINS],
}

/// The entry of one page; 16 bytes. Zero but for the first page of a run, the last page of a free run, and the page
/// of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Page {
    kind: u32,
    /// A length in pages, or a span.
    number: u32,
    previous: u32,
    next: u32,
}

/// What a [`Page`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Inside a run, or never used.
    Nothing,
    /// First page of an allocation.
    Run { len: u32 },
    /// First page of a free run, a member of its list.
    Free { len: u32, previous: u32, next: u32 },
    /// Last page of a free run of more than one page.
    FreeEnd { len: u32 },
    /// A page of small allocations.
    Span { span: u32 },
}

impl Page {
    pub(crate) fn entry(self) -> Entry {
        let Self { kind, number, previous, next } = self;
        match kind {
            0 => Entry::Nothing,
            1 => Entry::Run { len: number },
            2 => Entry::Free { len: number, previous, next },
            3 => Entry::FreeEnd { len: number },
            4 => Entry::Span { span: number },
            // Only this module writes the number: another program's store went astray.
            other => panic!("the heap's tables are damaged: a page of kind {other}"),
        }
    }
}

impl From<Entry> for Page {
    fn from(entry: Entry) -> Self {
        let (kind, number, previous, next) = match entry {
            Entry::Nothing => (0, 0, 0, 0),
            Entry::Run { len } => (1, len, 0, 0),
            Entry::Free { len, previous, next } => (2, len, previous, next),
            Entry::FreeEnd { len } => (3, len, 0, 0),
            Entry::Span { span } => (4, span, 0, 0),
        };
        Self { kind, number, previous, next }
    }
}

/// A page of small allocations, all of one size and made by one node; 56 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Span {
    /// A bit for each slot in use.
    pub(crate) slots: [u64; 4],
    pub(crate) page: u32,
    pub(crate) previous: u32,
    pub(crate) next: u32,
    pub(crate) class: u8,
    /// 1 if the page may have been in use before it became this span.
    pub(crate) is_reused: u8,
    pub(crate) node: u16,
    /// Slots in use.
    pub(crate) used: u16,
    /// Slots from here on were never in use.
    pub(crate) highest: u16,
}

const _: () = assert!(size_of::<Page>() == 16 && size_of::<Span>() == 56 && size_of::<Header>() < 80_000);

/// The heap's memory, as the caller has it. All zero is an empty heap. The types are integers in C's layout, aligned
/// to at most 8 bytes, and every pattern of bits is a value: shared memory may be viewed as slices of them.
#[derive(Debug)]
pub struct Tables<'t> {
    /// One.
    pub header: &'t mut Header,
    /// [`Layout::pages`](crate::Layout::pages) of them.
    pub pages: &'t mut [Page],
    /// [`Layout::limit_pages`](crate::Layout::limit_pages) of them.
    pub spans: &'t mut [Span],
}
