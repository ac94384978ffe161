//! Program threads whose stacks lie in shared pages: two stacks for each of them.
//!
//! A page of the program's stack may lose its rights at any acquire or release, as any other shared page. The program does not
//! notice: its push faults, the handler runs on the alternate signal stack, and the push is repeated. But the engine must
//! not stand on such a page: it would fault with a lock in its hand that the fault needs; and the kernel does not serve faults
//! of its own. So these threads have a *private* stack too, the one that the operating system made them with:
//!
//! ```text
//!   private stack        shared stack           alternate stack
//!     start of thread
//!     run ---------------> function of program
//!                            calls the engine
//!     body of [`on_private`] <---
//!                      ---->  goes on
//!                            touches a page ------> fault handler, handlers of the program
//! ```
//!
//! [`on_private`] is the way back: it runs a body on the private stack if the caller stands on a shared one, and else just runs it.
//! Both switches are one function of assembler, which keeps a frame pointer and says so to the unwinder: `pthread_exit`,
//! cancellation and exceptions go through as through any function.
//!
//! Nothing of this costs more than a load until [`share_from_now_on`] is called.

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{PAGE_BYTES, check, memory};

/// Is there any thread with a shared stack in this process?
static SHARED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The addresses of the calling thread's shared stack; empty if it has none.
    static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// How far its private stack is in use while the thread stands on the shared one.
    static PRIVATE: Cell<usize> = const { Cell::new(0) };
    /// Where the thread left its shared stack for the private one.
    static LEFT_AT: Cell<usize> = const { Cell::new(0) };
    /// The thread's alternate signal stack, if we made it.
    static ALTERNATE: Cell<usize> = const { Cell::new(0) };
}

/// The lowest page of a shared stack is never used: the stack has overflown when it is touched.
pub const GUARD_BYTES: usize = PAGE_BYTES;

/// For the fault handler and handlers of the program, which run there while the thread stands on a shared stack.
const ALTERNATE_BYTES: usize = 256 << 10;
/// With a page in front that has no rights.
const ALTERNATE_MAPPED: usize = PAGE_BYTES + ALTERNATE_BYTES;

/// Threads of this process will have shared stacks; before the first of them is made. Handlers of the program run on
/// alternate stacks from then on.
///
/// # Errors
/// `ENOSYS` where this is not to be had.
pub fn share_from_now_on() -> io::Result<()> {
    if !cfg!(target_arch = "x86_64") {
        return Err(io::Error::from_raw_os_error(libc::ENOSYS));
    }
    SHARED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Do threads of this process have shared stacks?
#[inline]
#[must_use]
pub fn are_shared() -> bool {
    SHARED.load(Ordering::Relaxed)
}

/// Gives the calling thread a shared stack, whose addresses these are: whole pages, the lowest of them the guard; and an alternate
/// signal stack. Until [`end`].
///
/// # Errors
/// The kernel's, when there is no memory for an alternate stack.
pub fn begin(stack: Range<usize>) -> io::Result<()> {
    make_alternate()?;
    STACK.set((stack.start, stack.end));
    Ok(())
}

/// Calls a function of the program on the shared stack that [`begin`] gave the thread.
///
/// # Safety
/// There is one, its memory is nobody else's, its faults are served, and the thread does not stand on it. The function takes these
/// arguments.
pub unsafe fn call(function: Function, arguments: [usize; 3]) -> usize {
    let [one, two, three] = arguments;
    let (_, end) = STACK.get();
    // SAFETY: by contract the stack is ours and unused, and it ends at a page; the word for `noted` is this thread's.
    unsafe { switch(end, function, one, two, three, PRIVATE.with(Cell::as_ptr)) }
}

/// The calling thread is about to end, and stands on its private stack again: the addresses of its shared stack, if it had one, which
/// is now the caller's.
pub fn end() -> Option<Range<usize>> {
    let (start, end) = STACK.replace((0, 0));
    LEFT_AT.set(0);
    give_back_alternate();
    (end > 0).then_some(start..end)
}

/// A function of the program that [`call`] runs.
pub type Function = unsafe extern "C-unwind" fn(usize, usize, usize) -> usize;

/// The addresses of the calling thread's shared stack, if it has one, without the guard.
#[must_use]
pub fn of_caller() -> Option<Range<usize>> {
    let (start, end) = STACK.get();
    (end > 0).then_some(start + GUARD_BYTES..end)
}

/// Does the address lie in the guard of the calling thread's shared stack? May be asked in the fault handler.
#[must_use]
pub fn has_overflown(address: usize) -> bool {
    let (start, end) = STACK.get();
    are_shared() && end > 0 && (start..start + GUARD_BYTES).contains(&address)
}

/// Where the calling thread left its shared stack, inside of [`on_private`].
#[inline]
#[must_use]
pub fn left_at() -> Option<usize> {
    if !are_shared() {
        return None;
    }
    Some(LEFT_AT.get()).filter(|at| *at > 0)
}

/// Runs `body` on the calling thread's private stack if it stands on a shared one. What the body owns goes with it, and its result comes
/// back; what it only refers to may lie on the shared stack: then it is looked at while no lock is held, and no signal blocked.
#[inline]
pub fn on_private<R>(body: impl FnOnce() -> R) -> R {
    if are_shared() { on_private_if_needed(body) } else { body() }
}

fn on_private_if_needed<R, F: FnOnce() -> R>(body: F) -> R {
    let here = (&raw const body).addr();
    let (start, end) = STACK.get();
    if !(start..end).contains(&here) {
        return body();
    }
    let mut call = Call { body: ManuallyDrop::new(body), result: MaybeUninit::uninit() };
    LEFT_AT.set((&raw const call).addr().min(here));
    let at = (&raw mut call).expose_provenance();
    // SAFETY: the thread stands on its shared stack, so nothing below what it noted is in use on the private one. `call`
    // lives until the function, which is the one for it, has returned.
    unsafe { switch(PRIVATE.get(), run::<R, F>, at, 0, 0, std::ptr::null_mut()) };
    LEFT_AT.set(0);
    // SAFETY: `run` has written it.
    unsafe { call.result.assume_init() }
}

/// What [`on_private`] leaves on the shared stack for the other side.
struct Call<R, F> {
    body: ManuallyDrop<F>,
    result: MaybeUninit<R>,
}

/// # Safety
/// `at` is the address of a `Call<R, F>` that nobody else uses, and whose body has not been taken.
unsafe extern "C-unwind" fn run<R, F: FnOnce() -> R>(at: usize, _: usize, _: usize) -> usize {
    let call = std::ptr::with_exposed_provenance_mut::<Call<R, F>>(at);
    // SAFETY: by contract; it is not used there again. Now it stands on this stack, and so will its result until all is done.
    let body = unsafe { ManuallyDrop::take(&mut (*call).body) };
    let result = body();
    // SAFETY: by contract. If the page was lost meanwhile, the store faults and is served.
    unsafe { (&raw mut (*call).result).write(MaybeUninit::new(result)) };
    0
}

/// What stands on the calling thread's shared stack, inside of [`on_private`]: for a child made by fork, which has no shared pages.
#[derive(Debug)]
pub struct Copy {
    stack: Range<usize>,
    live: Vec<u8>,
}

impl Copy {
    /// Nothing, if the thread did not leave a shared stack.
    #[must_use]
    pub fn of_caller() -> Self {
        let (Some(at), Some(stack)) = (left_at(), of_caller()) else { return Self { stack: 0..0, live: Vec::new() } };
        /// What a function without calls may use below the stack pointer.
        const RED_ZONE: usize = 128;
        let from = at.saturating_sub(RED_ZONE).max(stack.start);
        let live = std::ptr::with_exposed_provenance::<u8>(from);
        // SAFETY: the thread's own stack, from where it left it up to the end; loads fault and are served.
        let live = unsafe { std::slice::from_raw_parts(live, stack.end - from) }.to_vec();
        Self { stack, live }
    }

    /// In the child: puts it where it stood, into private memory. Without memory the child ends when it goes on.
    pub fn put_back(&self) {
        if self.live.is_empty() {
            return;
        }
        let start = std::ptr::with_exposed_provenance_mut::<u8>(self.stack.start);
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_FIXED);
        // SAFETY: the pages of the stack, which the child has not inherited; it stands on its private one.
        let mapped = unsafe { memory::map(start, self.stack.len(), rights, flags, None) };
        if let Ok(mapped) = mapped {
            let to = mapped.wrapping_add(self.stack.len() - self.live.len());
            // SAFETY: the end of the new mapping, which is as long as the stack.
            unsafe { std::ptr::copy_nonoverlapping(self.live.as_ptr(), to, self.live.len()) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C-unwind" {
    /// Calls `function` with three arguments on the stack that ends at `end`, 16 bytes aligned; its result. Where the caller's own
    /// stack is in use to is noted in `noted`, if that is not null.
    #[link_name = "finespun_switch_stack"]
    fn switch(end: usize, function: Function, one: usize, two: usize, three: usize, noted: *mut usize) -> usize;
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.finespun_switch_stack,\"ax\",@progbits",
    ".balign 16",
    ".globl finespun_switch_stack",
    ".hidden finespun_switch_stack",
    ".type finespun_switch_stack,@function",
    "finespun_switch_stack:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp", // the frame is found by this on the way back, and by the unwinder
    ".cfi_def_cfa_register rbp",
    "test r9, r9",
    "jz 2f",
    "mov [r9], rsp", // aligned to 16: the call left 8, and so did the push
    "2:",
    "mov rsp, rdi",
    "mov rax, rsi",
    "mov rdi, rdx",
    "mov rsi, rcx",
    "mov rdx, r8",
    "call rax",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size finespun_switch_stack, . - finespun_switch_stack",
    ".popsection",
);

#[cfg(not(target_arch = "x86_64"))]
unsafe fn switch(_: usize, _: Function, _: usize, _: usize, _: usize, _: *mut usize) -> usize {
    unreachable!("share_from_now_on refuses")
}

/// Gives the calling thread an alternate signal stack; it may have one of ours already.
fn make_alternate() -> io::Result<()> {
    if ALTERNATE.get() != 0 {
        return Ok(());
    }
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_NORESERVE);
    // SAFETY: asks for new memory only.
    let memory = unsafe { memory::map(std::ptr::null_mut::<c_void>(), ALTERNATE_MAPPED, rights, flags, None) }?;
    // SAFETY: the first page of it, so that what does not fit ends the process and does not run into other memory.
    unsafe { memory::protect(memory, PAGE_BYTES, libc::PROT_NONE) }?;
    let stack = libc::stack_t { ss_sp: memory.wrapping_byte_add(PAGE_BYTES), ss_flags: 0, ss_size: ALTERNATE_BYTES };
    // SAFETY: the memory is this thread's until `give_back_alternate`.
    check(unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) })?;
    ALTERNATE.set(memory.expose_provenance());
    Ok(())
}

fn give_back_alternate() {
    let memory = ALTERNATE.replace(0);
    if memory == 0 {
        return;
    }
    let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the kernel is told first that the memory, which `make_alternate` mapped, is no stack any more.
    unsafe {
        libc::sigaltstack(&raw const none, std::ptr::null_mut());
        memory::unmap(std::ptr::with_exposed_provenance_mut::<c_void>(memory), ALTERNATE_MAPPED);
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// A stack of sixteen pages that stands in for a shared one.
    fn stack() -> Range<usize> {
        let memory = vec![0_u8; 17 * PAGE_BYTES].leak();
        let start = memory.as_mut_ptr().expose_provenance().next_multiple_of(PAGE_BYTES);
        start..start + 16 * PAGE_BYTES
    }

    fn here() -> usize {
        let local = 0_u8;
        std::hint::black_box(&raw const local).addr()
    }

    unsafe extern "C-unwind" fn look(one: usize, two: usize, three: usize) -> usize {
        let stack = of_caller().expect("it has one");
        assert!(stack.contains(&here()));
        assert!(!has_overflown(here()) && has_overflown(stack.start - 1));
        let text = format!("{one} {two} {three}");
        let (inside, again, length) = on_private(move || {
            let left = left_at().expect("it left a shared stack");
            assert!(left > stack.start && left < stack.end);
            (here(), on_private(here), text.len())
        });
        let stack = of_caller().expect("still");
        assert!(!stack.contains(&inside) && !stack.contains(&again));
        assert!(stack.contains(&here()) && left_at().is_none());
        one + two + three + length
    }

    #[test]
    fn a_function_runs_on_the_shared_stack_and_its_calls_on_the_private_one() {
        share_from_now_on().unwrap();
        std::thread::spawn(|| {
            assert!(of_caller().is_none());
            let stack = stack();
            begin(stack.clone()).unwrap();
            // SAFETY: the stack is nobody else's; `look` takes three numbers.
            assert_eq!(unsafe { call(look, [1, 20, 300]) }, 321 + 8);
            assert_eq!(end(), Some(stack));
            assert!(of_caller().is_none() && end().is_none());
        })
        .join()
        .unwrap();
    }

    static DROPPED: AtomicUsize = AtomicUsize::new(0);

    struct Counted;

    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    unsafe extern "C-unwind" fn fail(_: usize, _: usize, _: usize) -> usize {
        let _outer = Counted;
        let inner = Counted;
        on_private(move || {
            let _inner = inner;
            std::panic::resume_unwind(Box::new(7_u8));
        })
    }

    #[test]
    fn what_unwinds_goes_through_both_stacks_and_drops_all_on_its_way() {
        share_from_now_on().unwrap();
        let result = std::thread::spawn(|| {
            begin(stack()).unwrap();
            // SAFETY: as above.
            unsafe { call(fail, [0; 3]) }
        })
        .join();
        assert_eq!(result.unwrap_err().downcast_ref::<u8>(), Some(&7));
        assert_eq!(DROPPED.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn without_a_shared_stack_a_body_just_runs() {
        let before = here();
        let inside = on_private(here);
        assert!(before.abs_diff(inside) < 4096);
    }
}
