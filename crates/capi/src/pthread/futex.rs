//! The system call futex on words of shared memory, which C++'s waiting classes and programs of their own make: for threads on all nodes.

use std::ffi::{c_int, c_long};

use finespun_errors::Code;
use finespun_runtime::Failure;
use finespun_runtime::program::{self, Waited};
use libc::timespec;

use super::{mistake, time};

/// The word is private memory: the caller makes the system call.
const NOT_SERVED: c_long = c_long::MIN;

/// What a futex call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// With a limit from now on.
    Wait,
    /// With a moment as limit, of this clock.
    WaitUntil(libc::clockid_t),
    /// So many.
    Wake,
    /// Some of all, by a mask: all.
    WakeAll,
}

/// The calls that are served, by the operation's number and the mask.
fn call_of(operation: c_int, mask: u32) -> Option<Call> {
    let clock = if operation & libc::FUTEX_CLOCK_REALTIME == 0 { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME };
    match operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        libc::FUTEX_WAIT => Some(Call::Wait),
        libc::FUTEX_WAIT_BITSET => Some(Call::WaitUntil(clock)),
        libc::FUTEX_WAKE => Some(Call::Wake),
        // A sleeper may be woken for no reason.
        libc::FUTEX_WAKE_BITSET => Some(if mask == u32::MAX { Call::Wake } else { Call::WakeAll }),
        _ => None,
    }
}

/// `fsp_program_futex`
///
/// # Safety
/// As the system call's: `word` is a word of memory, `timeout` null or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsp_program_futex(
    word: *const u32,
    operation: c_int,
    value: u32,
    timeout: *const timespec,
    mask: u32,
) -> c_long {
    let address = word.expose_provenance();
    if !program::is_shared(address) {
        return NOT_SERVED;
    }
    let result = match call_of(operation, mask) {
        None => Err(Failure::new(
            Code::NotAcrossNodes,
            format!("futex operation {operation} on the word at {address:#x}, which is shared memory"),
        )),
        Some(Call::Wake) => program::wake_sleepers(address, value).map(|_| 0),
        Some(Call::WakeAll) => program::wake_sleepers(address, u32::MAX).map(|_| 0),
        Some(call @ (Call::Wait | Call::WaitUntil(_))) => {
            // SAFETY: by contract.
            let limit = match unsafe { timeout.as_ref() }.map(|timeout| limit(call, timeout)) {
                None => None,
                Some(Some(limit)) => Some(limit),
                Some(None) => return -c_long::from(libc::EINVAL),
            };
            // SAFETY: by contract; a load of shared memory faults and is served.
            let is_still = || unsafe { word.read_volatile() } == value;
            program::sleep_on(address, limit, is_still).map(|waited| match waited {
                Some(Waited::Woken) => 0,
                Some(Waited::Changed) => -c_long::from(libc::EAGAIN),
                Some(Waited::TimedOut) => -c_long::from(libc::ETIMEDOUT),
                None => NOT_SERVED,
            })
        }
    };
    result.unwrap_or_else(|failure| -c_long::from(mistake(failure)))
}

/// Nanoseconds from now; `None` if it is no time.
fn limit(call: Call, timeout: &timespec) -> Option<u64> {
    match call {
        Call::WaitUntil(clock) => time::until(clock, timeout),
        Call::Wait | Call::Wake | Call::WakeAll => {
            let nanos = u64::try_from(timeout.tv_nsec).ok().filter(|nanos| *nanos < 1_000_000_000)?;
            Some(u64::try_from(timeout.tv_sec).ok()?.saturating_mul(1_000_000_000).saturating_add(nanos))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_wakes_are_served_private_or_not_and_nothing_else_is() {
        for flag in [0, libc::FUTEX_PRIVATE_FLAG] {
            assert_eq!(call_of(libc::FUTEX_WAIT | flag, 0), Some(Call::Wait));
            assert_eq!(call_of(libc::FUTEX_WAKE | flag, 0), Some(Call::Wake));
            let until = |clock| Some(Call::WaitUntil(clock));
            assert_eq!(call_of(libc::FUTEX_WAIT_BITSET | flag, 1), until(libc::CLOCK_MONOTONIC));
            let realtime = libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME | flag;
            assert_eq!(call_of(realtime, 1), until(libc::CLOCK_REALTIME));
            assert_eq!(call_of(libc::FUTEX_WAKE_BITSET | flag, u32::MAX), Some(Call::Wake));
            assert_eq!(call_of(libc::FUTEX_WAKE_BITSET | flag, 4), Some(Call::WakeAll));
            assert_eq!(call_of(libc::FUTEX_CMP_REQUEUE | flag, 0), None);
        }
    }

    #[test]
    fn a_time_that_is_none_is_no_limit() {
        let time = |tv_sec, tv_nsec| timespec { tv_sec, tv_nsec };
        assert_eq!(limit(Call::Wait, &time(2, 5)), Some(2_000_000_005));
        assert_eq!(limit(Call::Wait, &time(-1, 5)), None);
        assert_eq!(limit(Call::Wait, &time(0, 1_000_000_000)), None);
        assert_eq!(limit(Call::WaitUntil(libc::CLOCK_MONOTONIC), &time(0, 0)), Some(0));
    }
}
