//! What the live runtime needs of Linux, and the only part of it with unsafe memory, signals, futexes and the
//! cycle counter. Nothing here knows a protocol: pages, rights, faults and words go in, system calls come out.
//!
//! ```text
//!   application's load or store                       engine's reads and writes
//!            |                                                  |
//!      +-----v------ View: rights per page ------+       +------v------+
//!      |  none | read-only | writable  | none    |       |   Mapping   |   always writable
//!      +-----+-----------------------------------+       +------+------+
//!            | fault                    \_____ one memfd, the node's frames _____/
//!      faults::install(space, mechanism, handler) -> handler(address, kind) -> View::map_read / map_write
//! ```
//!
//! Which mechanism carries the rights is found by trying ([`probe`]): userfaultfd in the faulting thread, or
//! mprotect. The measurements behind both are in docs/kernel.md.
//!
//! Linux on x86-64; it also builds for aarch64, where the fault kind is unknown and the clock is
//! `clock_gettime`.

pub mod caller;
pub mod calls;
pub mod clock;
pub mod descriptors;
pub mod faults;
pub mod fence;
pub mod futex;
pub mod limits;
pub mod lock;
pub mod machine;
pub mod maps;
pub mod memory;
pub mod passing;
pub mod prefetch;
pub mod probe;
pub mod process;
pub mod sibling;
pub mod sigio;
pub mod signals;
pub mod stack;
pub mod view;
pub mod watch;

/// Bytes of a page, the grain of every right. Equal to `finespun_types::PAGE_BYTES`; this crate stands below it.
pub const PAGE_BYTES: usize = 4096;

use std::io;

/// The error of a C call that returns -1. Allocates nothing, so the fault handler may call it.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The error for an argument that is no good. Allocates nothing either.
fn invalid() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}
