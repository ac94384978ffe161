//! Time as the protocol's books need it: a cycle counter that costs a few nanoseconds, and what a tick is worth.
//!
//! The counter is the TSC, which all cores of a machine share on every x86-64 of the last fifteen years
//! (`constant_tsc`, `nonstop_tsc`). Elsewhere a tick is a nanosecond of `CLOCK_MONOTONIC`. Every function here may
//! be called in the fault handler.

/// The cycle counter. Not a serialising read: it may run a few instructions early or late.
#[must_use]
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has RDTSC; Linux lets user code run it unless the process asked otherwise
        // by prctl(PR_SET_TSC), which nobody does by accident.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        now_ns()
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`, the same for all processes of the machine.
#[must_use]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to. The call cannot fail for CLOCK_MONOTONIC.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// What a tick is worth. Plain data: one process measures it, all processes of the machine use it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Ticks in a nanosecond: 2.4 for a 2.4 GHz counter.
    pub ticks_per_ns: f64,
    /// A moment of the counter ...
    pub origin_ticks: u64,
    /// ... and the same moment of `CLOCK_MONOTONIC`.
    pub origin_ns: u64,
}

impl Calibration {
    /// Measures for `window_ns` of busy waiting. Two milliseconds give about 20 parts in a million.
    #[must_use]
    pub fn measure(window_ns: u64) -> Self {
        let first = sample();
        while now_ns() < first.1 + window_ns {
            std::hint::spin_loop();
        }
        Self::from_samples(first, sample())
    }

    /// From two moments as (ticks, nanoseconds).
    #[must_use]
    pub fn from_samples(first: (u64, u64), last: (u64, u64)) -> Self {
        let ticks = last.0.saturating_sub(first.0).max(1) as f64;
        let ns = last.1.saturating_sub(first.1).max(1) as f64;
        Self { ticks_per_ns: ticks / ns, origin_ticks: first.0, origin_ns: first.1 }
    }

    /// The length of a number of ticks.
    #[must_use]
    pub fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 / self.ticks_per_ns) as u64
    }

    /// The number of ticks of a length.
    #[must_use]
    pub fn ticks(&self, ns: u64) -> u64 {
        (ns as f64 * self.ticks_per_ns) as u64
    }

    /// A moment of the counter on the clock of [`now_ns`].
    #[must_use]
    pub fn moment_ns(&self, ticks: u64) -> u64 {
        if ticks >= self.origin_ticks {
            self.origin_ns + self.ns(ticks - self.origin_ticks)
        } else {
            self.origin_ns.saturating_sub(self.ns(self.origin_ticks - ticks))
        }
    }
}

/// The same moment on both clocks: the tightest of a few tries, since we can be interrupted between the reads.
fn sample() -> (u64, u64) {
    let mut best = (0, 0);
    let mut gap_least = u64::MAX;
    for _ in 0..16 {
        let before = ticks();
        let ns = now_ns();
        let gap = ticks().wrapping_sub(before);
        if gap < gap_least {
            gap_least = gap;
            best = (before + gap / 2, ns);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_nanoseconds_convert_both_ways() {
        let calibration = Calibration::from_samples((1_000, 500), (25_001_000, 10_000_500));
        assert_eq!(calibration.ticks_per_ns, 2.5);
        assert_eq!(calibration.ns(2_500), 1_000);
        assert_eq!(calibration.ticks(1_000), 2_500);
        assert_eq!(calibration.moment_ns(1_000 + 250), 600);
        assert_eq!(calibration.moment_ns(1_000 - 250), 400);
    }

    #[test]
    fn the_counter_and_the_clock_never_run_backwards() {
        let mut last = (ticks(), now_ns());
        for _ in 0..1_000 {
            let next = (ticks(), now_ns());
            assert!(next.0 >= last.0 && next.1 >= last.1);
            last = next;
        }
    }

    #[test]
    fn a_measured_calibration_puts_the_present_between_two_readings_of_the_clock() {
        let calibration = Calibration::measure(2_000_000);
        let (before, moment, after) = (now_ns(), calibration.moment_ns(ticks()), now_ns());
        // 200 ppm of the few milliseconds since the origin is under 10 us, unless we were stopped meanwhile; the
        // bound grows with that.
        let slack = 10_000 + (after - calibration.origin_ns) / 1_000;
        assert!(moment + slack >= before && moment <= after + slack);
    }
}
