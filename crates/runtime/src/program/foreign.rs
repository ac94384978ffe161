//! Locks and mappings that are not ours: what the C library's calls for them are asked about.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use finespun_errors::Code;
use finespun_job::Report;

use super::Result;
use crate::buffers;
use crate::failure::Failure;
use crate::misuse;
use crate::process::running;

/// `--check locks`.
static LOOKS: AtomicBool = AtomicBool::new(false);

/// The runtime starts: are private locks to be looked at?
pub(crate) fn look_at_locks(on: bool) {
    LOOKS.store(on, Ordering::Relaxed);
}

/// Is [`look_at_lock`] to be called? One load.
#[inline]
#[must_use]
pub fn looks_at_locks() -> bool {
    LOOKS.load(Ordering::Relaxed)
}

/// The C library is called to lock what stands at this address of shared memory.
///
/// # Errors
/// [`Code::NodeLock`] where that would lock for one node only.
pub fn lock_of_one_node(address: usize, call: &str) -> Result<()> {
    // On one node it works, between processes if it was made for several.
    let Some(runtime) = running().filter(|runtime| runtime.cluster.shape.nodes > 1) else { return Ok(()) };
    let node = runtime.cluster.me.0;
    let what = format!(
        "{call} of the C library is called for {address:#x}, which is shared memory: it would lock for node {node} only"
    );
    Err(Failure { code: Code::NodeLock, what })
}

/// The C library is called to change the mapping of these addresses.
///
/// # Errors
/// [`Code::Mapping`] if they are shared.
pub fn mapping_of_program(address: usize, bytes: usize, call: &str) -> Result<()> {
    if running().is_none() || !buffers::is_shared(address, bytes) {
        return Ok(());
    }
    let what = format!("{call} is called for {bytes} bytes at {address:#x}, which is shared memory");
    Err(Failure { code: Code::Mapping, what })
}

/// How many places of private locks a process tells of.
const PLACES: usize = 512;

/// The addresses told already; 0: free.
static TOLD: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

thread_local! {
    /// To tell takes memory, and who gives memory may lock.
    static TELLS: Cell<bool> = const { Cell::new(false) };
}

/// The C library is called to lock what stands at this address of private memory: told once, if it is a variable of the program itself,
/// to whoever hears it from all processes.
pub fn look_at_lock(address: usize, call: &str) {
    let Some(runtime) = running() else { return };
    if !runtime.program.image.contains(&address) || TELLS.get() {
        return;
    }
    for place in &TOLD {
        match place.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => break,
            Err(told) if told == address => return,
            Err(_) => {}
        }
    }
    TELLS.set(true);
    let image = runtime.program.image.start as u64;
    misuse::tell(&Report::Locked { call: call.to_owned(), address: address as u64, image });
    TELLS.set(false);
}
