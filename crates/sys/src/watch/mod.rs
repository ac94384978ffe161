//! Every access of a program to its own variables, looked at as it happens: for a diagnosis, where it may be slow.
//!
//! The pages of the program's `.data` and `.bss` have no rights. An access faults; it is noted in the job's table ([`table`]);
//! the page gets its rights for *one instruction* (the trap flag in the interrupted flags), and loses them in the trap behind it.
//!
//! ```text
//!   load or store --SIGSEGV--> note it, open the page, set the trap flag
//!        | again, one instruction
//!        +--------SIGTRAP--> what did the store change? close the page, clear the trap flag
//! ```
//!
//! Between the two the thread has every other signal blocked, so nothing comes in between; only a fault of the shared space, by the
//! same instruction, which is served as ever. Sizes of accesses come from the instruction (`access`); what a store has changed,
//! from the bytes before and after.
//!
//! **What goes unseen**: what the kernel reads or writes (the C API's wrappers copy through loads and stores instead where the
//! buffer is watched), and another thread's accesses to a page while it is open for an instruction of this one.
//!
//! Only on x86-64.

mod access;
mod image;
mod open;
pub mod record;
mod step;
pub mod table;

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use image::Image;
pub(crate) use step::{abandon, on_signal};
use table::{Own, Table};

use crate::{check, invalid};

/// What a process watches.
struct Watch {
    image: Image,
    table: Table,
    /// The calling thread's processor, counted over the job. Called in the signal handler.
    who: fn() -> u32,
}

static WATCH: OnceLock<Watch> = OnceLock::new();
/// The watched addresses; none while nothing is watched.
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
/// Where the watch was before it ended: a thread may have faulted just before.
static LAST_END: AtomicUsize = AtomicUsize::new(0);

/// Watches the program's variables from now on. The fault handler is installed ([`crate::faults::install`]).
///
/// # Errors
/// `EINVAL` if it cannot be done: not on x86-64, in a program that is linked with this library statically, twice.
pub fn begin(fd: BorrowedFd<'_>, own: Own, who: fn() -> u32) -> io::Result<Range<usize>> {
    let image = Image::of_this_process();
    // Our own variables must not be among them: the handler uses them.
    let has_ours = image.variables.contains(&(&raw const START).addr());
    if !cfg!(target_arch = "x86_64") || has_ours || image.variables.is_empty() {
        return Err(invalid());
    }
    let link = image.variables.start - image.base..image.variables.end - image.base;
    let program = std::fs::read_link("/proc/self/exe")?;
    let table = Table::map(fd, own, link, program.as_os_str())?;
    access::prepare();
    let variables = image.variables.clone();
    WATCH.set(Watch { image, table, who }).map_err(|_| invalid())?;
    crate::faults::take_traps()?;
    LAST_END.store(variables.end, Ordering::Relaxed);
    START.store(variables.start, Ordering::Relaxed);
    END.store(variables.end, Ordering::Release);
    protect(&variables, libc::PROT_NONE)?;
    Ok(variables)
}

/// Gives all rights back, and looks at nothing any more. Calls only the kernel, so that the child of a fork may do it.
pub fn end() {
    let variables = START.load(Ordering::Relaxed)..END.swap(0, Ordering::AcqRel);
    if variables.end != 0 {
        // They had these rights before; if the kernel has no memory for it, the next access ends the process.
        let _ = protect(&variables, libc::PROT_READ | libc::PROT_WRITE);
    }
}

/// Is anything watched now?
pub(crate) fn is_on() -> bool {
    END.load(Ordering::Acquire) != 0
}

fn protect(addresses: &Range<usize>, rights: libc::c_int) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut::<u8>(addresses.start);
    // The call itself: our C API may define `mprotect` for programs, and refuses them what is watched.
    // SAFETY: whole pages of the program's variables, which were readable and writable; whoever touches them without rights
    // is served by the handler.
    check(unsafe { libc::syscall(libc::SYS_mprotect, start, addresses.len(), rights) } as libc::c_int).map(drop)
}
