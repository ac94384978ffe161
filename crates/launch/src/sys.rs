//! The crate's only unsafe code: a spawn with our own steps between fork and exec, descriptors known by number, and a look at a
//! thread of a child.

pub mod trace;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use finespun_sys::process::Cores;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag};
use nix::sys::resource::{Resource, rlim_t, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{getpid, getppid};

/// What a write beyond the limit of file sizes brings.
#[must_use]
pub fn limit_signal() -> SigSet {
    SigSet::from(Signal::SIGXFSZ)
}

/// What a child gets beyond what `Command` arranges.
#[derive(Debug)]
pub struct Inheritance {
    /// Descriptors that stay open in the child, under their numbers. All others of ours close themselves.
    pub descriptors: Vec<RawFd>,
    /// The signal the kernel sends the child when the spawning *thread* ends: so spawn from the main thread.
    pub parent_death: Signal,
    /// The limit of open files (soft, hard) that the child shall have, if we raised our own.
    pub open_files: Option<(rlim_t, rlim_t)>,
    /// Signals that are blocked here, and shall not be in the child.
    pub unblocked: SigSet,
    /// The cores that the child stays on, if not on all.
    pub cores: Option<Cores>,
}

/// Starts `command` with that inheritance. The child's SIGPIPE is the default: the standard library sees to that. Its
/// signal mask is ours, but for what is unblocked.
///
/// # Errors
/// When fork or exec fails, or one of the steps between.
pub fn spawn(command: &mut Command, inheritance: Inheritance) -> io::Result<Child> {
    let parent = getpid();
    let prepare = move || {
        nix::sys::prctl::set_pdeathsig(inheritance.parent_death)?;
        if getppid() != parent {
            // The parent ended before we asked to be told: nobody is there for an error, and the standard library would abort with
            // words of its own.
            // SAFETY: _exit ends this child at once, and is async-signal-safe.
            unsafe { nix::libc::_exit(1) };
        }
        for &fd in &inheritance.descriptors {
            keep_over_exec(fd)?;
        }
        if let Some((soft, hard)) = inheritance.open_files {
            setrlimit(Resource::RLIMIT_NOFILE, soft, hard)?;
        }
        if let Some(cores) = &inheritance.cores {
            cores.stay()?;
        }
        // Last: what is pending may end the child here.
        inheritance.unblocked.thread_unblock()?;
        Ok(())
    };
    // SAFETY: between fork and exec `prepare` makes only system calls (prctl, getppid, _exit, fcntl, setrlimit, sched_setaffinity, sigprocmask),
    // which are async-signal-safe, and allocates nothing: its errors are plain numbers, and the vector it reads was filled before.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

fn keep_over_exec(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: fcntl(F_SETFD) on a number is harmless whatever the number is; the caller owns the descriptors it names.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    nix::fcntl::fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty())).map(drop)
}

/// Makes an inherited descriptor close itself at the next exec, unless it is named in an [`Inheritance`] again.
///
/// # Errors
/// `EBADF` when no such descriptor is open.
pub fn close_on_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl(F_SETFD) on a number is harmless whatever the number is; the borrow ends with the call.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(nix::fcntl::fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map(drop)?)
}

/// An owned duplicate of a descriptor that was inherited under a number.
///
/// # Errors
/// `EBADF` when no such descriptor is open.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(Errno::EBADF.into());
    }
    // SAFETY: dup of a number is harmless whatever the number is (EBADF if it is not open); the borrow ends with the call.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}
