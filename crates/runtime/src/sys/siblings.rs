//! Siblings of this process (`finespun_sys::sibling`), and what is handed to them.

use std::ffi::c_void;
use std::io;

use finespun_sys::sibling;

/// Not on the stack: the sibling does without it.
struct Handed<T> {
    body: fn(T) -> !,
    value: T,
}

/// Makes the `number`th sibling, which has `value` for itself, with the descriptors that it owns: here nothing owns them any more. Only while
/// this process has one thread.
///
/// # Errors
/// The kernel's.
pub fn make<T>(number: usize, body: fn(T) -> !, value: T) -> io::Result<u32> {
    // Never dropped here: its descriptors are the sibling's.
    let handed = Box::into_raw(Box::new(Handed { body, value }));
    // SAFETY: the caller's promise that no other thread runs; `run` takes the sibling's own copy of the box.
    unsafe { sibling::make(number, run::<T>, handed.cast()) }
}

fn run<T>(handed: *mut c_void) -> ! {
    // SAFETY: the sibling's copy of the box that `make` gave away.
    let Handed { body, value } = *unsafe { Box::from_raw(handed.cast::<Handed<T>>()) };
    body(value)
}
