//! The portable implementation: 64-bit words. The AVX2 one shares its stores.

use std::ptr;

use crate::format::{Diff, Malformed, Masks};
use crate::{DiffBuffer, LINE_BYTES, LINES};

const WORDS: usize = LINE_BYTES / 8;
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const ALL_BUT_HIGH: u64 = 0x7f7f_7f7f_7f7f_7f7f;
/// The lowest bit of each group of four in a mask: one for each aligned 4-byte word of the line.
const QUADS: u64 = 0x1111_1111_1111_1111;

/// One bit for each byte of `difference` that is not zero, the lowest byte first.
#[inline]
fn changed(difference: u64) -> u64 {
    // Adding 0x7f carries into a byte's high bit when one of its low seven bits is set.
    let high = ((difference & ALL_BUT_HIGH) + ALL_BUT_HIGH) | difference;
    // The product moves bit 8 i to bit 56 + i; no two partial products meet.
    (high >> 7 & LOW_BITS).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// A line, read once, and which of its bytes differ from the other line.
///
/// # Safety
/// `new` and `old` are valid for reads of a line and aligned to it; only `new` may be written by others.
#[inline(always)]
unsafe fn compare(new: *const u8, old: *const u8) -> ([u64; WORDS], u64) {
    let (new, old) = (new.cast::<u64>(), old.cast::<u64>());
    let (mut words, mut differences, mut any) = ([0; WORDS], [0; WORDS], 0);
    for word in 0..WORDS {
        // SAFETY: eight aligned words within the line. Volatile because others may write it: see the module above.
        // To little-endian, so that byte i of memory is byte i of the number.
        words[word] = unsafe { ptr::read_volatile(new.add(word)) }.to_le();
        // SAFETY: likewise, and nobody writes these.
        differences[word] = words[word] ^ unsafe { old.add(word).read() }.to_le();
        any |= differences[word];
    }
    // Most lines are clean. One branch for all eight words, since a branch for each cannot be guessed.
    if any == 0 {
        return (words, 0);
    }
    let mask = differences.iter().rev().fold(0, |mask, difference| mask << 8 | changed(*difference));
    (words, mask)
}

/// # Safety
/// `line` is valid for writes of a line that is ours alone, and aligned to it.
#[inline]
unsafe fn write_own_line(line: *mut u8, words: [u64; WORDS]) {
    // SAFETY: a whole aligned line, by the contract.
    unsafe { line.cast::<[u64; WORDS]>().write(words.map(u64::from_le)) }
}

/// The bytes of a line as memory has them.
#[inline]
fn bytes_of(words: [u64; WORDS]) -> [u8; LINE_BYTES] {
    let mut bytes = [0; LINE_BYTES];
    for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}

/// # Safety
/// As `super::make`, with REFRESH as `super::make_and_refresh`.
pub unsafe fn make<const REFRESH: bool>(page: *const u8, twin: *mut u8, out: &mut DiffBuffer) -> usize {
    let (mut masks, mut end) = (Masks::new(), 0);
    for line in 0..LINES {
        let at = line * LINE_BYTES;
        // SAFETY: line `line` of two aligned units.
        let (new, mask) = unsafe { compare(page.add(at), twin.add(at)) };
        if mask != 0 {
            if REFRESH {
                // SAFETY: the same line of the twin, which the caller lets us write.
                unsafe { write_own_line(twin.add(at), new) };
            }
            masks.push(line, mask);
            end = pack_line(&new, mask, out, end);
        }
    }
    masks.finish(out, end)
}

/// Puts the bytes that `mask` names behind the `end` bytes of `out`.
#[inline]
fn pack_line(words: &[u64; WORDS], mask: u64, out: &mut DiffBuffer, mut end: usize) -> usize {
    for (word, group) in words.iter().zip(mask.to_le_bytes()) {
        if group == 0xff {
            out.put(end, word.to_le_bytes());
            end += 8;
        } else if group == 0xf || group == 0xf0 {
            // One 4-byte word of the two.
            let quad = (word >> (group & 0x20)) as u32;
            out.put(end, quad.to_le_bytes());
            end += 4;
        } else if group != 0 {
            // Every byte is stored, and the next one over it unless it counts: no branch to guess wrong.
            for (bit, byte) in word.to_le_bytes().into_iter().enumerate() {
                out.put(end, [byte]);
                end += usize::from(group >> bit & 1);
            }
        }
    }
    end
}

/// # Safety
/// `page` as in `super::apply`.
pub unsafe fn apply(diff: &[u8], page: *mut u8) -> Result<(), Malformed> {
    let diff = Diff::parse(diff)?;
    let mut bytes = Packed(diff.bytes);
    for (line, mask) in diff.each_line() {
        // SAFETY: the line is one of the unit's 64.
        unsafe { store_named(page.add(line * LINE_BYTES), mask, &mut bytes) };
    }
    Ok(())
}

/// # Safety
/// As `super::merge`.
pub unsafe fn merge(incoming: *const u8, twin: *mut u8, page: *mut u8) -> usize {
    let mut count = 0;
    for line in 0..LINES {
        let at = line * LINE_BYTES;
        // SAFETY: line `line` of two aligned units.
        let (new, mask) = unsafe { compare(incoming.add(at), twin.add(at)) };
        if mask != 0 {
            // SAFETY: the same line of the twin and of the page.
            unsafe {
                write_own_line(twin.add(at), new);
                store_named(page.add(at), mask, &mut InPlace(bytes_of(new)));
            }
            count += mask.count_ones() as usize;
        }
    }
    count
}

/// Where the bytes to be stored come from.
pub(super) trait Source {
    /// The `N` bytes that belong at `at` of the line; `at` only grows, and each byte is asked for once.
    fn take<const N: usize>(&mut self, at: usize) -> [u8; N];
}

/// All bytes of a line, in place.
pub(super) struct InPlace(pub [u8; LINE_BYTES]);

impl Source for InPlace {
    #[inline(always)]
    fn take<const N: usize>(&mut self, at: usize) -> [u8; N] {
        *self.0[at..].first_chunk().expect("aligned words of a line end within it")
    }
}

/// The bytes to be stored, one behind the other.
pub(super) struct Packed<'a>(pub &'a [u8]);

impl Source for Packed<'_> {
    #[inline(always)]
    fn take<const N: usize>(&mut self, _at: usize) -> [u8; N] {
        let (word, rest) = self.0.split_first_chunk().expect("as many bytes as masks name: `Diff::parse`");
        self.0 = rest;
        *word
    }
}

/// Writes the bytes of the line that `mask` names, and only those: others may be writing the ones beside. Whole
/// 8-byte and 4-byte words, which is what programs write, take one store each.
///
/// # Safety
/// `line` is valid for writes of a line and aligned to it.
#[inline(always)]
pub(super) unsafe fn store_named(line: *mut u8, mask: u64, source: &mut impl Source) {
    /// Stores one word. Volatile, so that the compiler neither repeats nor widens it.
    macro_rules! store {
        ($word:ty, $at:expr) => {{
            let at = $at;
            // SAFETY: `at` is a multiple of the word's size below 64, in an aligned line that the caller lets us
            // write.
            unsafe { ptr::write_volatile(line.add(at).cast::<$word>(), <$word>::from_ne_bytes(source.take(at))) }
        }};
    }
    if mask == u64::MAX {
        for word in 0..WORDS {
            store!(u64, 8 * word);
        }
    } else if (mask & QUADS) * 15 == mask {
        // Of each aligned 4-byte word all bytes or none.
        let mut quads = mask & QUADS;
        while quads != 0 {
            store!(u32, quads.trailing_zeros() as usize);
            quads &= quads - 1;
        }
    } else {
        for word in 0..WORDS {
            let mut group = mask >> (8 * word) & 0xff;
            if group == 0xff {
                store!(u64, 8 * word);
                continue;
            }
            while group != 0 {
                store!(u8, 8 * word + group.trailing_zeros() as usize);
                group &= group - 1;
            }
        }
    }
}
