//! What a program does, in tests: loads and stores through a view, where the mapping's rights allow them.

use finespun_sys::maps::{self, Rights};
use finespun_sys::view::View;

/// What the mapping of a page allows.
pub fn rights(view: &View, page: u32) -> Rights {
    maps::rights_at(view.address_of(page)).expect("the kernel's list of mappings")
}

/// Loads the word at this place of a page that may be read.
pub fn load(view: &View, page: u32, word: usize) -> u64 {
    assert!(rights(view, page).reads && word < 512, "page {page} is open to read");
    let at: *const u64 = std::ptr::with_exposed_provenance(view.address_of(page));
    // SAFETY: the page is mapped and readable, checked above; aligned, and the word lies in the page.
    unsafe { at.add(word).read_volatile() }
}

/// Stores to a page that may be written.
pub fn store(view: &View, page: u32, word: usize, value: u64) {
    assert!(rights(view, page).writes && word < 512, "page {page} is open to write");
    let at: *mut u64 = std::ptr::with_exposed_provenance_mut(view.address_of(page));
    // SAFETY: the page is mapped and writable, checked above; aligned, and the word lies in the page.
    unsafe { at.add(word).write_volatile(value) };
}
