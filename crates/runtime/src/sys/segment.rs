//! One node's memory as this process sees it: the segment's tables, the frames, the twins.
//!
//! The unsafe code of the runtime's engine is here. What leaves this module is safe to use: references to atomics,
//! plain data behind a guard that holds its lock, and raw pointers to frames and twins, which only
//! [`super::frames`] follows.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use finespun_engine::allocation::Together;
use finespun_protocol::page::Time;
use finespun_sync::threads::Threads;
use finespun_sync::{Entry, Table, Waiter, Word};
use finespun_sys::fence;
use finespun_sys::lock::WordLock;
use finespun_sys::memory::Mapping;
use finespun_types::{UnitId, ViewId};

use super::frames::Page;
use super::lists::{List, ListHead, Taken};
use super::records::{Buffer, DIRECTORY_ROOM, MANAGER_ROOM, Node, Room, Stripe, UnitSlot, View};
use super::region::{Region, within};
use super::shape::{GUESTS, SEATS, STRIPE_BUCKETS, STRIPE_ENTRIES, STRIPE_WORDS, Shape};
use super::slot::Slot;

use crate::sys::live::Live;

/// One release of one view.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    view: ViewId,
    number: u32,
}

impl Release {
    /// The view's next release. Only under its `releasing` lock.
    pub fn next_of(view: ViewId, counted: &View) -> Self {
        Self { view, number: counted.releases.fetch_add(1, Ordering::Relaxed).wrapping_add(1) }
    }

    /// The view and the low bits of the number, which may repeat after millions of releases; never 0.
    fn mark(self) -> u32 {
        (u32::from(self.view.0) + 1) << 24 | self.number & 0xff_ffff
    }

    /// How many releases of the same view ago was this one?
    fn since(self, mark: u32) -> Option<u32> {
        let same_view = mark >> 24 == self.mark() >> 24;
        same_view.then(|| self.mark().wrapping_sub(mark) & 0xff_ffff)
    }
}

/// What a unit's lock guards.
pub struct Locked<'a> {
    node: &'a Segment,
    unit: UnitId,
    /// The unit's in that segment.
    slot: *mut UnitSlot,
}

/// One node's segment and frames.
pub struct Segment {
    segment: Mapping,
    frames: Mapping,
    shape: Shape,
}

impl Segment {
    /// Maps a node's memory. The segment was zero when the job began.
    ///
    /// # Errors
    /// The kernel's, when the descriptors or sizes do not fit.
    pub fn map(segment: BorrowedFd<'_>, frames: BorrowedFd<'_>, shape: Shape) -> io::Result<Self> {
        let segment = Mapping::shared(segment, shape.bytes)?;
        let frames = Mapping::shared(frames, shape.frame_bytes())?;
        // A core shows the pages in the view, as the program sees them; these tables and frames are terabytes of address space.
        segment.leave_out_of_cores();
        frames.leave_out_of_cores();
        Ok(Self { segment, frames, shape })
    }

    /// The job's shape.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    #[inline]
    pub(super) fn pointer<T>(&self, region: Region, index: usize) -> *mut T {
        within(index, region.len);
        // SAFETY: the region lies in the segment (Shape::of laid it there for elements of this type) and the index in it.
        unsafe { self.segment.as_ptr().add(region.offset).cast::<T>().add(index) }
    }

    /// A unit's contents in a table of such.
    #[inline]
    fn contents(&self, region: Region, index: usize) -> *mut u8 {
        within(index, region.len);
        // SAFETY: the region lies in the segment (Shape::of laid it there for contents of the job's size) and the index in it.
        unsafe { self.segment.as_ptr().add(region.offset + self.shape.unit.bytes_of(index)) }
    }

    /// The node's own block.
    #[inline]
    pub fn node(&self) -> &Node {
        // SAFETY: mapped for the life of self, zeroed at first (a valid Node), and only atomics and locks are inside.
        unsafe { &*self.pointer(self.shape.node, 0) }
    }

    /// The block of a view.
    #[inline]
    pub fn view(&self, view: ViewId) -> &View {
        // SAFETY: as for `node`.
        unsafe { &*self.pointer(self.shape.view, usize::from(view.0)) }
    }

    /// A slot: first the node's processors in order, then its guests.
    #[inline]
    pub fn slot(&self, index: usize) -> &Slot {
        // SAFETY: as for `node`.
        unsafe { &*self.pointer(self.shape.slot, index) }
    }

    /// How many slots there are.
    pub const fn slots(&self) -> usize {
        self.shape.processors_per_node() + GUESTS
    }

    /// A tick of the node's logical clock.
    #[inline]
    pub fn tick(&self) -> Time {
        self.node().clock.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Takes the lock of a unit.
    #[inline]
    pub fn lock(&self, unit: UnitId) -> Locked<'_> {
        let locked = Locked { node: self, unit, slot: self.pointer(self.shape.units, unit.0 as usize) };
        locked.lock().lock();
        locked
    }

    /// Has this node, as the unit's manager, given it a home? Looks at the entry without the unit's lock: locks of units that no node has
    /// touched would cost memory.
    pub fn has_given_home(&self, unit: UnitId) -> bool {
        let entry: *const u64 = self.pointer::<Room<MANAGER_ROOM>>(self.shape.managers, unit.0 as usize).cast();
        // SAFETY: a room of eight bytes, aligned to eight (`Room`), mapped for the life of self; each value of it is a number. Whoever
        // writes it meanwhile serves the first touch of a unit that the caller's program does not use: both answers are right then.
        unsafe { entry.read_volatile() != 0 }
    }

    /// The frame of a unit, in the mapping that is always writable.
    #[inline]
    pub fn frame(&self, unit: UnitId) -> *mut u8 {
        within(unit.0 as usize, self.shape.pages);
        // SAFETY: the frames mapping has `pages` units.
        unsafe { self.frames.as_ptr().add(self.shape.unit.bytes_of(unit.0 as usize)) }
    }

    /// Takes a twin from the node's free ones: its index plus one, as a unit's slot keeps it.
    fn take_twin(&self) -> u32 {
        let node = self.node();
        let _guard = node.twin_lock.guard();
        let free = node.twin_free.load(Ordering::Relaxed);
        if free > 0 {
            node.twin_free.store(free - 1, Ordering::Relaxed);
            let at: *mut u32 = self.pointer(self.shape.free_twin, free as usize - 1);
            // SAFETY: below the stack's top, written when it was pushed; the twin lock is held.
            return unsafe { at.read() };
        }
        let high = node.twin_high.load(Ordering::Relaxed) + 1;
        assert!(high as usize <= self.shape.twin.len, "a twin for every page is the most there can be");
        node.twin_high.store(high, Ordering::Relaxed);
        high
    }

    fn give_twin(&self, twin: u32) {
        let node = self.node();
        let _guard = node.twin_lock.guard();
        let free = node.twin_free.load(Ordering::Relaxed);
        let at: *mut u32 = self.pointer(self.shape.free_twin, free as usize);
        // SAFETY: the stack has room for every twin; the twin lock is held.
        unsafe { at.write(twin) };
        node.twin_free.store(free + 1, Ordering::Relaxed);
    }

    /// One of the words beside a table of synchronization objects.
    #[inline]
    pub fn word(&self, stripe: usize, word: usize) -> &Word {
        // SAFETY: mapped for the life of self, zeroed at first (an empty word), and only an atomic is inside.
        unsafe { &*self.pointer(self.shape.word, stripe * STRIPE_WORDS + word) }
    }

    /// One of the words for this node's parts in mutexes that migrate.
    #[inline]
    pub fn own_word(&self, stripe: usize, word: usize) -> &Word {
        // SAFETY: as for `word`.
        unsafe { &*self.pointer(self.shape.own_word, stripe * STRIPE_WORDS + word) }
    }

    /// Runs `body` on one of the tables of synchronization objects, under its lock.
    pub fn with_table<R>(&self, stripe: usize, body: impl FnOnce(&mut Table<'_>) -> R) -> R {
        let _guard = self.table_lock(stripe).guard();
        // SAFETY: the lock is held.
        unsafe { self.with_locked_table(stripe, body) }
    }

    /// The same, unless the lock is taken.
    pub fn try_with_table<R>(&self, stripe: usize, body: impl FnOnce(&mut Table<'_>) -> R) -> Option<R> {
        let _guard = self.table_lock(stripe).try_guard()?;
        // SAFETY: the lock is held.
        Some(unsafe { self.with_locked_table(stripe, body) })
    }

    fn table_lock(&self, stripe: usize) -> &WordLock {
        let block: *mut Stripe = self.pointer(self.shape.stripe, stripe);
        // SAFETY: mapped and zeroed at first; nobody makes a &mut to the lock field.
        unsafe { &(*block).lock }
    }

    /// # Safety
    /// The stripe's lock is held.
    unsafe fn with_locked_table<R>(&self, stripe: usize, body: impl FnOnce(&mut Table<'_>) -> R) -> R {
        let block: *mut Stripe = self.pointer(self.shape.stripe, stripe);
        let waiters = self.shape.waiters();
        // SAFETY: the lock is held, so these are the only references to the stripe's parts; each region has room for
        // every stripe (`Shape::of`), and all-zero memory is valid for these plain types.
        let (header, buckets, entries, waiters) = unsafe {
            (
                &mut (*block).header,
                self.part::<u32>(self.shape.bucket, stripe, STRIPE_BUCKETS),
                self.part::<Entry>(self.shape.entry, stripe, STRIPE_ENTRIES),
                self.part::<Waiter>(self.shape.waiter, stripe, waiters),
            )
        };
        body(&mut Table::new(header, buckets, entries, waiters))
    }

    /// Part `number` of a region cut in parts of `len` elements.
    ///
    /// # Safety
    /// Nobody else may have a reference to the part, and all-zero memory must be a valid `T`.
    #[expect(clippy::mut_from_ref, reason = "the memory is shared by processes; the caller holds the part's lock")]
    pub(super) unsafe fn part<T>(&self, region: Region, number: usize, len: usize) -> &mut [T] {
        assert!((number + 1) * len <= region.len, "part {number} of a region of {}", region.len);
        // SAFETY: inside the region, aligned (regions start on pages); exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(region, number * len), len) }
    }

    /// Runs `body` on the job's threads, under their lock. Node 0 only.
    pub fn with_threads<R>(&self, body: impl FnOnce(&mut Threads<'_>) -> R) -> R {
        let _guard = self.node().thread_lock.guard();
        // SAFETY: the lock is held.
        unsafe { self.with_locked_threads(body) }
    }

    /// The same, unless the lock is taken.
    pub fn try_with_threads<R>(&self, body: impl FnOnce(&mut Threads<'_>) -> R) -> Option<R> {
        let _guard = self.node().thread_lock.try_guard()?;
        // SAFETY: the lock is held.
        Some(unsafe { self.with_locked_threads(body) })
    }

    /// # Safety
    /// The threads' lock is held.
    unsafe fn with_locked_threads<R>(&self, body: impl FnOnce(&mut Threads<'_>) -> R) -> R {
        let node: *mut Node = self.pointer(self.shape.node, 0);
        // SAFETY: a cell of plain data, valid all-zero, reached only here: under the thread lock this is the only reference.
        let header = unsafe { &mut *(*node).thread_header.get() };
        // SAFETY: likewise the job's threads.
        let processors = unsafe { self.part(self.shape.thread, 0, self.shape.thread.len) };
        let seats = finespun_sync::threads::Seats { numbers: GUESTS as u32, usable: SEATS as u32 };
        let each = self.shape.processors_per_node() as u32;
        body(&mut Threads::with_seats(header, processors, each, seats))
    }

    /// Runs `body` on the heap and the last two collective allocations, under the heap's lock. Node 0 only.
    pub fn with_heap<R>(&self, body: impl FnOnce(&mut finespun_heap::Heap<'_>, &mut [Together; 2]) -> R) -> R {
        let _guard = self.node().heap_lock.guard();
        let shape = &self.shape;
        // SAFETY: under the heap lock these are the only references to the three; all-zero memory is valid for them.
        let tables = unsafe {
            finespun_heap::Tables {
                header: &mut *self.pointer::<finespun_heap::Header>(shape.heap, 0),
                pages: self.part(shape.heap_page, 0, shape.heap_page.len),
                spans: self.part(shape.heap_span, 0, shape.heap_span.len),
            }
        };
        // SAFETY: a cell of plain data, valid all-zero, reached only here: under the heap lock this is the only reference.
        let together = unsafe { &mut *self.node().together.get() };
        body(&mut finespun_heap::Heap::new(shape.layout, tables), together)
    }

    /// A broadcast buffer: its label, and its page.
    pub fn buffer(&self, number: usize) -> (&Buffer, *mut u8) {
        let label: *const Buffer = self.pointer(self.shape.buffer, number);
        let page = self.contents(self.shape.buffer_page, number);
        // SAFETY: mapped for the life of self, zeroed at first (a free lock, no unit), and only atomics are inside.
        (unsafe { &*label }, page)
    }

    /// The number plus one of the buffer that a unit was last written to.
    pub fn buffer_of(&self, unit: UnitId) -> &AtomicU32 {
        // SAFETY: mapped for the life of self and aligned; zero at first, a valid number.
        unsafe { AtomicU32::from_ptr(self.pointer(self.shape.buffer_of, unit.0 as usize)) }
    }

    /// The transport's part of the segment.
    pub fn mesh_memory(&self) -> *mut u8 {
        self.pointer::<u8>(Region { offset: self.shape.mesh.offset, len: 1 }, 0)
    }

    /// Makes the frames of a run, and the engine's mapping of them, in one go where they are not there yet.
    pub fn populate(&self, units: Range<u32>) {
        let bytes = |unit: u32| self.shape.unit.bytes_of(unit as usize);
        self.frames.populate(bytes(units.start)..bytes(units.end));
    }

    /// A bit for each page that a view has read together with the one below.
    pub fn neighbours(&self, view: ViewId) -> &[AtomicU64] {
        let words = self.shape.pages.div_ceil(64);
        let first: *const AtomicU64 = self.pointer(self.shape.neighbours, usize::from(view.0) * words);
        // SAFETY: mapped for the life of self, aligned, zero at first; the region has so many words for each view.
        unsafe { std::slice::from_raw_parts(first, words) }
    }

    /// What a view does with a page between notices, as a word of `Habit` in `policy/habit.rs`; with many views, with a few pages side by side.
    pub fn habit(&self, view: ViewId, unit: UnitId) -> &AtomicU16 {
        let (pages, each) = (self.shape.pages, self.shape.pages_per_habit);
        let (view, unit) = (usize::from(view.0), unit.0 as usize);
        assert!(unit < pages, "unit {unit} of {pages}");
        // SAFETY: mapped for the life of self, aligned, zero at first; only an atomic is inside.
        unsafe { AtomicU16::from_ptr(self.pointer(self.shape.habits, view * pages.div_ceil(each) + unit / each)) }
    }

    /// Puts a unit on a view's dirty list. What is read of the page after this is newer than the list: see
    /// [`View::has_nothing_dirty`].
    pub fn list_dirty(&self, view: ViewId, unit: UnitId) {
        self.dirty_list(view).push(unit);
        fence::full();
    }

    /// Puts a unit on a view's list of write notices.
    pub fn list_notice(&self, view: ViewId, unit: UnitId) {
        self.notice_list(view).push(unit);
    }

    /// Takes a view's whole dirty list, in portions, and leaves it empty. Only under the view's `releasing` lock.
    pub fn take_dirty(&self, view: ViewId) -> Taken<'_> {
        self.dirty_list(view).take()
    }

    /// Takes a view's whole list of write notices, in portions, and leaves it empty. Only under the view's `acquiring` lock.
    pub fn take_notices(&self, view: ViewId) -> Taken<'_> {
        self.notice_list(view).take()
    }

    fn dirty_list(&self, view: ViewId) -> List<'_> {
        self.list(view, &self.view(view).dirty, self.shape.dirty, self.shape.dirty_marks)
    }

    fn notice_list(&self, view: ViewId) -> List<'_> {
        self.list(view, &self.view(view).notice, self.shape.notice, self.shape.notice_marks)
    }

    fn list<'a>(&'a self, view: ViewId, head: &'a ListHead, units: Region, marks: Region) -> List<'a> {
        let (view, half, words) = (usize::from(view.0), self.shape.list_half, self.shape.pages.div_ceil(64));
        let (units, marks) = (self.pointer(units, view * 2 * half), self.pointer(marks, view * words));
        // SAFETY: the regions have two halves and so many words for each view, and `head` is the head of this view's list.
        unsafe { List::new(head, units, half, marks, words) }
    }
}

impl<'a> Locked<'a> {
    /// Whose.
    #[inline]
    pub const fn segment(&self) -> &'a Segment {
        self.node
    }

    /// Which.
    pub(super) const fn unit_id(&self) -> UnitId {
        self.unit
    }

    const fn lock(&self) -> &WordLock {
        // SAFETY: the slot is mapped for 'a and zeroed at first, a free lock; nobody makes a &mut to the lock field.
        unsafe { &(*self.slot).lock }
    }

    /// The node's copy, to read.
    pub fn state<P: Live>(&self) -> &P::Unit {
        self.check::<P>();
        // SAFETY: the job runs P, so nothing else was written; the unit's lock is held by self, and every &mut to the copy
        // borrows a Locked mutably.
        unsafe { (*self.slot).unit.state() }
    }

    /// The node's copy.
    pub fn unit<P: Live>(&mut self) -> &mut P::Unit {
        self.check::<P>();
        // SAFETY: the job runs P; the unit's lock is held by self, and self is borrowed mutably.
        unsafe { (*self.slot).unit.state_mut() }
    }

    /// The directory entry, if this node is the unit's home.
    pub fn directory<P: Live>(&mut self) -> &mut P::Directory {
        self.check::<P>();
        let entry: *mut Room<DIRECTORY_ROOM> = self.node.pointer(self.node.shape.directory, self.unit.0 as usize);
        // SAFETY: the job runs P; guarded by the same lock; zeroed at first, a valid entry.
        unsafe { (*entry).state_mut() }
    }

    /// The manager's entry, if this node is the unit's manager.
    pub fn manager<P: Live>(&mut self) -> &mut P::Manager {
        self.check::<P>();
        let entry: *mut Room<MANAGER_ROOM> = self.node.pointer(self.node.shape.managers, self.unit.0 as usize);
        // SAFETY: the job runs P; guarded by the same lock; zeroed at first, a valid entry.
        unsafe { (*entry).state_mut() }
    }

    /// The states are those of the job's own protocol: what the casts above rest on.
    fn check<P: Live>(&self) {
        assert!(P::FAMILY == self.node.shape.family, "the job runs another protocol");
    }

    /// The unit is flushed in this release. How many releases of the view ago was it last, with a change, and not unmapped since?
    pub fn flushed_in(&mut self, release: Release) -> Option<u32> {
        // SAFETY: the lock is held, and self is borrowed mutably.
        let before = unsafe {
            (*self.slot).changed_before = (*self.slot).changed_in;
            (*self.slot).changed_in = release.mark();
            (*self.slot).changed_before
        };
        release.since(before)
    }

    /// That flush found no change.
    pub fn flushed_nothing(&mut self) {
        // SAFETY: as in `flushed_in`.
        unsafe { (*self.slot).changed_in = (*self.slot).changed_before };
    }

    /// A mapping goes: no reason to believe that the unit will soon be written again.
    #[inline]
    pub fn forget_flushes(&mut self) {
        // SAFETY: as in `flushed_in`.
        unsafe { (*self.slot).changed_in = 0 };
    }

    /// The frame.
    #[inline]
    pub fn frame(&self) -> *mut u8 {
        self.node.frame(self.unit)
    }

    /// What the node has released of the page: its twin, or the frame where it has none.
    pub fn released(&self) -> Page {
        Page::at(if self.has_twin() { self.twin() } else { self.frame() })
    }

    /// Is there a twin?
    pub fn has_twin(&self) -> bool {
        // SAFETY: the lock is held.
        unsafe { (*self.slot).twin > 0 }
    }

    /// The twin; there must be one.
    pub fn twin(&self) -> *mut u8 {
        // SAFETY: the lock is held.
        let twin = unsafe { (*self.slot).twin };
        assert!(twin > 0, "unit {:?} has no twin", self.unit);
        self.node.contents(self.node.shape.twin, twin as usize - 1)
    }

    /// Gets memory for a twin.
    pub fn new_twin(&mut self) -> *mut u8 {
        let twin = self.node.take_twin();
        // SAFETY: the lock is held, and self is borrowed mutably.
        let old = unsafe { std::mem::replace(&mut (*self.slot).twin, twin) };
        assert!(old == 0, "unit {:?} has a twin already", self.unit);
        self.twin()
    }

    /// Gives the twin's memory back.
    pub fn drop_twin(&mut self) {
        // SAFETY: as in `new_twin`.
        let twin = unsafe { std::mem::replace(&mut (*self.slot).twin, 0) };
        assert!(twin > 0, "unit {:?} has no twin to drop", self.unit);
        self.node.give_twin(twin);
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.lock().unlock();
    }
}
