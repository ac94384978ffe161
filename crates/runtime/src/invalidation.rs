//! Pages that an acquire closes: together, with a system call for each run of them or for many.
//!
//! The tables say of each unit by itself that its page is to be closed; [`crate::nest::present_leaving`] says why the mapping may go a
//! little later, when the unit's lock is given back.

use finespun_sys::view::View;
use finespun_types::{Access, Counter, UnitId};

use crate::cluster::Cluster;
use crate::{meter, misuse};

/// How many the view closes at once at most.
const PAGES_MAX: usize = 128;

/// Pages to be closed before the acquire is over.
pub struct Invalidation<'a> {
    cluster: &'a Cluster,
    view: &'a View,
    units: [u32; PAGES_MAX],
    len: usize,
}

impl<'a> Invalidation<'a> {
    /// None yet. Only under the view's `acquiring` lock.
    pub fn new(cluster: &'a Cluster) -> Self {
        let (_, view) = cluster.view.as_ref().expect("only a process of the program acquires");
        Self { cluster, view, units: [0; PAGES_MAX], len: 0 }
    }

    /// One more.
    pub fn add(&mut self, unit: UnitId) {
        if self.len == PAGES_MAX {
            self.close();
        }
        self.units[self.len] = unit.0;
        self.len += 1;
    }

    /// Closes all that were added.
    pub fn close(&mut self) {
        if self.len == 0 {
            return;
        }
        meter::count(self.cluster, Counter::Invalidations, self.len as u64);
        if let Err(error) = self.view.invalidate_scattered(&self.units[..self.len]) {
            misuse::mapping(self.cluster, UnitId(self.units[0]), Access::None, &error);
        }
        self.len = 0;
    }
}
