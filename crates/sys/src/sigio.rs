//! Input that announces itself by a signal: SIGIO, to one thread, whose handler runs only while that thread sleeps here.
//!
//! A process has one such handler, and the descriptors' owner is the thread that set them up. What the handler calls need not
//! be safe to call in a signal handler of any kind: nothing is interrupted but the sleep.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::check;

/// What the handler calls.
type Handler = Box<dyn Fn() + Send + Sync>;

static HANDLER: OnceLock<Handler> = OnceLock::new();
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// `F_SETSIG`, `F_SETOWN_EX` and its kind of owner: Linux's, which the libc crate does not name on every target.
const F_SETSIG: libc::c_int = 10;
const F_SETOWN_EX: libc::c_int = 15;
const F_OWNER_TID: libc::c_int = 0;

/// As the kernel has it.
#[repr(C)]
struct Owner {
    kind: libc::c_int,
    thread: libc::pid_t,
}

/// From now on this thread sleeps by [`sleep`], and `handler` runs in it when a signal comes meanwhile. Once for a process.
///
/// # Errors
/// The kernel's.
pub fn install(handler: Handler) -> io::Result<()> {
    if HANDLER.set(handler).is_err() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    block()?;
    // SAFETY: an all-zero sigaction is valid.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
    // SAFETY: `action` is whole, and its handler lives as long as the process.
    check(unsafe { libc::sigaction(libc::SIGIO, &action, std::ptr::null_mut()) })?;
    Ok(())
}

extern "C" fn on_signal(_: libc::c_int) {
    TAKEN.fetch_add(1, Ordering::Relaxed);
    if let Some(handler) = HANDLER.get() {
        handler();
    }
}

/// Signals taken so far.
#[must_use]
pub fn taken() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// Input on the descriptor sends SIGIO to this thread from now on; it must have called [`install`].
///
/// # Errors
/// The kernel's.
pub fn announce(fd: BorrowedFd<'_>) -> io::Result<()> {
    let number = fd.as_raw_fd();
    // SAFETY: gettid has no arguments.
    let owner = Owner { kind: F_OWNER_TID, thread: unsafe { libc::gettid() } };
    // SAFETY: the descriptor is open while borrowed; the owner is as the kernel wants it, and is only read.
    check(unsafe { libc::fcntl(number, F_SETOWN_EX, &raw const owner) })?;
    // SAFETY: as before.
    check(unsafe { libc::fcntl(number, F_SETSIG, libc::SIGIO) })?;
    // SAFETY: as before.
    let flags = check(unsafe { libc::fcntl(number, libc::F_GETFL) })?;
    // SAFETY: as before.
    check(unsafe { libc::fcntl(number, libc::F_SETFL, flags | libc::O_ASYNC) })?;
    Ok(())
}

/// Sleeps until a signal was handled, one of `also` is readable, or `timeout` is over (`None`: never). Which are readable.
///
/// # Errors
/// The kernel's, but for an interruption: that is what is waited for.
pub fn sleep<const N: usize>(also: [BorrowedFd<'_>; N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    let mut fds = also.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mask = mask_without_sigio()?;
    crate::calls::one();
    // SAFETY: `fds` has N entries, the timeout is null or whole, the mask is whole; all outlive the call.
    let ready = check(unsafe { libc::ppoll(fds.as_mut_ptr(), N as libc::nfds_t, timeout, &mask) });
    match ready {
        Ok(_) => Ok(fds.map(|fd| fd.revents != 0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
    }
}

/// This thread's mask, with SIGIO let in.
fn mask_without_sigio() -> io::Result<libc::sigset_t> {
    let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: with no new set the call only writes the present mask; then the set is whole.
    unsafe {
        check_errno(libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr()))?;
        check(libc::sigdelset(mask.as_mut_ptr(), libc::SIGIO))?;
        Ok(mask.assume_init())
    }
}

/// Outside of [`sleep`] the signal waits.
fn block() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigemptyset makes the set whole before anybody reads it.
    unsafe {
        check(libc::sigemptyset(set.as_mut_ptr()))?;
        check(libc::sigaddset(set.as_mut_ptr(), libc::SIGIO))?;
        check_errno(libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()))
    }
}

/// For calls that return their error.
fn check_errno(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn input_runs_the_handler_in_the_thread_that_sleeps_and_nothing_else_does() {
        let (mut ours, mut theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("nonblocking");
        let (_quiet, also) = UnixStream::pair().expect("a pair");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (reader, into) = (ours.try_clone().expect("a duplicate"), Arc::clone(&heard));
        let sleeper = std::thread::current().id();
        let read = move || {
            let mut bytes = [0; 8];
            let got = (&reader).read(&mut bytes).unwrap_or(0);
            into.lock().expect("whole").push((std::thread::current().id(), bytes[..got].to_vec()));
        };
        install(Box::new(read)).expect("a handler");
        announce(ours.as_fd()).expect("an owner");
        theirs.write_all(b"hello").expect("written");
        assert!(heard.lock().expect("whole").is_empty(), "blocked outside of the sleep");
        assert_eq!(sleep([also.as_fd()], Some(Duration::from_secs(20))).expect("a sleep"), [false]);
        assert_eq!(heard.lock().expect("whole")[0], (sleeper, b"hello".to_vec()));
        assert!(taken() >= 1);
        assert_eq!(ours.read(&mut [0; 8]).map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
        assert_eq!(install(Box::new(|| {})).map_err(|error| error.kind()), Err(io::ErrorKind::AlreadyExists));
    }
}
