//! What is done with the bytes of frames and twins.
//!
//! All pointers come from [`super::segment`]: each is a whole mapped page of the always-writable mapping (or a received
//! message's buffer of at least a page). Other processes may read and write the same frame meanwhile; data-race-free
//! programs never touch the bytes that are changed here, and the functions of `finespun_diff` change no others.

use std::sync::atomic::{Ordering, fence};

use finespun_diff::{DiffBuffer, Malformed};
use finespun_sys::prefetch;
use finespun_types::UNIT_BYTES;

/// A page at an address that the diffs can work on.
#[repr(align(64))]
struct Aligned([u8; UNIT_BYTES]);

/// A page that comes with a message: another node's frame or twin, or a receive buffer.
#[derive(Clone, Copy)]
pub struct Page(*const u8);

impl Page {
    /// A page of this node's memory or another's, from [`super::segment`].
    pub const fn at(page: *const u8) -> Self {
        Self(page)
    }

    /// The page in a message.
    pub fn in_message(bytes: &[u8]) -> Option<Self> {
        (bytes.len() == UNIT_BYTES).then_some(Self(bytes.as_ptr()))
    }

    /// The bytes, for sending. What writers change meanwhile may or may not be in it.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: a whole mapped page (type invariant). Bytes that other processes write meanwhile are bytes that a
        // data-race-free program lets nobody read before the next release; any value of them will do.
        unsafe { std::slice::from_raw_parts(self.0, UNIT_BYTES) }
    }
}

/// Copies a page over a frame.
pub fn install(page: Page, frame: *mut u8) {
    // SAFETY: both are whole pages (module header) of different mappings or offsets.
    unsafe { std::ptr::copy_nonoverlapping(page.0, frame, UNIT_BYTES) };
}

/// The same, where a neighbour's page will be copied over the neighbour's frame next: 1 for the page behind, -1 for the one before. Its
/// lines, which another node wrote last, are on their way while these are copied.
pub fn install_before(page: Page, frame: *mut u8, next: i32) {
    let offset = next as isize * UNIT_BYTES as isize;
    prefetch::to_copy(page.0.wrapping_offset(offset), frame.wrapping_offset(offset), UNIT_BYTES);
    install(page, frame);
}

/// Copies a frame to a twin. The dirty lists were written before: the fence keeps the snapshot from being taken earlier,
/// so that a store it misses is made by a view whose next release sees its list (leave_exclusive in the protocol).
pub fn snapshot(frame: *const u8, twin: *mut u8) {
    fence(Ordering::SeqCst);
    // SAFETY: both are whole pages; the twin is this unit's own, under its lock.
    unsafe { std::ptr::copy_nonoverlapping(frame, twin, UNIT_BYTES) };
}

/// The diff of a frame against its twin, empty when nothing changed; with `refresh` the twin becomes what was read.
pub fn diff(frame: *const u8, twin: *mut u8, refresh: bool, out: &mut DiffBuffer) -> &[u8] {
    // SAFETY: both are whole pages; the twin is this unit's own, under its lock.
    unsafe {
        if refresh { finespun_diff::make_and_refresh(frame, twin, out) } else { finespun_diff::make(frame, twin, out) }
    }
}

/// Applies a diff to the home's frame.
pub fn apply(diff: &[u8], frame: *mut u8) -> Result<(), Malformed> {
    // SAFETY: a whole page; only the changed bytes are written.
    unsafe { finespun_diff::apply(diff, frame) }
}

/// Two-way diff: the bytes in which `page` differs from the twin go to frame and twin.
pub fn merge(page: Page, twin: *mut u8, frame: *mut u8) {
    let mut aligned = Aligned([0; UNIT_BYTES]);
    let page = if page.0.addr().is_multiple_of(align_of::<Aligned>()) {
        page
    } else {
        // In a receive buffer pages lie anywhere.
        install(page, aligned.0.as_mut_ptr());
        Page(aligned.0.as_ptr())
    };
    // SAFETY: whole aligned pages; the twin is this unit's own, under its lock.
    unsafe { finespun_diff::merge(page.0, twin, frame) };
}

/// Makes sure that the frame's page exists in its memfd, so that a view can map it.
pub fn touch(frame: *const u8) {
    // SAFETY: a mapped byte; the value is not used.
    unsafe { frame.read_volatile() };
}
