//! What this process watches, and the rights of its pages.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::image::Image;
use super::table::Table;
use crate::memory;

/// What a process watches.
pub(super) struct Watch {
    pub(super) image: Image,
    pub(super) table: Table,
    /// The calling thread's processor, counted over the job. Called in the signal handler.
    pub(super) who: fn() -> u32,
}

pub(super) static WATCH: OnceLock<Watch> = OnceLock::new();
/// The watched addresses; none while nothing is watched.
pub(super) static START: AtomicUsize = AtomicUsize::new(0);
pub(super) static END: AtomicUsize = AtomicUsize::new(0);
/// Where the watch was before it ended: a thread may have faulted just before.
pub(super) static LAST_END: AtomicUsize = AtomicUsize::new(0);

/// Is anything watched now?
pub(super) fn is_on() -> bool {
    END.load(Ordering::Acquire) != 0
}

/// Sets the rights of watched pages.
pub(super) fn protect(addresses: &Range<usize>, rights: libc::c_int) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut::<u8>(addresses.start);
    // SAFETY: whole pages of the program's variables, which were readable and writable; an access without rights is
    // served by the handler.
    unsafe { memory::protect(start, addresses.len(), rights) }
}
