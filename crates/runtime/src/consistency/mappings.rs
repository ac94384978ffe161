//! The rights of this process's view: the only module that opens, closes or write-protects units, by the interface [`Rights`].
//!
//! A table says what rights a view is to have. A transaction passes that on ([`Wanted::want`]), and [`step`] decides what is done with the
//! mapping, and when:
//!
//! - *At once, under the unit's lock.* A table's actions run in their order, and the order matters: a page that other threads may store to is
//!   write-protected before the diff is made.
//! - *Before.* A release takes the right to write from whole runs of pages with a call each, before it presents their flushes
//!   ([`Protecting`]). Its thread is the view's only one, so no store is made in between.
//! - *After, when the unit's lock is given back.* A presenter of many events opens or closes their pages with few calls ([`Opening`],
//!   [`Closing`]).
//!
//! **Why the mapping may change after the unit's lock is given back.** Only events of a view change its mapping. The presenter is the view's
//! only thread, or it holds the view's `acquiring` lock, which every thread that closes a page of the view holds. So no other thread changes
//! the mapping in between. A page that is closed late shows what a load before the acquire could have shown. A store through it would be
//! lost, so a writable page of a view of several threads is closed at once. Under a protocol that revokes, no change is left to the presenter.
//!
//! A page that is opened late is in the sharing set and counted as mapped when its transaction is over. What other nodes send meanwhile only
//! lists the unit. Releases need not be kept out: opening a run makes no page writable, and takes the right to write from no page
//! for longer than a fault.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use finespun_sys::clock::ticks;
use finespun_sys::view::View;
use finespun_types::{Access, Counter, UnitId};

use crate::consistency::rights::Rights;
use crate::node::cluster::Cluster;
use crate::node::{meter, misuse};
use crate::sys::frames;

/// How many pages are closed at once at most.
const CLOSED_MAX: usize = 128;

/// Why a transaction changes the mapping, and who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A fault: the page was not there, or not writable. At once.
    Grow,
    /// A release or an acquire takes rights away. At once.
    Shrink,
    /// A release has taken the right to write already, with [`Protecting`].
    Shrunk,
    /// The presenter opens or closes the page, with [`Opening`] or [`Closing`].
    Together,
}

/// What is done with a page's mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing: it is done already.
    Done,
    /// Nothing now: the presenter does it.
    Left,
    /// It is closed.
    Close,
    /// It is opened to read.
    OpenToRead,
    /// It loses the right to write.
    Protect,
    /// A page that is open to read becomes writable.
    Upgrade,
    /// It is opened to read and write.
    OpenToWrite,
}

/// What is done so that a view, which had these rights before, has the rights that a table wants.
#[inline(always)]
fn step(change: Change, before: Access, wanted: Access, has_several_threads: impl FnOnce() -> bool) -> Step {
    match (wanted, change) {
        (Access::None, Change::Together) if before != Access::Write || !has_several_threads() => Step::Left,
        (Access::None, Change::Grow | Change::Shrink | Change::Shrunk | Change::Together) => Step::Close,
        (Access::Read, Change::Grow) => Step::OpenToRead,
        (Access::Read, Change::Shrink) => Step::Protect,
        (Access::Read, Change::Shrunk) => Step::Done,
        (Access::Read, Change::Together) => Step::Left,
        (Access::Write, Change::Grow | Change::Shrink | Change::Shrunk | Change::Together) => match before {
            Access::Read => Step::Upgrade,
            Access::None | Access::Write => Step::OpenToWrite,
        },
    }
}

/// What a transaction wants of the mapping of its page.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    change: Change,
    /// What the view could do with the page before, by the books.
    before: Access,
    is_left: bool,
}

impl Wanted {
    /// Nothing yet.
    pub const fn new(change: Change, before: Access) -> Self {
        Self { change, before, is_left: false }
    }

    /// What the view could do with the page before, by the books.
    pub const fn before(&self) -> Access {
        self.before
    }

    /// Is it left to the presenter to open the page for reading, or to close it?
    pub const fn is_left(&self) -> bool {
        self.is_left
    }

    /// A page that a fault has just opened stays for a moment, under a protocol that revokes: see [`crate::consistency::revoke`].
    pub fn hold(&self, cluster: &Cluster) {
        if self.change == Change::Grow {
            cluster.mine().view(cluster.my_view()).mapped_ticks.store(ticks(), Ordering::Relaxed);
        }
    }

    /// The table wants the view to have these rights. Its page is this frame.
    #[inline(always)]
    pub fn want(&mut self, cluster: &Cluster, unit: UnitId, access: Access, frame: *const u8) {
        match step(self.change, self.before, access, || cluster.has_several_threads()) {
            Step::Done => {}
            Step::Left => self.is_left = true,
            step @ (Step::Close | Step::OpenToRead | Step::Protect | Step::Upgrade | Step::OpenToWrite) => {
                change(cluster, unit, access, step, frame);
            }
        }
    }
}

/// Changes the rights to a unit at once.
#[inline(never)]
fn change(cluster: &Cluster, unit: UnitId, access: Access, step: Step, frame: *const u8) {
    match step {
        Step::Close => meter::count(cluster, Counter::Invalidations, 1),
        // The frame's page exists before it is mapped.
        Step::OpenToRead | Step::OpenToWrite => frames::touch(frame),
        Step::Done | Step::Left | Step::Protect | Step::Upgrade => {}
    }
    if let Err(error) = take(rights(cluster), step, unit) {
        failed(cluster, unit, access, &error);
    }
}

/// Takes a step of a unit's rights.
#[inline(always)]
fn take(rights: &impl Rights, step: Step, unit: UnitId) -> io::Result<()> {
    let units = unit.0..unit.0 + 1;
    match step {
        Step::Done | Step::Left => Ok(()),
        Step::Close => rights.close(units),
        Step::OpenToRead => rights.open(unit),
        Step::Protect => rights.protect(units),
        Step::Upgrade => rights.upgrade(unit),
        Step::OpenToWrite => rights.open_to_write(unit),
    }
}

#[inline]
fn view(cluster: &Cluster) -> &View {
    let (_, view) = cluster.view.as_ref().expect("only a process of the program changes its mapping");
    view
}

/// The rights of this process: those of its page view.
#[inline]
fn rights(cluster: &Cluster) -> &impl Rights {
    view(cluster)
}

/// The kernel did not change a mapping. At the end of a process the mapping of a global becomes the program's own: the thread or signal handler
/// that faulted just before repeats the access on private memory. Else it is the end of the job.
#[cold]
fn failed(cluster: &Cluster, unit: UnitId, access: Access, error: &io::Error) {
    let mapping = view(cluster);
    let is_global = || mapping.window().contains(&mapping.address_of(unit.0));
    if !cluster.globals_are_private.load(Ordering::SeqCst) || !is_global() {
        misuse::mapping(cluster, unit, access, error);
    }
}

/// Pages that are opened for reading together.
pub struct Opening<'a, const MAX: usize> {
    cluster: &'a Cluster,
    pages: [u32; MAX],
    len: usize,
}

impl<'a, const MAX: usize> Opening<'a, MAX> {
    /// None yet. Only under the view's `acquiring` lock.
    pub const fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, pages: [0; MAX], len: 0 }
    }

    /// One more, of at most `MAX`.
    pub const fn add(&mut self, unit: UnitId) {
        self.pages[self.len] = unit.0;
        self.len += 1;
    }

    /// Which they are.
    pub fn units(&self) -> impl Iterator<Item = UnitId> {
        self.pages[..self.len].iter().copied().map(UnitId)
    }

    /// Opens them, each run with one call.
    pub fn open(&mut self) {
        if let Err((first, error)) = open_runs(rights(self.cluster), &mut self.pages[..self.len]) {
            misuse::mapping(self.cluster, first, Access::Read, &error);
        }
    }
}

/// Opens each run of units with one call. An error comes with the first unit of its run; the runs behind it are not opened.
fn open_runs(rights: &impl Rights, units: &mut [u32]) -> Result<(), (UnitId, io::Error)> {
    units.sort_unstable();
    let open = |run: Range<u32>| match UnitId(run.start) {
        _ if run.is_empty() => Ok(()),
        first => rights.open_run(run).map_err(|error| (first, error)),
    };
    let mut runs = Runs::NONE;
    units.iter().try_for_each(|&unit| open(runs.add(unit)))?;
    open(runs.end())
}

/// Pages that an acquire closes together, with a call for each run of them or for many.
pub struct Closing<'a> {
    cluster: &'a Cluster,
    pages: [u32; CLOSED_MAX],
    len: usize,
}

impl<'a> Closing<'a> {
    /// None yet. Only under the view's `acquiring` lock.
    pub const fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, pages: [0; CLOSED_MAX], len: 0 }
    }

    /// One more.
    pub fn add(&mut self, unit: UnitId) {
        if self.len == CLOSED_MAX {
            self.close();
        }
        self.pages[self.len] = unit.0;
        self.len += 1;
    }

    /// Closes all that were added.
    pub fn close(&mut self) {
        if self.len == 0 {
            return;
        }
        meter::count(self.cluster, Counter::Invalidations, self.len as u64);
        if let Err(error) = rights(self.cluster).close_scattered(&self.pages[..self.len]) {
            misuse::mapping(self.cluster, UnitId(self.pages[0]), Access::None, &error);
        }
        self.len = 0;
    }
}

/// Pages that lose the right to write together, before their flushes are presented: a call for each run.
pub struct Protecting<'a> {
    cluster: &'a Cluster,
    runs: Runs,
}

impl<'a> Protecting<'a> {
    /// None yet.
    pub const fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, runs: Runs::NONE }
    }

    /// The next page, behind those before. It is writable by the books: one that lost its mapping since it was written must not become
    /// readable.
    pub fn add(&mut self, unit: UnitId) {
        let run = self.runs.add(unit.0);
        self.protect(run);
    }

    /// Protects what is left.
    pub fn end(&mut self) {
        let run = self.runs.end();
        self.protect(run);
    }

    fn protect(&self, run: Range<u32>) {
        if run.is_empty() {
            return;
        }
        let first = UnitId(run.start);
        if let Err(error) = rights(self.cluster).protect(run) {
            misuse::mapping(self.cluster, first, Access::Read, &error);
        }
    }
}

/// Pages in their order, grouped to runs side by side.
struct Runs {
    run: Range<u32>,
}

impl Runs {
    const NONE: Self = Self { run: 0..0 };

    /// One more page, behind those before. Returns the run that ends before it, or an empty one.
    const fn add(&mut self, page: u32) -> Range<u32> {
        let (start, end) = (self.run.start, self.run.end);
        let goes_on = start < end && page == end;
        self.run = if goes_on { start..page + 1 } else { page..page + 1 };
        if goes_on { 0..0 } else { start..end }
    }

    /// The last run.
    const fn end(&mut self) -> Range<u32> {
        std::mem::replace(&mut self.run, 0..0)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Notes what it is asked for; refuses what concerns one unit.
    #[derive(Default)]
    struct Noting {
        asked: RefCell<Vec<String>>,
        refused: Option<u32>,
    }

    impl Noting {
        fn note(&self, what: &str, units: &[u32]) -> io::Result<()> {
            self.asked.borrow_mut().push(format!("{what} {units:?}"));
            let is_refused = self.refused.is_some_and(|unit| units.contains(&unit));
            if is_refused { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
        }
    }

    impl Rights for Noting {
        fn open(&self, unit: UnitId) -> io::Result<()> {
            self.note("open", &[unit.0])
        }
        fn open_run(&self, units: Range<u32>) -> io::Result<()> {
            self.note("open run", &units.collect::<Vec<_>>())
        }
        fn open_to_write(&self, unit: UnitId) -> io::Result<()> {
            self.note("open to write", &[unit.0])
        }
        fn upgrade(&self, unit: UnitId) -> io::Result<()> {
            self.note("upgrade", &[unit.0])
        }
        fn protect(&self, units: Range<u32>) -> io::Result<()> {
            self.note("protect", &units.collect::<Vec<_>>())
        }
        fn close(&self, units: Range<u32>) -> io::Result<()> {
            self.note("close", &units.collect::<Vec<_>>())
        }
        fn close_scattered(&self, units: &[u32]) -> io::Result<()> {
            self.note("close scattered", units)
        }
    }

    #[test]
    fn a_step_is_one_operation_on_rights_or_none() {
        let steps =
            [Step::Done, Step::Left, Step::Close, Step::OpenToRead, Step::Protect, Step::Upgrade, Step::OpenToWrite];
        let rights = Noting::default();
        steps.into_iter().for_each(|step| take(&rights, step, UnitId(7)).expect("nothing is refused"));
        let asked = rights.asked.into_inner();
        assert_eq!(asked, ["close [7]", "open [7]", "protect [7]", "upgrade [7]", "open to write [7]"]);
    }

    #[test]
    fn units_side_by_side_are_opened_with_one_call_whatever_their_order() {
        let rights = Noting::default();
        assert!(open_runs(&rights, &mut [9, 3, 4, 11, 2, 10]).is_ok());
        assert_eq!(rights.asked.into_inner(), ["open run [2, 3, 4]", "open run [9, 10, 11]"]);
        let rights = Noting::default();
        assert!(open_runs(&rights, &mut []).is_ok());
        assert!(rights.asked.into_inner().is_empty());
    }

    #[test]
    fn a_run_that_is_refused_is_told_by_its_first_unit() {
        let rights = Noting { refused: Some(6), ..Noting::default() };
        let (first, error) = open_runs(&rights, &mut [1, 5, 6, 9]).expect_err("6 is refused");
        assert_eq!((first, error.kind()), (UnitId(5), io::ErrorKind::OutOfMemory));
        assert_eq!(rights.asked.into_inner(), ["open run [1]", "open run [5, 6]"]);
    }

    fn runs_of(pages: &[u32]) -> Vec<Range<u32>> {
        let mut runs = Runs::NONE;
        let mut all: Vec<_> = pages.iter().map(|&page| runs.add(page)).collect();
        all.push(runs.end());
        all.retain(|run| !run.is_empty());
        all
    }

    #[test]
    fn pages_side_by_side_are_one_run() {
        assert_eq!(runs_of(&[]), []);
        assert_eq!(runs_of(&[0, 2]), [0..1, 2..3]);
        assert_eq!(runs_of(&[0, 1, 2, 4, 5, 9]), [0..3, 4..6, 9..10]);
        assert_eq!(runs_of(&[7, 8, 0, 1]), [7..9, 0..2], "a list taken in portions begins again");
    }

    #[test]
    fn every_page_is_in_exactly_one_run_in_its_order() {
        let pages: Vec<u32> = (0..400).filter(|page| page * page % 7 < 3).collect();
        let runs = runs_of(&pages);
        assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start), "neighbours are joined");
        assert_eq!(runs.into_iter().flatten().collect::<Vec<_>>(), pages);
    }

    const CHANGES: [Change; 4] = [Change::Grow, Change::Shrink, Change::Shrunk, Change::Together];
    const ALL: [Access; 3] = [Access::None, Access::Read, Access::Write];

    #[test]
    fn a_writable_page_of_several_threads_is_closed_at_once() {
        for change in CHANGES {
            assert_eq!(step(change, Access::Write, Access::None, || true), Step::Close);
        }
        assert_eq!(step(Change::Together, Access::Write, Access::None, || false), Step::Left);
        assert_eq!(step(Change::Together, Access::Read, Access::None, || true), Step::Left);
    }

    #[test]
    fn only_what_is_changed_together_is_left_to_the_presenter() {
        for (change, before, wanted) in
            CHANGES.iter().flat_map(|c| ALL.iter().flat_map(|b| ALL.iter().map(|w| (*c, *b, *w))))
        {
            let is_left = step(change, before, wanted, || false) == Step::Left;
            assert_eq!(
                is_left,
                change == Change::Together && wanted != Access::Write,
                "{change:?} {before:?} {wanted:?}"
            );
        }
    }

    #[test]
    fn the_right_to_write_is_added_to_a_page_that_is_open_to_read_and_else_comes_with_the_page() {
        for change in CHANGES {
            let steps = ALL.map(|before| step(change, before, Access::Write, || true));
            assert_eq!(steps, [Step::OpenToWrite, Step::Upgrade, Step::OpenToWrite]);
        }
    }

    #[test]
    fn a_fault_opens_what_a_release_protects_or_has_protected() {
        let steps = CHANGES.map(|change| step(change, Access::Write, Access::Read, || true));
        assert_eq!(steps, [Step::OpenToRead, Step::Protect, Step::Done, Step::Left]);
    }
}
