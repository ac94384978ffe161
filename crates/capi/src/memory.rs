//! `finespun/memory.h`.

use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};

use finespun_errors::Code;
use finespun_runtime::Failure;
use finespun_runtime::program::{self, Home};

use crate::error::{bad_argument, refuse, value};

/// The largest alignment.
const ALIGN_MAX: usize = 2 << 20;

fn allocate(size: usize, align: usize, home: Home) -> *mut c_void {
    match program::allocate(size as u64, align as u64, home) {
        Ok(address) => with_exposed_provenance_mut(address),
        Err(failure) => {
            refuse(failure);
            null_mut()
        }
    }
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
    let memory = fsp_malloc(bytes);
    if !memory.is_null() {
        // SAFETY: just allocated with at least `bytes` bytes; stores to it fault and are served.
        unsafe { memory.cast::<u8>().write_bytes(0, bytes) };
    }
    memory
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
    let new = fsp_malloc(size);
    if !new.is_null() {
        // SAFETY: both are live allocations of at least so many bytes, and different.
        unsafe { std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), usable.min(size)) };
        fsp_free(old);
    }
    new
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
    let together = match program::allocate_together(size as u64) {
        Ok(together) => together,
        Err(failure) => {
            refuse(failure);
            return null_mut();
        }
    };
    let memory = with_exposed_provenance_mut::<u8>(together.address);
    if together.zero {
        // SAFETY: just allocated with at least `size` bytes; stores to it fault and are served.
        unsafe { memory.write_bytes(0, size) };
    }
    value(program::meet(), ());
    memory.cast()
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
