//! Rights to units, as the engine asks for them.
//!
//! The first implementation is the page view, where a unit is a page and the processor looks at each access [Cashmere05 §2.1]. Where
//! compiled code checks its accesses itself [WRL98 §2.2], rights are the states of a table that this code looks at.

use std::io;
use std::ops::Range;

use finespun_sys::view::View;
use finespun_types::UnitId;

/// The rights of one process to the units of the shared space. Every operation is complete when it returns: from then on no access of the
/// process goes through that the rights do not allow. Any thread of the process may call it, also in a fault.
///
/// An operation that fails with the kernel's error has changed some of the units, or none.
pub trait Rights {
    /// Loads go through, stores fault. Whatever the rights were before.
    fn open(&self, unit: UnitId) -> io::Result<()>;
    /// The same for units that have no rights. One that has some may keep them.
    fn open_run(&self, units: Range<u32>) -> io::Result<()>;
    /// Loads and stores go through. Whatever the rights were before.
    fn open_to_write(&self, unit: UnitId) -> io::Result<()>;
    /// The same for a unit that is open to loads.
    fn upgrade(&self, unit: UnitId) -> io::Result<()>;
    /// Stores fault from now on. The units are open to loads, or to loads and stores.
    fn protect(&self, units: Range<u32>) -> io::Result<()>;
    /// Every access faults.
    fn close(&self, units: Range<u32>) -> io::Result<()>;
    /// The same for units in any order, each of them once.
    fn close_scattered(&self, units: &[u32]) -> io::Result<()>;
}

impl Rights for View {
    #[inline]
    fn open(&self, unit: UnitId) -> io::Result<()> {
        self.map_read(unit.0)
    }

    #[inline]
    fn open_run(&self, units: Range<u32>) -> io::Result<()> {
        self.map_read_run(units)
    }

    #[inline]
    fn open_to_write(&self, unit: UnitId) -> io::Result<()> {
        self.map_write(unit.0)
    }

    #[inline]
    fn upgrade(&self, unit: UnitId) -> io::Result<()> {
        Self::upgrade(self, unit.0)
    }

    #[inline]
    fn protect(&self, units: Range<u32>) -> io::Result<()> {
        Self::protect(self, units)
    }

    #[inline]
    fn close(&self, units: Range<u32>) -> io::Result<()> {
        self.invalidate(units)
    }

    #[inline]
    fn close_scattered(&self, units: &[u32]) -> io::Result<()> {
        self.invalidate_scattered(units)
    }
}
