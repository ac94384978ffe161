//! AVX2: 32 bytes compared at a time; eight bytes packed at a time by a shuffle from a table of 256. (`pext` would do
//! without the table, but takes hundreds of cycles on AMD before Zen 3.)

use std::arch::x86_64::*;
use std::ptr;

use super::scalar::{InPlace, Packed, store_named};
use crate::format::{Diff, Malformed, Masks};
use crate::{DiffBuffer, LINE_BYTES, LINES};

/// For each set of bytes of a word: the shuffle that packs them to the front.
static PACK: [u64; 256] = {
    let mut table = [0; 256];
    let mut set = 0;
    while set < 256 {
        let (mut byte, mut end) = (0, 0);
        while byte < 8 {
            if set >> byte & 1 == 1 {
                table[set] |= byte << (8 * end);
                end += 1;
            }
            byte += 1;
        }
        set += 1;
    }
    table
};

/// A line, read once, and which of its bytes differ.
struct Compared {
    low: __m256i,
    high: __m256i,
    mask: u64,
}

/// # Safety
/// `new` and `old` are valid for reads of a line and aligned to it; only `new` may be written by others.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn compare(new: *const u8, old: *const u8) -> Compared {
    let (new, old) = (new.cast::<__m256i>(), old.cast::<__m256i>());
    // SAFETY: both halves lie in the aligned line. Volatile because others may write it: see the module above.
    let (low, high) = unsafe { (ptr::read_volatile(new), ptr::read_volatile(new.add(1))) };
    // SAFETY: likewise, and nobody writes these.
    let (old_low, old_high) = unsafe { (_mm256_load_si256(old), _mm256_load_si256(old.add(1))) };
    let (same_low, same_high) = (_mm256_cmpeq_epi8(low, old_low), _mm256_cmpeq_epi8(high, old_high));
    // Movemask fills the 32 bits of its result, so the casts lose nothing.
    let (same_low, same_high) = (_mm256_movemask_epi8(same_low) as u32, _mm256_movemask_epi8(same_high) as u32);
    Compared { low, high, mask: !(u64::from(same_low) | u64::from(same_high) << 32) }
}

impl Compared {
    /// # Safety
    /// `line` is valid for writes of a line that is ours alone, and aligned to it.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn write_own_line(&self, line: *mut u8) {
        let line = line.cast::<__m256i>();
        // SAFETY: both halves lie in the aligned line.
        unsafe {
            _mm256_store_si256(line, self.low);
            _mm256_store_si256(line.add(1), self.high);
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn bytes(&self) -> [u8; LINE_BYTES] {
        let mut bytes = [0_u8; LINE_BYTES];
        // SAFETY: 64 bytes are ours; the stores need no alignment.
        unsafe {
            _mm256_storeu_si256(bytes.as_mut_ptr().cast(), self.low);
            _mm256_storeu_si256(bytes.as_mut_ptr().add(32).cast(), self.high);
        }
        bytes
    }

    /// Puts the changed bytes at `end`, and up to 64 bytes of no meaning behind them; returns how many.
    ///
    /// # Safety
    /// `end` is valid for writes of a line.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn pack(&self, end: *mut u8) -> usize {
        if self.mask == u64::MAX {
            // SAFETY: a line's worth of bytes, without alignment.
            unsafe {
                _mm256_storeu_si256(end.cast(), self.low);
                _mm256_storeu_si256(end.add(32).cast(), self.high);
            }
            return LINE_BYTES;
        }
        let quarters = [
            _mm256_castsi256_si128(self.low),
            _mm256_extracti128_si256(self.low, 1),
            _mm256_castsi256_si128(self.high),
            _mm256_extracti128_si256(self.high, 1),
        ];
        // The second word of a quarter has bytes 8 to 15.
        let upper = _mm_set_epi64x(0x0808_0808_0808_0808, 0);
        let mut count = 0;
        for (quarter, bytes) in quarters.into_iter().enumerate() {
            let (first, second) = (self.mask >> (16 * quarter) & 0xff, self.mask >> (16 * quarter + 8) & 0xff);
            // SAFETY: entries of the table, which needs no alignment.
            let shuffles = unsafe {
                let low = _mm_loadl_epi64(ptr::from_ref(&PACK[first as usize]).cast());
                _mm_loadh_pd(_mm_castsi128_pd(low), ptr::from_ref(&PACK[second as usize]).cast())
            };
            let packed = _mm_shuffle_epi8(bytes, _mm_or_si128(_mm_castpd_si128(shuffles), upper));
            // SAFETY: before each of the eight words at most 8 bytes were counted for each word before it, so its
            // 8 bytes end within the 64.
            unsafe {
                _mm_storel_epi64(end.add(count).cast(), packed);
                count += first.count_ones() as usize;
                _mm_storeh_pd(end.add(count).cast(), _mm_castsi128_pd(packed));
                count += second.count_ones() as usize;
            }
        }
        count
    }
}

/// # Safety
/// As `super::make`, with REFRESH as `super::make_and_refresh`, and the processor has AVX2.
#[target_feature(enable = "avx2,popcnt")]
pub unsafe fn make<const REFRESH: bool>(page: *const u8, twin: *mut u8, out: &mut DiffBuffer) -> usize {
    let (mut masks, mut end) = (Masks::new(), 0);
    for line in 0..LINES {
        let at = line * LINE_BYTES;
        // SAFETY: line `line` of two aligned units.
        let compared = unsafe { compare(page.add(at), twin.add(at)) };
        if compared.mask != 0 {
            if REFRESH {
                // SAFETY: the same line of the twin, which the caller lets us write.
                unsafe { compared.write_own_line(twin.add(at)) };
            }
            masks.push(line, compared.mask);
            // SAFETY: at most 64 bytes were packed for each line before, so 64 more end within the unit's bytes,
            // and the buffer is longer than a unit.
            end += unsafe { compared.pack(out.as_mut_ptr().add(end)) };
        }
    }
    masks.finish(out, end)
}

/// # Safety
/// `page` as in `super::apply`, and the processor has AVX2.
#[target_feature(enable = "avx2,popcnt")]
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
/// As `super::merge`, and the processor has AVX2.
#[target_feature(enable = "avx2,popcnt")]
pub unsafe fn merge(incoming: *const u8, twin: *mut u8, page: *mut u8) -> usize {
    let mut count = 0;
    for line in 0..LINES {
        let at = line * LINE_BYTES;
        // SAFETY: line `line` of two aligned units.
        let compared = unsafe { compare(incoming.add(at), twin.add(at)) };
        if compared.mask != 0 {
            // SAFETY: the same line of the twin and of the page.
            unsafe {
                compared.write_own_line(twin.add(at));
                store_named(page.add(at), compared.mask, &mut InPlace(compared.bytes()));
            }
            count += compared.mask.count_ones() as usize;
        }
    }
    count
}
