//! What is done with the bytes of frames and twins.
//!
//! All pointers come from [`super::segment`]: each is a whole mapped page of the always-writable mapping (or a received
//! message's buffer of at least a page). Other processes may read and write the same frame meanwhile; data-race-free
//! programs never touch the bytes that are changed here, and the functions of `finespun_diff` change no others.

use std::mem::MaybeUninit;
use std::sync::atomic::{Ordering, fence};

use finespun_diff::{DiffBuffer, Malformed};
use finespun_sys::prefetch::Coming;
use finespun_types::PAGE_BYTES;

/// A page at an address that the diffs can work on.
#[repr(align(64))]
struct Aligned(#[allow(dead_code)] [u8; PAGE_BYTES]);

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
        (bytes.len() == PAGE_BYTES).then_some(Self(bytes.as_ptr()))
    }

    /// The bytes, for sending. What writers change meanwhile may or may not be in it.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: a whole mapped page (type invariant). Bytes that other processes write meanwhile are bytes that a
        // data-race-free program lets nobody read before the next release; any value of them will do.
        unsafe { std::slice::from_raw_parts(self.0, PAGE_BYTES) }
    }
}

/// Copies a page over a frame.
pub fn install(page: Page, frame: *mut u8) {
    // SAFETY: both are whole pages (module header) of different mappings or offsets.
    unsafe { std::ptr::copy_nonoverlapping(page.0, frame, PAGE_BYTES) };
}

/// Pages side by side that are copied over their frames one after the other. The lines of the next one, which another node wrote last, are asked for
/// a few at a time while this one's nest is at work and while it is copied: the tables wait for nothing, and the copy for little.
pub struct Row {
    /// Which neighbour's page will be copied next: that of the page behind (1), of the one before (-1), or nobody's (0).
    pub next: i32,
    coming: Coming,
}

/// So many lines before and behind a table, seven times a page: with those below they are all.
const ASKED_BY_TABLES: usize = 7;
/// So many while an eighth of a page is copied.
const ASKED_BY_COPY: usize = 2;
const PARTS: usize = 8;

impl Row {
    /// No page has been copied yet.
    pub const fn new() -> Self {
        Self { next: 0, coming: Coming::NONE }
    }

    /// Is this page one of several?
    pub fn goes_on(&self) -> bool {
        self.next != 0 || !self.coming.is_nothing()
    }

    /// Asks for some lines of the page that is copied next.
    #[inline]
    pub fn ask(&mut self) {
        self.coming.ask(ASKED_BY_TABLES);
    }

    /// Copies a page over a frame.
    pub fn install(&mut self, page: Page, frame: *mut u8) {
        if self.coming.is_from(page.0) {
            self.coming.ask_for_the_rest();
        }
        if self.next == 0 {
            self.coming = Coming::NONE;
            return install(page, frame);
        }
        let neighbour = self.next as isize * PAGE_BYTES as isize;
        self.coming = Coming::new(page.0.wrapping_offset(neighbour), frame.wrapping_offset(neighbour), PAGE_BYTES);
        for offset in (0..PAGE_BYTES).step_by(PAGE_BYTES / PARTS) {
            // SAFETY: both are whole pages (module header) of different mappings or offsets, and the parts lie within.
            unsafe { std::ptr::copy_nonoverlapping(page.0.add(offset), frame.add(offset), PAGE_BYTES / PARTS) };
            self.coming.ask(ASKED_BY_COPY);
        }
    }
}

/// Copies a frame to a twin. The dirty lists were written before: the fence keeps the snapshot from being taken earlier,
/// so that a store it misses is made by a view whose next release sees its list (leave_exclusive in the protocol).
pub fn snapshot(frame: *const u8, twin: *mut u8) {
    fence(Ordering::SeqCst);
    // SAFETY: both are whole pages; the twin is this unit's own, under its lock.
    unsafe { std::ptr::copy_nonoverlapping(frame, twin, PAGE_BYTES) };
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
    if page.0.addr().is_multiple_of(align_of::<Aligned>()) {
        // SAFETY: whole aligned pages; the twin is this unit's own, under its lock.
        unsafe { finespun_diff::merge(page.0, twin, frame) };
    } else {
        merge_from_anywhere(page, twin, frame);
    }
}

/// In a receive buffer pages lie anywhere. A function of its own, since the room takes a page of the stack.
#[inline(never)]
fn merge_from_anywhere(page: Page, twin: *mut u8, frame: *mut u8) {
    let mut aligned = MaybeUninit::<Aligned>::uninit();
    // All bytes are written before any is read.
    install(page, aligned.as_mut_ptr().cast());
    // SAFETY: as in `merge`.
    unsafe { finespun_diff::merge(aligned.as_ptr().cast(), twin, frame) };
}

/// Makes sure that the frame's page exists in its memfd, so that a view can map it.
pub fn touch(frame: *const u8) {
    // SAFETY: a mapped byte; the value is not used.
    unsafe { frame.read_volatile() };
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    /// Pages side by side.
    struct Pages(Box<[Aligned]>);

    impl Pages {
        fn of(bytes: &[u8]) -> Self {
            Self(bytes.iter().map(|byte| Aligned([*byte; PAGE_BYTES])).collect())
        }

        fn at(&mut self, page: usize) -> *mut u8 {
            ptr::from_mut(&mut self.0[page]).cast()
        }

        fn holds(&self, page: usize) -> &[u8; PAGE_BYTES] {
            &self.0[page].0
        }
    }

    #[test]
    fn only_a_whole_page_is_taken_for_a_page() {
        let bytes = [7; PAGE_BYTES + 1];
        assert!(Page::in_message(&bytes).is_none() && Page::in_message(&bytes[2..]).is_none());
        assert_eq!(Page::in_message(&bytes[1..]).expect("a page").bytes(), &bytes[1..]);
    }

    #[test]
    fn pages_in_a_row_are_copied_whole_in_either_direction() {
        for order in [[0, 1, 2], [2, 1, 0]] {
            let (mut from, mut to) = (Pages::of(&[1, 2, 3]), Pages::of(&[0; 3]));
            let mut row = Row::new();
            assert!(!row.goes_on());
            for (number, page) in order.into_iter().enumerate() {
                row.next = if number == 2 { 0 } else { order[1] - order[0] };
                row.ask();
                row.install(Page::at(from.at(page as usize)), to.at(page as usize));
            }
            assert!((0..3).all(|page| to.holds(page) == from.holds(page)), "{order:?}");
            assert!(!row.goes_on(), "the row is over");
        }
    }

    #[test]
    fn a_diff_carries_what_changed_and_nothing_else() {
        let (mut pages, mut buffer) = (Pages::of(&[5, 5, 9]), DiffBuffer::new());
        pages.0[0].0[100] = 1;
        let diff = diff(pages.at(0), pages.at(1), true, &mut buffer);
        apply(diff, pages.at(2)).expect("a diff of ours");
        assert_eq!(pages.holds(2).iter().filter(|byte| **byte != 9).collect::<Vec<_>>(), [&1]);
        assert_eq!(pages.holds(1), pages.holds(0), "the twin is refreshed");
        assert!(apply(&[1, 2, 3], pages.at(2)).is_err());
    }

    #[test]
    fn a_page_from_anywhere_in_a_message_is_merged_and_own_changes_stay() {
        for offset in [0, 1, 24] {
            let mut pages = Pages::of(&[5, 5]);
            pages.0[0].0[8] = 77;
            let mut message = vec![0; offset];
            message.extend([5; PAGE_BYTES]);
            message[offset + 4000] = 6;
            merge(Page::in_message(&message[offset..]).expect("a page"), pages.at(1), pages.at(0));
            assert_eq!([8, 4000].map(|at| pages.holds(0)[at]), [77, 6]);
            assert_eq!([8, 4000].map(|at| pages.holds(1)[at]), [5, 6], "the twin has what came");
        }
    }

    #[test]
    fn a_twin_is_what_the_frame_was() {
        let mut pages = Pages::of(&[3, 0]);
        snapshot(pages.at(0), pages.at(1));
        touch(pages.at(1));
        pages.0[0].0[0] = 4;
        assert_eq!(pages.holds(1), &[3; PAGE_BYTES]);
    }
}
