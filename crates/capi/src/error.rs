//! What becomes of an error: by default it ends the job, since most callers do not look.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

use finespun_errors::{Code, Place, Report};
use finespun_runtime::{Failure, program};

static RETURNS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// FSP_OK.
pub const OK: c_int = 0;
/// FSP_BUSY.
pub const BUSY: c_int = 16;

/// The status of a call; ends the job on an error unless the program wants errors returned.
pub fn status(result: program::Result<()>) -> c_int {
    match result {
        Ok(()) => OK,
        Err(failure) => refuse(failure),
    }
}

/// The value of a call, or `instead` with the error noted.
pub fn value<T>(result: program::Result<T>, instead: T) -> T {
    result.unwrap_or_else(|failure| {
        refuse(failure);
        instead
    })
}

/// Notes an error, or ends the job with it.
pub fn refuse(failure: Failure) -> c_int {
    if !RETURNS.load(Ordering::Relaxed) {
        program::fail(&failure);
    }
    let status = failure.code as c_int;
    let text = Report { code: failure.code, place: Place::Launcher, what: failure.what }.to_string();
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = Some(text));
    status
}

/// `fsp_errors_return`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_errors_return(on: c_int) {
    RETURNS.store(on != 0, Ordering::Relaxed);
}

/// `fsp_last_error`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_last_error() -> *const c_char {
    // Valid until the thread's next error, as the header says.
    LAST.with_borrow(|last| last.as_deref().unwrap_or_default().as_ptr())
}

/// `fsp_strerror`
#[unsafe(no_mangle)]
pub extern "C" fn fsp_strerror(code: c_int) -> *const c_char {
    text_of(code).as_ptr()
}

fn text_of(code: c_int) -> &'static CStr {
    match code {
        0 => c"success",
        4 => c"the runtime is not running: before fsp_init, or after fsp_finalize",
        5 => c"an argument is out of its range",
        6 => c"the machine refused something that is needed",
        11 => c"a synchronization object in private memory, in a job of several processes",
        16 => c"busy: the mutex is held, or no processor is idle",
        20 => c"the caller does not hold the mutex",
        21 => c"processors disagree about the barrier's count",
        22 => c"the caller already holds the mutex",
        50 => c"the shared heap is full",
        51 => c"not a live allocation of the shared heap",
        52 => c"too many mutexes, barriers and flags are in use",
        80 => c"a child made by fork is no part of the job",
        81 => c"fsp_init was called before",
        _ => c"no status of this library",
    }
}

/// An error of the caller's arguments.
pub fn bad_argument(what: String) -> Failure {
    Failure { code: Code::Argument, what }
}
