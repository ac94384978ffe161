//! Processes that share one table of descriptors, and the current directory, as threads do, and nothing else.
//!
//! A process that is executed gets a table of its own, so these are made without: each is a copy of the process that makes it, as after
//! `fork`, with the same parent. What its memory holds, the libraries' variables too, is as it was; only what is
//! private to *threads* of the one and would be mistaken for memory of the other is put out of reach (`apart`).

use std::ffi::{c_int, c_void};
use std::io;

use crate::maps;
use crate::process::forget_thread_id;
use crate::{PAGE_BYTES, check};

/// What a sibling runs; it does not return.
pub type Body = fn(*mut c_void) -> !;

/// The stack of a sibling's first thread. It takes memory only where it is used.
const STACK_BYTES: usize = 8 << 20;

/// The mappings of a sibling begin so far below those of the one before it.
const MAPPINGS_APART: usize = 16 << 30;
/// Its C library's heap begins so far above.
const HEAPS_APART: usize = 64 << 20;

/// What the kernel and the C library must be told again in the sibling.
struct Start {
    body: Body,
    argument: *mut c_void,
    number: usize,
    parent: c_int,
    robust: (*mut c_void, usize),
}

/// Makes the `number`th sibling, from 1 on: its process's number. It runs `body` on a stack of its own, ends when its parent ends, and must
/// not use what stands on the caller's stack.
///
/// # Errors
/// The kernel's.
///
/// # Safety
/// No other thread runs. `body` may use the argument in the sibling; the caller keeps it as it is until this returns.
pub unsafe fn make(number: usize, body: Body, argument: *mut c_void) -> io::Result<u32> {
    let robust = robust_list()?;
    let thread = thread_word(robust.0);
    // SAFETY: takes no argument.
    let parent = unsafe { libc::getppid() };
    let start = Box::new(Start { body, argument, number, parent, robust });
    // SAFETY: a new mapping at an address that the kernel chooses.
    let stack = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        libc::mmap(std::ptr::null_mut(), STACK_BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if stack == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let of_thread = if thread.is_null() { 0 } else { libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID };
    let flags = libc::CLONE_FILES | libc::CLONE_FS | libc::CLONE_PARENT | of_thread | libc::SIGCHLD;
    // SAFETY: without CLONE_VM the sibling has a copy of all memory, in which the stack, the start and the word of the thread
    // are its own.
    let made = unsafe {
        let top = stack.byte_add(STACK_BYTES);
        let start = (&raw const *start).cast_mut().cast();
        let none = std::ptr::null_mut::<c_void>();
        let made = check(libc::clone(enter, top, flags, start, none, none, thread));
        libc::munmap(stack, STACK_BYTES);
        made?
    };
    Ok(made.cast_unsigned())
}

extern "C" fn enter(start: *mut c_void) -> c_int {
    // SAFETY: the sibling's own copy of what `make` filled.
    let start = unsafe { &*start.cast::<Start>() };
    // SAFETY: numbers and the addresses that the kernel had before; _exit does not return.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != start.parent {
            libc::_exit(1);
        }
        // Where only a process's parents may look at its threads: the node is none.
        libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY);
        libc::syscall(libc::SYS_set_robust_list, start.robust.0, start.robust.1);
    }
    forget_thread_id();
    apart(start.number);
    (start.body)(start.argument)
}

/// Takes away the stack that `main` runs on in the first process, and moves what will be allocated here to other addresses than there:
/// a pointer to private memory of one process, used in another by mistake, then leads nowhere. What cannot be had is left.
fn apart(number: usize) {
    // SAFETY: a mapping without rights where nothing is; the heap's end is moved up, and what that made is given back before
    // anything else can have it; the stack is no longer used by any thread.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(std::ptr::null_mut(), number * MAPPINGS_APART, libc::PROT_NONE, flags, -1, 0);
        let heap = libc::sbrk((number * HEAPS_APART) as isize);
        if heap.addr() != usize::MAX {
            let begin = heap.addr().next_multiple_of(PAGE_BYTES);
            let bytes = number * HEAPS_APART - (begin - heap.addr());
            libc::munmap(heap.byte_add(begin - heap.addr()), bytes / PAGE_BYTES * PAGE_BYTES);
        }
        if let Some((begin, end)) = stack_of_main() {
            libc::mprotect(std::ptr::with_exposed_provenance_mut(begin), end - begin, libc::PROT_NONE);
        }
    }
}

/// The stack of the process's first thread as it was executed, below the page with its arguments.
fn stack_of_main() -> Option<(usize, usize)> {
    unsafe extern "C" {
        static __libc_stack_end: *mut c_void;
    }
    // SAFETY: the dynamic linker sets it before anything runs, and nothing changes it.
    let top = unsafe { __libc_stack_end }.addr();
    let mappings = maps::of_this_process().ok()?;
    let begin = mappings.iter().find(|region| region.addresses.contains(&top))?.addresses.start;
    Some((begin, top / PAGE_BYTES * PAGE_BYTES)).filter(|(begin, end)| begin < end)
}

/// The calling thread's list of robust mutexes, as the kernel has it.
fn robust_list() -> io::Result<(*mut c_void, usize)> {
    let (mut head, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: both are writable; 0 stands for the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut bytes) };
    check(result as c_int).map(|_| (head, bytes))
}

/// Where the C library keeps the number of the calling thread: just before that list. Null if it is not there.
fn thread_word(robust: *mut c_void) -> *mut c_void {
    const BEFORE: usize = 16;
    if robust.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the list lies inside of the C library's record of the thread, which is larger than that.
    unsafe {
        let word = robust.byte_sub(BEFORE);
        if word.cast::<c_int>().read() == libc::gettid() { word } else { std::ptr::null_mut() }
    }
}
