//! The program's side of a transfer: pieces of its memory, some of them shared.

use std::ffi::c_int;

use finespun_runtime::buffers;
use libc::iovec;

use super::is_shared;

/// The kernel moves no more than this in one call.
const TRANSFER_MAX: usize = 0x7fff_f000;
/// The most pieces in one call (UIO_MAXIOV).
const PIECES_MAX: usize = 1024;
/// From here on a copy has its pages made valid first: a signal for each page costs more than asking.
const PREPARED_MIN: usize = 8 << 10;

/// The pieces of one call, in order.
#[derive(Clone, Copy)]
pub struct Pieces<'a>(&'a [iovec]);

/// A buffer as a piece.
pub const fn piece<T>(buffer: *const T, bytes: usize) -> iovec {
    iovec { iov_base: buffer.cast_mut().cast(), iov_len: bytes }
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToProgram,
    FromProgram,
}

impl<'a> Pieces<'a> {
    /// Takes the program's pieces.
    ///
    /// # Safety
    /// Each is memory that the program lets the call read, or write.
    pub const unsafe fn new(pieces: &'a [iovec]) -> Self {
        Self(pieces)
    }

    /// Takes the program's list if any of it lies in the shared space; else, and if the list is one that the kernel refuses,
    /// `None`: the real call is right then.
    ///
    /// # Safety
    /// `list` points to `count` pieces, as [`Self::new`] wants them, if the count is one that the kernel takes.
    pub unsafe fn shared(list: *const iovec, count: c_int) -> Option<Self> {
        let count = usize::try_from(count).ok().filter(|count| (1..=PIECES_MAX).contains(count))?;
        if list.is_null() {
            return None;
        }
        // SAFETY: by contract. If the list itself is shared, looking at it faults and is served.
        let pieces = unsafe { std::slice::from_raw_parts(list, count) };
        let any =
            is_shared(list, size_of_val(pieces)) || pieces.iter().any(|piece| is_shared(piece.iov_base, piece.iov_len));
        let sane = pieces.iter().try_fold(0_usize, |sum, piece| sum.checked_add(piece.iov_len));
        (any && sane.is_some_and(|sum| isize::try_from(sum).is_ok())).then_some(Self(pieces))
    }

    /// The pieces of a message, whether they are shared or not.
    ///
    /// # Safety
    /// The message's list is one as [`Self::new`] wants it.
    pub unsafe fn listed(message: &libc::msghdr) -> Self {
        if message.msg_iov.is_null() || message.msg_iovlen == 0 {
            return Self(&[]);
        }
        // SAFETY: by contract.
        Self(unsafe { std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen) })
    }

    /// How many bytes there are, as far as one call moves them.
    pub fn bytes(self) -> usize {
        self.0.iter().fold(0_usize, |sum, piece| sum.saturating_add(piece.iov_len)).min(TRANSFER_MAX)
    }

    /// Copies `bytes` bytes, from `skip` bytes after the start on, to `private`.
    ///
    /// # Safety
    /// `private` is writable for so many bytes, and the pieces have them.
    pub unsafe fn gather(self, skip: usize, private: *mut u8, bytes: usize) {
        // SAFETY: by contract.
        unsafe { self.copy(skip, private, bytes, Way::FromProgram) }
    }

    /// Copies `bytes` bytes of `private` to the pieces, from `skip` bytes after their start on.
    ///
    /// # Safety
    /// `private` is readable for so many bytes, and the pieces have room for them.
    pub unsafe fn scatter(self, skip: usize, private: *const u8, bytes: usize) {
        // SAFETY: by contract; nothing is written there.
        unsafe { self.copy(skip, private.cast_mut(), bytes, Way::ToProgram) }
    }

    unsafe fn copy(self, mut skip: usize, private: *mut u8, bytes: usize, way: Way) {
        let mut done = 0;
        for piece in self.0 {
            let here = piece.iov_len.saturating_sub(skip).min(bytes - done);
            if here > 0 {
                let at = piece.iov_base.cast::<u8>().wrapping_add(skip);
                if here >= PREPARED_MIN {
                    buffers::prepare(at.addr(), here, way == Way::ToProgram);
                }
                // SAFETY: by contract both sides have `here` bytes, and `private` is memory of nobody else. Loads and
                // stores of the shared space fault and are served.
                unsafe {
                    match way {
                        Way::ToProgram => std::ptr::copy_nonoverlapping(private.add(done), at, here),
                        Way::FromProgram => std::ptr::copy_nonoverlapping(at, private.add(done), here),
                    }
                }
                done += here;
            }
            skip = skip.saturating_sub(piece.iov_len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies out and back in all cuts of ten bytes in pieces of 3, 0, 5 and 2.
    #[test]
    fn every_part_of_the_pieces_is_copied_to_its_place() {
        for skip in 0..=10 {
            for bytes in 0..=10 - skip {
                let mut memory: Vec<u8> = (0..10).collect();
                let base = memory.as_mut_ptr();
                let list =
                    [piece(base, 3), piece(base, 0), piece(base.wrapping_add(3), 5), piece(base.wrapping_add(8), 2)];
                // SAFETY: the pieces lie in `memory`, which outlives them.
                let pieces = unsafe { Pieces::new(&list) };
                assert_eq!(pieces.bytes(), 10);
                let mut private = vec![0_u8; bytes];
                // SAFETY: `private` has `bytes` bytes, the pieces have `skip + bytes`.
                unsafe { pieces.gather(skip, private.as_mut_ptr(), bytes) };
                assert!(private.iter().enumerate().all(|(index, &byte)| usize::from(byte) == skip + index));
                private.fill(77);
                // SAFETY: as above.
                unsafe { pieces.scatter(skip, private.as_ptr(), bytes) };
                let changed = |index: usize| (skip..skip + bytes).contains(&index);
                assert!((0..10).all(|index| memory[index] == if changed(index) { 77 } else { index as u8 }));
            }
        }
    }

    #[test]
    fn a_list_that_the_kernel_refuses_is_left_to_it() {
        let list = [piece(std::ptr::null::<u8>(), 0)];
        for count in [-1, 0, 1025] {
            // SAFETY: the count is refused before the list is looked at.
            assert!(unsafe { Pieces::shared(list.as_ptr(), count) }.is_none());
        }
    }
}
