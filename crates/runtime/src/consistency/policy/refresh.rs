//! Refreshing: an acquire fetches anew what the program reads in every interval, instead of closing it.
//!
//! A page that another node writes in each interval and this view reads in each costs a mapping dropped at the acquire and a fault at the
//! next load. Where that has happened again and again ([`super::habit`]), the acquire obeys the notice and presents the read fault at
//! once: to the protocols' tables these are an `Invalidate` and a `ReadFault`, as ever, only that the fault has not happened yet. The page is copied into
//! the frame, and the mapping that was to go and to come again stays. No system call, and no signal.
//!
//! **Why the mapping may stay.** By the books the view has none between the two events; over shm they are one nest, and nobody sees it.
//! Over messages the answer is awaited in between, and other threads of the view may load what they find: bytes from before, from after, or some of
//! both. They have not acquired since those bytes were written elsewhere, so a program that depends on which it gets
//! has a race; and a byte that the writer did not change is copied over itself. What other views and threads of this node have
//! written and not yet released is no part of what comes: the unit has a twin then, and the page is merged, not installed. A
//! store faults, for only pages open to read are refreshed, and waits at the table like any other while a fetch is under way. And nobody else of the view
//! opens or closes pages meanwhile, for the acquire holds its `acquiring` lock.
//!
//! **Why it takes nothing from anybody.** The view has the page mapped, so this node is in the sharing set, and no other node
//! has it exclusively; the home is known. A guess decides no home here, and ends an exclusive mode only if the home becomes owner between
//! the two messages that leave the sharing set and come back to it.
//!
//! **Why waiting here cannot block.** What is awaited are answers of homes, whose handlers wait for nobody, and which any process of this
//! node takes; no unit is locked meanwhile.

use std::sync::atomic::Ordering;

use finespun_job::switches::Refresh as Switch;
use finespun_protocol::page::Time;
use finespun_types::{Counter, UnitId};

use super::habit::{Credit, Habit, Tells, Verdict};
use crate::consistency::early;
use crate::consistency::guesses::Obeyed;
use crate::consistency::nest::Here;
use crate::consistency::nest::early::obey;
use crate::node::cluster::Cluster;
use crate::node::engine::Tables;
use crate::sys::frames::Row;
use crate::sys::slot::Slot;

/// Pages that are asked for at once at most, before their answers are awaited.
const ASKED_MAX: usize = 64;

/// Are pages refreshed at all?
pub fn is_on(cluster: &Cluster) -> bool {
    cluster.job.switches.refresh == Switch::Adaptive && early::refreshes(cluster)
}

/// This view reads a page: it faulted, or was opened by another page's fault and surely used.
pub fn read(cluster: &Cluster, unit: UnitId) {
    if is_on(cluster) {
        let acquire = cluster.mine().view(cluster.my_view()).acquires.load(Ordering::Relaxed) as u8;
        let tells = learn(cluster, unit, |habit| habit.read(acquire));
        if tells != Tells::Nothing {
            change_credit(cluster, |credit| credit.told(tells));
        }
    }
}

fn change_credit(cluster: &Cluster, change: impl FnOnce(Credit) -> Credit) {
    let credit = &cluster.mine().view(cluster.my_view()).refresh_credit;
    credit.store(change(Credit(credit.load(Ordering::Relaxed))).0, Ordering::Relaxed);
}

/// Two threads that learn at once may forget one of the two, here and of the credit: these are guesses anyway.
fn learn<T>(cluster: &Cluster, unit: UnitId, change: impl FnOnce(Habit) -> (Habit, T)) -> T {
    let page = cluster.mine().habit(cluster.my_view(), unit);
    let old = Habit::of_word(page.load(Ordering::Relaxed));
    let (new, tells) = change(old);
    if new != old {
        page.store(new.word(), Ordering::Relaxed);
    }
    tells
}

/// The notices of one acquire, obeyed one by one.
pub struct Refresh<'a> {
    cluster: &'a Cluster,
    slot: &'a Slot,
    tables: Tables,
    is_on: bool,
    /// This acquire's number among those of the view, its low bits.
    acquire: u8,
    since: Time,
    row: Row,
    asked: [u32; ASKED_MAX],
    len: usize,
    refreshed: u64,
}

impl<'a> Refresh<'a> {
    /// Only under the view's `acquiring` lock. The acquire began at this time.
    pub fn begin((cluster, slot): Here<'a>, tables: Tables, since: Time) -> Self {
        let acquires = &cluster.mine().view(cluster.my_view()).acquires;
        let acquire = acquires.fetch_add(1, Ordering::Relaxed).wrapping_add(1) as u8;
        Self {
            cluster,
            slot,
            tables,
            is_on: is_on(cluster),
            acquire,
            since,
            row: Row::new(),
            asked: [0; ASKED_MAX],
            len: 0,
            refreshed: 0,
        }
    }

    /// Obeys the notice of a unit, behind which that of `next` comes. True if its page is to be closed.
    pub fn obey(&mut self, unit: UnitId, next: Option<UnitId>) -> bool {
        let cluster = self.cluster;
        self.row.next = next.map_or(0, |next| direction(unit, next));
        let verdict = self.verdict(unit);
        let row = self.row.goes_on().then_some(&mut self.row);
        let obeyed = obey((cluster, self.slot), self.tables, unit, row, (self.since, verdict != Verdict::Close));
        match obeyed {
            Obeyed::Stands => return false,
            Obeyed::Closes if !self.is_on => return true,
            Obeyed::Closes => {
                let acquire = self.acquire;
                learn(cluster, unit, |habit| (habit.closed(acquire), ()));
                return true;
            }
            Obeyed::Refreshed => {}
            Obeyed::Asked => self.ask(unit),
        }
        self.refreshed += 1;
        if verdict == Verdict::Try {
            change_credit(cluster, Credit::tried);
        }
        let acquire = self.acquire;
        learn(cluster, unit, |habit| (habit.refreshed(acquire), ()));
        false
    }

    fn verdict(&self, unit: UnitId) -> Verdict {
        if !self.is_on {
            return Verdict::Close;
        }
        let view = self.cluster.my_view();
        let habit = Habit::of_word(self.cluster.mine().habit(view, unit).load(Ordering::Relaxed));
        let credit = || Credit(self.cluster.mine().view(view).refresh_credit.load(Ordering::Relaxed));
        habit.verdict_with(self.acquire, credit)
    }

    fn ask(&mut self, unit: UnitId) {
        self.asked[self.len] = unit.0;
        self.len += 1;
        if self.len == ASKED_MAX {
            self.await_answers();
        }
    }

    fn await_answers(&mut self) {
        for &unit in &self.asked[..self.len] {
            // The caller need not open the page, because it was never closed.
            early::until_read(self.cluster, UnitId(unit), self.since);
        }
        self.len = 0;
    }

    /// Waits until all that was asked for is there.
    pub fn finish(&mut self) {
        self.await_answers();
        if self.refreshed > 0 {
            self.slot.count(Counter::PagesRefreshed, self.refreshed);
        }
    }
}

/// Where the next page lies: right behind this one (1), right before it (-1), or elsewhere (0).
const fn direction(unit: UnitId, next: UnitId) -> i32 {
    match next.0.wrapping_sub(unit.0) {
        1 => 1,
        u32::MAX => -1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_neighbour_has_a_direction() {
        let from_seven = |next| direction(UnitId(7), UnitId(next));
        assert_eq!([5, 6, 7, 8, 9].map(from_seven), [0, -1, 0, 1, 0]);
        assert_eq!(direction(UnitId(0), UnitId(1)), 1);
    }
}
