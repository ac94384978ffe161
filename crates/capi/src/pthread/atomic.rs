//! `finespun/atomic.h`: exclusive access to a word of shared memory, by a mutex that is the word's address; and the atomic operations of
//! a program's compiler, which `fspcc --pthread` has made calls (`fspcc/atomics.c`).
//!
//! An instruction of the processor is atomic inside a node only. Between nodes a word is moved by its page, and two nodes may
//! hold the page writable at once; so an access takes the address's lock, and with it acquires what the last access released.
//! All accesses of one word are thus in one order, which holds for every processor: sequential consistency.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use finespun_errors::Code;
use finespun_runtime::Failure;
use finespun_runtime::program::{self, Atomicity, Outcome};

use super::{Whose, mistake, posix, whose};

/// Excludes the threads of a process from words that nobody else sees.
static PRIVATE: AtomicBool = AtomicBool::new(false);

/// `fsp_atomic_enter`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_atomic_enter(word: *const c_void) -> c_int {
    match whose(word, "atomic word") {
        Ok(Whose::Ours) => posix(program::lock_address(word.expose_provenance())),
        Ok(Whose::Theirs) => {
            while PRIVATE.swap(true, Ordering::Acquire) {
                std::thread::yield_now();
            }
            0
        }
        Err(failure) => mistake(failure),
    }
}

/// `fsp_atomic_leave`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_atomic_leave(word: *const c_void) -> c_int {
    if program::is_shared(word.addr()) {
        return posix(program::unlock_address(word.expose_provenance()));
    }
    PRIVATE.store(false, Ordering::Release);
    0
}

/// What an operation of the program says it did.
#[repr(C)]
pub struct Operated {
    stores: c_ulong,
    found: c_ulong,
}

/// `fsp_program_atomic`
///
/// # Safety
/// The operation takes these arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_program_atomic(
    word: *mut c_void,
    kind: c_int,
    operation: unsafe extern "C" fn(*mut c_void, *mut c_void) -> Operated,
    arguments: *mut c_void,
) -> c_int {
    let operate = || {
        // SAFETY: by contract.
        let Operated { stores, found } = unsafe { operation(word, arguments) };
        Outcome { stores: stores != 0, found }
    };
    let atomicity = match kind {
        0 => Atomicity::Instruction,
        1 => Atomicity::Load,
        _ => Atomicity::Lock,
    };
    match program::operate(word.expose_provenance(), atomicity, operate) {
        Ok(served) => c_int::from(served),
        Err(failure) => {
            mistake(failure);
            0
        }
    }
}

/// `fsp_program_recursion`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_recursion(guard: *const c_void) {
    let what = format!("the static variable whose guard is at {guard:p} is used by its own initialisation");
    mistake(Failure::new(Code::Relock, what));
}

/// `fsp_program_fence`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_fence() {
    if let Err(failure) = program::fence() {
        mistake(failure);
    }
}
