//! The memory of the program's globals: read before they are shared, written once they are, private again at the end.
//!
//! `addresses` are always those that `fspcc`'s linker script marks out: whole pages, mapped readable and writable by the
//! loader, with nothing in them but the program's own variables. The library's own stand in its shared object.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use finespun_sys::memory;
use finespun_sys::view::View;
use finespun_types::PAGE_BYTES;

/// What the variables hold now, before they are shared.
pub fn copy(addresses: &Range<usize>) -> Vec<u8> {
    let start = std::ptr::with_exposed_provenance::<u8>(addresses.start);
    // SAFETY: mapped and readable (module header); the program's constructors have not run, so nobody writes.
    unsafe { std::slice::from_raw_parts(start, addresses.len()) }.to_vec()
}

/// Puts the pages from `first` on in the place of the variables.
pub fn open(view: &mut View, frames: BorrowedFd<'_>, addresses: &Range<usize>, first: usize) -> io::Result<()> {
    let first = u32::try_from(first).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let pages = first..first + (addresses.len() / PAGE_BYTES) as u32;
    // SAFETY: only the program's own variables stand there, and none of its code runs yet; from now on it faults and is served.
    unsafe { view.open_window(frames, addresses.start, pages) }
}

/// Stores bytes at an offset of the window; the stores fault and are served.
pub fn store(addresses: &Range<usize>, offset: usize, bytes: &[u8]) {
    assert!(offset + bytes.len() <= addresses.len(), "inside the window");
    let to = std::ptr::with_exposed_provenance_mut::<u8>(addresses.start + offset);
    // SAFETY: inside the window, which is served; no thread of the program runs yet.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
}

/// Maps a private copy of the frames in place of the window: what is stored from now on nobody else sees. Calls only the
/// kernel, so that the child of a fork may do it.
pub fn map_private(frames: BorrowedFd<'_>, addresses: &Range<usize>, offset: usize) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut::<u8>(addresses.start);
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_FIXED);
    // SAFETY: the window's own addresses (module header), whose contents are the same afterwards.
    unsafe { memory::map(start, addresses.len(), rights, flags, Some((frames, offset))) }.map(drop)
}
