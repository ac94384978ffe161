//! The two signals of one access. Everything here runs in the signal handler: `faults` says what that may call.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use super::access::{self, ACCESS_MAX};
use super::open;
use super::record::Record;
use super::watched::{END, LAST_END, START, WATCH, Watch};
use crate::PAGE_BYTES;
use crate::faults::FaultKind;

/// The trap flag. Intel SDM volume 1, section 3.4.3.3.
const TRAP_FLAG: i64 = 1 << 8;

/// Both operands of an instruction, each in two pages; those that gather from more are not looked at further.
const PARTS_MAX: usize = 4;

/// One page that the instruction touches.
#[derive(Clone, Copy)]
struct Part {
    address: usize,
    size: usize,
    writes: bool,
    before: [u8; ACCESS_MAX],
}

impl Part {
    const NONE: Self = Self { address: 0, size: 0, writes: false, before: [0; ACCESS_MAX] };

    const fn page(&self) -> usize {
        self.address / PAGE_BYTES * PAGE_BYTES
    }
}

/// The instruction that a thread is at; no parts: none.
struct Step {
    parts: [Part; PARTS_MAX],
    count: usize,
    /// The thread's mask of signals, to be put back.
    mask: u64,
    record: Record,
}

thread_local! {
    static STEP: UnsafeCell<Step> = const {
        UnsafeCell::new(Step {
            parts: [Part::NONE; PARTS_MAX],
            count: 0,
            mask: 0,
            record: Record { processor: 0, instruction: 0, in_library: false, before: 0 },
        })
    };
}

/// The calling thread's step.
fn with_step<T>(body: impl FnOnce(&mut Step) -> T) -> T {
    // SAFETY: the thread's own, and used in its signal handlers only, which block every signal: `body` is not interrupted, and
    // calls nothing that comes here.
    STEP.with(|step| body(unsafe { &mut *step.get() }))
}

/// What the handler of the fault signals, and of traps, asks first. True: the thread can go on.
///
/// # Safety
/// `context` is the third argument of a signal handler with SA_SIGINFO, of a signal that the kernel raised.
pub unsafe fn on_signal(signal: c_int, address: usize, kind: FaultKind, context: *mut c_void) -> bool {
    let Some(watch) = WATCH.get() else { return false };
    // SAFETY: by contract.
    let mut context = unsafe { Context::of(context) };
    match signal {
        libc::SIGTRAP => with_step(|step| {
            step.count > 0 && {
                step.end(watch, &mut context);
                true
            }
        }),
        libc::SIGSEGV if (START.load(Ordering::Relaxed)..LAST_END.load(Ordering::Relaxed)).contains(&address) => {
            // After the end the access just happens again.
            if address < END.load(Ordering::Acquire) {
                with_step(|step| step.begin(watch, address, kind, &mut context));
            }
            true
        }
        _ => false,
    }
}

/// The instruction has met a fault that is not ours, and goes to the program: the step is over.
///
/// # Safety
/// As for [`on_signal`].
pub unsafe fn abandon(context: *mut c_void) {
    let Some(watch) = WATCH.get() else { return };
    // SAFETY: by contract.
    let mut context = unsafe { Context::of(context) };
    with_step(|step| {
        if step.count > 0 {
            step.end(watch, &mut context);
        }
    });
}

impl Step {
    fn begin(&mut self, watch: &Watch, address: usize, kind: FaultKind, context: &mut Context<'_>) {
        if self.count == 0 {
            self.mask = context.only_faults_and_traps();
            context.set_trap_flag(true);
            self.record = watch.record(context);
        }
        let page = address / PAGE_BYTES * PAGE_BYTES;
        open::open(page);
        if self.count == PARTS_MAX {
            return;
        }
        // SAFETY: the instruction that the thread was at.
        let size = unsafe { access::size_at(context.instruction()) };
        // The rest of an access that began in the page before is no longer than that.
        let rest = self.parts[..self.count].iter().map(|part| part.address + part.size);
        let size =
            rest.filter(|&end| end > address && end < address + size).map(|end| end - address).min().unwrap_or(size);
        let mut part = Part { address, size, writes: kind != FaultKind::Read, ..Part::NONE };
        let link = address - watch.image.base;
        if part.writes {
            copy(&mut part.before, address, size.min(page + PAGE_BYTES - address));
            watch.table.writes(link, size);
        } else {
            watch.table.reads(link, size, self.record);
        }
        self.parts[self.count] = part;
        self.count += 1;
    }

    fn end(&mut self, watch: &Watch, context: &mut Context<'_>) {
        for part in &self.parts[..self.count] {
            if part.writes {
                part.note_changes(watch, self.record);
            }
        }
        for part in &self.parts[..self.count] {
            open::close(part.page());
        }
        self.count = 0;
        context.set_trap_flag(false);
        context.set_mask(self.mask);
    }
}

impl Part {
    /// Which bytes the store has changed; the page is still open.
    fn note_changes(&self, watch: &Watch, record: Record) {
        let size = self.size.min(self.page() + PAGE_BYTES - self.address);
        let mut after = [0; ACCESS_MAX];
        copy(&mut after, self.address, size);
        for byte in (0..size).filter(|&byte| after[byte] != self.before[byte]) {
            watch.table.changed(self.address + byte - watch.image.base, record);
        }
    }
}

/// The bytes of an open page.
fn copy(to: &mut [u8; ACCESS_MAX], address: usize, size: usize) {
    let from = std::ptr::with_exposed_provenance::<u8>(address);
    for (index, byte) in to.iter_mut().enumerate().take(size) {
        // SAFETY: the page is open until this thread closes it, and the caller has cut the size at its end. Volatile: other
        // threads of the program may store there.
        *byte = unsafe { from.add(index).read_volatile() };
    }
}

impl Watch {
    /// Who is at which place of the program. In a library: behind the program's call.
    fn record(&self, context: &Context<'_>) -> Record {
        let at = context.instruction();
        let in_library = !self.image.code.contains(&at);
        let place = if in_library { self.caller(context.stack()) } else { Some(at) };
        let instruction = place.map_or(0, |place| (place - self.image.base) as u64);
        Record { processor: (self.who)(), instruction, in_library, before: 0 }
    }

    /// The innermost return address into the program: the first word on the stack that follows a call in its code.
    fn caller(&self, stack: usize) -> Option<usize> {
        const WORDS: usize = 512;
        let mut words = [0_usize; WORDS];
        let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words) };
        // The kernel stops at the stack's end, where we could not go on.
        let first = (PAGE_BYTES - stack % PAGE_BYTES).min(size_of_val(&words));
        let remote = [(stack, first), (stack + first, size_of_val(&words) - first)]
            .map(|(at, len)| libc::iovec { iov_base: std::ptr::without_provenance_mut(at), iov_len: len });
        // As wide as the kernel's arguments: what stands in the upper half of a narrower one is anything.
        let (one, two, no_flags) = (1_usize, 2_usize, 0_usize);
        let (list, lists) = (&raw const local, remote.as_ptr());
        // SAFETY: `words` is writable and of the size given; what the other list names the kernel only reads, or refuses to.
        let read =
            unsafe { libc::syscall(libc::SYS_process_vm_readv, libc::getpid(), list, one, lists, two, no_flags) };
        let words = &words[..usize::try_from(read).unwrap_or(0) / size_of::<usize>()];
        words.iter().copied().find(|&word| self.follows_a_call(word))
    }

    fn follows_a_call(&self, address: usize) -> bool {
        const LONGEST: usize = 7;
        if !self.image.code.contains(&address) || address < self.image.code.start + LONGEST {
            return false;
        }
        let start = std::ptr::with_exposed_provenance::<u8>(address - LONGEST);
        // SAFETY: inside the program's code, as checked above.
        let bytes = unsafe { std::slice::from_raw_parts(start, LONGEST) };
        // call rel32, and call through a register or memory (FF /2) of each length.
        let indirect = |length: usize| bytes[LONGEST - length] == 0xff && bytes[LONGEST - length + 1] >> 3 & 7 == 2;
        bytes[LONGEST - 5] == 0xe8 || (2..=LONGEST).any(indirect)
    }
}

/// What the kernel puts back when the handler returns.
struct Context<'a>(&'a mut libc::ucontext_t);

impl Context<'_> {
    /// # Safety
    /// As for [`on_signal`].
    unsafe fn of(context: *mut c_void) -> Self {
        // SAFETY: by contract.
        Self(unsafe { &mut *context.cast::<libc::ucontext_t>() })
    }

    fn mask(&mut self) -> &mut u64 {
        // SAFETY: the kernel's mask is the first word of the C library's type, and only that much is there.
        unsafe { &mut *(&raw mut self.0.uc_sigmask).cast::<u64>() }
    }

    fn set_mask(&mut self, mask: u64) {
        *self.mask() = mask;
    }

    /// Nothing but faults and the trap may come until the step is over; the mask before.
    fn only_faults_and_traps(&mut self) -> u64 {
        let before = *self.mask();
        *self.mask() = !crate::process::OF_FAULTS_AND_TRAPS;
        before
    }
}

#[cfg(target_arch = "x86_64")]
impl Context<'_> {
    fn instruction(&self) -> usize {
        self.0.uc_mcontext.gregs[libc::REG_RIP as usize] as usize
    }

    fn stack(&self) -> usize {
        self.0.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
    }

    fn set_trap_flag(&mut self, on: bool) {
        let flags = &mut self.0.uc_mcontext.gregs[libc::REG_EFL as usize];
        *flags = if on { *flags | TRAP_FLAG } else { *flags & !TRAP_FLAG };
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Context<'_> {
    fn instruction(&self) -> usize {
        0
    }

    fn stack(&self) -> usize {
        0
    }

    fn set_trap_flag(&mut self, _on: bool) {}
}
