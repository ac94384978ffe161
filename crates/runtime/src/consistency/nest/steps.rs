//! Fault, release and acquire of this process's view: the engine's numbered steps (`finespun_protocol::cashmere::sync`), with the waiting in
//! between.

use std::sync::atomic::Ordering;

use finespun_engine::{Fault, Release as Steps, Todo};
use finespun_protocol::page::{NODE, Outcome, Time};
use finespun_types::{Access, Bucket, UnitId, ViewId};

use super::Here;
use crate::consistency::join::Outbox;
use crate::consistency::mappings::{Change, Closing, Protecting};
use crate::consistency::policy::{self, Rewrites};
use crate::messages::{poll, wait};
use crate::node::cluster::Cluster;
use crate::node::engine::Tables;
use crate::node::meter;
use crate::sys::records::View;
use crate::sys::segment::Release;

/// The most flushes a view has under way at once: bounds what waits in the queues of the transport.
const FLUSHES_MAX: u32 = 512;

/// Marks a unit on a list being released: its view may keep the right to write.
const KEPT: u32 = 1 << 31;
const _: () = assert!(finespun_heap::LIMIT_PAGES_MAX <= KEPT, "the mark is no part of a page's number");

/// Serves a fault: the page is there when this returns, to read or to write.
pub fn fault(here: Here<'_>, tables: Tables, unit: UnitId, writes: bool, since: Time) {
    let (cluster, _) = here;
    let fault = Fault { view: cluster.my_view(), writes, since };
    // Without messages the answer came inside the nest, unless somebody's mapping must go first: look again.
    let answered = cluster.reach.answers_inside(super::revokes(tables));
    let mut last = wait::last_event(cluster);
    loop {
        let outcome = super::present(here, tables, unit, fault.demand(), Change::Grow);
        match fault.next(Some(outcome), answered) {
            Todo::Over => return cluster.flush_messages(),
            Todo::Present(_) => {}
            Todo::Wait => {
                cluster.flush_messages();
                wait::for_event(cluster, last);
                last = wait::last_event(cluster);
            }
        }
    }
}

/// Release: returns when the home of every unit that this view wrote has the changes and every sharer has the notice.
pub fn release(cluster: &Cluster, tables: Tables) {
    if !has_nothing_to_release(cluster, tables) {
        let slot = meter::slot(cluster);
        meter::timed_in(slot, Bucket::Flush, || flush_all((cluster, slot), tables));
    }
}

/// Would a release do nothing? False also where that is not looked at.
#[inline(always)]
pub fn has_nothing_to_release(cluster: &Cluster, tables: Tables) -> bool {
    !counts_releases(tables) && cluster.mine().view(released_list(cluster, tables)).has_nothing_dirty()
}

/// Does every release count, because it ends an interval?
const fn counts_releases(tables: Tables) -> bool {
    match tables {
        Tables::Broadcasting => true,
        Tables::Cashmere | Tables::Migrating | Tables::StringsRc | Tables::StringsSc => false,
    }
}

/// Whose list: one release at a time of the view, or of the node.
#[inline]
fn released_list(cluster: &Cluster, tables: Tables) -> ViewId {
    if super::releases_node(tables) { NODE } else { cluster.my_view() }
}

fn flush_all(here: Here<'_>, tables: Tables) {
    let (cluster, _) = here;
    let (node, id) = (cluster.mine(), cluster.my_view());
    let list = released_list(cluster, tables);
    let several_threads = cluster.has_several_threads();
    let view = node.view(list);
    let _one_release = view.releasing.guard();
    let steps = Steps::begin(id, node.tick(), several_threads);
    if counts_releases(tables) {
        node.node().interval.fetch_add(1, Ordering::Relaxed);
    }
    let mut taken = node.take_dirty(list);
    let release = super::keeps_rights(cluster, tables).then(|| Release::next_of(id, node.view(id)));
    let mut rewrites = policy::release_seen();
    let mut outbox =
        (list == NODE && super::releases_node(tables) && cluster.reach.sends_messages()).then(Outbox::of_release);
    taken.each_portion(|units| {
        let change = prepare(cluster, tables, units, (release, &mut rewrites), several_threads);
        let mut left = units.len();
        while left > 0 {
            let last = wait::last_event(cluster);
            let before = left;
            left = flush_some(here, tables, view, &mut units[..left], (steps, change), &mut outbox);
            if left == before {
                wait::for_event(cluster, last);
            }
        }
    });
    loop {
        let last = wait::last_event(cluster);
        match steps.next(0, false, view.outstanding.load(Ordering::SeqCst), false) {
            Todo::Over => return,
            Todo::Wait | Todo::Present(_) => wait::for_event(cluster, last),
        }
    }
}

/// Presents the flush of each unit once; keeps those that must wait at the front and returns how many they are.
fn flush_some(
    here: Here<'_>,
    tables: Tables,
    view: &View,
    units: &mut [u32],
    (steps, change): (Steps, Change),
    outbox: &mut Option<Outbox<'_>>,
) -> usize {
    let (cluster, mut waiting) = (here.0, 0);
    for index in 0..units.len() {
        let (unit, keep) = (units[index] & !KEPT, units[index] & KEPT != 0);
        let change = if keep { Change::Shrink } else { change };
        poll::await_room(cluster);
        // Counted before, since the flush may be done before `present` returns.
        let begun = view.outstanding.fetch_add(1, Ordering::SeqCst) < FLUSHES_MAX;
        let outcome = if begun {
            super::flush(here, tables, UnitId(unit), steps.flush(keep), change, outbox.as_mut())
        } else {
            Outcome::Wait
        };
        if outcome != Outcome::Begun {
            view.outstanding.fetch_sub(1, Ordering::SeqCst);
        }
        if outcome == Outcome::Wait {
            units[waiting] = units[index];
            waiting += 1;
        }
    }
    if let Some(outbox) = outbox {
        outbox.send(cluster);
    }
    waiting
}

/// Marks the units that the view goes on writing. Unless other threads of it may be storing, takes its right to write the others:
/// of whole runs at once, ahead of the table, which would do it one by one.
fn prepare(
    cluster: &Cluster,
    tables: Tables,
    units: &mut [u32],
    (release, rewrites): (Option<Release>, &mut Rewrites),
    several_threads: bool,
) -> Change {
    if several_threads && release.is_none() {
        return Change::Shrink;
    }
    units.sort_unstable();
    let mut runs = Protecting::new(cluster);
    for unit in units.iter_mut() {
        let (access, ago) = super::before_flush(cluster, tables, UnitId(*unit), release);
        if rewrites.keeps(ago) {
            *unit |= KEPT;
        } else if access == Access::Write && !several_threads {
            runs.add(UnitId(*unit));
        }
    }
    runs.end();
    if several_threads { Change::Shrink } else { Change::Shrunk }
}

/// Would an acquire do nothing? False also where that is not looked at.
#[inline(always)]
pub fn has_nothing_to_acquire(cluster: &Cluster, tables: Tables) -> bool {
    // Where mappings are revoked the list is the communication thread's.
    super::revokes(tables) || cluster.mine().view(cluster.my_view()).has_no_notices()
}

/// Acquire: obeys every write notice that has come.
pub fn acquire(cluster: &Cluster, tables: Tables) {
    if has_nothing_to_acquire(cluster, tables) {
        return;
    }
    let (node, id) = (cluster.mine(), cluster.my_view());
    let view = node.view(id);
    let _one_acquire = view.acquiring.guard();
    let since = node.tick();
    let mut taken = node.take_notices(id);
    if taken.is_empty() {
        return;
    }
    let slot = meter::slot(cluster);
    meter::timed_in(slot, Bucket::Flush, || {
        let mut gone = Closing::new(cluster);
        let mut refresh = policy::notices_seen((cluster, slot), tables, since);
        taken.each_portion(|units| {
            for (index, &unit) in units.iter().enumerate() {
                let next = units.get(index + 1).copied().map(UnitId);
                if refresh.obey(UnitId(unit), next) {
                    gone.add(UnitId(unit));
                }
            }
        });
        // What was asked for is under way while pages are closed.
        cluster.flush_messages();
        gone.close();
        refresh.finish();
    });
}
