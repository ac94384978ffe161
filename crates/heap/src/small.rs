//! Small allocations: pages of slots of one size, at most [`SLOTS_MAX`].
//!
//! A page of slots, a *span*, belongs to the node that asked first, and only that node's allocations go there: two
//! nodes that write small objects of their own never write the same page.

use finespun_types::NodeId;

use crate::tables::{CLASSES, Header, Span};

/// Sizes of slots. A size wastes less than a quarter of its slot, from 65 bytes to 1,360, and below at most 15
/// bytes; as many slots as possible fill a page.
const SLOT_BYTES: [u16; CLASSES] =
    [16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 336, 400, 512, 672, 816, 1024, 1360, 2048];

/// The most slots of a page: as many as a span has bits. Pages of memory have no more; larger ones leave room over.
pub(crate) const SLOTS_MAX: u16 = 256;

/// The largest slot; larger allocations are whole pages.
const LARGEST: u64 = SLOT_BYTES[CLASSES - 1] as u64;

/// For sizes in steps of 16 bytes: the first class that holds them.
static CLASS_OF: [u8; LARGEST as usize / 16 + 1] = {
    let mut table = [0; LARGEST as usize / 16 + 1];
    let (mut granules, mut class) = (0, 0);
    while granules < table.len() {
        if granules * 16 > SLOT_BYTES[class as usize] as usize {
            class += 1;
        }
        table[granules] = class;
        granules += 1;
    }
    table
};

/// The class for a size and an alignment, if slots can have both. Spans begin at a page, so slots are aligned to
/// every power of two that divides their size.
pub(crate) fn class_for(size: u64, align: u64) -> Option<usize> {
    if size > LARGEST || align > LARGEST {
        return None;
    }
    let first = usize::from(CLASS_OF[size.div_ceil(16) as usize]);
    (first..CLASSES).find(|class| u64::from(SLOT_BYTES[*class]).is_multiple_of(align))
}

impl Span {
    /// A span in a page that may have been in use before.
    pub(crate) fn new(page: u32, class: usize, node: NodeId, is_reused: bool) -> Self {
        let (class, node) = (class as u8, node.0);
        Self { page, class, node, is_reused: u8::from(is_reused), ..Self::default() }
    }

    pub(crate) fn slot_bytes(&self) -> u64 {
        u64::from(SLOT_BYTES[usize::from(self.class)])
    }

    /// Slots in a page of so many bytes.
    fn capacity(&self, page: u64) -> u16 {
        (page / self.slot_bytes()).min(u64::from(SLOTS_MAX)) as u16
    }

    pub(crate) fn is_full(&self, page: u64) -> bool {
        self.used == self.capacity(page)
    }

    /// Takes the lowest free slot of a span that is not full. Its offset in the page, and whether it may have been in use before.
    pub(crate) fn take(&mut self) -> (u64, bool) {
        let word = self.slots.iter().position(|word| *word != u64::MAX).expect("the span is not full");
        let bit = self.slots[word].trailing_ones();
        self.slots[word] |= 1 << bit;
        let slot = 64 * word as u16 + bit as u16;
        self.used += 1;
        let is_reused = self.is_reused != 0 || slot < self.highest;
        self.highest = self.highest.max(slot + 1);
        (u64::from(slot) * self.slot_bytes(), is_reused)
    }

    /// Frees the slot that begins at an offset in the page.
    pub(crate) fn give(&mut self, offset: u64) {
        let slot = offset / self.slot_bytes();
        self.slots[slot as usize / 64] &= !(1 << (slot % 64));
        self.used -= 1;
    }

    /// The slot at an offset in the page.
    pub(crate) fn slot_at(&self, offset: u64) -> Slot {
        let slot = offset / self.slot_bytes();
        if slot >= u64::from(self.highest) {
            Slot::NeverUsed
        } else if self.slots[slot as usize / 64] >> (slot % 64) & 1 == 0 {
            Slot::Free
        } else {
            Slot::InUse { start: slot * self.slot_bytes() }
        }
    }
}

/// What lies at an offset of a span.
pub(crate) enum Slot {
    NeverUsed,
    Free,
    InUse { start: u64 },
}

/// The spans, and the lists of those with free slots.
pub(crate) struct Spans<'t> {
    pub header: &'t mut Header,
    pub spans: &'t mut [Span],
    /// Bytes of a page.
    pub page: u64,
}

impl Spans<'_> {
    /// A span with a free slot.
    pub fn partial(&self, node: NodeId, class: usize) -> Option<u32> {
        self.header.partial[usize::from(node.0)][class].checked_sub(1)
    }

    /// Adds a span, with free slots; returns its number.
    pub fn add(&mut self, span: Span) -> u32 {
        let index = match self.header.spans_free.checked_sub(1) {
            Some(index) => {
                self.header.spans_free = self.spans[index as usize].next;
                index
            }
            None => {
                self.header.spans_made += 1;
                self.header.spans_made - 1
            }
        };
        self.spans[index as usize] = span;
        self.link(index);
        index
    }

    /// Takes a slot of a span with free slots. Its offset in the page, and whether it may have been in use before.
    pub fn take(&mut self, index: u32) -> (u64, bool) {
        let taken = self.spans[index as usize].take();
        if self.spans[index as usize].is_full(self.page) {
            self.unlink(index);
        }
        taken
    }

    /// Frees a slot; is the span empty now, and gone?
    pub fn give(&mut self, index: u32, offset: u64) -> bool {
        let was_full = self.spans[index as usize].is_full(self.page);
        self.spans[index as usize].give(offset);
        if was_full {
            self.link(index);
        }
        if self.spans[index as usize].used > 0 {
            return false;
        }
        self.unlink(index);
        self.spans[index as usize] = Span { next: self.header.spans_free, ..Span::default() };
        self.header.spans_free = index + 1;
        true
    }

    /// The head of the list where a span belongs while it has free slots.
    fn head(&mut self, index: u32) -> &mut u32 {
        let Span { node, class, .. } = self.spans[index as usize];
        &mut self.header.partial[usize::from(node)][usize::from(class)]
    }

    fn link(&mut self, index: u32) {
        let next = core::mem::replace(self.head(index), index + 1);
        if let Some(next) = next.checked_sub(1) {
            self.spans[next as usize].previous = index + 1;
        }
        let span = &mut self.spans[index as usize];
        (span.previous, span.next) = (0, next);
    }

    fn unlink(&mut self, index: u32) {
        let Span { previous, next, .. } = self.spans[index as usize];
        match previous.checked_sub(1) {
            None => *self.head(index) = next,
            Some(previous) => self.spans[previous as usize].next = next,
        }
        if let Some(next) = next.checked_sub(1) {
            self.spans[next as usize].previous = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use finespun_types::PAGE_BYTES;

    use super::*;

    #[test]
    fn every_small_size_gets_an_aligned_slot_with_little_waste() {
        for size in 1..=1360 {
            let slot = u64::from(SLOT_BYTES[class_for(size, 16).unwrap()]);
            let waste = slot - size;
            assert!(slot >= size && (waste < 16 || 4 * waste < slot), "{size} in {slot}");
        }
        for align in [16, 32, 64, 128, 256, 512, 1024, 2048] {
            for size in [1, 17, 100, 1000, 2048] {
                let slot = SLOT_BYTES[class_for(size, align).unwrap()];
                assert!(u64::from(slot) >= size && u64::from(slot).is_multiple_of(align));
            }
        }
        assert_eq!(class_for(2049, 16), None);
        assert_eq!(class_for(1, 4096), None);
    }

    #[test]
    fn slots_leave_less_than_a_sixteenth_of_a_page_unused() {
        assert!(SLOT_BYTES.iter().all(|slot| PAGE_BYTES as u16 % slot < PAGE_BYTES as u16 / 16));
    }
}
