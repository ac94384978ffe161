//! A small engine for the tests: books of what each page allows, a handler that answers faults by them, and eyes
//! that see the rights without faulting.
#![allow(dead_code, reason = "each test program uses its own part of it")]

use finespun_sys::faults::{self, FaultKind};
use finespun_sys::lock::WordLock;
use finespun_sys::memory::{self, Mapping};
use finespun_sys::view::{Mechanism, View};
use finespun_sys::{PAGE_BYTES, probe};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Where the views of the tests are.
pub const BASE: usize = 0x2000_0000_0000;

/// What a page allows, in the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    None,
    Read,
    Write,
}

/// The view, the engine's mapping of the same frames, and the books.
pub struct Rig {
    pub view: View,
    pub engine: Mapping,
    pub frames: OwnedFd,
    pub read_faults: AtomicU64,
    pub write_faults: AtomicU64,
    /// Faults on pages that were open by the books.
    pub repairs: AtomicU64,
    books: Vec<AtomicU8>,
    locks: Vec<WordLock>,
    pipe: (OwnedFd, OwnedFd),
}

static RIG: OnceLock<Rig> = OnceLock::new();

/// Makes the rig of this process, once, with its fault handler installed.
pub fn rig(mechanism: Mechanism, pages: usize) -> &'static Rig {
    install(Rig::new(mechanism, pages))
}

/// The same with a window over what is mapped at an address now.
pub fn rig_with_window(mechanism: Mechanism, pages: usize, address: usize, run: std::ops::Range<u32>) -> &'static Rig {
    let mut rig = Rig::new(mechanism, pages);
    // SAFETY: the caller's own mapping, which it gives up.
    unsafe { rig.view.open_window(rig.frames.as_fd(), address, run) }.unwrap();
    faults::set_window(rig.view.window());
    install(rig)
}

fn install(rig: Rig) -> &'static Rig {
    let (addresses, mechanism) = (rig.view.addresses(), rig.view.mechanism());
    assert!(RIG.set(rig).is_ok(), "one rig a process");
    faults::install(addresses, mechanism, answer).unwrap();
    RIG.get().unwrap()
}

fn answer(address: usize, kind: FaultKind) -> bool {
    RIG.get().is_some_and(|rig| rig.answer(address, kind))
}

impl Rig {
    fn new(mechanism: Mechanism, pages: usize) -> Self {
        let bytes = pages * PAGE_BYTES;
        let frames = memory::create(c"finespun-test", bytes).unwrap();
        let mut ends = [0; 2];
        // SAFETY: `ends` is two ints to write to.
        assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) }, 0);
        // SAFETY: pipe2 returned them just now.
        let pipe = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        Self {
            view: View::new(frames.as_fd(), BASE, bytes, Some(mechanism)).unwrap(),
            engine: Mapping::shared(frames.as_fd(), bytes).unwrap(),
            frames,
            read_faults: AtomicU64::new(0),
            write_faults: AtomicU64::new(0),
            repairs: AtomicU64::new(0),
            books: (0..pages).map(|_| AtomicU8::new(0)).collect(),
            locks: (0..pages).map(|_| WordLock::new()).collect(),
            pipe,
        }
    }

    /// The fault handler: opens the page for what was tried, or as the books say it should be open already.
    fn answer(&self, address: usize, kind: FaultKind) -> bool {
        let Some(page) = self.view.page_of(address) else { return false };
        let _guard = self.locks[page as usize].guard();
        let (wanted, faults) = match kind {
            FaultKind::Read => (Rights::Read, &self.read_faults),
            FaultKind::Write => (Rights::Write, &self.write_faults),
            FaultKind::Unknown => return false,
        };
        faults.fetch_add(1, Ordering::Relaxed);
        let open = self.booked(page);
        self.book(page, wanted.max(open));
        let result = match (open, wanted) {
            (Rights::Read, Rights::Write) => self.view.upgrade(page),
            (Rights::None, Rights::Read) => self.view.map_read(page),
            (Rights::None, _) => self.view.map_write(page),
            (Rights::Read, _) => {
                self.repairs.fetch_add(1, Ordering::Relaxed);
                self.view.map_read(page)
            }
            (Rights::Write, _) => {
                self.repairs.fetch_add(1, Ordering::Relaxed);
                self.view.map_write(page)
            }
        };
        result.is_ok()
    }

    /// What the page allows by the books.
    pub fn booked(&self, page: u32) -> Rights {
        match self.books[page as usize].load(Ordering::Relaxed) {
            0 => Rights::None,
            1 => Rights::Read,
            _ => Rights::Write,
        }
    }

    /// Notes what the page allows.
    pub fn book(&self, page: u32, rights: Rights) {
        self.books[page as usize].store(rights as u8, Ordering::Relaxed);
    }

    /// The page's lock: the handler holds it while it answers.
    pub fn lock(&self, page: u32) -> &WordLock {
        &self.locks[page as usize]
    }

    /// Faults so far, reads and writes.
    pub fn faults(&self) -> (u64, u64) {
        (self.read_faults.load(Ordering::Relaxed), self.write_faults.load(Ordering::Relaxed))
    }

    /// A load of the application.
    pub fn load(&self, page: u32, offset: usize) -> u8 {
        // SAFETY: inside the view (the page number is checked by `cell`); a fault is answered or kills the test.
        unsafe { self.cell(page, offset).read_volatile() }
    }

    /// A store of the application.
    pub fn store(&self, page: u32, offset: usize, value: u8) {
        // SAFETY: as in `load`.
        unsafe { self.cell(page, offset).write_volatile(value) }
    }

    /// The address of a byte in the view.
    pub fn cell(&self, page: u32, offset: usize) -> *mut u8 {
        assert!(page < self.view.pages() && offset < PAGE_BYTES);
        std::ptr::with_exposed_provenance_mut(self.view.address_of(page) + offset)
    }

    /// The same byte in the engine's mapping, which never faults.
    pub fn frame(&self, page: u32, offset: usize) -> *mut u8 {
        assert!(page < self.view.pages() && offset < PAGE_BYTES);
        // SAFETY: the engine's mapping is as long as the view.
        unsafe { self.engine.as_ptr().add(page as usize * PAGE_BYTES + offset) }
    }

    /// The engine's load.
    pub fn frame_load(&self, page: u32, offset: usize) -> u8 {
        // SAFETY: mapped read-write for the life of the rig.
        unsafe { self.frame(page, offset).read_volatile() }
    }

    /// The engine's store.
    pub fn frame_store(&self, page: u32, offset: usize, value: u8) {
        // SAFETY: mapped read-write for the life of the rig.
        unsafe { self.frame(page, offset).write_volatile(value) }
    }

    /// What the view really allows, without a fault: the kernel is asked to read the byte, then to write it.
    pub fn seen(&self, page: u32) -> Rights {
        let mut scratch = 0_u8;
        let cell = self.cell(page, 17);
        let (read_end, write_end) = (self.pipe.0.as_raw_fd(), self.pipe.1.as_raw_fd());
        // SAFETY: system calls check the address themselves: EFAULT, no signal.
        if unsafe { libc::write(write_end, cell.cast(), 1) } != 1 {
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EFAULT));
            return Rights::None;
        }
        // SAFETY: as above; what is written is the byte that was there.
        let writable = unsafe { libc::read(read_end, cell.cast(), 1) } == 1;
        // SAFETY: `scratch` is one byte. Empties the pipe, which may or may not have lost the byte by the EFAULT.
        unsafe { libc::read(read_end, (&raw mut scratch).cast(), 1) };
        if writable { Rights::Write } else { Rights::Read }
    }
}

/// A test whose body needs a process of its own: signal handlers, limits, users.
pub fn in_own_process(test: &str, body: impl FnOnce()) {
    if std::env::var("FINESPUN_SYS_TEST").is_ok_and(|name| name == test) {
        return body();
    }
    let (status, output) = run_own_process(test, "");
    assert!(status.success(), "{status}\n{output}");
    assert!(output.contains("1 passed"), "no test of the name {test} ran\n{output}");
    // What a body skipped and why.
    output.lines().filter(|line| line.starts_with("skipped:")).for_each(|line| println!("{line}"));
}

/// Runs the test of this name, alone, in a new process; `part` says which part of it.
pub fn run_own_process(test: &str, part: &str) -> (std::process::ExitStatus, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("FINESPUN_SYS_TEST", test)
        .env("FINESPUN_SYS_PART", part)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status, String::from_utf8_lossy(&text).into_owned())
}

/// The part of the test that this process is to run, if it is one of [`run_own_process`].
pub fn part_of(test: &str) -> Option<String> {
    let ours = std::env::var("FINESPUN_SYS_TEST").is_ok_and(|name| name == test);
    ours.then(|| std::env::var("FINESPUN_SYS_PART").unwrap())
}

/// False, and says so, if this machine does not offer the mechanism.
pub fn is_offered(mechanism: Mechanism) -> bool {
    match (mechanism, probe::probe().uffd) {
        (Mechanism::Uffd, Err(reason)) => {
            // Refused, or too old a kernel. Anything later is our own mistake, and must not look like a refusal.
            assert!(reason.starts_with("userfaultfd"), "{reason}");
            println!("skipped: {reason}");
            false
        }
        (Mechanism::Uffd | Mechanism::Mprotect, _) => true,
    }
}

/// Marsaglia's xorshift: the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % u64::from(end)) as u32
    }
}
