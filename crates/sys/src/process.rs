//! What a process can find out about itself.

use crate::memory::{self, Mapping};
use crate::{PAGE_BYTES, check};
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many cores a set can tell apart.
const CORES_MAX: u32 = libc::CPU_SETSIZE as u32;

/// True if no other thread exists now. Before one relies on it: only this thread could start another.
pub fn is_single_threaded() -> io::Result<bool> {
    Ok(std::fs::read_dir("/proc/self/task")?.take(2).count() == 1)
}

/// A set of cores.
#[derive(Clone, Copy)]
pub struct Cores(libc::cpu_set_t);

impl Cores {
    /// Those that this thread may run on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn allowed() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: `set` is as large as the kernel is told; zeros and what the kernel wrote are both valid sets.
        let set = unsafe {
            check(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()))?;
            set.assume_init()
        };
        Ok(Self(set))
    }

    /// Those of these numbers that a set can hold.
    #[must_use]
    pub fn of(numbers: &[u32]) -> Self {
        // SAFETY: a set of zeros is valid.
        let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
        for &number in numbers.iter().filter(|number| **number < CORES_MAX) {
            // SAFETY: `number` is below CPU_SETSIZE.
            unsafe { libc::CPU_SET(number as usize, &mut set) };
        }
        Self(set)
    }

    /// Their numbers, in order.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        // SAFETY: each number is below CPU_SETSIZE.
        (0..CORES_MAX).filter(|&number| unsafe { libc::CPU_ISSET(number as usize, &self.0) }).collect()
    }

    /// Keeps the calling thread, and whatever it starts from now on, on them. One system call, which allocates nothing: may be made
    /// between fork and exec.
    ///
    /// # Errors
    /// The kernel's: `EINVAL` if the thread may run on none of them.
    pub fn stay(&self) -> io::Result<()> {
        // SAFETY: the set is as large as the kernel is told.
        check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.0) }).map(drop)
    }
}

impl std::fmt::Debug for Cores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.numbers()).finish()
    }
}

thread_local! {
    /// See [`thread_id`]; 0: not asked for yet.
    static THREAD: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// The kernel's number of the calling thread, asked for once. In a child made by fork it is the parent's.
#[must_use]
pub fn thread_id() -> u32 {
    if THREAD.get() == 0 {
        // SAFETY: takes and returns plain numbers.
        THREAD.set(unsafe { libc::gettid() }.cast_unsigned());
    }
    THREAD.get()
}

/// The calling thread is another than the one that asked last: it has been copied.
pub(crate) fn forget_thread_id() {
    THREAD.set(0);
}

/// The number of cores this thread may run on.
pub fn cpus() -> io::Result<usize> {
    Ok(Cores::allowed()?.numbers().len().max(1))
}

/// Puts this process, and whatever it starts, on one of the cores it may run on: the `number`th of them, counted around.
///
/// # Errors
/// The kernel's.
pub fn stay_on_one_cpu(number: usize) -> io::Result<()> {
    let cores = Cores::allowed()?.numbers();
    let Some(&core) = cores.get(number % cores.len().max(1)) else { return Ok(()) };
    Cores::of(&[core]).stay()
}

/// Blocks all signals of this thread until dropped; then the mask is as before.
///
/// The thread must not touch a view meanwhile: a fault whose signal is blocked kills the process. May be used in the
/// fault handler.
#[derive(Debug)]
pub struct SignalsBlocked {
    /// The kernel's mask: bit n - 1 for signal n.
    before: u64,
    /// The first of this thread, whose `before` is the program's own mask.
    is_outermost: bool,
    /// The mask belongs to the thread: not Send.
    _thread: std::marker::PhantomData<*const ()>,
}

impl SignalsBlocked {
    /// Blocks them.
    #[must_use = "the signals are let in again when this is dropped"]
    pub fn new() -> Self {
        let before = set_mask(!OF_THE_C_LIBRARY);
        let is_outermost = OF_PROGRAM.get().is_none();
        if is_outermost {
            OF_PROGRAM.set(Some(before));
        }
        Self { before, is_outermost, _thread: std::marker::PhantomData }
    }
}

thread_local! {
    /// The program's own mask while a [`SignalsBlocked`] of this thread lives.
    static OF_PROGRAM: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// Runs `body` with the mask that the program had before the outermost [`SignalsBlocked`] of this thread; without one it just
/// runs it.
pub(crate) fn with_mask_of_program<R>(body: impl FnOnce() -> R) -> R {
    // Taken meanwhile: what a handler of the program does in here has a mask of its own, in which its signal is blocked.
    let Some(program) = OF_PROGRAM.take() else { return body() };
    set_mask(program);
    let result = body();
    set_mask(!OF_THE_C_LIBRARY);
    OF_PROGRAM.set(Some(program));
    result
}

impl Default for SignalsBlocked {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        if self.is_outermost {
            OF_PROGRAM.set(None);
        }
        set_mask(self.before);
    }
}

/// Puts `errno` back, when dropped, to what it was when this was made.
#[derive(Debug)]
pub struct ErrnoKept {
    before: c_int,
    /// It belongs to the thread: not Send.
    _thread: std::marker::PhantomData<*const ()>,
}

impl ErrnoKept {
    /// Notes it.
    #[must_use = "errno is put back when this is dropped"]
    pub fn new() -> Self {
        // SAFETY: the address of this thread's errno, valid while the thread runs.
        Self { before: unsafe { libc::__errno_location().read() }, _thread: std::marker::PhantomData }
    }
}

impl Default for ErrnoKept {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ErrnoKept {
    fn drop(&mut self) {
        // SAFETY: as in `new`; this is the same thread.
        unsafe { libc::__errno_location().write(self.before) };
    }
}

/// Signals 32 and 33: glibc uses them to cancel threads and to change the user of all, and does not want them blocked.
const OF_THE_C_LIBRARY: u64 = 0b11 << 31;

/// How faults arrive, and single steps ([`crate::watch`]).
pub(crate) const OF_FAULTS_AND_TRAPS: u64 =
    1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGBUS - 1) | 1 << (libc::SIGTRAP - 1) | OF_THE_C_LIBRARY;

/// Sets this thread's mask; the one before. Asks the kernel, not the C library: our C API defines `pthread_sigmask` itself,
/// in order that a program cannot block SIGSEGV and SIGBUS, and that must not end up here.
fn set_mask(mask: u64) -> u64 {
    set_mask_by(libc::SIG_SETMASK, mask)
}

/// The same in one of the ways of `sigprocmask(2)`.
pub(crate) fn set_mask_by(way: c_int, mask: u64) -> u64 {
    let mut before = 0_u64;
    crate::calls::one();
    // SAFETY: both are 8 bytes, as the kernel is told. It cannot fail: all callers' ways are valid.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, way, &raw const mask, &raw mut before, size_of::<u64>()) };
    before
}

/// Tells the process that made it from its children by fork, which have a copy of everything but not of what the
/// kernel ties to an address space. One load; may be asked in the fault handler.
#[derive(Debug)]
pub struct ForkMark(Mapping);

impl ForkMark {
    /// Marks this process.
    pub fn new() -> io::Result<Self> {
        let page = Mapping::anonymous(PAGE_BYTES)?;
        page.protect(0..PAGE_BYTES, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: all of our own mapping; private anonymous memory, as this advice wants.
        unsafe { memory::advise(page.as_ptr(), PAGE_BYTES, libc::MADV_WIPEONFORK) }?;
        let mark = Self(page);
        mark.word().store(1, Ordering::Relaxed);
        Ok(mark)
    }

    /// True in the process that made the mark, false in a child of fork.
    #[inline]
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.word().load(Ordering::Relaxed) == 1
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is readable and writable as long as `self`, aligned, and used only through this.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().cast()) }
    }
}

/// The main program of this process as loaded: where it is and which build it is.
///
/// A function of the program has the same offset in every process that runs the same build, wherever address-space
/// randomisation put it. Functions of shared libraries have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The addresses of the program's image.
    pub image: Range<usize>,
    /// The linker's build id in hexadecimal; without one, a hash of the program's file, with `file-` before it.
    pub build_id: String,
}

impl Program {
    /// Looks at the running program.
    pub fn of_this_process() -> io::Result<Self> {
        let mut found = Found { start: usize::MAX, end: 0, build_id: None };
        // SAFETY: `on_image` gets `found`, which outlives the call, and is called by this thread only.
        unsafe { libc::dl_iterate_phdr(Some(on_image), (&raw mut found).cast()) };
        let build_id = match found.build_id {
            Some(id) => id.iter().map(|byte| format!("{byte:02x}")).collect(),
            None => format!("file-{:016x}", fnv1a(&std::fs::read("/proc/self/exe")?)),
        };
        Ok(Self { image: found.start..found.end, build_id })
    }

    /// An address of the program as an offset that means the same in every process of this build.
    #[must_use]
    pub fn offset_of(&self, address: usize) -> Option<u64> {
        self.image.contains(&address).then(|| (address - self.image.start) as u64)
    }

    /// The address of an offset in this process.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<usize> {
        let address = self.image.start.checked_add(usize::try_from(offset).ok()?)?;
        self.image.contains(&address).then_some(address)
    }
}

struct Found {
    start: usize,
    end: usize,
    build_id: Option<Vec<u8>>,
}

/// Called for each loaded image; the first is the main program, and the 1 ends the round.
unsafe extern "C" fn on_image(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker passes a filled entry, and the pointer that `of_this_process` gave it.
    let (info, found) = unsafe { (&*info, &mut *data.cast::<Found>()) };
    // SAFETY: the entry says how many headers there are; they are mapped as long as the program.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for header in headers {
        let start = (info.dlpi_addr + header.p_vaddr) as usize;
        if header.p_type == libc::PT_LOAD {
            found.start = found.start.min(start);
            found.end = found.end.max(start + header.p_memsz as usize);
        } else if header.p_type == libc::PT_NOTE && found.build_id.is_none() {
            // SAFETY: the notes of a program are part of its loaded image, read-only.
            let notes = unsafe {
                std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start), header.p_memsz as usize)
            };
            found.build_id = build_id_in(notes);
        }
    }
    1
}

/// The build id in a segment of notes: entries of (name length, contents length, type), name, contents, each padded
/// to four bytes.
fn build_id_in(notes: &[u8]) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let word = |at: usize| Some(u32::from_ne_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let (name, contents, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let contents_at = 12 + name.next_multiple_of(4);
        let bytes = rest.get(contents_at..contents_at + contents)?;
        if kind == NT_GNU_BUILD_ID && rest.get(12..12 + name)? == b"GNU\0" {
            return Some(bytes.to_vec());
        }
        rest = rest.get(contents_at + contents.next_multiple_of(4)..)?;
    }
}

/// Fowler, Noll and Vo's hash, 64 bits: tells builds apart, and is no protection against anybody.
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_the_program_has_an_offset_that_leads_back_to_it() {
        let program = Program::of_this_process().unwrap();
        let address = fnv1a as *const () as usize;
        let offset = program.offset_of(address).unwrap();
        assert_eq!(program.address_of(offset), Some(address));
        assert_eq!(program.offset_of(libc::getppid as *const () as usize), None);
        assert_eq!(program.address_of(u64::MAX), None);
    }

    #[test]
    fn the_build_id_is_found_and_stays_the_same() {
        let program = Program::of_this_process().unwrap();
        assert!(program.build_id.len() >= 16);
        assert_eq!(program, Program::of_this_process().unwrap());
    }

    #[test]
    fn the_build_id_is_read_behind_other_notes() {
        let mut notes = Vec::new();
        for (kind, contents) in [(1_u32, &b"abcde"[..]), (3, &b"\x01\x02\x03"[..])] {
            for word in [4, contents.len() as u32, kind] {
                notes.extend(word.to_ne_bytes());
            }
            notes.extend(b"GNU\0");
            notes.extend(contents);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_in(&notes), Some(vec![1, 2, 3]));
        assert_eq!(build_id_in(&notes[..20]), None);
        assert_eq!(build_id_in(&[]), None);
    }

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of the FNV page: the empty string and "a".
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn blocked_signals_wait_until_the_guard_is_dropped() {
        fn is_blocked(signal: c_int) -> bool {
            let mut mask = MaybeUninit::zeroed();
            // SAFETY: null changes nothing; `mask` is valid to write to.
            unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
                libc::sigismember(mask.as_ptr(), signal) == 1
            }
        }
        assert!(!is_blocked(libc::SIGUSR1));
        let blocked = SignalsBlocked::new();
        assert!(is_blocked(libc::SIGUSR1) && is_blocked(libc::SIGSEGV));
        drop(blocked);
        assert!(!is_blocked(libc::SIGUSR1));
    }

    #[test]
    fn errno_is_as_before_when_the_guard_is_dropped() {
        let errno = || std::io::Error::last_os_error().raw_os_error();
        // SAFETY: no descriptor has this number.
        unsafe { libc::close(-1) };
        assert_eq!(errno(), Some(libc::EBADF));
        let kept = ErrnoKept::new();
        // SAFETY: no signal has this number.
        unsafe { libc::kill(0, -1) };
        assert_eq!(errno(), Some(libc::EINVAL));
        drop(kept);
        assert_eq!(errno(), Some(libc::EBADF));
    }

    #[test]
    fn a_thread_stays_on_the_cores_it_is_put_on() {
        std::thread::spawn(|| {
            let allowed = Cores::allowed().unwrap().numbers();
            let last = *allowed.last().unwrap();
            Cores::of(&[last, u32::MAX]).stay().unwrap();
            assert_eq!(Cores::allowed().unwrap().numbers(), [last]);
            Cores::of(&allowed).stay().unwrap();
            assert_eq!(cpus().unwrap(), allowed.len());
            assert!(Cores::of(&[]).stay().is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_second_thread_is_noticed() {
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!is_single_threaded().unwrap()));
        });
        assert!(cpus().unwrap() >= 1);
    }
}
