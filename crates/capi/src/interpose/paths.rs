//! Paths in shared memory: the kernel gets a private copy.

use std::ffi::{c_char, c_int};

use libc::{DIR, FILE, mode_t, off_t};

use super::bounce::Bounce;
use super::{is_shared, real};

/// A path as the kernel gets it: the caller's own, or a private copy that lives as long as this.
pub struct Path {
    place: *const c_char,
    _copy: Option<Bounce>,
}

impl Path {
    /// # Safety
    /// `path` is null or a C string.
    pub unsafe fn of(path: *const c_char) -> Self {
        let copy = if is_shared(path, 1) { Bounce::new(libc::PATH_MAX as usize + 1).ok() } else { None };
        let Some(copy) = copy else { return Self { place: path, _copy: None } };
        // One byte more than the kernel takes, so that it refuses one that is too long.
        let room = libc::PATH_MAX as usize;
        // SAFETY: by contract a string; if shared, looking at it faults and is served. The copy has room for all and a 0.
        unsafe {
            let bytes = libc::strnlen(path, room);
            std::ptr::copy_nonoverlapping(path.cast::<u8>(), copy.memory(), bytes);
            copy.memory().add(bytes).write(0);
        }
        Self { place: copy.memory().cast_const().cast(), _copy: Some(copy) }
    }

    /// The string.
    pub const fn get(&self) -> *const c_char {
        self.place
    }
}

/// `open(2)`. The mode is there only if the flags say so; without it a number is passed on that nobody looks at.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::open(path.get(), flags, mode)
    }
}

/// `open(2)`, by its 64-bit name. The mode is there only if the flags say so; without it a number is passed on that nobody looks at.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::open64(path.get(), flags, mode)
    }
}

/// `openat(2)`. The mode is there only if the flags say so; without it a number is passed on that nobody looks at.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn openat(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::openat(at, path.get(), flags, mode)
    }
}

/// `openat(2)`, by its 64-bit name. The mode is there only if the flags say so; without it a number is passed on that nobody looks at.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::openat64(at, path.get(), flags, mode)
    }
}

/// `fopen(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::fopen(path.get(), mode)
    }
}

/// `fopen(3)`, by its 64-bit name
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::fopen64(path.get(), mode)
    }
}

/// `opendir(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn opendir(path: *const c_char) -> *mut DIR {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::opendir(path.get())
    }
}

/// `access(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::access(path.get(), mode)
    }
}

/// `unlink(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::unlink(path.get())
    }
}

/// `mkdir(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::mkdir(path.get(), mode)
    }
}

/// `rmdir(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rmdir(path: *const c_char) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::rmdir(path.get())
    }
}

/// `chdir(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn chdir(path: *const c_char) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::chdir(path.get())
    }
}

/// `truncate(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn truncate(path: *const c_char, bytes: off_t) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copy of the path lives until the end.
    unsafe {
        let path = Path::of(path);
        real::truncate(path.get(), bytes)
    }
}

/// `rename(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise; the copies live until the end.
    unsafe {
        let (from, to) = (Path::of(from), Path::of(to));
        real::rename(from.get(), to.get())
    }
}
