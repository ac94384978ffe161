//! AVX-512 with VBMI2: a line is one register, packed by one `vpcompressb` and unpacked by one `vpexpandb`. Masked
//! stores write single bytes: the processor leaves those not named alone, and so does the compiler, since LLVM's
//! masked store is defined not to access them.

use std::arch::x86_64::*;
use std::ptr;

use crate::format::{Diff, Malformed, Masks};
use crate::{DiffBuffer, LINE_BYTES, LINES};

/// # Safety
/// As `super::make`, with REFRESH as `super::make_and_refresh`, and the processor has these features.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt,bmi1,bmi2")]
pub unsafe fn make<const REFRESH: bool>(page: *const u8, twin: *mut u8, out: &mut DiffBuffer) -> usize {
    let (mut masks, mut end) = (Masks::new(), 0);
    for line in 0..LINES {
        let at = line * LINE_BYTES;
        // SAFETY: line `line` of two aligned units. Volatile because others may write it: see the module above.
        let (new, old) =
            unsafe { (ptr::read_volatile(page.add(at).cast::<__m512i>()), _mm512_load_si512(twin.add(at).cast())) };
        let mask = _mm512_cmpneq_epi8_mask(new, old);
        if mask != 0 {
            if REFRESH {
                // SAFETY: the same line of the twin, which the caller lets us write.
                unsafe { _mm512_store_si512(twin.add(at).cast(), new) };
            }
            masks.push(line, mask);
            // SAFETY: at most 64 bytes were packed for each line before, so 64 more end within the unit's bytes,
            // and the buffer is longer than a unit.
            unsafe {
                _mm512_storeu_si512(out.as_mut_ptr().add(end).cast(), _mm512_maskz_compress_epi8(mask, new));
            }
            end += mask.count_ones() as usize;
        }
    }
    masks.finish(out, end)
}

/// # Safety
/// `page` as in `super::apply`, and the processor has these features.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt,bmi1,bmi2")]
pub unsafe fn apply(diff: &[u8], page: *mut u8) -> Result<(), Malformed> {
    let diff = Diff::parse(diff)?;
    let mut bytes = diff.bytes;
    for (line, mask) in diff.each_line() {
        let count = mask.count_ones();
        let (these, rest) = bytes.split_at(count as usize);
        let packed = if bytes.len() >= LINE_BYTES {
            // SAFETY: 64 bytes are there; those behind `these` are not used.
            unsafe { _mm512_loadu_si512(these.as_ptr().cast()) }
        } else {
            // SAFETY: only the first `count` bytes are read, which are `these`; a mask is never zero, so 1..=64.
            unsafe { _mm512_maskz_loadu_epi8(u64::MAX >> (64 - count), these.as_ptr().cast()) }
        };
        bytes = rest;
        // SAFETY: the line is one of the unit's 64, and the mask keeps the store to the bytes of the diff.
        unsafe { store_masked(page.add(line * LINE_BYTES), mask, _mm512_maskz_expand_epi8(mask, packed)) };
    }
    Ok(())
}

/// # Safety
/// As `super::merge`, and the processor has these features.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt,bmi1,bmi2")]
pub unsafe fn merge(incoming: *const u8, twin: *mut u8, page: *mut u8) -> usize {
    let mut count = 0;
    for line in 0..LINES {
        let at = line * LINE_BYTES;
        // SAFETY: line `line` of two aligned units. Volatile because others may write it: see the module above.
        let (new, old) =
            unsafe { (ptr::read_volatile(incoming.add(at).cast::<__m512i>()), _mm512_load_si512(twin.add(at).cast())) };
        let mask = _mm512_cmpneq_epi8_mask(new, old);
        if mask != 0 {
            // SAFETY: the same line of the twin and of the page.
            unsafe {
                _mm512_store_si512(twin.add(at).cast(), new);
                store_masked(page.add(at), mask, new);
            }
            count += mask.count_ones() as usize;
        }
    }
    count
}

/// Writes the bytes that `mask` names, and only those.
///
/// # Safety
/// `line` is valid for writes of a line and aligned to it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn store_masked(line: *mut u8, mask: u64, bytes: __m512i) {
    if mask == u64::MAX {
        // SAFETY: an aligned line, all of it named. A plain store is faster than a masked one.
        unsafe { _mm512_store_si512(line.cast(), bytes) };
    } else {
        // SAFETY: an aligned line.
        unsafe { _mm512_mask_storeu_epi8(line.cast(), mask, bytes) };
    }
}
