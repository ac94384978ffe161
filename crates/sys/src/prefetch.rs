//! Asking for lines of memory before they are used. Nothing else happens, whatever the address: a prefetch never faults.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;

/// Bytes that the processor moves between caches at once.
const LINE: usize = 64;

/// Bytes that will be copied from here to there next, and how far their lines have been asked for.
///
/// A core waits for a few lines at a time, 16 on common ones, and whoever asks for more waits until some have come. So it is of little use to ask for all lines of
/// a page in a row: that takes as long as the copy would. Who asks for some, does other things, and asks again finds them there.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    from: *const u8,
    to: *const u8,
    bytes: usize,
    /// So many of them have been asked for.
    asked: usize,
}

impl Coming {
    /// Nothing will be copied.
    pub const NONE: Self = Self { from: std::ptr::null(), to: std::ptr::null(), bytes: 0, asked: 0 };

    /// So many bytes, none asked for yet. Both addresses are the first of a line.
    pub const fn new(from: *const u8, to: *const u8, bytes: usize) -> Self {
        Self { from, to, bytes, asked: 0 }
    }

    /// Is nothing copied?
    pub const fn is_nothing(&self) -> bool {
        self.bytes == 0
    }

    /// Are they copied from here?
    pub fn is_from(&self, from: *const u8) -> bool {
        self.from == from
    }

    /// Asks for the next lines of both in turn, so many each, or for those that are left: those that will be written for this core alone, so that no store of
    /// the copy has to wait for the right to write.
    #[inline]
    pub fn ask(&mut self, lines: usize) {
        let until = self.bytes.min(self.asked + lines * LINE);
        while self.asked < until {
            read(self.from.wrapping_add(self.asked));
            write(self.to.wrapping_add(self.asked));
            self.asked += LINE;
        }
    }

    /// Asks for all that are left.
    #[inline]
    pub fn ask_for_the_rest(&mut self) {
        self.ask(self.bytes.div_ceil(LINE));
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
        Coming::new(from.as_ptr(), to.as_ptr(), 300).ask_for_the_rest();
        assert_eq!((from, to), ([7; 300], [8; 300]));
        let nowhere = std::ptr::without_provenance;
        Coming::new(nowhere(LINE), nowhere(usize::MAX - 100), 4096).ask_for_the_rest();
    }

    #[test]
    fn each_line_is_asked_for_once() {
        let bytes = [0_u8; 300];
        let mut coming = Coming::new(bytes.as_ptr(), bytes.as_ptr(), 300);
        let asked = [0, 2, 2, 9].map(|lines| {
            coming.ask(lines);
            coming.asked.div_ceil(LINE)
        });
        assert_eq!(asked, [0, 2, 4, 5]);
        coming.ask_for_the_rest();
        assert_eq!(coming.asked, 5 * LINE);
    }
}
