//! Moments of a clock, as the calls with a time limit take them.

use std::time::Duration;

use libc::{clockid_t, timespec};

/// How long it is until a moment of a clock, in nanoseconds: 0 if it has passed. `None` if it is no moment.
pub fn until(clock: clockid_t, moment: &timespec) -> Option<u64> {
    if !(0..1_000_000_000).contains(&moment.tv_nsec) {
        return None;
    }
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    if unsafe { libc::clock_gettime(clock, &raw mut now) } != 0 {
        return None;
    }
    let nanos = |time: &timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    Some(u64::try_from((nanos(moment) - nanos(&now)).max(0)).unwrap_or(u64::MAX))
}

/// Tries again and again, ever more seldom, until it works or the moment has come. What is tried cannot be waited for
/// with a limit: the queue of a mutex is left by those who get it only.
pub fn try_until(clock: clockid_t, moment: &timespec, mut attempt: impl FnMut() -> libc::c_int) -> libc::c_int {
    let mut pause = Duration::from_micros(20);
    loop {
        match attempt() {
            libc::EBUSY => {}
            result => return result,
        }
        match until(clock, moment) {
            None => return libc::EINVAL,
            Some(0) => return libc::ETIMEDOUT,
            Some(left) => std::thread::sleep(pause.min(Duration::from_nanos(left))),
        }
        pause = (pause * 2).min(Duration::from_millis(1));
    }
}
