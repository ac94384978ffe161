//! `pthread_key_t`: the same key in every process, and a value of its own in every thread.
//!
//! Which keys there are stands in a block that all processes find ([`program::block_of_all`]); the values of a thread are
//! thread-local variables without a destructor, so that they last to its very end. A destructor is a function of the
//! program, kept by its offset, or one of a library (`free`), kept by its name: addresses differ between processes.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use finespun_runtime::{Failure, program};

use super::mistake;

/// The most keys at once.
const KEYS: usize = 256;
/// Bytes of a library function's name, with its zero.
const NAME_BYTES: usize = 40;
/// How often destructors are run while they leave new values.
const ROUNDS: usize = 4;

/// A key. Plain memory of the shared space, zeros at first.
#[repr(C)]
#[derive(Clone, Copy)]
struct Key {
    /// How often the key was made and deleted: odd while there is one.
    generation: u64,
    /// The destructor's offset in the program plus one, or 0.
    destructor: u64,
    /// Or its name.
    name: [u8; NAME_BYTES],
}

type Destructor = extern "C-unwind" fn(*mut c_void);

thread_local! {
    /// Generation of the key and value, by key.
    static VALUES: [Cell<(u64, *mut c_void)>; KEYS] = const { [const { Cell::new((0, std::ptr::null_mut())) }; KEYS] };
}

/// Where the block of keys is; 0 until somebody has asked.
static BLOCK: AtomicUsize = AtomicUsize::new(0);

fn block() -> program::Result<*mut Key> {
    let mut address = BLOCK.load(Ordering::Relaxed);
    if address == 0 {
        address = program::block_of_all((KEYS * size_of::<Key>()) as u64)?;
        BLOCK.store(address, Ordering::Relaxed);
    }
    Ok(std::ptr::with_exposed_provenance_mut(address))
}

/// Makes the block, before there is any thread.
pub fn prepare() -> program::Result<()> {
    let keys = block()?;
    // SAFETY: the block has so many, and nobody else knows of it yet; the stores fault and are served.
    unsafe { keys.write_bytes(0, KEYS) };
    Ok(())
}

/// The key as it is now; `None` if the number is none of a key.
fn key(number: u32) -> Option<Key> {
    let keys = block().ok().filter(|_| (number as usize) < KEYS)?;
    // SAFETY: one of the block's, plain memory.
    let key = unsafe { keys.add(number as usize).read_volatile() };
    (key.generation % 2 == 1).then_some(key)
}

/// Runs `body` on all keys, under their lock.
fn with_keys<R>(body: impl FnOnce(&mut [Key]) -> R) -> program::Result<R> {
    let keys = block()?;
    program::lock_address(keys.addr())?;
    // SAFETY: so many are in the block; the lock is held.
    let result = body(unsafe { std::slice::from_raw_parts_mut(keys, KEYS) });
    program::unlock_address(keys.addr())?;
    Ok(result)
}

/// The name of a library's function; empty if it has none that fits.
fn name_of(function: usize) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `found` is writable; a filled entry's name is a C string or null.
    let symbol = unsafe {
        libc::dladdr(std::ptr::without_provenance(function), found.as_mut_ptr());
        found.assume_init().dli_sname
    };
    if !symbol.is_null() {
        // SAFETY: as above.
        let bytes = unsafe { CStr::from_ptr(symbol) }.to_bytes();
        if bytes.len() < NAME_BYTES {
            name[..bytes.len()].copy_from_slice(bytes);
        }
    }
    name
}

fn destructor_of(key: &Key) -> Option<Destructor> {
    let address = match key.destructor.checked_sub(1) {
        Some(offset) => program::function_at(offset)?,
        None if key.name[0] == 0 => return None,
        // SAFETY: a C string, since its last byte is zero.
        None => unsafe { libc::dlsym(libc::RTLD_DEFAULT, key.name.as_ptr().cast::<c_char>()) }.addr(),
    };
    // SAFETY: by the promise of whoever made the key, the address of such a function, in this process.
    (address != 0).then(|| unsafe { std::mem::transmute::<usize, Destructor>(address) })
}

/// `pthread_key_create(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_key_create(to: *mut u32, destructor: Option<Destructor>) -> c_int {
    let mut made = Key { generation: 0, destructor: 0, name: [0; NAME_BYTES] };
    if let Some(destructor) = destructor {
        match program::function_offset(destructor as usize) {
            Ok(offset) => made.destructor = offset + 1,
            Err(failure) => {
                made.name = name_of(destructor as usize);
                if made.name[0] == 0 {
                    return mistake(Failure { what: format!("pthread_key_create: {}", failure.what), ..failure });
                }
            }
        }
    }
    let number = with_keys(|keys| {
        let number = keys.iter().position(|key| key.generation % 2 == 0)?;
        let generation = keys[number].generation + 1;
        keys[number] = made;
        keys[number].generation = generation;
        Some(number)
    });
    match number {
        Ok(Some(number)) => {
            // SAFETY: by contract; if it lies in shared memory the store faults and is served.
            unsafe { to.write(number as u32) };
            0
        }
        Ok(None) => libc::EAGAIN,
        Err(failure) => mistake(failure),
    }
}

/// `pthread_key_delete(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_key_delete(number: u32) -> c_int {
    let deleted = with_keys(|keys| {
        let key = keys.get_mut(number as usize).filter(|key| key.generation % 2 == 1)?;
        key.generation += 1;
        Some(())
    });
    match deleted {
        Ok(Some(())) => 0,
        Ok(None) => libc::EINVAL,
        Err(failure) => mistake(failure),
    }
}

/// `pthread_setspecific(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_setspecific(number: u32, value: *const c_void) -> c_int {
    let Some(key) = key(number) else { return libc::EINVAL };
    VALUES.with(|values| values[number as usize].set((key.generation, value.cast_mut())));
    0
}

/// `pthread_getspecific(3)`
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_pthread_getspecific(number: u32) -> *mut c_void {
    let Some(key) = key(number) else { return std::ptr::null_mut() };
    match VALUES.with(|values| values[number as usize].get()) {
        (generation, value) if generation == key.generation => value,
        _ => std::ptr::null_mut(),
    }
}

/// The thread ends: its values are given to their destructors.
pub fn destroy_values() {
    for _ in 0..ROUNDS {
        let mut called = false;
        for number in 0..KEYS {
            let (generation, value) = VALUES.with(|values| values[number].get());
            if value.is_null() {
                continue;
            }
            VALUES.with(|values| values[number].set((0, std::ptr::null_mut())));
            let key = key(number as u32).filter(|key| key.generation == generation);
            if let Some(destructor) = key.as_ref().and_then(destructor_of) {
                destructor(value);
                called = true;
            }
        }
        if !called {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_library_is_found_again_by_its_name() {
        // By whichever of its names it is found.
        let free = libc::free as *const () as usize;
        let key = Key { generation: 1, destructor: 0, name: name_of(free) };
        assert_eq!(destructor_of(&key).map(|found| found as usize), Some(free));
        assert_eq!(name_of(8)[0], 0);
    }
}
