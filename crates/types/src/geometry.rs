//! How large the parts of a job are. A job decides once, when it starts; what runs it asks.

use crate::nouns::UnitId;

/// Bytes of a page, the grain of the processor's rights and of what a diff describes.
pub const PAGE_BYTES: usize = 4096;

/// The size of a job's units, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitSize {
    log2: u8,
}

impl UnitSize {
    /// One page.
    pub const PAGE: Self = Self { log2: PAGE_BYTES.trailing_zeros() as u8 };
    /// The smallest, a cache line, as fine-grain coherence has it [WRL98 §2.2].
    pub const MIN_BYTES: usize = 64;
    /// The largest.
    pub const MAX_BYTES: usize = 64 << 10;

    /// Units of so many bytes. `None` unless that is a power of two from [`MIN_BYTES`](Self::MIN_BYTES) to
    /// [`MAX_BYTES`](Self::MAX_BYTES).
    #[must_use]
    pub const fn of(bytes: usize) -> Option<Self> {
        if bytes.is_power_of_two() && bytes >= Self::MIN_BYTES && bytes <= Self::MAX_BYTES {
            Some(Self { log2: bytes.trailing_zeros() as u8 })
        } else {
            None
        }
    }

    /// Bytes of a unit.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        1 << self.log2
    }

    /// The unit at an offset from the start of the shared space. `None` if it lies behind the last unit that has a number.
    #[inline]
    #[must_use]
    pub const fn at(self, offset: u64) -> Option<UnitId> {
        let number = offset >> self.log2;
        if number <= u32::MAX as u64 { Some(UnitId(number as u32)) } else { None }
    }

    /// Bytes of so many units.
    #[inline]
    #[must_use]
    pub const fn bytes_of(self, units: usize) -> usize {
        units << self.log2
    }

    /// Units that hold so many bytes.
    #[inline]
    #[must_use]
    pub const fn units_for(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.bytes() as u64)
    }

    /// Does a unit begin here? Of an address or an offset.
    #[inline]
    #[must_use]
    pub const fn divides(self, address: usize) -> bool {
        address & (self.bytes() - 1) == 0
    }

    /// Where in its unit an address or an offset lies.
    #[inline]
    #[must_use]
    pub const fn within(self, address: usize) -> usize {
        address & (self.bytes() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_from_a_line_to_sixteen_pages() {
        let sizes = (0..=1 << 18).filter_map(UnitSize::of);
        assert!(sizes.map(UnitSize::bytes).eq((6..=16).map(|log2| 1 << log2)));
        assert_eq!(UnitSize::of(PAGE_BYTES), Some(UnitSize::PAGE));
    }

    #[test]
    fn every_byte_lies_in_the_unit_that_begins_at_or_before_it() {
        for size in [64, 4096, 65_536].map(|bytes| UnitSize::of(bytes).expect("a power of two")) {
            for offset in [0, 63, 64, 4095, 4096, 65_535, 65_536, (1 << 32) + 77] {
                let unit = size.at(offset).expect("a small offset");
                let start = size.bytes_of(unit.0 as usize) as u64;
                assert!(start <= offset && offset < start + size.bytes() as u64);
                assert_eq!(start + size.within(offset as usize) as u64, offset);
                assert_eq!(size.divides(offset as usize), start == offset);
            }
        }
    }

    #[test]
    fn a_unit_behind_the_last_number_is_none() {
        assert_eq!(UnitSize::PAGE.at((1 << 44) - 1), Some(UnitId(u32::MAX)));
        assert_eq!(UnitSize::PAGE.at(1 << 44), None);
    }

    #[test]
    fn units_hold_the_bytes_that_they_are_for() {
        let size = UnitSize::PAGE;
        assert_eq!([0, 1, 4096, 4097].map(|bytes| size.units_for(bytes)), [0, 1, 1, 2]);
        assert_eq!(size.bytes_of(3), 12_288);
    }
}
