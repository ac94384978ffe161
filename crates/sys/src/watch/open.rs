//! The pages that have their rights for an instruction of some thread.
//!
//! Two threads may be at the same page: it is closed when both are done, so that neither loses it between its instruction and its
//! trap.

use std::cell::UnsafeCell;

use super::watched::{is_on, protect};
use crate::PAGE_BYTES;
use crate::lock::WordLock;

/// More than threads of a process can have open at once: up to 160 of them, a few pages each.
const PAGES_MAX: usize = 1024;

struct Open {
    /// Held for a system call at most, with every signal blocked.
    lock: WordLock,
    pages: UnsafeCell<[(usize, u32); PAGES_MAX]>,
}

// SAFETY: `pages` is read and written only by the holder of `lock`: `with` is the one way to it.
unsafe impl Sync for Open {}

static OPEN: Open = Open { lock: WordLock::new(), pages: UnsafeCell::new([(0, 0); PAGES_MAX]) };

fn with<T>(body: impl FnOnce(&mut [(usize, u32); PAGES_MAX]) -> T) -> T {
    let _guard = OPEN.lock.guard();
    // SAFETY: the guard makes this the only reference; it ends with `body`, before the guard is dropped.
    body(unsafe { &mut *OPEN.pages.get() })
}

/// Gives a page its rights, for the caller too. In the signal handler only.
pub fn open(page: usize) {
    with(|pages| {
        let place = pages.iter().position(|&(at, count)| at == page && count > 0);
        let place = place.or_else(|| pages.iter().position(|&(_, count)| count == 0));
        // Without a place the page stays open: less is seen, and nothing is wrong.
        if let Some(place) = place {
            pages[place] = (page, pages[place].1 + 1);
        }
        // A failure shows as the same fault again.
        let _ = protect(&(page..page + PAGE_BYTES), libc::PROT_READ | libc::PROT_WRITE);
    });
}

/// The caller is done with a page.
pub fn close(page: usize) {
    with(|pages| {
        let Some(place) = pages.iter().position(|&(at, count)| at == page && count > 0) else { return };
        pages[place].1 -= 1;
        if pages[place].1 == 0 && is_on() {
            let _ = protect(&(page..page + PAGE_BYTES), libc::PROT_NONE);
        }
    });
}
