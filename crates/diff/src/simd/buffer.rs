//! Where a diff is written: memory that nobody clears before, which would take a tenth of a comparison.

use std::mem::MaybeUninit;

use crate::MAX_DIFF_BYTES;

/// Room for one diff; takes no time to make.
pub struct DiffBuffer([MaybeUninit<u8>; MAX_DIFF_BYTES]);

impl DiffBuffer {
    /// Nothing is in it yet.
    #[must_use]
    pub const fn new() -> Self {
        Self([MaybeUninit::uninit(); _])
    }

    /// Puts bytes at `at`, which must all fit.
    #[inline(always)]
    pub(crate) fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.0[at..at + N].write_copy_of_slice(&bytes);
    }

    /// For an implementation that writes more at once than it keeps.
    #[inline(always)]
    pub(super) const fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// The diff that was written.
    ///
    /// # Safety
    /// The first `len` bytes have been put there.
    #[inline(always)]
    pub(super) unsafe fn diff(&self, len: usize) -> &[u8] {
        // SAFETY: so the caller says.
        unsafe { self.0[..len].assume_init_ref() }
    }
}

impl Default for DiffBuffer {
    fn default() -> Self {
        Self::new()
    }
}
