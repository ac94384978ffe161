//! First touches ahead: where a thread fills page after page that nobody has used, one fault opens several of them for writing.
//!
//! A page opened so is a write fault presented early; to everybody else it is a store of the zeros that are there. What is saved is the
//! fault, and the system calls that make the frames one by one. Each page is mapped inside its nest, like that of any fault.
//!
//! **Which pages.** Only such whose home is this node, or would be if the store were made now, and that no node has touched: where the
//! guess is wrong nobody loses a copy or an exclusive mode. It may cost a page its place: the node that would have touched it first
//! has to fetch it from here. So a window is a sixteenth of what the thread has filled so far, ends at the first page that
//! another node has begun with, and where homes are not fixed it is no longer than what the heap leaves free behind large objects.

use std::cell::RefCell;

use finespun_heap::GUARD_PAGES;
use finespun_protocol::page::Time;
use finespun_types::{Counter, UnitId};

use super::streams::Streams;
use super::{Few, NEW_GROUND, POPULATED_MIN, await_answer, with_streams};
use crate::cluster::Cluster;
use crate::{meter, nest, pointers};

thread_local! {
    /// The streams of this thread's stores.
    static STREAMS: RefCell<Streams> = const { RefCell::new(Streams::NONE) };
}

/// A write fault at this page, which the node had not used before, has been served: opens pages behind it, if it is one of a stream of first touches.
pub fn go_on(cluster: &Cluster, unit: UnitId, since: Time) {
    with_streams(&STREAMS, |streams| go_on_stream(cluster, streams, unit, since));
}

fn go_on_stream(cluster: &Cluster, streams: &mut Streams, unit: UnitId, since: Time) {
    let found = streams.fault(unit.0, meter::slot(cluster).interval());
    let room = found.window.min(found.run / NEW_GROUND);
    if room > 0 {
        let is_fixed = cluster.place(cluster.me, unit).fixed_home.is_some();
        let room = if is_fixed { room } else { room.min(GUARD_PAGES) };
        let opened = open(cluster, unit, since, found.step, room);
        meter::count(cluster, Counter::TouchedAhead, u64::from(opened));
        streams.opened(&found, opened);
    }
}

/// Opens up to `room` pages behind this one, and returns how many.
fn open(cluster: &Cluster, unit: UnitId, since: Time, step: i32, room: u32) -> u32 {
    let is_page = |unit: &UnitId| (unit.0 as usize) < cluster.shape.pages;
    let behind = |ahead: u32| unit.0.checked_add_signed(step * ahead as i32).map(UnitId).filter(is_page);
    if cluster.mesh.is_some() {
        learn_homes(cluster, (1..=room).map_while(behind), since);
    }
    let last = (1..=room).rev().find_map(behind).unwrap_or(unit);
    if room >= POPULATED_MIN && nest::ahead::is_untouched(cluster, last) {
        cluster.mine().populate(unit.0.min(last.0)..unit.0.max(last.0) + 1);
    }
    let opens = |unit: &UnitId| nest::ahead::touch_ahead(cluster, *unit, since);
    (1..=room).map_while(behind).take_while(opens).inspect(|unit| pointers::written(*unit)).count() as u32
}

/// Where only messages reach the managers, all are asked at once. An answer is no more than a name: nothing is fetched for it.
fn learn_homes(cluster: &Cluster, units: impl Iterator<Item = UnitId>, since: Time) {
    let mut asked = Few::NONE;
    units.filter(|unit| nest::ahead::ask_home(cluster, *unit, since)).for_each(|unit| asked.push(unit.0));
    for &unit in asked.as_slice() {
        await_answer(cluster, || nest::home(cluster, UnitId(unit)));
    }
}
