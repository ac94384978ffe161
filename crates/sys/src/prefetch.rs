//! Asking for lines of memory before they are used. Nothing else happens, whatever the address: a prefetch never faults.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;

/// Bytes that the processor moves between caches at once.
const LINE: usize = 64;

/// Bytes will soon be copied from here to there: the lines of both are asked for in turn, those that will be written for this core alone, so
/// that no store of the copy has to wait for the right to write. Both addresses are the first of a line.
#[inline]
pub fn to_copy(from: *const u8, to: *const u8, bytes: usize) {
    for offset in (0..bytes).step_by(LINE) {
        read(from.wrapping_add(offset));
        write(to.wrapping_add(offset));
    }
}

#[inline]
fn read(line: *const u8) {
    // SAFETY: a hint, ignored where the address is not mapped or may not be read; no register and no byte of memory changes.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("prefetcht0 [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[inline]
fn write(line: *const u8) {
    // SAFETY: as in `read`. Processors that do not know the instruction take it for none.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_keeps_its_values_and_addresses_that_are_nowhere_do_no_harm() {
        let (from, to) = ([7_u8; 300], [8_u8; 300]);
        to_copy(from.as_ptr(), to.as_ptr(), 300);
        assert_eq!((from, to), ([7; 300], [8; 300]));
        to_copy(std::ptr::without_provenance(LINE), std::ptr::without_provenance(usize::MAX - 100), 4096);
    }
}
