//! Room in a node segment for one state of a protocol's table. A job runs one protocol; the room is as large as the
//! largest protocol needs, and all-zero at first, which every protocol takes for a unit that nobody has touched.

use zerocopy::{FromZeros, Immutable};

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

/// Room for one state.
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
