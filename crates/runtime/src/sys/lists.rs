//! Dirty lists and lists of write notices: any process of the job adds, the view itself takes all.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use finespun_sys::lock::WordLock;
use finespun_types::UnitId;

/// The head of a list of units with two halves: one is filled while the other is worked through.
#[repr(C, align(64))]
pub struct ListHead {
    lock: WordLock,
    half: AtomicU32,
    len: AtomicU32,
}

/// A list of units of one view.
pub struct List<'a> {
    head: &'a ListHead,
    units: *mut u32,
    half: usize,
    _memory: PhantomData<&'a ListHead>,
}

/// The units taken from a list, until the next take.
pub struct Taken<'a> {
    units: *const u32,
    len: usize,
    _memory: PhantomData<&'a ListHead>,
}

impl ListHead {
    /// Is nothing listed? See [`super::segment::View::has_nothing_dirty`].
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }
}

impl<'a> List<'a> {
    /// The list with this head, its units in two halves of `half` each.
    ///
    /// # Safety
    /// `units` points to `2 * half` units that live for 'a and belong to this head alone.
    pub const unsafe fn new(head: &'a ListHead, units: *mut u32, half: usize) -> Self {
        Self { head, units, half, _memory: PhantomData }
    }

    /// Adds a unit. A unit is on a list once: the tables' sets see to it.
    pub fn push(&self, unit: UnitId) {
        let _guard = self.head.lock.guard();
        let len = self.head.len.load(Ordering::Relaxed) as usize;
        assert!(len < self.half, "a unit is on a list once");
        let start = self.head.half.load(Ordering::Relaxed) as usize * self.half;
        // SAFETY: below the end of this half; the list's lock is held, and the half is not the one being worked through.
        unsafe { self.units.add(start + len).write(unit.0) };
        self.head.len.store(len as u32 + 1, Ordering::Relaxed);
    }

    /// Takes all and leaves the list empty. One at a time: what was taken before must have been worked through.
    pub fn take(&self) -> Taken<'a> {
        if self.head.is_empty() {
            // Nothing that this view must know of: what was listed before the release or grant it follows is visible.
            return Taken { units: self.units, len: 0, _memory: PhantomData };
        }
        let _guard = self.head.lock.guard();
        let half = self.head.half.load(Ordering::Relaxed);
        // Release: who sees the list empty must see that its taker is at work.
        let len = self.head.len.swap(0, Ordering::AcqRel) as usize;
        self.head.half.store(half ^ 1, Ordering::Relaxed);
        // SAFETY: the start of the half just given up; pushes go to the other until the next take, which the caller's
        // lock (`releasing`, `acquiring`) keeps off until this one is worked through.
        Taken { units: unsafe { self.units.add(half as usize * self.half) }, len, _memory: PhantomData }
    }
}

impl Taken<'_> {
    /// How many.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// None?
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The units, in the order listed.
    pub fn as_slice(&self) -> &[u32] {
        // SAFETY: written by pushes before the take, and left alone until the next take.
        unsafe { std::slice::from_raw_parts(self.units, self.len) }
    }

    /// The same, to keep some for later at the front.
    pub fn as_mut_slice(&mut self) -> &mut [u32] {
        // SAFETY: as above; the taker alone works on this half.
        unsafe { std::slice::from_raw_parts_mut(self.units.cast_mut(), self.len) }
    }
}
