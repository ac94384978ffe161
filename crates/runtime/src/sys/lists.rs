//! Dirty lists and lists of write notices: any process of the job adds, the view itself takes all.
//!
//! The first units stand in a list, in the order they came; what comes when it is full is marked in a bit for each unit of the space. So the
//! memory of a list does not grow with what is on it, whatever a program writes between two releases, and a long one comes back sorted.
//!
//! ```text
//!   push   list, one half of two          while it has room
//!          marks                          from then on
//!   take   the half that was filled       pushes now go to the other
//!   more   the marks, from the lowest on, so many at a time as a half has room for: into the half taken, whose units are worked through
//! ```

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use finespun_sys::lock::WordLock;
use finespun_types::UnitId;

/// The head of a list of units with two halves, one of which is filled while the other is worked through, and of its marks.
#[repr(C, align(64))]
pub struct ListHead {
    lock: WordLock,
    half: AtomicU32,
    /// Units that nobody has taken, listed or marked.
    len: AtomicU32,
    /// Those in the half that is being filled.
    listed: AtomicU32,
    /// The words of marks that may have any: the first, and the one behind the last.
    marked_from: AtomicU32,
    marked_to: AtomicU32,
}

/// A list of units of one view.
#[derive(Clone, Copy)]
pub struct List<'a> {
    head: &'a ListHead,
    units: *mut u32,
    half: usize,
    marks: *mut u64,
    words: usize,
    _memory: PhantomData<&'a ListHead>,
}

/// Some of the units taken from a list, until the next of them or the next take.
pub struct Taken<'a> {
    list: List<'a>,
    units: *mut u32,
    len: usize,
    /// Where to go on among the marks; `None` if there were none at the take.
    next_word: Option<usize>,
}

impl ListHead {
    /// Is nothing listed? See [`super::segment::View::has_nothing_dirty`].
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }
}

impl<'a> List<'a> {
    /// The list with this head, its units in two halves of `half` each, and so many words of marks, one bit for each unit that there is.
    ///
    /// # Safety
    /// `units` points to `2 * half` units and `marks` to `words` words, zero at first, that live for 'a and belong to this head alone.
    pub const unsafe fn new(head: &'a ListHead, units: *mut u32, half: usize, marks: *mut u64, words: usize) -> Self {
        Self { head, units, half, marks, words, _memory: PhantomData }
    }

    /// Adds a unit. A unit is on a list once: the tables' sets see to it.
    pub fn push(&self, unit: UnitId) {
        let _guard = self.head.lock.guard();
        let listed = self.head.listed.load(Ordering::Relaxed) as usize;
        if listed < self.half {
            let start = self.head.half.load(Ordering::Relaxed) as usize * self.half;
            // SAFETY: below the end of this half; the list's lock is held, and the half is not the one being worked through.
            unsafe { self.units.add(start + listed).write(unit.0) };
            self.head.listed.store(listed as u32 + 1, Ordering::Relaxed);
        } else {
            self.mark(unit);
        }
        self.head.len.store(self.head.len.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Under the list's lock.
    fn mark(&self, unit: UnitId) {
        let (word, bit) = (unit.0 / 64, 1_u64 << (unit.0 % 64));
        assert!((word as usize) < self.words, "unit {unit:?} of {}", 64 * self.words);
        // SAFETY: inside the words, and the list's lock is held.
        let marks = unsafe { &mut *self.marks.add(word as usize) };
        assert!(*marks & bit == 0, "a unit is on a list once");
        *marks |= bit;
        let head = self.head;
        let is_first = head.marked_to.load(Ordering::Relaxed) == 0;
        let from = if is_first { word } else { word.min(head.marked_from.load(Ordering::Relaxed)) };
        head.marked_from.store(from, Ordering::Relaxed);
        head.marked_to.fetch_max(word + 1, Ordering::Relaxed);
    }

    /// Takes all and leaves the list empty: the first of them, and [`Taken::more`]. One at a time: what was taken before must have been
    /// worked through, to the last.
    pub fn take(&self) -> Taken<'a> {
        if self.head.is_empty() {
            // Nothing that this view must know of: what was listed before the release or grant it follows is visible.
            return Taken { list: *self, units: self.units, len: 0, next_word: None };
        }
        let guard = self.head.lock.guard();
        let half = self.head.half.load(Ordering::Relaxed);
        let len = self.head.listed.swap(0, Ordering::Relaxed);
        self.head.half.store(half ^ 1, Ordering::Relaxed);
        let next_word = (self.head.marked_to.load(Ordering::Relaxed) > 0)
            .then(|| self.head.marked_from.load(Ordering::Relaxed) as usize);
        self.give(len);
        // SAFETY: the start of the half just given up; pushes go to the other until the next take, which the caller's
        // lock (`releasing`, `acquiring`) keeps off until this one is worked through.
        let units = unsafe { self.units.add(half as usize * self.half) };
        drop(guard);
        let mut taken = Taken { list: *self, units, len: len as usize, next_word };
        if taken.is_empty() {
            taken.more();
        }
        taken
    }

    /// So many fewer. Under the list's lock.
    fn give(&self, units: u32) {
        // Release: who sees the list empty must see that its taker is at work.
        self.head.len.fetch_sub(units, Ordering::AcqRel);
    }
}

impl Taken<'_> {
    /// Works through all units, one portion after the other.
    pub fn each_portion(&mut self, mut work: impl FnMut(&mut [u32])) {
        loop {
            work(self.as_mut_slice());
            if !self.more() {
                return;
            }
        }
    }

    /// Replaces the units, which were worked through, by the next ones; false if there are none. A unit marked meanwhile may be among
    /// them, but it ends: the marks are gone through once.
    fn more(&mut self) -> bool {
        let Some(first) = self.next_word else { return false };
        let list = self.list;
        let _guard = list.head.lock.guard();
        let end = (list.head.marked_to.load(Ordering::Relaxed) as usize).min(list.words);
        let (mut word, mut len) = (first, 0);
        while word < end && len < list.half {
            // SAFETY: inside the words (`new`); the list's lock is held.
            let marks = unsafe { &mut *list.marks.add(word) };
            while *marks != 0 && len < list.half {
                // SAFETY: below the end of the half taken, whose units were worked through.
                unsafe { self.units.add(len).write(word as u32 * 64 + marks.trailing_zeros()) };
                *marks &= *marks - 1;
                len += 1;
            }
            word += usize::from(*marks == 0);
        }
        self.len = len;
        list.give(len as u32);
        let head = list.head;
        let is_any_marked = head.len.load(Ordering::Relaxed) > head.listed.load(Ordering::Relaxed);
        if !is_any_marked {
            head.marked_from.store(0, Ordering::Relaxed);
            head.marked_to.store(0, Ordering::Relaxed);
        }
        // Marks made behind its back keep the span for the next taker.
        self.next_word = (is_any_marked && word < end).then_some(word);
        len > 0
    }

    /// None?
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The units of this portion, in the order listed; the taker may put them into another.
    pub fn as_mut_slice(&mut self) -> &mut [u32] {
        // SAFETY: written by pushes before the take, or by `more`, and left alone until the next take; the taker alone works on this half.
        unsafe { std::slice::from_raw_parts_mut(self.units, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: usize = 4;
    const WORDS: usize = 5;
    const UNITS: u32 = 64 * WORDS as u32;

    /// Zero, as a segment is at first.
    struct Memory {
        head: Box<ListHead>,
        units: Box<[u32]>,
        marks: Box<[u64]>,
    }

    impl Memory {
        fn new() -> Self {
            let number = || AtomicU32::new(0);
            let head = ListHead {
                lock: WordLock::new(),
                half: number(),
                len: number(),
                listed: number(),
                marked_from: number(),
                marked_to: number(),
            };
            Self { head: Box::new(head), units: vec![0; 2 * HALF].into(), marks: vec![0; WORDS].into() }
        }

        fn list(&mut self) -> List<'_> {
            // SAFETY: so long, and borrowed mutably as long as the list lives.
            unsafe { List::new(&self.head, self.units.as_mut_ptr(), HALF, self.marks.as_mut_ptr(), WORDS) }
        }
    }

    fn push(list: &List<'_>, units: impl IntoIterator<Item = u32>) {
        units.into_iter().for_each(|unit| list.push(UnitId(unit)));
    }

    /// Everything that one taker gets, in portions.
    fn portions(list: &List<'_>) -> Vec<Vec<u32>> {
        let mut taken = list.take();
        let mut all = vec![taken.as_mut_slice().to_vec()];
        while taken.more() {
            assert!(!taken.is_empty() && taken.as_mut_slice().len() <= HALF);
            all.push(taken.as_mut_slice().to_vec());
        }
        all
    }

    #[test]
    fn units_come_back_in_the_order_listed_as_long_as_there_is_room() {
        let mut memory = Memory::new();
        let list = memory.list();
        assert!(list.take().is_empty());
        for units in [vec![7, 3], vec![9], vec![4, 3, 2, 1]] {
            push(&list, units.iter().copied());
            assert!(!list.head.is_empty());
            assert_eq!(portions(&list), [units]);
            assert!(list.head.is_empty());
        }
    }

    #[test]
    fn what_finds_no_room_is_marked_and_comes_back_in_portions_sorted() {
        let mut memory = Memory::new();
        let list = memory.list();
        for _ in 0..3 {
            push(&list, [5, 1, 2, 3, UNITS - 1, 200, 0, 64, 63, 65, 130, 201, 4]);
            assert_eq!(
                portions(&list),
                [vec![5, 1, 2, 3], vec![0, 4, 63, 64], vec![65, 130, 200, 201], vec![UNITS - 1]]
            );
            assert!(list.head.is_empty() && list.take().is_empty());
        }
    }

    #[test]
    fn a_list_of_every_unit_is_taken_whole() {
        let mut memory = Memory::new();
        let list = memory.list();
        push(&list, (0..UNITS).rev());
        let mut all = portions(&list).concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..UNITS));
        assert!(list.head.is_empty());
    }

    #[test]
    fn what_is_listed_while_portions_are_worked_through_comes_once_now_or_at_the_next_take() {
        let mut memory = Memory::new();
        let list = memory.list();
        push(&list, [10, 11, 12, 13, 100, 101, 102, 103, 150]);
        let mut taken = list.take();
        assert_eq!(taken.as_mut_slice(), [10, 11, 12, 13]);
        // Listed again, as they are released already; then marked, before and behind where the taker is.
        push(&list, [10, 11, 12, 13, 20, 151]);
        assert!(taken.more());
        assert_eq!(taken.as_mut_slice(), [100, 101, 102, 103]);
        push(&list, [300, 21]);
        assert!(taken.more());
        assert_eq!(taken.as_mut_slice(), [150, 151, 300]);
        assert!(!taken.more() && !taken.more());
        assert!(!list.head.is_empty());
        assert_eq!(portions(&list), [vec![10, 11, 12, 13], vec![20, 21]]);
        assert!(list.head.is_empty());
    }

    #[test]
    fn a_taker_that_found_no_marks_ends_though_others_go_on_listing() {
        let mut memory = Memory::new();
        let list = memory.list();
        push(&list, [1]);
        let mut taken = list.take();
        push(&list, 0..30);
        assert!(!taken.more());
        assert_eq!(portions(&list).concat().len(), 30);
    }

    #[test]
    fn units_pushed_by_several_threads_are_taken_once_each() {
        let mut memory = Memory::new();
        let head = &*memory.head;
        let (units_at, marks_at) =
            (memory.units.as_mut_ptr().expose_provenance(), memory.marks.as_mut_ptr().expose_provenance());
        let list = move || {
            let units = std::ptr::with_exposed_provenance_mut(units_at);
            // SAFETY: the memory outlives the scope below, and only lists of this head use it.
            unsafe { List::new(head, units, HALF, std::ptr::with_exposed_provenance_mut(marks_at), WORDS) }
        };
        let mut seen = std::thread::scope(|scope| {
            for part in 0..4 {
                scope.spawn(move || push(&list(), (0..UNITS).filter(|unit| unit % 4 == part)));
            }
            let mut seen = Vec::new();
            while seen.len() < UNITS as usize {
                seen.extend(portions(&list()).concat());
            }
            seen
        });
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..UNITS));
    }
}
