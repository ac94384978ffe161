//! Words of shared memory that the program operates on atomically, from any node: what `__atomic_fetch_add` and its kin become.
//!
//! An instruction of the processor is atomic inside a node only: two nodes may hold copies of one page writable at once. So an
//! operation takes a lock of the word, acquires, operates by plain loads and stores, releases, and gives the lock back.
//!
//! ```text
//!   lock of the word --> acquire --> operate (may fault, as any access) --> release, if it wrote --> unlock
//! ```
//!
//! - *Every operation is sequentially consistent*, whatever order it is given. All operations on a word are in the order of its
//!   lock. Each lies, as a whole, between two moments of real time, the grant and the unlock. So the moments of the
//!   grants put the operations on all words into one order, which agrees with the order of each word and of each thread.
//! - *Every operation acquires, and one that stores releases.* So what a thread wrote before it stored to a word is seen by a thread that
//!   finds the value, also if the order of both is relaxed. A fence between atomic operations therefore has nothing to
//!   add; [`fence`] is for plain accesses. A load, or a compare-and-exchange that fails, publishes nothing and does not release.
//! - *Locks are numbered*, not words: a hash sends a word to one of [`LOCKS`]. A job may so have any number of atomic words, and what a
//!   table, or a manager under lazy release consistency, keeps of them is bounded. Two words with one lock only wait for each other. No
//!   thread holds two of these locks, and under one it waits for nothing but its page. The numbers are no addresses of
//!   shared memory, so an object of the program beside a word never meets the word's lock.
//! - *Words of 16 bytes at an address that 16 divides have one lock, with all their parts*: libstdc++ reads the two counts of a
//!   `shared_ptr` by one load.
//! - *Handlers of the program are kept out* of the whole. They may operate on words themselves. A handler that comes while its thread
//!   sleeps in the engine, waiting for a mutex say, cannot wait where that thread waits already: it takes a slot of its own.

use std::cell::Cell;
use std::time::Duration;

use finespun_errors::Code;
use finespun_sys::clock;
use finespun_sys::process::ErrnoKept;
use finespun_sys::signals::{Whole, is_let_in};

use super::memory::offset;
use super::objects::{leave_entered, lock_entered, unlock_entered};
use super::repeats::{Pause, Repeats};
use super::{Result, inside, quick};
use crate::consistency;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::meter;
use crate::node::runtime::running;

/// How many locks all words of a job share.
const LOCKS: usize = 4096;
/// Below the shared space, above a program's variables.
const FIRST_LOCK: usize = 0x1000_0000_0000;
const LOCK_STEP: usize = 8;
/// Behind the others.
const LOCK_OF_FENCES: usize = FIRST_LOCK + LOCKS * LOCK_STEP;

/// What an operation did.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// It stored, or would have stored another value: what was written before it is to be seen by those who find this.
    pub stores: bool,
    /// What was in the word, or some of it.
    pub found: u64,
}

/// Who makes an operation atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// The processor can, inside a node.
    Instruction,
    /// The processor can, and the operation is a load, of no more than it has found.
    Load,
    /// It cannot: several words, or the program's own code.
    Lock,
}

thread_local! {
    static REPEATS: Cell<Repeats> = const { Cell::new(Repeats::new()) };
}

/// Operates on a word, if that takes more than this node's own means: false if it does not, and then nothing has happened. `operate` may
/// touch shared memory, and must not call the library; a load may be run twice.
///
/// # Errors
/// [`Code::Argument`] where too many threads that the program made itself call at once.
pub fn operate(address: usize, atomicity: Atomicity, mut operate: impl FnMut() -> Outcome) -> Result<bool> {
    let Some(runtime) = running() else { return Ok(false) };
    let cluster = runtime.cluster;
    if cluster.shape.nodes == 1 && atomicity != Atomicity::Lock || offset(cluster, address).is_none() {
        return Ok(false);
    }
    if atomicity == Atomicity::Load && glances(cluster, address, &mut operate)? {
        return Ok(true);
    }
    let outcome = with_lock(cluster, lock_of(address), operate)?;
    pause_after(cluster, address, outcome);
    Ok(true)
}

/// Loads without the lock, as a thread may that waits for one word alone; true if it found what it has found there all the time.
///
/// Another look at an old value is always allowed: it stands, in the order of all operations, beside the last look under the lock, since the thread
/// has found nothing new and changed nothing in between. What it has learned by an acquire, of a mutex for example, its node's
/// copy of the page obeys. A value that is not the old one may be half of another, and is looked at under the lock.
fn glances(cluster: &'static Cluster, address: usize, operate: &mut impl FnMut() -> Outcome) -> Result<bool> {
    let Some(expected) = REPEATS.get().expects(address, clock::now_ns) else { return Ok(false) };
    if !consistency::brings_news(cluster) || is_let_in() {
        return Ok(false);
    }
    if !consistency::has_nothing_to_acquire(cluster) {
        inside(|entered| {
            consistency::acquire(entered.cluster);
            Ok(())
        })?;
    }
    if operate().found != expected {
        return Ok(false);
    }
    std::thread::yield_now();
    Ok(true)
}

/// A fence for plain accesses: an operation on one word that the whole job has. What the caller wrote before is seen by all that
/// come to a fence later.
///
/// # Errors
/// As [`operate`].
pub fn fence() -> Result<()> {
    let Some(cluster) = running().map(|runtime| runtime.cluster).filter(|cluster| cluster.shape.nodes > 1) else {
        return Ok(());
    };
    with_lock(cluster, LOCK_OF_FENCES, || Outcome { stores: true, found: 0 }).map(|_| ())
}

fn with_lock(cluster: &'static Cluster, lock: usize, operate: impl FnOnce() -> Outcome) -> Result<Outcome> {
    let _whole = Whole::new();
    let _slot = SlotOfHandler::new(cluster)?;
    if !quick::lock_numbered(lock) {
        inside(move |entered| lock_entered(entered, lock))?;
    }
    let outcome = operate();
    if !quick::unlock_numbered(lock, outcome.stores) {
        let leave = if outcome.stores { unlock_entered } else { leave_entered };
        inside(move |entered| leave(entered, lock))?;
    }
    Ok(outcome)
}

/// The number of a word's lock.
pub(super) const fn lock_of(address: usize) -> usize {
    let hash = (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - LOCKS.ilog2());
    FIRST_LOCK + hash * LOCK_STEP
}

/// A handler that interrupted its thread's sleep in the engine waits in a slot of its own, until this is dropped.
pub(super) struct SlotOfHandler(Option<(&'static Cluster, usize, Option<usize>)>);

impl SlotOfHandler {
    #[inline]
    pub(super) fn new(cluster: &'static Cluster) -> Result<Self> {
        if !is_let_in() {
            return Ok(Self(None));
        }
        let Some(slot) = cluster.take_guest_slot() else {
            let what = "more signal handlers and threads of the program's own call the library at once than a node has \
                        room for (31)";
            return Err(Failure::new(Code::Argument, what));
        };
        let of_thread = meter::slot_index();
        meter::become_slot(slot);
        Ok(Self(Some((cluster, slot, of_thread))))
    }
}

impl Drop for SlotOfHandler {
    #[inline]
    fn drop(&mut self) {
        let Some((cluster, slot, of_thread)) = self.0 else { return };
        match of_thread {
            Some(of_thread) => meter::become_slot(of_thread),
            None => meter::no_slot(),
        }
        cluster.give_guest_slot(slot);
    }
}

/// A thread that waits for a word in a loop leaves the processor to others, and after a while the network too: it glances, or, where it cannot,
/// sleeps for an eighth of the time that it has waited, at most a millisecond.
fn pause_after(cluster: &Cluster, address: usize, outcome: Outcome) {
    let mut repeats = REPEATS.get();
    let pause = if outcome.stores {
        repeats.forget();
        Pause::None
    } else {
        repeats.found(address, outcome.found, clock::now_ns)
    };
    REPEATS.set(repeats);
    match pause {
        Pause::None => {}
        Pause::Yield => std::thread::yield_now(),
        Pause::Sleep(_) if repeats.is_alone() && consistency::brings_news(cluster) => std::thread::yield_now(),
        Pause::Sleep(ns) => {
            let _errno = ErrnoKept::new();
            std::thread::sleep(Duration::from_nanos(ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_spread_over_locks_and_parts_of_a_word_share_one() {
        let locks = |step: usize| {
            let mut all = (0..LOCKS).map(|i| lock_of(0x2000_0000_0000 + step * i)).collect::<Vec<_>>();
            all.sort_unstable();
            all.dedup();
            all.len()
        };
        assert!([16, 64, 4096].into_iter().all(|step| locks(step) > LOCKS / 3), "{:?}", [16, 64, 4096].map(locks));
        assert_eq!(lock_of(0x2000_0000_0010), lock_of(0x2000_0000_001c));
    }

    #[test]
    fn locks_are_no_addresses_of_shared_memory_and_fit_into_a_thin_word() {
        for address in [0, 0x40_1000, 0x2000_0000_0000, 0x3fff_ffff_fff0] {
            let lock = lock_of(address);
            assert!((FIRST_LOCK..0x2000_0000_0000).contains(&lock) && lock.is_multiple_of(8), "{lock:#x}");
        }
    }
}
