//! Memory that several processes map: memfds, mappings that unmap themselves, and the kernel's calls about mappings, each in one place.

use crate::{PAGE_BYTES, calls, check, descriptors};
use std::ffi::CStr;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// Creates memory of a fixed size that lives as long as some process holds its descriptor or maps it.
///
/// Sparse: a page takes memory once it is touched. Reads as zeros. The size is sealed, so that no process can make
/// another's mapping end in the middle. Closed on exec until [`set_inheritable`] says otherwise. `name` shows in
/// `/proc/PID/maps` as `memfd:name`.
pub fn create(name: &CStr, bytes: usize) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // MFD_NOEXEC_SEAL since Linux 6.3: without it newer kernels log a warning about the program.
    let made = memfd(name, flags | libc::MFD_NOEXEC_SEAL).or_else(|_| memfd(name, flags))?;
    let size = libc::off_t::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    check_file_limit(bytes)?;
    // SAFETY: `made` is an open descriptor; the call takes no pointer.
    check(unsafe { libc::ftruncate(made.as_raw_fd(), size) })?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: as above; F_ADD_SEALS takes an int.
    check(unsafe { libc::fcntl(made.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(made)
}

/// A limit that is met ends the process by SIGXFSZ, without a word.
fn check_file_limit(bytes: usize) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is writable, and of the type that the call wants.
    check(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) })?;
    if bytes as u64 <= limit.rlim_cur { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EFBIG)) }
}

fn memfd(name: &CStr, flags: libc::c_uint) -> io::Result<OwnedFd> {
    // SAFETY: `name` is a C string that outlives the call.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    // SAFETY: memfd_create returned it just now: open, and nobody else's.
    descriptors::aside(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Bytes of a range of such memory that were touched and so take memory. Moves the descriptor's position.
pub fn touched(fd: BorrowedFd<'_>, range: Range<u64>) -> io::Result<u64> {
    let seek = |from: u64, whence| {
        // SAFETY: the descriptor is open while it is borrowed; the call takes no pointer.
        let found = unsafe { libc::lseek(fd.as_raw_fd(), from as libc::off_t, whence) };
        u64::try_from(found).map_err(|_| io::Error::last_os_error())
    };
    let (mut at, mut bytes) = (range.start, 0);
    while at < range.end {
        let data = match seek(at, libc::SEEK_DATA) {
            Ok(data) => data.min(range.end),
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break, // none from here to the end
            Err(error) => return Err(error),
        };
        if data == range.end {
            break;
        }
        at = seek(data, libc::SEEK_HOLE)?.min(range.end);
        bytes += at - data;
    }
    Ok(bytes)
}

/// Says whether programs started by exec keep the descriptor.
pub fn set_inheritable(fd: BorrowedFd<'_>, inheritable: bool) -> io::Result<()> {
    let flags = if inheritable { 0 } else { libc::FD_CLOEXEC };
    // SAFETY: the descriptor is open while it is borrowed; F_SETFD takes an int.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, flags) }).map(drop)
}

/// Maps at an address whatever was there, by the call itself: the C API may define `mmap` for programs, and refuses them
/// what is shared. `fd`: the file and the offset in it; none: fresh memory. Calls only the kernel. Returns the address.
///
/// # Safety
/// Without `MAP_FIXED` none. With it the range is the caller's to give up: a mapping of its own, or one whose users are
/// prepared for what they find there from now on.
pub unsafe fn map<T>(
    start: *mut T,
    bytes: usize,
    rights: i32,
    flags: i32,
    file: Option<(BorrowedFd<'_>, usize)>,
) -> io::Result<*mut T> {
    let (fd, offset, flags) = match file {
        Some((fd, offset)) => (i64::from(fd.as_raw_fd()), offset, flags),
        None => (-1, 0, flags | libc::MAP_ANONYMOUS),
    };
    let (rights, flags) = (i64::from(rights), i64::from(flags));
    // SAFETY: the caller's promise. The arguments are as wide as the kernel's.
    let mapped = unsafe { libc::syscall(libc::SYS_mmap, start, bytes, rights, flags, fd, offset) };
    if mapped == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(std::ptr::with_exposed_provenance_mut(mapped as usize))
}

/// Sets the rights of whole pages, by the call itself, likewise. Calls only the kernel.
///
/// # Safety
/// The range is the caller's: a mapping of its own, or one whose users are prepared for faults.
pub unsafe fn protect<T>(start: *mut T, bytes: usize, rights: i32) -> io::Result<()> {
    // SAFETY: the caller's promise. The arguments are as wide as the kernel's.
    let done = unsafe { libc::syscall(libc::SYS_mprotect, start, bytes, i64::from(rights)) };
    check(done as libc::c_int).map(drop)
}

/// Gives the kernel advice about whole pages. Calls only the kernel.
///
/// # Safety
/// The range is the caller's, and if the advice lets go of bytes, they can be had again or are not needed.
pub(crate) unsafe fn advise<T>(start: *mut T, bytes: usize, advice: i32) -> io::Result<()> {
    // SAFETY: the caller's promise.
    check(unsafe { libc::madvise(start.cast(), bytes, advice) }).map(drop)
}

/// Gives addresses back to the kernel. A failure (the process's limit of mappings, if the range has to be cut out of a merged one) only
/// leaks them. Calls only the kernel.
///
/// # Safety
/// The caller owns the mapping, and nothing uses it any more.
pub(crate) unsafe fn unmap<T>(start: *mut T, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_munmap, start, bytes) };
}

/// A mapping this process owns: unmapped on drop. Whoever makes pointers or references into it answers for their
/// lifetime and for data races; the type only keeps the addresses alive.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a Mapping is an address range. Its methods hand out raw pointers and lengths only, and mapped memory
// belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as for Send; no method changes anything through a shared reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file, readable and writable, shared, wherever the kernel likes.
    pub fn shared(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Self::map(None, bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, Some(fd))
    }

    /// The same at an address that must be free: `EEXIST` if anything is mapped in the range.
    pub fn shared_at(fd: BorrowedFd<'_>, address: usize, bytes: usize) -> io::Result<Self> {
        Self::map(Some(address), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, Some(fd))
    }

    /// Keeps an address range for later: no access, no memory. `EEXIST` if anything is mapped in it.
    /// [`crate::view::View::in_reservation`] puts a view there.
    pub fn reserve(address: usize, bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
        Self::map(Some(address), bytes, libc::PROT_NONE, flags, None)
    }

    /// Anonymous memory without access, wherever the kernel likes.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
        Self::map(None, bytes, libc::PROT_NONE, flags, None)
    }

    /// Memory of this process alone, zero at first, that takes room where it is touched: a page at a time, not a huge one.
    pub(crate) fn private(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
        let mapping = Self::map(None, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, None)?;
        // SAFETY: our own mapping; the advice changes no byte. A kernel without huge pages refuses it, and needs it not.
        let _ = unsafe { advise(mapping.as_ptr(), bytes, libc::MADV_NOHUGEPAGE) };
        Ok(mapping)
    }

    /// As [`Mapping::shared_at`], with other rights.
    pub(crate) fn shared_with(fd: BorrowedFd<'_>, address: usize, bytes: usize, prot: i32) -> io::Result<Self> {
        Self::map(Some(address), bytes, prot, libc::MAP_SHARED, Some(fd))
    }

    /// Replaces the whole of this mapping by a shared one of `fd`, with no moment at which the range is free.
    pub(crate) fn replace(self, fd: BorrowedFd<'_>, prot: i32) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: MAP_FIXED replaces exactly the range that `self` owns, and `self` was given up by its owner.
        unsafe { map(self.as_ptr(), self.bytes, prot, flags, Some((fd, 0))) }?;
        // On failure `self` is dropped and unmaps what is left of the range.
        Ok(self)
    }

    fn map(at: Option<usize>, bytes: usize, prot: i32, flags: i32, fd: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let fixed = if at.is_some() { libc::MAP_FIXED_NOREPLACE } else { 0 };
        let hint = std::ptr::without_provenance_mut(at.unwrap_or(0));
        // SAFETY: without MAP_FIXED (NOREPLACE fails instead) the call never touches an existing mapping.
        let start = unsafe { map(hint, bytes, prot, flags | fixed, fd.map(|fd| (fd, 0))) }?;
        let start = NonNull::new(start).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let mapping = Self { start, bytes };
        // Kernels before 4.17 take NOREPLACE for a hint. Dropping `mapping` gives the wrong place back.
        if at.is_some_and(|at| at != mapping.address()) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        Ok(mapping)
    }

    /// Makes sure that pages are there and mapped, with one system call instead of a fault for each. Only for speed: what cannot be had
    /// is left to the faults.
    pub fn populate(&self, bytes: Range<usize>) {
        if bytes.start < bytes.end && bytes.end <= self.bytes() {
            calls::one();
            // SAFETY: a part of our own mapping; the advice changes no byte of it.
            let _ = unsafe { advise(self.as_ptr().add(bytes.start), bytes.len(), libc::MADV_POPULATE_WRITE) };
        }
    }

    /// Leaves the mapping out of the process's cores. Only for their size: where the kernel refuses, it stays in them.
    pub fn leave_out_of_cores(&self) {
        // SAFETY: our own mapping; the advice changes no byte of it.
        let _ = unsafe { advise(self.as_ptr(), self.bytes, libc::MADV_DONTDUMP) };
    }

    /// Sets the rights of some of its pages. An access that needs more raises a signal.
    pub(crate) fn protect(&self, bytes: Range<usize>, rights: i32) -> io::Result<()> {
        assert!(bytes.start <= bytes.end && bytes.end <= self.bytes, "inside the mapping");
        // SAFETY: a part of our own mapping.
        unsafe { protect(self.as_ptr().add(bytes.start), bytes.len(), rights) }
    }

    /// The first byte.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The address of the first byte.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start.as_ptr().addr()
    }

    /// The length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The length in whole pages.
    #[must_use]
    pub const fn pages(&self) -> usize {
        self.bytes / PAGE_BYTES
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range came from `map` and this is its only owner.
        unsafe { unmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn only_what_was_touched_takes_memory() {
        let fd = create(c"test", 64 * PAGE_BYTES).unwrap();
        let page = PAGE_BYTES as u64;
        assert_eq!(touched(fd.as_fd(), 0..64 * page).unwrap(), 0);
        let mapping = Mapping::shared(fd.as_fd(), 64 * PAGE_BYTES).unwrap();
        for number in [3, 4, 40] {
            // SAFETY: the page lies in the mapping, which nobody else knows.
            unsafe { mapping.as_ptr().add(number * PAGE_BYTES).write(1) };
        }
        assert_eq!(touched(fd.as_fd(), 0..64 * page).unwrap(), 3 * page);
        assert_eq!(touched(fd.as_fd(), 4 * page..40 * page).unwrap(), page);
    }

    #[test]
    fn two_mappings_of_a_memfd_show_each_others_writes() {
        let fd = create(c"test", 3 * PAGE_BYTES).unwrap();
        let one = Mapping::shared(fd.as_fd(), 3 * PAGE_BYTES).unwrap();
        let two = Mapping::shared_at(fd.as_fd(), 0x2345_0000_0000, 3 * PAGE_BYTES).unwrap();
        assert_eq!(two.address(), 0x2345_0000_0000);
        // SAFETY: both are mapped read-write for 3 pages, and no other thread knows of them.
        unsafe {
            one.as_ptr().add(5000).write(7);
            assert_eq!(two.as_ptr().add(5000).read(), 7);
        }
    }

    #[test]
    fn a_fixed_address_that_is_taken_is_refused() {
        let taken = Mapping::reserve(0x2346_0000_0000, 2 * PAGE_BYTES).unwrap();
        let error = Mapping::reserve(taken.address() + PAGE_BYTES, PAGE_BYTES).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EEXIST));
        drop(taken);
        Mapping::reserve(0x2346_0000_0000, 2 * PAGE_BYTES).unwrap();
    }

    #[test]
    fn the_size_of_a_memfd_is_sealed() {
        let fd = create(c"test", PAGE_BYTES).unwrap();
        for bytes in [0, 2 * PAGE_BYTES] {
            // SAFETY: the descriptor is open; no pointer is passed.
            let result = unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) };
            assert_eq!(result, -1);
        }
    }

    #[test]
    fn descriptors_are_inherited_on_demand_only() {
        let fd = create(c"test", PAGE_BYTES).unwrap();
        let flags = || {
            // SAFETY: the descriptor is open; F_GETFD takes no argument.
            unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFD) }
        };
        assert_eq!(flags(), libc::FD_CLOEXEC);
        set_inheritable(fd.as_fd(), true).unwrap();
        assert_eq!(flags(), 0);
        set_inheritable(fd.as_fd(), false).unwrap();
        assert_eq!(flags(), libc::FD_CLOEXEC);
    }
}
