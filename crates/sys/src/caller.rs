//! The call of the program's own that a fault in a library came from: found on the stack, without frame pointers or tables of unwinding.
//!
//! A word on the stack is taken for a return address if it points into the program's code, just behind a call. An old one may
//! still lie there from a call that has returned; the nearest one is right nearly always, and is a help to a person only.

use std::ops::Range;

/// Words of the stack that are looked at.
const WORDS: usize = 512;
/// Bytes of the longest call: an opcode, its operand's byte, an index, four bytes of distance, and a prefix.
const CALL_BYTES: usize = 8;

/// The call in `code` that led to what runs with this stack pointer, as the address of its last byte. Allocates nothing and cannot
/// fault: for the fault handler.
#[must_use]
pub fn of(stack: usize, code: &Range<usize>) -> Option<usize> {
    let mut words = [0_usize; WORDS];
    let read = copy(stack, &mut words);
    let mut candidates = words[..read].iter().filter(|word| code.contains(word));
    candidates.find(|&&word| is_behind_call(word)).map(|word| word - 1)
}

/// Copies words of this process, and says how many could be read.
fn copy(from: usize, words: &mut [usize]) -> usize {
    // In two pieces, because the kernel copies all of a piece or nothing: the stack may end in this page.
    let in_page = (crate::PAGE_BYTES - from % crate::PAGE_BYTES) / size_of::<usize>();
    let first = in_page.min(words.len());
    let read = copy_piece(from, &mut words[..first]);
    if read < first {
        return read;
    }
    read + copy_piece(from + first * size_of::<usize>(), &mut words[first..])
}

fn copy_piece(from: usize, words: &mut [usize]) -> usize {
    let bytes = size_of_val(words);
    let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(from), iov_len: bytes };
    // SAFETY: `local` is writable for its length; what is not readable at `remote` is an error, no fault.
    let count = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(count).unwrap_or(0) / size_of::<usize>()
}

/// Does a call end just before this address?
fn is_behind_call(address: usize) -> bool {
    let mut word = [0_usize; CALL_BYTES / size_of::<usize>()];
    copy_piece(address - CALL_BYTES, &mut word) == word.len() && ends_in_call(word[0].to_ne_bytes())
}

/// `e8` and four bytes; or `ff` with a 2 in the middle of its operand's byte, and the bytes which that asks for.
fn ends_in_call(bytes: [u8; CALL_BYTES]) -> bool {
    let indirect = |length: usize| {
        let at = CALL_BYTES - length;
        bytes[at] == 0xff && bytes[at + 1] >> 3 & 7 == 2
    };
    bytes[CALL_BYTES - 5] == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(indirect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_from_what_is_none() {
        assert!(ends_in_call([0, 0, 0, 0xe8, 1, 2, 3, 4]), "call near");
        assert!(ends_in_call([0; 6].into_iter().chain([0xff, 0xd0]).collect::<Vec<_>>().try_into().unwrap()), "*%rax");
        assert!(ends_in_call([0, 0, 0xff, 0x15, 1, 0, 0, 0]), "*1(%rip)");
        assert!(!ends_in_call([0x90; 8]) && !ends_in_call([0, 0, 0, 0, 0, 0, 0xff, 0xc0]), "nop, inc %eax");
    }

    #[test]
    fn words_up_to_the_end_of_a_mapping_are_read() {
        let words = [7_usize; 3];
        let mut copied = [0; 3];
        assert_eq!((copy(words.as_ptr().addr(), &mut copied), copied), (3, words));
        assert_eq!(copy(8, &mut copied), 0);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_caller_is_in_the_code_that_is_asked_for() {
        let here = (the_caller_is_in_the_code_that_is_asked_for as *const ()).addr();
        let image = crate::watch::Image::of_this_process();
        let word = 0_usize;
        let caller = of((&raw const word).addr(), &image.code).expect("a test is called by something");
        assert!(image.code.contains(&caller) && image.code.contains(&here));
        assert_eq!(of((&raw const word).addr(), &(0..0)), None);
    }
}
