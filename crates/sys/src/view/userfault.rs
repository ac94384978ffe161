//! Rights by userfaultfd: design B of docs/kernel.md.
//!
//! The mapping itself is readable and writable; what a page allows is in its page-table entry:
//!
//! ```text
//!   no entry               any access raises SIGBUS     UFFDIO_CONTINUE makes the entry
//!   entry, write-protected stores raise SIGBUS          UFFDIO_WRITEPROTECT sets and clears it
//!   entry                  nothing raises               MADV_DONTNEED removes it; the memfd keeps the data
//! ```
//!
//! Registered for MINOR faults (page in the memfd, no entry), for WP, and for MISSING ones too: without the last the
//! kernel answers the first touch of a page that the sparse memfd does not have yet by itself, with a writable page
//! and no signal, and the protocol would never hear of it.
//!
//! `UFFD_USER_MODE_ONLY` needs no privilege. A system call given an address without rights gets `EFAULT`.

use super::marks::Joined;
use super::pages::{CHUNK, Pages};
use crate::memory::{self, Mapping};
use crate::{PAGE_BYTES, calls, check, descriptors};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

// <linux/userfaultfd.h>; the libc crate has none of it.
const UFFD_USER_MODE_ONLY: libc::c_int = 1;
const UFFD_API: u64 = 0xAA;
const FEATURE_PAGEFAULT_FLAG_WP: u64 = 1 << 0;
const FEATURE_MISSING_SHMEM: u64 = 1 << 5;
const FEATURE_SIGBUS: u64 = 1 << 7;
const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
const FEATURE_WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
const REGISTER_MISSING: u64 = 1 << 0;
const REGISTER_WP: u64 = 1 << 1;
const REGISTER_MINOR: u64 = 1 << 2;
const CONTINUE_MODE_DONTWAKE: u64 = 1 << 0;
const CONTINUE_MODE_WP: u64 = 1 << 1;
const WRITEPROTECT_MODE_WP: u64 = 1 << 0;
const WRITEPROTECT_MODE_DONTWAKE: u64 = 1 << 1;
/// Linux 5.18: as MADV_DONTNEED, also for memory that mlockall has locked.
const MADV_DONTNEED_LOCKED: libc::c_int = 24;

/// The features that must all be there, with the name under which their absence is reported.
const FEATURES: [(u64, &str); 5] = [
    (FEATURE_PAGEFAULT_FLAG_WP, "write-protect"),
    (FEATURE_WP_HUGETLBFS_SHMEM, "write-protect of shared memory (Linux 5.19)"),
    (FEATURE_MISSING_SHMEM, "missing faults of shared memory"),
    (FEATURE_MINOR_SHMEM, "minor faults of shared memory (Linux 5.14)"),
    (FEATURE_SIGBUS, "SIGBUS in the faulting thread"),
];

#[repr(C)]
struct Span {
    start: u64,
    bytes: u64,
}

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    span: Span,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Continue {
    span: Span,
    mode: u64,
    mapped: i64,
}

#[repr(C)]
struct WriteProtect {
    span: Span,
    mode: u64,
}

/// `_IOWR(0xAA, number, T)` of <asm-generic/ioctl.h>.
const fn request<T>(number: libc::Ioctl) -> libc::Ioctl {
    3 << 30 | (size_of::<T>() as libc::Ioctl) << 16 | 0xAA << 8 | number
}
const UFFDIO_API: libc::Ioctl = request::<Api>(0x3F);
const UFFDIO_REGISTER: libc::Ioctl = request::<Register>(0x00);
const UFFDIO_WRITEPROTECT: libc::Ioctl = request::<WriteProtect>(0x06);
const UFFDIO_CONTINUE: libc::Ioctl = request::<Continue>(0x07);

/// An open userfaultfd. The kernel ties it to the address space that opened it.
#[derive(Debug)]
struct Descriptor(OwnedFd);

impl Descriptor {
    /// Opens one and asks for every feature of [`FEATURES`].
    fn open() -> io::Result<Self> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | UFFD_USER_MODE_ONLY;
        // SAFETY: takes flags only.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        let fd = check(fd as libc::c_int)?;
        // SAFETY: the kernel returned it just now: open, and nobody else's.
        Ok(Self(descriptors::aside(unsafe { OwnedFd::from_raw_fd(fd) })?))
    }

    fn handshake(&self, features: u64) -> io::Result<u64> {
        let mut api = Api { api: UFFD_API, features, ioctls: 0 };
        self.ioctl(UFFDIO_API, &mut api)?;
        Ok(api.features)
    }

    fn register(&self, span: Span) -> io::Result<()> {
        let mode = REGISTER_MISSING | REGISTER_MINOR | REGISTER_WP;
        let mut register = Register { span, mode, ioctls: 0 };
        self.ioctl(UFFDIO_REGISTER, &mut register)
    }

    /// Makes the entries of a run that lies inside the window or outside of it, from its start on; returns how many. An error is
    /// about the next page: `EEXIST` if it has an entry, `EFAULT` if the memfd has no such page.
    fn make_entries(&self, range: Pages, pages: &Range<u32>, mode: u64) -> Result<u32, (u32, io::Error)> {
        let mut done = 0;
        while pages.start + done < pages.end {
            let span = span(range, &(pages.start + done..pages.end));
            // No thread ever sleeps on these faults, hence DONTWAKE.
            let mut order = Continue { span, mode: mode | CONTINUE_MODE_DONTWAKE, mapped: 0 };
            let result = self.ioctl(UFFDIO_CONTINUE, &mut order);
            // A run that could not be done to its end is EAGAIN too, and says how far it came; else what stopped it.
            done += u32::try_from(order.mapped).map_or(0, |bytes| bytes / PAGE_BYTES as u32);
            match result {
                Err(error) if error.raw_os_error() != Some(libc::EAGAIN) => return Err((done, error)),
                Err(_) => std::hint::spin_loop(),
                Ok(()) => {}
            }
        }
        Ok(done)
    }

    fn write_protect(&self, range: Pages, pages: &Range<u32>, on: bool) -> io::Result<()> {
        // The kernel refuses DONTWAKE together with WP, where nobody can sleep anyway.
        let mode = if on { WRITEPROTECT_MODE_WP } else { WRITEPROTECT_MODE_DONTWAKE };
        range.pieces(pages).try_for_each(|piece| {
            let mut order = WriteProtect { span: span(range, &piece), mode };
            retry(|| self.ioctl(UFFDIO_WRITEPROTECT, &mut order))
        })
    }

    fn ioctl<T>(&self, request: libc::Ioctl, argument: &mut T) -> io::Result<()> {
        calls::one();
        // SAFETY: `request` carries the size of T (`request` above), so the kernel reads and writes only `argument`.
        // The addresses inside it are of a view: what the ioctl changes there is its rights, never its bytes.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), request, std::ptr::from_mut(argument)) }).map(drop)
    }
}

fn span(range: Pages, pages: &Range<u32>) -> Span {
    let (start, bytes) = range.span(pages);
    Span { start: start as u64, bytes: bytes as u64 }
}

/// The kernel says EAGAIN when the address space changes under it (a page table freed, a fork): nothing is done yet.
fn retry(mut action: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match action() {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => std::hint::spin_loop(),
            result => return result,
        }
    }
}

/// The rights of one view.
#[derive(Debug)]
pub(super) struct Userfault {
    range: Pages,
    descriptor: Descriptor,
    frames: OwnedFd,
    /// This process, if the kernel takes a vector of ranges to drop (Linux 6.13).
    process: Option<OwnedFd>,
}

impl Userfault {
    /// Registers the mapping at `range`, of `frames` from its start.
    pub(super) fn new(range: Pages, frames: OwnedFd) -> io::Result<Self> {
        let descriptor = Descriptor::open()?;
        descriptor.handshake(FEATURES.iter().map(|feature| feature.0).sum())?;
        descriptor.register(span(range, &(0..range.count)))?;
        let mut userfault = Self { range, descriptor, frames, process: None };
        let process = open_process()?;
        userfault.process = userfault.drop_vector(&process, &[userfault.io_vector(&(0..1))]).ok().map(|_| process);
        Ok(userfault)
    }

    /// Registers the window that `range` has, mapped just now.
    pub(super) fn open_window(&mut self, range: Pages, pages: &Range<u32>) -> io::Result<()> {
        self.descriptor.register(span(range, pages))?;
        self.range = range;
        Ok(())
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.0.as_fd()
    }

    pub(super) fn map_read(&self, page: u32) -> io::Result<()> {
        if self.make_entry(page, CONTINUE_MODE_WP)? {
            return Ok(());
        }
        self.write_protect(page..page + 1, true)
    }

    /// Pages that have an entry keep it as it is.
    pub(super) fn map_read_run(&self, pages: Range<u32>) -> io::Result<()> {
        self.range.pieces(&pages).try_for_each(|piece| {
            let mut rest = piece;
            while !rest.is_empty() {
                match self.descriptor.make_entries(self.range, &rest, CONTINUE_MODE_WP) {
                    Ok(_) => return Ok(()),
                    Err((done, error)) => {
                        rest.start += done;
                        match error.raw_os_error() {
                            Some(libc::EEXIST) => rest.start += 1,
                            Some(libc::EFAULT) => self.fill(&rest)?,
                            Some(_) | None => return Err(error),
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Nobody touched some frames yet: the memfd has holes there. Fills them with zeros, as reading would.
    fn fill(&self, pages: &Range<u32>) -> io::Result<()> {
        let (offset, bytes) = (i64::from(pages.start) * PAGE_BYTES as i64, pages.len() as i64 * PAGE_BYTES as i64);
        calls::one();
        // SAFETY: `frames` is open; the call takes no pointer, and never changes bytes that are there.
        check(unsafe { libc::fallocate(self.frames.as_raw_fd(), 0, offset, bytes) }).map(drop)
    }

    pub(super) fn map_write(&self, page: u32) -> io::Result<()> {
        if self.make_entry(page, 0)? {
            return Ok(());
        }
        self.write_protect(page..page + 1, false)
    }

    /// False if the page has an entry already.
    fn make_entry(&self, page: u32, mode: u64) -> io::Result<bool> {
        let run = page..page + 1;
        let mut result = self.descriptor.make_entries(self.range, &run, mode);
        if result.as_ref().is_err_and(|(_, error)| error.raw_os_error() == Some(libc::EFAULT)) {
            self.fill(&run)?;
            result = self.descriptor.make_entries(self.range, &run, mode);
        }
        match result {
            Ok(_) => Ok(true),
            Err((_, error)) if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
            Err((_, error)) => Err(error),
        }
    }

    pub(super) fn write_protect(&self, pages: Range<u32>, on: bool) -> io::Result<()> {
        self.descriptor.write_protect(self.range, &pages, on)
    }

    pub(super) fn invalidate(&self, pages: Range<u32>) -> io::Result<()> {
        self.range.pieces(&pages).try_for_each(|piece| self.invalidate_piece(&piece))
    }

    fn invalidate_piece(&self, pages: &Range<u32>) -> io::Result<()> {
        let (start, bytes) = self.range.pointer(pages);
        calls::one();
        // SAFETY: the range lies in the view (checked in `View`), which is a shared mapping of a memfd: dropping
        // entries loses no byte, the next touch faults.
        let dropped = unsafe { memory::advise(start, bytes, libc::MADV_DONTNEED) };
        match dropped {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                calls::one();
                // SAFETY: as above.
                unsafe { memory::advise(start, bytes, MADV_DONTNEED_LOCKED) }
            }
            dropped => dropped,
        }
    }

    /// At most [`CHUNK`] ranges.
    pub(super) fn invalidate_ranges(&self, ranges: Joined<'_>) -> io::Result<()> {
        let Some(process) = &self.process else {
            return self.invalidate_each(ranges);
        };
        let mut vector = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; CHUNK];
        let mut count = 0;
        let again = ranges.clone();
        for range in ranges {
            vector[count] = self.io_vector(&range);
            count += 1;
        }
        // One range is cheaper by a plain madvise. A vector that was not done to its end is done again one by one:
        // dropping what is dropped already does nothing.
        let asked = vector[..count].iter().map(|entry| entry.iov_len).sum::<usize>();
        if count > 1 && self.drop_vector(process, &vector[..count]).is_ok_and(|done| done == asked) {
            return Ok(());
        }
        self.invalidate_each(again)
    }

    fn invalidate_each(&self, mut ranges: Joined<'_>) -> io::Result<()> {
        ranges.try_for_each(|range| self.invalidate(range))
    }

    fn io_vector(&self, pages: &Range<u32>) -> libc::iovec {
        let (iov_base, iov_len) = self.range.pointer(pages);
        libc::iovec { iov_base, iov_len }
    }

    /// Returns the number of bytes done.
    fn drop_vector(&self, process: &OwnedFd, vector: &[libc::iovec]) -> io::Result<usize> {
        let (fd, advice) = (process.as_raw_fd(), libc::MADV_DONTNEED);
        calls::one();
        let (entries, count) = (vector.as_ptr(), vector.len());
        // SAFETY: every entry is a range of the view (`io_vector` of checked pages), the process is ourselves; see
        // `invalidate` for why nothing is lost.
        let done = unsafe { libc::syscall(libc::SYS_process_madvise, fd, entries, count, advice, 0_u32) };
        usize::try_from(done).map_err(|_| io::Error::last_os_error())
    }
}

fn open_process() -> io::Result<OwnedFd> {
    // SAFETY: takes a process number and flags.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0_u32) };
    let fd = check(fd as libc::c_int)?;
    // SAFETY: the kernel returned it just now: open (close-on-exec by default), and nobody else's.
    descriptors::aside(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Another process's view, changed from here: made of its [`super::View::descriptor`], inherited or sent. What needs
/// the page tables of the owner (invalidation) stays with the owner.
#[derive(Debug)]
pub struct Remote {
    range: Pages,
    descriptor: Descriptor,
}

impl Remote {
    /// The view of `bytes` at `base` in the process that made `descriptor`.
    pub fn new(descriptor: OwnedFd, base: usize, bytes: usize) -> io::Result<Self> {
        Ok(Self { range: Pages::new(base, bytes)?, descriptor: Descriptor(descriptor) })
    }

    /// Makes writable pages of that process read-only; when this returns, its stores fault.
    pub fn protect(&self, pages: Range<u32>) -> io::Result<()> {
        self.range.check(&pages)?;
        self.descriptor.write_protect(self.range, &pages, true)
    }
}

/// Does everything a view does to two pages of scratch memory. The error says in words what is refused.
pub(crate) fn try_everything() -> Result<Tried, String> {
    let words = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let available = Descriptor::open()
        .map_err(words("userfaultfd(UFFD_USER_MODE_ONLY)"))?
        .handshake(0)
        .map_err(words("UFFDIO_API"))?;
    for (feature, name) in FEATURES {
        if available & feature == 0 {
            return Err(format!("userfaultfd has no {name}"));
        }
    }
    let bytes = 2 * PAGE_BYTES;
    let frames = memory::create(c"finespun-probe", bytes).map_err(words("memfd_create"))?;
    let mapping = Mapping::shared(frames.as_fd(), bytes).map_err(words("mmap of a memfd"))?;
    let range = Pages::new(mapping.address(), bytes).map_err(words("mmap of a memfd"))?;
    let userfault = Userfault::new(range, frames).map_err(words("UFFDIO_REGISTER (missing, minor, wp)"))?;
    userfault.map_read(0).map_err(words("UFFDIO_CONTINUE, write-protected"))?;
    userfault.write_protect(0..1, false).map_err(words("UFFDIO_WRITEPROTECT"))?;
    userfault.write_protect(0..1, true).map_err(words("UFFDIO_WRITEPROTECT"))?;
    userfault.map_write(1).map_err(words("UFFDIO_CONTINUE"))?;
    userfault.invalidate(0..2).map_err(words("MADV_DONTNEED"))?;
    Ok(Tried { process_madvise: userfault.process.is_some() })
}

/// What else the trial found out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tried {
    pub(crate) process_madvise: bool,
}

/// Which of the features the kernel knows, by their bits; `Err` if there is no userfaultfd for us.
pub(crate) fn features() -> io::Result<Features> {
    let bits = Descriptor::open()?.handshake(0)?;
    Ok(Features {
        write_protect: bits & FEATURE_WP_HUGETLBFS_SHMEM != 0,
        minor_shmem: bits & FEATURE_MINOR_SHMEM != 0,
        sigbus: bits & FEATURE_SIGBUS != 0,
    })
}

/// Features of userfaultfd, by what the kernel says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    pub(crate) write_protect: bool,
    pub(crate) minor_shmem: bool,
    pub(crate) sigbus: bool,
}
