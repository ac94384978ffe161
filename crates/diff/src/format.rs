//! The encoded diff: taking it apart without trusting it. See the drawing in the crate's documentation.

use core::fmt;

use crate::{DiffBuffer, LINES};

/// Why bytes are not a diff. They came over a network: nothing was written to the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than the line map and the masks it announces.
    Truncated,
    /// The line map names no line; a clean page has an empty diff instead.
    NoLine,
    /// A mask names no byte; its line should not be in the line map.
    EmptyMask,
    /// The masks name another number of bytes than there are.
    WrongLength {
        /// How many bytes the masks name.
        named: usize,
        /// How many there are.
        present: usize,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the diff is shorter than its masks"),
            Self::NoLine => f.write_str("the diff names no line"),
            Self::EmptyMask => f.write_str("a mask of the diff names no byte"),
            Self::WrongLength { named, present } => {
                write!(f, "the masks of the diff name {named} bytes but {present} are present")
            }
        }
    }
}

impl std::error::Error for Malformed {}

/// A diff that holds what its masks promise.
#[derive(Clone, Copy)]
pub(crate) struct Diff<'a> {
    /// The changed bytes, packed: exactly as many as `masks` has bits set.
    pub bytes: &'a [u8],
    /// The masks, one for each line in `lines`, none zero.
    pub masks: &'a [[u8; 8]],
    /// The lines that changed.
    pub lines: u64,
}

impl<'a> Diff<'a> {
    const CLEAN: Self = Self { bytes: &[], masks: &[], lines: 0 };

    /// Checks everything, so that writing the page need check nothing. Inlined into each implementation, since
    /// counting bits is one instruction there and a dozen in portable code.
    #[inline(always)]
    pub fn parse(diff: &'a [u8]) -> Result<Self, Malformed> {
        if diff.is_empty() {
            return Ok(Self::CLEAN);
        }
        let (rest, map) = diff.split_last_chunk::<8>().ok_or(Malformed::Truncated)?;
        let lines = u64::from_le_bytes(*map);
        if lines == 0 {
            return Err(Malformed::NoLine);
        }
        let mask_bytes = lines.count_ones() as usize * 8;
        let start = rest.len().checked_sub(mask_bytes).ok_or(Malformed::Truncated)?;
        let (bytes, masks) = rest.split_at(start);
        let (masks, _) = masks.as_chunks::<8>();
        let (mut named, mut empty) = (0, false);
        for mask in masks {
            let mask = u64::from_le_bytes(*mask);
            named += mask.count_ones() as usize;
            empty |= mask == 0;
        }
        if empty {
            return Err(Malformed::EmptyMask);
        }
        if named != bytes.len() {
            return Err(Malformed::WrongLength { named, present: bytes.len() });
        }
        Ok(Self { bytes, masks, lines })
    }

    /// The changed lines, in order: number, and mask.
    #[inline(always)]
    pub fn each_line(self) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        let mut rest = self.lines;
        self.masks.iter().map(move |mask| {
            let line = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            (line, u64::from_le_bytes(*mask))
        })
    }
}

/// How many bytes of the page a diff changes, for statistics.
///
/// # Errors
/// [`Malformed`] if it is no diff.
pub fn changed_bytes(diff: &[u8]) -> Result<usize, Malformed> {
    Diff::parse(diff).map(|diff| diff.bytes.len())
}

/// The masks of the lines found so far, while a diff is made.
pub(crate) struct Masks {
    masks: [u64; LINES],
    count: usize,
    lines: u64,
}

impl Masks {
    #[inline(always)]
    pub fn new() -> Self {
        Self { masks: [0; LINES], count: 0, lines: 0 }
    }

    /// Adds a line that changed; lines come in order, each at most once.
    #[inline(always)]
    pub fn push(&mut self, line: usize, mask: u64) {
        // The remainder is the identity, since at most 64 lines are pushed; it saves the bounds check.
        self.masks[self.count % LINES] = mask;
        self.count += 1;
        self.lines |= 1 << line;
    }

    /// Writes the masks and the line map behind the `bytes` packed bytes; returns the length of the diff.
    #[inline(always)]
    pub fn finish(&self, out: &mut DiffBuffer, bytes: usize) -> usize {
        if self.count == 0 {
            return 0;
        }
        let mut end = bytes;
        for mask in self.masks.iter().take(self.count) {
            out.put(end, mask.to_le_bytes());
            end += 8;
        }
        out.put(end, self.lines.to_le_bytes());
        end + 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A diff of two lines with three bytes, as the drawing says.
    fn good() -> Vec<u8> {
        let mut diff = vec![7, 8, 9];
        diff.extend(0b101_u64.to_le_bytes());
        diff.extend(0b10_u64.to_le_bytes());
        diff.extend((1_u64 << 63 | 1).to_le_bytes());
        diff
    }

    #[test]
    fn a_diff_reads_as_the_drawing_says() {
        let bytes = good();
        let diff = Diff::parse(&bytes).unwrap();
        assert_eq!(diff.bytes, [7, 8, 9]);
        assert_eq!(diff.each_line().collect::<Vec<_>>(), [(0, 0b101), (63, 0b10)]);
        assert_eq!(changed_bytes(&bytes), Ok(3));
        assert_eq!(changed_bytes(&[]), Ok(0));
    }

    #[test]
    fn every_shortening_and_lengthening_is_refused() {
        let bytes = good();
        for len in 1..bytes.len() {
            assert!(changed_bytes(&bytes[..len]).is_err(), "first {len} bytes");
            assert!(changed_bytes(&bytes[len..]).is_err(), "without the first {len} bytes");
        }
        let longer = [&[1], &bytes[..]].concat();
        assert_eq!(changed_bytes(&longer), Err(Malformed::WrongLength { named: 3, present: 4 }));
    }

    #[test]
    fn zero_masks_and_zero_line_maps_are_refused() {
        assert_eq!(changed_bytes(&[0; 8]), Err(Malformed::NoLine));
        let mut zero_mask = vec![0; 8];
        zero_mask.extend(1_u64.to_le_bytes());
        assert_eq!(changed_bytes(&zero_mask), Err(Malformed::EmptyMask));
    }
}
