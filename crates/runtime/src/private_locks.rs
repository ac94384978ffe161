//! `--check locks`: locks of the C library in private variables of the program, which lock for one process only.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use finespun_job::Report;

use crate::misuse;
use crate::process::running;

/// `--check locks`.
static LOOKS: AtomicBool = AtomicBool::new(false);

/// The runtime starts: are private locks to be looked at?
pub(crate) fn begin(on: bool) {
    LOOKS.store(on, Ordering::Relaxed);
}

/// Is [`look_at`] to be called? One load.
#[inline]
#[must_use]
pub fn are_looked_for() -> bool {
    LOOKS.load(Ordering::Relaxed)
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
pub fn look_at(address: usize, call: &str) {
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
