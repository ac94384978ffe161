//! `finespun/memory.h`.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::{null_mut, with_exposed_provenance_mut};

use finespun_errors::Code;
use finespun_runtime::Failure;
use finespun_runtime::program::{self, Allocated, Home};

use crate::error::{bad_argument, refuse, value};

/// The largest alignment.
const ALIGN_MAX: usize = 2 << 20;

/// Bytes of a page.
const PAGE: usize = 4096;

fn allocate(size: usize, align: usize, home: Home) -> *mut c_void {
    let allocated = program::allocate(size as u64, align as u64, home).map(Some);
    value(allocated, None).map_or_else(null_mut, |allocated| with_exposed_provenance_mut(allocated.address))
}

/// Makes the first `bytes` of new memory zero. What no allocation has had, and what no node has touched, is so already.
///
/// # Safety
/// An allocation of the caller's alone, of at least so many bytes.
unsafe fn clear(new: Allocated, bytes: usize) {
    let addresses = new.address..new.address + new.reused.min(bytes);
    // SAFETY: the parts lie in the allocation, by `for_each_part`; stores to it fault and are served.
    for_each_part(addresses, |part| unsafe { pointer_to(part.start).write_bytes(0, part.len()) });
}

/// The parts of some memory in which something may be, in their order.
fn for_each_part(addresses: Range<usize>, mut body: impl FnMut(Range<usize>)) {
    if addresses.len() < PAGE {
        return body(addresses); // to ask would cost what it saves
    }
    let mut touched = program::touched(addresses);
    while let Some(part) = value(touched.next_part(), None) {
        body(part);
    }
}

fn pointer_to(address: usize) -> *mut u8 {
    with_exposed_provenance_mut(address)
}

/// `fsp_malloc`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_malloc(size: usize) -> *mut c_void {
    allocate(size, 16, Home::FirstTouch)
}

/// `fsp_calloc`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_calloc(count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        let what = format!("fsp_calloc({count}, {size}): the product does not fit in a size");
        refuse(Failure { code: Code::HeapExhausted, what });
        return null_mut();
    };
    let allocated = program::allocate(bytes as u64, 16, Home::FirstTouch).map(Some);
    let Some(new) = value(allocated, None) else { return null_mut() };
    // SAFETY: just allocated, with at least so many bytes.
    unsafe { clear(new, bytes) };
    pointer_to(new.address).cast()
}

/// `fsp_realloc`
///
/// # Safety
/// `old` is null or a live allocation of the shared heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if old.is_null() {
        return fsp_malloc(size);
    }
    let usable = value(program::usable(old as usize), 0) as usize;
    if usable == 0 {
        let what = format!("fsp_realloc({old:p}, {size}): no live allocation begins there");
        refuse(Failure { code: Code::BadFree, what });
        return null_mut();
    }
    // Kept where it is, unless it would keep more than twice what is asked for.
    if size <= usable && size >= usable / 2 {
        return old;
    }
    let allocated = program::allocate(size as u64, 16, Home::FirstTouch).map(Some);
    let Some(new) = value(allocated, None) else { return null_mut() };
    // SAFETY: both are live allocations of at least so many bytes, and different.
    unsafe { copy(old as usize, new, usable.min(size)) };
    fsp_free(old);
    pointer_to(new.address).cast()
}

/// Copies the first `bytes` of an allocation to a new one. Pages of the old one that no node has touched are neither read nor written.
///
/// # Safety
/// Both have at least so many bytes, and are the caller's.
unsafe fn copy(old: usize, new: Allocated, bytes: usize) {
    let mut done = 0;
    let clear_to = |from: usize, to: usize| {
        let gap = Allocated { address: new.address + from, reused: new.reused.saturating_sub(from) };
        // SAFETY: the gap lies in the new allocation, by the caller's promise.
        unsafe { clear(gap, to - from) };
    };
    for_each_part(old..old + bytes, |part| {
        let (from, to) = (part.start - old, part.end - old);
        clear_to(done, from);
        // SAFETY: both parts lie in their allocations, by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(pointer_to(part.start), pointer_to(new.address + from), part.len()) };
        done = to;
    });
    clear_to(done, bytes);
}

/// `fsp_aligned_alloc`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    if !alignment.is_power_of_two() || alignment > ALIGN_MAX {
        refuse(bad_argument(format!("fsp_aligned_alloc: the alignment {alignment} is no power of two up to 2 MiB")));
        return null_mut();
    }
    allocate(size, alignment, Home::FirstTouch)
}

/// `fsp_free`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_free(pointer: *mut c_void) {
    if !pointer.is_null() {
        value(program::free(pointer as usize), ());
    }
}

/// `fsp_malloc_on`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_malloc_on(size: usize, node: c_int) -> *mut c_void {
    match usize::try_from(node) {
        Ok(node) => allocate(size, 4096, Home::Node(node)),
        Err(_) => {
            refuse(bad_argument(format!("fsp_malloc_on: node {node} is negative")));
            null_mut()
        }
    }
}

/// `fsp_malloc_distributed`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_malloc_distributed(size: usize, block: usize) -> *mut c_void {
    if block == 0 {
        refuse(bad_argument("fsp_malloc_distributed: the block is 0 bytes".to_owned()));
        return null_mut();
    }
    allocate(size, 4096, Home::Dealt(block as u64))
}

/// `fsp_malloc_all`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_malloc_all(size: usize) -> *mut c_void {
    let allocated = program::allocate_together(size as u64).map(Some);
    let Some(new) = value(allocated, None) else { return null_mut() };
    // SAFETY: just allocated, with at least so many bytes. No other process stores there before all have met.
    unsafe { clear(new, size) };
    value(program::meet(), ());
    pointer_to(new.address).cast()
}

/// `fsp_usable_size`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_usable_size(pointer: *const c_void) -> usize {
    value(program::usable(pointer as usize), 0) as usize
}

/// `fsp_is_shared`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_is_shared(pointer: *const c_void) -> c_int {
    c_int::from(program::is_shared(pointer as usize))
}

/// `fsp_home`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_home(pointer: *const c_void) -> c_int {
    program::home(pointer as usize).map_or(-1, |node| node as c_int)
}
