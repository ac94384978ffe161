//! Choosing an implementation, and the public functions on raw pages.
//!
//! # What a page pointer means here
//!
//! `page`, `twin` and `incoming` point to [`PAGE_BYTES`](finespun_types::PAGE_BYTES) bytes, aligned to
//! [`LINE_BYTES`](crate::LINE_BYTES). `page` and `incoming` may be written by other processors and processes while
//! we run, so no reference to them may exist in Rust; the twin is ours while the call lasts. To the compiler such a
//! page is like a device register: it is read by volatile loads only, each byte once, since a value read twice could
//! differ, and a load that the compiler repeats would do so silently. On x86 and ARM an aligned 8-byte load returns
//! for each byte a value that was stored there, which is all that a diff needs.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod buffer;
mod scalar;

use std::sync::atomic::{AtomicU8, Ordering};

pub use buffer::DiffBuffer;

use crate::LINE_BYTES;
use crate::format::Malformed;

/// One implementation of the functions, which this processor can execute.
///
/// Ordinary use is the free functions of the crate, which choose the best one; tests and measurements choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Implementation(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kind {
    /// From worst to best.
    #[cfg(target_arch = "x86_64")]
    const ALL: &[Self] = &[Self::Scalar, Self::Avx2, Self::Avx512];
    #[cfg(not(target_arch = "x86_64"))]
    const ALL: &[Self] = &[Self::Scalar];

    fn can_run(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vbmi2")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
            }
        }
    }
}

/// The chosen implementation, as its place in [`Kind::ALL`] plus one; zero before the first use.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Runs `$function` of the implementation `$self`.
macro_rules! dispatch {
    ($self:ident, $function:ident$(::<$refresh:literal>)?($($argument:expr),*)) => {
        match $self.0 {
            Kind::Scalar => scalar::$function$(::<$refresh>)?($($argument),*),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => avx2::$function$(::<$refresh>)?($($argument),*),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => avx512::$function$(::<$refresh>)?($($argument),*),
        }
    };
}

impl Implementation {
    /// Those this processor can execute, from worst to best.
    pub fn available() -> impl Iterator<Item = Self> {
        Kind::ALL.iter().copied().filter(|kind| kind.can_run()).map(Self)
    }

    /// The best one. The processor is asked at the first call only: that takes microseconds in a virtual machine.
    #[must_use]
    pub fn best() -> Self {
        // Two threads that both find zero choose the same, so no lock is needed and a signal handler may come here.
        let chosen = usize::from(CHOSEN.load(Ordering::Relaxed));
        if let Some(kind) = Kind::ALL.get(chosen.wrapping_sub(1)) { Self(*kind) } else { Self::choose() }
    }

    #[cold]
    fn choose() -> Self {
        let best = Self::available().last().unwrap_or(Self(Kind::Scalar));
        CHOSEN.store(best.0 as u8 + 1, Ordering::Relaxed);
        best
    }

    /// `scalar`, `avx2` or `avx512`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// [`make`] by this implementation.
    ///
    /// # Safety
    /// As [`make`].
    pub unsafe fn make(self, page: *const u8, twin: *const u8, out: &mut DiffBuffer) -> &[u8] {
        debug_assert!(is_line_aligned(page) && is_line_aligned(twin));
        // SAFETY: the caller keeps the contract of `make`, which is that of the implementations; without REFRESH
        // they do not write the twin. An `Implementation` exists only where `can_run` found its instructions.
        // Whatever length they return, they have put as many bytes into `out`.
        unsafe {
            let len = dispatch!(self, make::<false>(page, twin.cast_mut(), out));
            out.diff(len)
        }
    }

    /// [`make_and_refresh`] by this implementation.
    ///
    /// # Safety
    /// As [`make_and_refresh`].
    pub unsafe fn make_and_refresh(self, page: *const u8, twin: *mut u8, out: &mut DiffBuffer) -> &[u8] {
        debug_assert!(is_line_aligned(page) && is_line_aligned(twin));
        // SAFETY: as in `make`; the caller lets us write the twin.
        unsafe {
            let len = dispatch!(self, make::<true>(page, twin, out));
            out.diff(len)
        }
    }

    /// [`apply`] by this implementation.
    ///
    /// # Errors
    /// As [`apply`].
    ///
    /// # Safety
    /// As [`apply`].
    pub unsafe fn apply(self, diff: &[u8], page: *mut u8) -> Result<(), Malformed> {
        debug_assert!(is_line_aligned(page));
        // SAFETY: the caller keeps the contract of `apply`, which is that of the implementations.
        unsafe { dispatch!(self, apply(diff, page)) }
    }

    /// [`merge`] by this implementation.
    ///
    /// # Safety
    /// As [`merge`].
    pub unsafe fn merge(self, incoming: *const u8, twin: *mut u8, page: *mut u8) -> usize {
        debug_assert!(is_line_aligned(incoming) && is_line_aligned(twin) && is_line_aligned(page));
        // SAFETY: the caller keeps the contract of `merge`, which is that of the implementations.
        unsafe { dispatch!(self, merge(incoming, twin, page)) }
    }
}

fn is_line_aligned(page: *const u8) -> bool {
    page.addr().is_multiple_of(LINE_BYTES)
}

/// The name of the implementation in use: `scalar`, `avx2` or `avx512`. Called once at start it also makes the
/// choice, so that no fault pays for it.
#[must_use]
pub fn implementation() -> &'static str {
    Implementation::best().name()
}

/// Writes to `out` what `page` has and `twin` has not; returns the diff, empty if they are equal.
///
/// # Safety
/// `page` and `twin` are valid for reads of a unit and aligned to a line; `out` overlaps neither. The page may be
/// written by others meanwhile, the twin may not.
pub unsafe fn make(page: *const u8, twin: *const u8, out: &mut DiffBuffer) -> &[u8] {
    // SAFETY: the caller keeps this very contract.
    unsafe { Implementation::best().make(page, twin, out) }
}

/// Like [`make`], and the twin becomes what was sent: a byte that changes while we look, or later, differs from the
/// twin at the next diff. With it the page can stay writable over a release.
///
/// # Safety
/// As [`make`], and the twin is valid for writes and not read by others meanwhile; it does not overlap the page.
pub unsafe fn make_and_refresh(page: *const u8, twin: *mut u8, out: &mut DiffBuffer) -> &[u8] {
    // SAFETY: the caller keeps this very contract.
    unsafe { Implementation::best().make_and_refresh(page, twin, out) }
}

/// Writes the bytes of `diff` to `page`, and no other byte: others may write those at the same time.
///
/// # Errors
/// [`Malformed`] if `diff` is none; nothing is written then.
///
/// # Safety
/// `page` is valid for writes of a unit and aligned to a line; `diff` does not overlap it.
pub unsafe fn apply(diff: &[u8], page: *mut u8) -> Result<(), Malformed> {
    // SAFETY: the caller keeps this very contract.
    unsafe { Implementation::best().apply(diff, page) }
}

/// The two-way diff: the bytes in which `incoming` differs from `twin` were written on other nodes; they go to `page`
/// and `twin`, and no other byte of the page is written. Returns how many there were.
///
/// # Safety
/// `incoming` is valid for reads of a unit, `twin` and `page` for reads and writes; all are aligned to a line and
/// overlap nowhere. `incoming` and `page` may be written by others meanwhile, the twin is ours alone.
pub unsafe fn merge(incoming: *const u8, twin: *mut u8, page: *mut u8) -> usize {
    // SAFETY: the caller keeps this very contract.
    unsafe { Implementation::best().merge(incoming, twin, page) }
}
