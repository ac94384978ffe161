//! Calls that a thread must not make on a shared stack (`fspcc --share-stacks`), where a page may be missing at any time: they block
//! all signals, or go on where no fault of ours is served. They are made on the thread's private stack; elsewhere nothing is
//! different.

use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char, c_int};

use finespun_sys::stack;
use libc::{FILE, addrinfo, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t, stack_t};

use super::{is_shared, real};

/// A text as a new process may look at it, in which no fault is served: the caller's own, or a private copy.
struct Text {
    place: *const c_char,
    _copy: Option<CString>,
}

impl Text {
    /// The text is null or a C string.
    fn of(place: *const c_char) -> Self {
        // SAFETY: the callers' promise; if shared, looking at it faults and is served.
        let copy = is_shared(place, 1).then(|| unsafe { CStr::from_ptr(place) }.to_owned());
        Self { place: copy.as_ref().map_or(place, |copy| copy.as_ptr()), _copy: copy }
    }

    const fn get(&self) -> *const c_char {
        self.place
    }
}

/// `system(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn system(command: *const c_char) -> c_int {
    stack::on_private(move || {
        let command = Text::of(command);
        // SAFETY: the caller's command, or a copy of it.
        unsafe { real::system(command.get()) }
    })
}

/// `popen(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn popen(command: *const c_char, way: *const c_char) -> *mut FILE {
    stack::on_private(move || {
        let (command, way) = (Text::of(command), Text::of(way));
        // SAFETY: the caller's texts, or copies of them.
        unsafe { real::popen(command.get(), way.get()) }
    })
}

/// `pclose(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pclose(stream: *mut FILE) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    stack::on_private(move || unsafe { real::pclose(stream) })
}

/// `realpath(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's own arguments, under the caller's promise.
    stack::on_private(move || unsafe { real::realpath(path, resolved) })
}

/// `getaddrinfo(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    to: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    stack::on_private(move || unsafe { real::getaddrinfo(node, service, hints, to) })
}

/// `posix_spawn(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    words: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    stack::on_private(move || unsafe { real::posix_spawn(pid, path, actions, attributes, words, environment) })
}

/// `posix_spawnp(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    words: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    // SAFETY: the caller's own arguments, under the caller's promise.
    stack::on_private(move || unsafe { real::posix_spawnp(pid, file, actions, attributes, words, environment) })
}

/// `fork(2)`. The child goes on on a private copy of the stack, as of the fork.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fork() -> pid_t {
    stack::on_private(|| {
        let copy = stack::Copy::of_caller();
        // SAFETY: takes no argument.
        let pid = unsafe { real::fork() };
        if pid == 0 {
            copy.put_back();
        }
        pid
    })
}

/// `exit(3)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn exit(code: c_int) -> ! {
    let leave = move || -> Infallible {
        // SAFETY: takes no pointer.
        unsafe { real::exit(code) };
        std::process::abort()
    };
    match stack::on_private(leave) {}
}

/// `sigaltstack(2)`: a thread with a shared stack has one of ours already, and keeps it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int {
    let new = if stack::of_caller().is_some() { std::ptr::null() } else { new };
    // SAFETY: the caller's own arguments, or null, under the caller's promise.
    unsafe { real::sigaltstack(new, old) }
}
