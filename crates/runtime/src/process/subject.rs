//! What a diagnosis may ask of the process that it looks at.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use finespun_job::{Job, Report};
use finespun_types::{Access, UnitId};

use crate::consistency::units;
use crate::node::cluster::Cluster;
use crate::node::runtime::{self, Runtime};
use crate::node::{meter, misuse};
use crate::process::buffers;
use crate::sys::descriptors;
use crate::sys::frames::Page;

/// The process.
#[derive(Clone, Copy)]
pub struct Subject {
    runtime: &'static Runtime,
}

impl Subject {
    pub(crate) const fn of(runtime: &'static Runtime) -> Self {
        Self { runtime }
    }

    /// This process, while its runtime runs.
    #[must_use]
    pub fn running() -> Option<Self> {
        runtime::running().map(Self::of)
    }

    const fn cluster(self) -> &'static Cluster {
        self.runtime.cluster
    }

    /// Its job.
    #[must_use]
    pub const fn job(self) -> &'static Job {
        &self.cluster().job
    }

    /// Its number among the job's processes.
    #[must_use]
    pub fn process(self) -> usize {
        let cluster = self.cluster();
        usize::from(cluster.me.0) * cluster.shape.views + usize::from(cluster.my_view().0)
    }

    /// How many processes the job has.
    #[must_use]
    pub const fn processes(self) -> usize {
        let shape = &self.cluster().shape;
        shape.nodes * shape.views
    }

    /// The calling thread's processor; for a thread that is none, the first of the process.
    #[must_use]
    pub fn processor(self) -> u32 {
        let cluster = self.cluster();
        let first = usize::from(cluster.my_view().0) * cluster.shape.threads;
        let own = first..first + cluster.shape.threads;
        cluster.processor_at(meter::slot_index().filter(|slot| own.contains(slot)).unwrap_or(first)).0
    }

    /// Where the program stands in memory.
    #[must_use]
    pub const fn image(self) -> &'static Range<usize> {
        &self.runtime.program.image
    }

    /// The addresses of the shared space.
    #[must_use]
    pub fn shared(self) -> Range<usize> {
        self.cluster().view.as_ref().map_or(0..0, |(_, mapping)| mapping.addresses())
    }

    /// The addresses of the program's variables that are shared.
    #[must_use]
    pub fn globals(self) -> Range<usize> {
        self.cluster().view.as_ref().map_or(0..0, |(_, mapping)| mapping.window())
    }

    /// How many units the shared space has.
    #[must_use]
    pub const fn units(self) -> usize {
        self.cluster().shape.pages
    }

    /// Where the program sees a unit.
    #[must_use]
    pub fn address_of(self, unit: UnitId) -> usize {
        self.cluster().view.as_ref().map_or(0, |(_, mapping)| mapping.address_of(unit.0))
    }

    /// May the process store to the unit without a fault?
    #[must_use]
    pub fn may_store(self, unit: UnitId) -> bool {
        units::access(self.cluster(), unit) == Access::Write
    }

    /// Looks at what the node's copy of a unit holds; others may store to it meanwhile.
    pub fn look_into<R>(self, unit: UnitId, look: impl FnOnce(&[u8]) -> R) -> R {
        look(Page::at(self.cluster().mine().frame(unit)).bytes())
    }

    /// Where `--check globals` collects what it finds, if the job asks for it.
    #[must_use]
    pub fn watch_table(self) -> Option<BorrowedFd<'static>> {
        self.job().watch.map(descriptors::borrow)
    }

    /// The program's private variables at these addresses are watched: loads and stores there fault, and so system calls fail.
    pub fn variables_are_watched(self, variables: Range<usize>) {
        buffers::watched(&variables);
    }

    /// Tells the node's service process.
    pub fn tell(self, report: &Report) {
        misuse::tell(report);
    }
}
