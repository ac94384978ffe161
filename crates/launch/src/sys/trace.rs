//! Looking at a thread of a child: stops it for a few microseconds by ptrace(2), reads its registers, lets it go on. And waiting for
//! children, told with the numbers of signals as they are: those for real time have no names.

use std::io;

use nix::errno::Errno;

/// What a child has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// It ended by itself, with this code.
    Code(i32, i32),
    /// It was ended by this signal.
    Signal(i32, i32),
    /// A thread that is looked at has stopped; this signal, if it is not 0, was about to be delivered to it.
    Stopped(i32, i32),
    /// Nothing more.
    Nothing,
}

/// The next thing that a child, or a thread that is looked at, has done. Does not wait.
///
/// # Errors
/// What the kernel says.
pub fn next_child() -> io::Result<Waited> {
    let mut status = 0;
    // SAFETY: `status` is writable; no memory of ours is touched otherwise.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
    match Errno::result(pid) {
        Ok(0) | Err(Errno::ECHILD) => Ok(Waited::Nothing),
        Ok(pid) if libc::WIFEXITED(status) => Ok(Waited::Code(pid, libc::WEXITSTATUS(status))),
        Ok(pid) if libc::WIFSIGNALED(status) => Ok(Waited::Signal(pid, libc::WTERMSIG(status))),
        // An event of tracing stands above the signal's number; then there is none to deliver.
        Ok(pid) => Ok(Waited::Stopped(pid, if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 })),
        Err(error) => Err(error.into()),
    }
}

/// A thread's registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The next instruction's address.
    pub at: u64,
    /// rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15: as instructions number them.
    pub general: [u64; 16],
}

fn request(request: libc::c_uint, thread: i32, data: usize) -> io::Result<()> {
    // SAFETY: the requests below take numbers, or (GETREGS) an address that their caller vouches for.
    Errno::result(unsafe { libc::ptrace(request, thread, std::ptr::null_mut::<libc::c_void>(), data) })?;
    Ok(())
}

/// Asks a thread of a child to stop; [`next_child`] says when it has.
///
/// # Errors
/// What the kernel says: `EPERM` where it forbids this, or somebody else (a debugger) does it already.
pub fn stop(thread: i32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, 0)?;
    request(libc::PTRACE_INTERRUPT, thread, 0)
}

/// The registers of a thread that has stopped.
///
/// # Errors
/// What the kernel says.
#[cfg(target_arch = "x86_64")]
pub fn registers(thread: i32) -> io::Result<Registers> {
    // SAFETY: a struct of integers, which may all be zero.
    let mut all: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    request(libc::PTRACE_GETREGS, thread, (&raw mut all).expose_provenance())?;
    let libc::user_regs_struct { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, .. } = all;
    let libc::user_regs_struct { r8, r9, r10, r11, r12, r13, r14, r15, rip, .. } = all;
    let general = [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15];
    Ok(Registers { at: rip, general })
}

/// Eight bytes of the memory of a thread that has stopped.
///
/// # Errors
/// What the kernel says, `EIO` where nothing is mapped.
pub fn word(thread: i32, address: u64) -> io::Result<u64> {
    Errno::clear();
    let place = std::ptr::with_exposed_provenance_mut::<libc::c_void>(address as usize);
    // SAFETY: reads the other's memory; the result is a word, and errno tells -1 from an error.
    let found = unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, thread, place, 0) };
    match Errno::last() {
        error if found == -1 && error != Errno::UnknownErrno => Err(error.into()),
        _ => Ok(found.cast_unsigned()),
    }
}

/// Lets a thread that has stopped go on, and takes the signal, if it is not 0, that was about to be delivered.
///
/// # Errors
/// What the kernel says.
pub fn let_go(thread: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, thread, usize::try_from(signal).unwrap_or(0))
}
