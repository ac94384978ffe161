//! Acquire and release of this process's view: the numbered steps of `finespun_protocol::cashmere::sync`.

pub mod along;

use std::sync::atomic::Ordering;

use finespun_engine::{Release as Steps, Todo};
use finespun_protocol::Family;
use finespun_protocol::page::{NODE, Outcome};
use finespun_types::{Access, Bucket, NodeId, UnitId, ViewId};

use crate::attached::Attached;
use crate::cluster::Cluster;
use crate::engine::{Engine, Tables};
use crate::join::Outbox;
use crate::mappings::{Change, Closing, Protecting};
use crate::policy::{self, Rewrites};
use crate::sys::records::View;
use crate::sys::segment::Release;
use crate::tmk::collect::Collection;
use crate::wire::Letter;
use crate::{meter, misuse, nest, pointers, poll, tmk, wait};

/// The most flushes a view has under way at once: bounds what waits in the queues of the transport.
const FLUSHES_MAX: u32 = 512;

/// Marks a unit on a list being released: its view may keep the right to write.
const KEPT: u32 = 1 << 31;
const _: () = assert!(finespun_heap::LIMIT_PAGES_MAX <= KEPT, "the mark is no part of a page's number");

/// Release: returns when the home of every unit that this view wrote has the changes and every sharer has the notice.
pub fn release(cluster: &Cluster) {
    pointers::look(cluster);
    if tmk::runs(cluster) {
        return meter::timed(cluster, Bucket::Flush, || tmk::steps::release(cluster));
    }
    if has_nothing_to_release(cluster) {
        return;
    }
    meter::timed(cluster, Bucket::Flush, || release_untimed(cluster));
}

/// Would a release do nothing? False also where that is not looked at.
#[inline(always)]
pub fn has_nothing_to_release(cluster: &Cluster) -> bool {
    // Under broadcast every release counts, for it ends an interval.
    let counts = matches!(cluster.shape.family, Family::Broadcasting | Family::Tmk);
    !counts && cluster.mine().view(released_list(cluster)).has_nothing_dirty()
}

/// Whose list: one release at a time of the view, or of the node.
#[inline]
fn released_list(cluster: &Cluster) -> ViewId {
    if nest::releases_node(cluster) { NODE } else { cluster.my_view() }
}

fn release_untimed(cluster: &Cluster) {
    let (node, id) = (cluster.mine(), cluster.my_view());
    let list = released_list(cluster);
    let several_threads = cluster.has_several_threads();
    let view = node.view(list);
    let _one_release = view.releasing.guard();
    let steps = Steps::begin(id, node.tick(), several_threads);
    if cluster.shape.family == Family::Broadcasting {
        node.node().interval.fetch_add(1, Ordering::Relaxed);
    }
    let mut taken = node.take_dirty(list);
    let release = nest::keeps_rights(cluster).then(|| Release::next_of(id, node.view(id)));
    let mut rewrites = policy::release_seen();
    let mut outbox = (list == NODE && nest::releases_node(cluster) && cluster.mesh.is_some()).then(Outbox::of_release);
    taken.each_portion(|units| {
        let change = prepare(cluster, units, (release, &mut rewrites), several_threads);
        let mut left = units.len();
        while left > 0 {
            let last = wait::last_event(cluster);
            let before = left;
            left = flush_some(cluster, view, &mut units[..left], (steps, change), &mut outbox);
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
    cluster: &Cluster,
    view: &View,
    units: &mut [u32],
    (steps, change): (Steps, Change),
    outbox: &mut Option<Outbox<'_>>,
) -> usize {
    let mut waiting = 0;
    for index in 0..units.len() {
        let (unit, keep) = (units[index] & !KEPT, units[index] & KEPT != 0);
        let change = if keep { Change::Shrink } else { change };
        poll::await_room(cluster);
        // Counted before, since the flush may be done before `present` returns.
        let begun = view.outstanding.fetch_add(1, Ordering::SeqCst) < FLUSHES_MAX;
        let outcome = if begun {
            nest::flush(cluster, UnitId(unit), steps.flush(keep), change, outbox.as_mut())
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
        let (access, ago) = nest::before_flush(cluster, UnitId(*unit), release);
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
pub fn has_nothing_to_acquire(cluster: &Cluster) -> bool {
    if tmk::runs(cluster) {
        return false;
    }
    // Where mappings are revoked the list is the communication thread's.
    nest::revokes(cluster) || cluster.mine().view(cluster.my_view()).has_no_notices()
}

/// Acquire: obeys every write notice that has come.
pub fn acquire(cluster: &Cluster) {
    if tmk::runs(cluster) {
        return tmk::steps::acquire(cluster);
    }
    if has_nothing_to_acquire(cluster) {
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
    meter::timed(cluster, Bucket::Flush, || {
        let (mut gone, mut refresh) = (Closing::new(cluster), policy::notices_seen(cluster, since));
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

/// A message of another node's engine came.
pub fn receive(cluster: &Cluster, from: NodeId, letter: Letter<'_>) {
    match cluster.engine {
        Engine::Home(_) => {
            let attached = Attached::of(&letter).filter(|_| (letter.unit as usize) < cluster.shape.pages);
            let Some(attached) = attached else { misuse::malformed_message(cluster, from) };
            nest::receive(cluster, from, UnitId(letter.unit), letter.msg, attached);
        }
        Engine::Lazy => tmk::receive(cluster, from, letter),
    }
}

/// Several came in one.
pub fn receive_joined(cluster: &Cluster, from: NodeId, letters: &[u8]) {
    let is_read = match cluster.engine {
        Engine::Home(_) => nest::receive_joined(cluster, from, letters),
        Engine::Lazy => false,
    };
    if !is_read {
        misuse::malformed_message(cluster, from);
    }
}

/// The collection that follows the barrier of all that was just passed.
pub fn collection(cluster: &Cluster) -> Option<Collection> {
    match cluster.engine {
        Engine::Home(_) => None,
        Engine::Lazy => Collection::wished(cluster),
    }
}

/// Has any node touched a unit, as far as this one knows? `None`: its manager knows.
pub fn is_touched(cluster: &Cluster, unit: UnitId) -> Option<bool> {
    let place = cluster.place(cluster.me, unit);
    match cluster.engine {
        _ if place.fixed_home.is_some() => Some(true),
        Engine::Home(_) => cluster.reaches(place.manager).then(|| cluster.at(place.manager).has_given_home(unit)),
        Engine::Lazy => Some(tmk::has_heard_of(cluster, unit)),
    }
}

/// Does the release of one view cover the stores of all views of its node?
pub const fn releases_whole_node(cluster: &Cluster) -> bool {
    match cluster.engine {
        Engine::Home(Tables::StringsRc | Tables::StringsSc) => true,
        Engine::Home(Tables::Cashmere | Tables::Broadcasting | Tables::Migrating) | Engine::Lazy => false,
    }
}
