//! Sleeping on a word of memory, and the short spin that comes before it.
//!
//! Futexes here are shared ones (no `FUTEX_PRIVATE_FLAG`): the words live in memory that several processes map,
//! each at its own address. All of it may be called in the fault handler. The words must not lie in a view whose
//! rights change: the kernel would find the page missing and answer `EFAULT` (docs/kernel.md section 3).
//!
//! Measured (docs/kernel.md section 6): a peer that answers within the spin costs 55 ns, a sleeper that has to be
//! woken 7 to 15 us, of which the waker pays 6. Spin 20 to 50 us if there are cores for all runnable threads, else
//! not at all.

use crate::{calls, clock};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Somebody called [`wake`], or the kernel woke us for no reason: look at the word again.
    Woken,
    /// The word no longer had the expected value.
    Changed,
    /// The time was up.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
}

/// Sleeps while `word` is `expected`, until [`wake`], a signal or the timeout.
///
/// Panics if the word is not ordinary accessible memory, which a reference promises.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Wake {
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    calls::one();
    // SAFETY: `word` is a live, aligned word; `limit` is null or points to a timespec that lives until the return.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, limit) };
    if result == 0 {
        return Wake::Woken;
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Wake::Changed,
        Some(libc::ETIMEDOUT) => Wake::TimedOut,
        Some(libc::EINTR) => Wake::Interrupted,
        error => panic!("futex wait on {word:p}: errno {error:?}; the word must be accessible shared memory"),
    }
}

/// Wakes up to `count` of the waiters on `word`, in any process; returns how many there were.
pub fn wake(word: &AtomicU32, count: u32) -> u32 {
    let count = count.min(i32::MAX.cast_unsigned());
    calls::one();
    // SAFETY: `word` is a live, aligned word; the call reads nothing else.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
    u32::try_from(woken).unwrap_or(0)
}

/// Wakes all waiters on `word`.
pub fn wake_all(word: &AtomicU32) -> u32 {
    wake(word, u32::MAX)
}

/// Waits for `word` to leave `expected`: looks again and again for `spin_ticks` of the cycle counter, then sleeps.
/// `Changed` means the word had another value at some moment; all other answers are those of [`wait`].
pub fn spin_then_wait(word: &AtomicU32, expected: u32, spin_ticks: u64, timeout: Option<Duration>) -> Wake {
    let mut backoff = Backoff::new(spin_ticks);
    loop {
        if word.load(Ordering::Acquire) != expected {
            return Wake::Changed;
        }
        if !backoff.spin() {
            return wait(word, expected, timeout);
        }
    }
}

/// A bounded spin: says when it is time to do something better than look again.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    started: u64,
    spin_ticks: u64,
}

impl Backoff {
    /// A spin of at most `spin_ticks`, from now on.
    #[must_use]
    pub fn new(spin_ticks: u64) -> Self {
        Self { started: if spin_ticks == 0 { 0 } else { clock::ticks() }, spin_ticks }
    }

    /// Passes a moment with the processor's pause instruction. False once the time is spent.
    #[inline]
    pub fn spin(&mut self) -> bool {
        if self.spin_ticks == 0 {
            return false;
        }
        std::hint::spin_loop();
        if clock::ticks().wrapping_sub(self.started) < self.spin_ticks {
            return true;
        }
        self.spin_ticks = 0;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_wait_for_another_value_returns_at_once() {
        let word = AtomicU32::new(3);
        assert_eq!(wait(&word, 4, None), Wake::Changed);
        assert_eq!(spin_then_wait(&word, 4, 1_000_000, None), Wake::Changed);
    }

    #[test]
    fn a_wait_that_nobody_ends_times_out() {
        let word = AtomicU32::new(3);
        assert_eq!(wait(&word, 3, Some(Duration::from_micros(1))), Wake::TimedOut);
        assert_eq!(spin_then_wait(&word, 3, 1_000, Some(Duration::from_micros(1))), Wake::TimedOut);
        assert_eq!(wake(&word, 1), 0);
    }

    #[test]
    fn a_bounded_spin_ends() {
        let mut backoff = Backoff::new(10_000);
        while backoff.spin() {}
        assert!(!backoff.spin());
        assert!(!Backoff::new(0).spin());
    }

    #[test]
    fn two_threads_hand_a_word_back_and_forth() {
        let word = Arc::new(AtomicU32::new(0));
        let theirs = Arc::clone(&word);
        let peer = std::thread::spawn(move || turns(&theirs, 1));
        turns(&word, 0);
        peer.join().unwrap();
        assert_eq!(word.load(Ordering::Relaxed), 2_000);
    }

    /// Adds one to the word whenever its parity is ours, until 2,000.
    fn turns(word: &AtomicU32, parity: u32) {
        loop {
            let now = word.load(Ordering::Acquire);
            if now == 2_000 {
                return;
            }
            if now % 2 == parity {
                word.store(now + 1, Ordering::Release);
                wake_all(word);
            } else {
                spin_then_wait(word, now, 2_000, None);
            }
        }
    }
}
