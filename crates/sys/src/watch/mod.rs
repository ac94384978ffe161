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
mod watched;

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

pub use image::Image;
use table::{Own, Table};
use watched::{END, LAST_END, START, WATCH, Watch, is_on, protect};

use crate::faults::{self, Steps};
use crate::invalid;

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
    faults::take_traps(Steps { on_signal: step::on_signal, abandon: step::abandon, are_on: is_on })?;
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
