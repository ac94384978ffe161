//! A node's memory as its processes share it: twins, marks of releases, habits, slots; and what lazy release consistency keeps there.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering;

use finespun_job::Transport;
use finespun_types::{NodeId, PAGE_BYTES, ProcessorId, UnitId, ViewId};

use super::made;
use super::small::Small;
use crate::sys::segment::{Release, Segment};
use crate::sys::tmk::{Full, Store};

const ME: NodeId = NodeId(0);

fn job(protocol: &'static str, nodes: u32, views: u32) -> Small {
    Small::new(made(protocol, Transport::Shm, nodes, views))
}

fn memory(job: &Small) -> &Segment {
    job.processors[0].cluster.mine()
}

#[test]
fn each_twin_has_memory_of_its_own_and_what_is_dropped_is_used_again() {
    let job = job("csm-2l", 1, 2);
    let twin = |unit| memory(&job).lock(UnitId(unit)).new_twin();
    let first: HashSet<_> = (0..40).map(twin).collect();
    assert_eq!(first.len(), 40);
    assert!(first.iter().all(|twin| twin.addr().is_multiple_of(PAGE_BYTES)));
    (0..40).for_each(|unit| memory(&job).lock(UnitId(unit)).drop_twin());
    assert!((0..40).all(|unit| !memory(&job).lock(UnitId(unit)).has_twin()));
    let again: HashSet<_> = (100..140).map(twin).collect();
    assert_eq!(again, first, "no more memory than is needed at once");
}

#[test]
fn what_a_node_has_released_of_a_page_is_its_twin_if_it_has_one() {
    let job = job("csm-2l", 1, 1);
    let mut unit = memory(&job).lock(UnitId(5));
    assert_eq!(unit.released().bytes().as_ptr(), unit.frame().cast_const());
    let twin = unit.new_twin();
    assert_eq!(unit.released().bytes().as_ptr(), twin.cast_const());
}

/// The releases of a view, one after the other.
fn releases(memory: &Segment, view: u8) -> impl FnMut() -> Release {
    move || Release::next_of(ViewId(view), memory.view(ViewId(view)))
}

#[test]
fn a_unit_tells_how_many_releases_ago_its_view_changed_it() {
    let job = job("csm-2l", 1, 2);
    let mut next = releases(memory(&job), 0);
    let mut unit = memory(&job).lock(UnitId(7));
    assert_eq!(unit.flushed_in(next()), None);
    assert_eq!(unit.flushed_in(next()), Some(1));
    next();
    next();
    assert_eq!(unit.flushed_in(next()), Some(3));
    // A flush that finds no change does not count, and a mapping that goes ends it.
    assert_eq!(unit.flushed_in(next()), Some(1));
    unit.flushed_nothing();
    assert_eq!(unit.flushed_in(next()), Some(2));
    unit.forget_flushes();
    assert_eq!(unit.flushed_in(next()), None);
}

#[test]
fn what_another_view_flushed_says_nothing_of_this_one() {
    let job = job("csm-2l", 1, 2);
    let (mut of_one, mut of_other) = (releases(memory(&job), 0), releases(memory(&job), 1));
    let mut unit = memory(&job).lock(UnitId(7));
    unit.flushed_in(of_one());
    assert_eq!(unit.flushed_in(of_other()), None);
    assert_eq!(unit.flushed_in(of_one()), None);
}

#[test]
fn lists_of_views_are_apart_and_empty_when_they_are_taken() {
    let job = job("csm-2l", 1, 2);
    let memory = memory(&job);
    for unit in [9, 3, 9, 70, 3] {
        memory.list_dirty(ViewId(0), UnitId(unit));
        memory.list_notice(ViewId(1), UnitId(unit + 1));
    }
    assert!(!memory.view(ViewId(0)).has_nothing_dirty() && memory.view(ViewId(1)).has_nothing_dirty());
    assert!(memory.view(ViewId(0)).has_no_notices() && !memory.view(ViewId(1)).has_no_notices());
    let mut units = Vec::new();
    memory.take_dirty(ViewId(0)).each_portion(|portion| units.extend_from_slice(portion));
    assert_eq!(BTreeSet::from_iter(units), [3, 9, 70].into());
    assert!(memory.view(ViewId(0)).has_nothing_dirty());
}

#[test]
fn habits_and_neighbours_of_views_are_apart() {
    let job = job("csm-2l", 1, 2);
    let memory = memory(&job);
    let last = UnitId(memory.shape().pages as u32 - 1);
    for view in [0, 1] {
        memory.habit(ViewId(view), UnitId(0)).store(1 + u16::from(view), Ordering::Relaxed);
        memory.habit(ViewId(view), last).store(3 + u16::from(view), Ordering::Relaxed);
        memory.neighbours(ViewId(view))[0].store(5 + u64::from(view), Ordering::Relaxed);
    }
    let habit = |view, unit| memory.habit(ViewId(view), unit).load(Ordering::Relaxed);
    assert_eq!([habit(0, UnitId(0)), habit(1, UnitId(0)), habit(0, last), habit(1, last)], [1, 2, 3, 4]);
    assert_eq!([0, 1].map(|view| memory.neighbours(ViewId(view))[0].load(Ordering::Relaxed)), [5, 6]);
}

#[test]
fn each_slot_of_the_job_is_one_processor() {
    let job = job("csm-2l", 3, 2);
    let mut seen = HashSet::new();
    for processor in job.processors.iter().step_by(2) {
        let cluster = &processor.cluster;
        for slot in 0..cluster.mine().slots() {
            let who = cluster.processor_at(slot);
            assert_eq!(cluster.slot_of(who), (cluster.me, slot));
            assert!(seen.insert(who), "{who:?} twice");
        }
    }
    assert!((0..6).all(|number| seen.contains(&ProcessorId(number))), "the job's processors come first");
}

#[test]
fn threads_of_the_program_s_own_get_slots_until_none_is_left() {
    let job = job("csm-2l", 1, 1);
    let cluster = &job.processors[0].cluster;
    let taken: Vec<usize> = std::iter::from_fn(|| cluster.take_guest_slot()).collect();
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), taken.len());
    assert!(!taken.is_empty() && taken.iter().all(|slot| *slot > 0 && *slot < cluster.mine().slots() - 1));
    cluster.give_guest_slot(taken[3]);
    assert_eq!((cluster.take_guest_slot(), cluster.take_guest_slot()), (Some(taken[3]), None));
}

#[test]
fn diffs_are_kept_until_the_last_of_them_is_forgotten() {
    // Over shared memory no diff comes.
    let job = Small::new(made("tmk", Transport::Tcp, 2, 1));
    let memory = memory(&job);
    let keep =
        |store, index, bytes: &[u8]| memory.keep_diff(store, ME, index, 10 * index, bytes).expect("there is room");
    let numbers: Vec<u32> =
        (1..=5).map(|index| keep(Store::Kept, index, &vec![index as u8; 37 * index as usize])).collect();
    let came = keep(Store::Came, 9, b"of another");
    for (number, index) in numbers.iter().zip(1..) {
        let (head, bytes) = memory.diff(Store::Kept, *number);
        assert_eq!((head.index, head.stamp, head.from), (index, 10 * index, 0));
        assert_eq!(bytes, vec![index as u8; 37 * index as usize]);
    }
    let kept = memory.kept_bytes();
    assert!(kept >= 37 * 15);
    memory.forget_diffs(Store::Kept, 4);
    assert_eq!(memory.kept_bytes(), kept, "one is needed still");
    memory.forget_diffs(Store::Kept, 1);
    assert_eq!((memory.kept_bytes(), memory.diff(Store::Came, came).1), (0, &b"of another"[..]));
    assert_eq!(keep(Store::Kept, 6, &[6]), numbers[0], "the memory is used again");
}

#[test]
fn a_log_tells_the_units_of_each_interval_also_where_they_take_two_records() {
    let job = job("tmk", 2, 1);
    let memory = memory(&job);
    let writer = NodeId(1);
    let mut known = memory.known();
    known.log(writer, (1, 4), &[7, 9], true, false).expect("room");
    known.log(writer, (2, 6), &[1, 2, 3], true, true).expect("room");
    known.log(writer, (2, 6), &[8], false, false).expect("room");
    drop(known);
    let units = |index| -> Vec<(u32, u32, Vec<u32>)> {
        let of = |record: crate::sys::tmk::Record<'_>| {
            (record.index, record.stamp, record.units().map(|unit| unit.0).collect())
        };
        memory.interval(writer, index).map(of).collect()
    };
    assert_eq!(units(1), [(1, 4, vec![7, 9])]);
    assert_eq!(units(2), [(2, 6, vec![1, 2, 3]), (2, 6, vec![8])]);
}

#[test]
fn a_log_is_full_and_has_room_again_for_what_is_forgotten() {
    let job = job("tmk", 2, 1);
    let memory = memory(&job);
    let units: Vec<u32> = (0..1 << 20).collect();
    let mut known = memory.known();
    for index in 1..=3 {
        assert_eq!(known.log(ME, (index, index), &units, true, false), Ok(()), "interval {index}");
    }
    assert_eq!(known.log(ME, (4, 4), &units, true, false), Err(Full));
    assert!(memory.log_used(ME, 3) >= 75);
    known.forget(ME, 2, 3);
    assert_eq!(known.log(ME, (4, 4), &units, true, false), Ok(()));
    assert_eq!(memory.log_used(ME, 2), 50);
    let last = memory.interval(ME, 4).next().expect("a record");
    assert!(last.units().map(|unit| unit.0).eq(units), "also where it goes over the end of the ring");
}

#[test]
fn times_of_nodes_and_objects_are_apart() {
    let job = job("tmk", 3, 1);
    let mut known = memory(&job).known();
    known.knowledge(ME).seen[1] = 1;
    known.knowledge(ME).granted[1] = 2;
    known.knowledge(ME).known[1] = 3;
    known.at_barrier()[1] = 4;
    known.collected()[1] = 5;
    known.object(0)[1] = 6;
    known.object(1)[1] = 7;
    let knowledge = known.knowledge(ME);
    assert_eq!((knowledge.seen[1], knowledge.granted[1], knowledge.known[1]), (1, 2, 3));
    assert!(knowledge.told.iter().all(|told| *told == 0));
    assert_eq!((known.at_barrier()[1], known.collected()[1]), (4, 5));
    assert_eq!([0, 1, 2].map(|object| known.object(object)[1]), [6, 7, 0]);
}
