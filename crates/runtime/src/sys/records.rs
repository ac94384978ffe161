//! What stands in a node's segment, one after the other: plain data, atomics and locks, valid when all zero.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use finespun_engine::allocation::Together;
use finespun_sync::Header;
use finespun_sys::fence;
use finespun_sys::lock::WordLock;
use zerocopy::{FromZeros, Immutable};

use super::lists::ListHead;

/// A node's own block.
#[repr(C, align(128))]
pub struct Node {
    /// The logical clock: ticks at every protocol event.
    pub(super) clock: AtomicU64,
    pub(super) pad_clock: [u64; 15],
    /// Changes whenever a waiting view should look again.
    pub event: AtomicU32,
    /// Views asleep on `event`.
    pub event_sleepers: AtomicU32,
    pub(super) pad_event: [u64; 15],
    /// At the manager of the barrier of all, where all reach it: see [`crate::sync::barrier`].
    pub all_arrived: AtomicU64,
    pub(super) pad_all: [u64; 15],
    /// Arrivals of this node's processors at the barrier of all.
    pub barrier_arrived: AtomicU32,
    /// Rounds of that barrier completed.
    pub barrier_round: AtomicU32,
    /// Processors asleep on `barrier_round`.
    pub barrier_sleepers: AtomicU32,
    /// Processes at the end of an SPMD program.
    pub ending: AtomicU32,
    /// The guests' slots that are taken, a bit for each.
    pub guests: AtomicU32,
    /// Processes of the node that started, and that ended their part.
    pub started: AtomicU32,
    /// The build of the first process that started, as a hash; 0: none yet.
    pub build: AtomicU64,
    /// Nanoseconds of the monotonic clock when the first process started.
    pub started_ns: AtomicU64,
    /// Nanoseconds of the monotonic clock when the last process finalized.
    pub ended_ns: AtomicU64,
    /// Ticks of the cycle counter per 1,000,000 ns.
    pub ticks_per_ms: AtomicU64,
    /// Releases of the node's views: the number of the home's interval, for the protocol that broadcasts.
    pub interval: AtomicU32,
    /// Broadcast buffers ever written.
    pub next_buffer: AtomicU32,
    /// Guards the job's threads (node 0).
    pub thread_lock: WordLock,
    /// Guards the heap (node 0).
    pub heap_lock: WordLock,
    /// The last two collective allocations (node 0), under the heap's lock.
    pub(super) together: UnsafeCell<[Together; 2]>,
    /// Guards the free twins.
    pub(super) twin_lock: WordLock,
    /// Twins ever used.
    pub(super) twin_high: AtomicU32,
    /// Twins on the stack of free ones.
    pub(super) twin_free: AtomicU32,
    /// Round-robin start of the job's threads (node 0).
    pub(super) thread_header: UnsafeCell<finespun_sync::threads::Header>,
}

/// A view's block.
#[repr(C, align(128))]
pub struct View {
    /// Its dirty list.
    pub dirty: ListHead,
    /// Its list of write notices.
    pub notice: ListHead,
    /// Flushes it began that are not done.
    pub outstanding: AtomicU32,
    /// More than one thread may touch shared memory.
    pub several_threads: AtomicU32,
    /// Rung when there is a command for one of the view's places: see [`crate::sync::places`].
    pub bell: AtomicU32,
    /// Who sleeps on it.
    pub bell_sleepers: AtomicU32,
    /// One release at a time.
    pub releasing: WordLock,
    /// One acquire at a time.
    pub acquiring: WordLock,
    /// A `Credit` of `policy/habit.rs`.
    pub refresh_credit: AtomicI32,
    /// Acquires that had a notice to obey.
    pub acquires: AtomicU32,
    /// Releases that had something to flush.
    pub releases: AtomicU32,
    /// Changes whenever the view's communication thread should look at its list.
    pub revocations: AtomicU32,
    /// Whether that thread sleeps on `revocations`.
    pub revoker_sleeps: AtomicU32,
    /// When a fault of the view was last served, in ticks.
    pub mapped_ticks: AtomicU64,
    /// The kernel's numbers of the view's communication thread and of the keeper of its places, which run nothing of the program; 0: none.
    pub helpers: [AtomicU32; 2],
    /// How a signal ended the process.
    pub last: Last,
}

/// How a signal ended a process. Written by the process in the signal's handler, read by the launcher when the process is gone.
#[repr(C)]
#[derive(Default)]
pub struct Last {
    /// The signal; 0: none. Written after the rest.
    pub signal: AtomicU32,
    /// Where the thread counts, as a slot of its node.
    pub slot: AtomicU32,
    /// A [`crate::node::last::Wanted`] as a number.
    pub wanted: AtomicU32,
    /// May the process read what is mapped at the address?
    pub is_readable: AtomicU32,
    /// The address that was wanted.
    pub address: AtomicU64,
    /// The instruction; 0 if it is not the program's own.
    pub instruction: AtomicU64,
    /// The program's own call that led there; 0 if it is not known, or not needed.
    pub caller: AtomicU64,
}

impl View {
    /// A release has nothing to do: nothing is on the dirty list, and nobody is at work on what was. Looked at in this order, for who
    /// takes the list holds the lock before and gives it back when all is done.
    ///
    /// The fence: another node that ends an exclusive mode puts the unit on this list and then reads the page. Either it sees the
    /// stores made here before, or the list is seen not to be empty.
    #[inline]
    pub fn has_nothing_dirty(&self) -> bool {
        fence::full();
        self.dirty.is_empty() && !self.releasing.is_held()
    }

    /// An acquire has nothing to do, likewise.
    #[inline]
    pub fn has_no_notices(&self) -> bool {
        self.notice.is_empty() && !self.acquiring.is_held()
    }
}

/// One table of synchronization objects: its lock and its head.
#[repr(C, align(64))]
pub struct Stripe {
    pub(super) lock: WordLock,
    pub(super) header: Header,
}

/// A node's copy of a unit.
#[repr(C)]
pub struct UnitSlot {
    /// Guards this slot, and the unit's entries as home and as manager of this node.
    pub(super) lock: WordLock,
    /// The twin's index plus one.
    pub(super) twin: u32,
    /// The last release that flushed a change of the unit, as [`Release::mark`]; 0: none, or the mapping went since.
    pub(super) changed_in: u32,
    /// The one before.
    pub(super) changed_before: u32,
    pub(super) unit: Room<UNIT_ROOM>,
}

/// Buffers of one home.
pub const BUFFERS: usize = 256;

/// One buffer's label; its page stands elsewhere.
#[repr(C, align(64))]
pub struct Buffer {
    pub(super) lock: WordLock,
    /// The unit plus one; 0: none.
    pub(super) unit: AtomicU32,
}

/// Bytes of the room for a node's copy of a unit.
pub const UNIT_ROOM: usize = 72;
/// Bytes of the room for a directory entry.
pub const DIRECTORY_ROOM: usize = 64;
/// Bytes of the room for a manager's entry.
pub const MANAGER_ROOM: usize = 8;

/// States that may stand in memory which several processes map: all-zero bytes are a valid value, and nothing changes behind
/// a shared reference. Derives prove both. That a value means the same in every process follows from the crate `protocol`:
/// its states hold numbers and sets of bits, no pointer.
pub trait Plain: FromZeros + Immutable + Copy + 'static {}

impl<T: FromZeros + Immutable + Copy + 'static> Plain for T {}

/// Room for one state of a protocol's table. A job runs one protocol; the room is as large as the largest protocol needs, and all-zero at
/// first, which every protocol takes for a unit that no node has touched.
#[repr(C, align(8))]
pub struct Room<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Room<BYTES> {
    /// The state.
    ///
    /// # Safety
    /// `T` is the only type ever written here since the memory was zero, and nobody has a `&mut` to it.
    pub const unsafe fn state<T: Plain>(&self) -> &T {
        const { assert!(size_of::<T>() <= BYTES && align_of::<T>() <= 8) };
        // SAFETY: it fits and is aligned (checked above, when built); valid by `Plain` and the caller's promise.
        unsafe { &*self.0.as_ptr().cast() }
    }

    /// The state, to change.
    ///
    /// # Safety
    /// `T` is the only type ever written here since the memory was zero, and nobody else has a reference to it.
    pub const unsafe fn state_mut<T: Plain>(&mut self) -> &mut T {
        const { assert!(size_of::<T>() <= BYTES && align_of::<T>() <= 8) };
        // SAFETY: as in `state`.
        unsafe { &mut *self.0.as_mut_ptr().cast() }
    }
}
