//! Threads whose stacks are shared memory (`fspcc --share-stacks`): those that the program makes, and the one that runs main.
//!
//! The C library keeps more than frames on a stack that it is given, so each thread has a private one as ever, and calls its function on
//! a shared one (`finespun_sys::stack`).

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use finespun_errors::Code;
use finespun_runtime::{Failure, Work, program};
use finespun_sys::stack;
use libc::pthread_attr_t;

use crate::interpose::real::ThreadStart;

/// The size of a thread's stack that is asked for nothing else.
pub fn usual() -> usize {
    static USUAL: OnceLock<usize> = OnceLock::new();
    *USUAL.get_or_init(|| {
        let (mut attributes, mut bytes) = (MaybeUninit::<pthread_attr_t>::uninit(), 0);
        // SAFETY: initialised before it is asked.
        unsafe {
            libc::pthread_attr_init(attributes.as_mut_ptr());
            libc::pthread_attr_getstacksize(attributes.as_ptr(), &raw mut bytes);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
        bytes
    })
}

/// The size of the stack that the operating system gives a thread; 0 for the usual one.
pub fn private_size(work: &Work) -> usize {
    if stack::are_shared() { 0 } else { program::stack_of(work) }
}

/// Runs a thread's function, on a shared stack if threads have them.
pub fn run(size: usize, function: ThreadStart, argument: u64) -> *mut c_void {
    if !stack::are_shared() {
        return function(std::ptr::with_exposed_provenance_mut(argument as usize));
    }
    begin(size);
    // SAFETY: `begin` gave the thread its stack; the thread's function, with its argument.
    let result = unsafe { stack::call(call_function, [function as usize, argument as usize, 0]) };
    std::ptr::with_exposed_provenance_mut(result)
}

unsafe extern "C-unwind" fn call_function(function: usize, argument: usize, _: usize) -> usize {
    // SAFETY: the number that `run` made of it.
    let function: ThreadStart = unsafe { std::mem::transmute(function) };
    function(std::ptr::with_exposed_provenance_mut(argument)).expose_provenance()
}

fn begin(size: usize) {
    if let Err(failure) = program::begin_stack(size, usual()) {
        program::fail(&failure);
    }
}

/// The calling thread has come to its end, on its private stack.
pub fn end() {
    if stack::are_shared()
        && let Err(failure) = program::end_stack(usual())
    {
        program::fail(&failure);
    }
}

/// `fsp_program_share_stacks`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_program_share_stacks() {
    if let Err(error) = stack::share_from_now_on() {
        program::fail(&Failure::new(Code::Machine, format!("stacks cannot be shared on this machine: {error}")));
    }
}

/// What a program begins with.
type Main = unsafe extern "C-unwind" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

/// `fsp_program_main`
///
/// # Safety
/// The function takes these arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fsp_program_main(
    main: Main,
    count: c_int,
    words: *mut *mut c_char,
    environment: *mut *mut c_char,
) -> c_int {
    if !stack::are_shared() || !program::runs() {
        // SAFETY: by contract.
        return unsafe { main(count, words, environment) };
    }
    begin(0);
    let arguments = [count as usize, words.expose_provenance(), environment.expose_provenance()];
    // SAFETY: a function of the same arguments, all of them passed in registers, of whose result the lower half counts.
    let main = unsafe { std::mem::transmute::<Main, stack::Function>(main) };
    // SAFETY: `begin` gave the thread its stack.
    let result = unsafe { stack::call(main, arguments) };
    end();
    result as c_int
}
