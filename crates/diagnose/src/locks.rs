//! `--check locks`: locks of the C library in private variables of the program, which lock for one process only.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use finespun_job::Report;
use finespun_runtime::Subject;

/// `--check locks`.
static LOOKS: AtomicBool = AtomicBool::new(false);

/// The runtime has started: are private locks to be looked at?
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
    let Some(subject) = Subject::running() else { return };
    if !subject.image().contains(&address) || TELLS.get() || !is_new(&TOLD, address) {
        return;
    }
    TELLS.set(true);
    let image = subject.image().start as u64;
    subject.tell(&Report::Locked { call: call.to_owned(), address: address as u64, image });
    TELLS.set(false);
}

/// Notes an address: false if it stands there already. True also where there is no room to note it.
fn is_new(told: &[AtomicUsize], address: usize) -> bool {
    for place in told {
        match place.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(before) if before == address => return false,
            Err(_) => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_new_once() {
        let told = [const { AtomicUsize::new(0) }; 2];
        let new = [8, 8, 16, 8, 16, 24, 24].map(|address| is_new(&told, address));
        assert_eq!(new, [true, false, true, false, false, true, true]);
    }
}
