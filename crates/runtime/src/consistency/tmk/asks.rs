//! A fault, and whom it asks.

use std::sync::atomic::Ordering;

use finespun_engine::lazy::{self, Want};
use finespun_protocol::tmk::{Event, Outcome, Seen};
use finespun_types::{Access, NODES_MAX, NodeId, PAGE_BYTES, UnitId};

use super::copy::{self, Base, Hands, Then, VIEW, With, present, take};
use super::letters::{self, Lazy, count_message};
use crate::consistency::guesses::Tried;
use crate::consistency::mappings::Change;
use crate::messages::wait;
use crate::node::cluster::Cluster;
use crate::sys::frames::Page;

/// Room for a copy's writers.
const NO_WRITERS: [Seen; NODES_MAX] = [Seen { noticed: 0, applied: 0, coming: 0 }; NODES_MAX];

/// A load or store of this process's view faulted: returns when it may be repeated.
pub fn fault(cluster: &Cluster, unit: UnitId, write: bool) {
    until_done(cluster, unit, Event::Fault { write });
}

/// Do the node's faults wait, because all of its processors collect? What they would ask for may be forgotten just then.
fn holds_faults(cluster: &Cluster) -> bool {
    let collecting = cluster.mine().tmk().collecting.load(Ordering::SeqCst);
    collecting as usize >= cluster.shape.processors_per_node()
}

/// Presents a load that has not happened. No answer is awaited for a guess.
pub fn try_ahead(cluster: &Cluster, unit: UnitId) -> Tried {
    if copy::access(cluster, unit) == Access::None { read(cluster, unit) } else { Tried::WasOpen }
}

/// Presents a load, asking other nodes as the table says; the page is left to the caller to be opened. Refused where an answer would be
/// awaited, which must not be under the view's `acquiring` lock.
pub fn read(cluster: &Cluster, unit: UnitId) -> Tried {
    if holds_faults(cluster) {
        return Tried::Refused;
    }
    let mut writers = NO_WRITERS;
    loop {
        let mut hands = Hands::asking(Change::Together, &mut writers);
        let (outcome, then) = present(cluster, cluster.me, unit, Event::Fault { write: false }, &mut hands);
        match outcome {
            Outcome::Done if hands.is_wanted => return Tried::Wanted,
            Outcome::Done => return Tried::WasOpen,
            Outcome::Wait if ask(cluster, unit, then, &writers) => {}
            Outcome::Wait => return Tried::Refused,
        }
    }
}

/// Asks whom the copy's table says: true if the answer is there already.
fn ask(cluster: &Cluster, unit: UnitId, then: Then, writers: &[Seen; NODES_MAX]) -> bool {
    match then {
        Then::AskBase(to) => ask_base(cluster, unit, to),
        Then::AskDiffs => ask_diffs(cluster, unit, &writers[..cluster.shape.nodes]),
        Then::Nothing | Then::Diffs(..) | Then::Base | Then::NoBase(..) => false,
    }
}

/// Presents an event again and again until it is done, asking other nodes as it says.
pub fn until_done(cluster: &Cluster, unit: UnitId, event: Event<'_>) {
    let mut writers = NO_WRITERS;
    let is_fault = matches!(event, Event::Fault { .. });
    loop {
        let last = wait::last_event(cluster);
        let mut hands = Hands::asking(Change::Grow, &mut writers);
        let (outcome, then) = {
            // Not in the middle of another thread's acquire: a diff that is asked for must come with all that happened before, else
            // those would be applied after it. No thread that holds this waits for a fault.
            let _whole = cluster.mine().view(VIEW).acquiring.guard();
            if is_fault && holds_faults(cluster) {
                (Outcome::Wait, Then::Nothing)
            } else {
                present(cluster, cluster.me, unit, event, &mut hands)
            }
        };
        if outcome == Outcome::Done {
            return cluster.flush_messages();
        }
        if !ask(cluster, unit, then, &writers) {
            cluster.flush_messages();
            wait::for_event(cluster, last);
        }
    }
}

/// True if the answer is there already.
fn ask_base(cluster: &Cluster, unit: UnitId, to: NodeId) -> bool {
    if !cluster.reach.is_direct() {
        letters::send(cluster, to, unit, Lazy::AskBase, [&[], &[]]);
        return false;
    }
    let mut base = Base { page: [0; PAGE_BYTES], applied: [0; NODES_MAX] };
    let mut hands = Hands { base: Some(&mut base), ..Hands::of(With::Nothing, Change::Shrink) };
    let (_, then) = present(cluster, to, unit, Event::AskBase { from: cluster.me }, &mut hands);
    count_message(cluster, 0);
    match then {
        Then::NoBase(last, stamp) => {
            count_message(cluster, 0);
            take(cluster, unit, Event::NoBase { last, stamp }, With::Nothing);
        }
        Then::Nothing | Then::AskBase(_) | Then::AskDiffs | Then::Diffs(..) | Then::Base => {
            let applied = &base.applied[..cluster.shape.nodes];
            count_message(cluster, PAGE_BYTES + size_of_val(applied));
            take(cluster, unit, Event::Base { applied }, With::Page(Page::at(base.page.as_ptr())));
        }
    }
    true
}

/// Likewise.
fn ask_diffs(cluster: &Cluster, unit: UnitId, writers: &[Seen]) -> bool {
    if !cluster.reach.is_direct() {
        for Want { writer, after, upto } in lazy::wants(writers) {
            letters::send(cluster, writer, unit, Lazy::AskDiffs { after, upto }, [&[], &[]]);
        }
        return false;
    }
    let mut found = [(0, 0); NODES_MAX];
    for Want { writer, after, upto } in lazy::wants(writers) {
        let event = Event::AskDiffs { from: cluster.me, after, upto };
        let hands = &mut Hands::of(With::Nothing, Change::Shrink);
        let (_, then) = present(cluster, writer, unit, event, hands);
        if let Then::Diffs(first, last) = then {
            found[usize::from(writer.0)] = (first, last);
        }
        count_message(cluster, 0);
        count_message(cluster, 0);
    }
    for Want { writer, .. } in lazy::wants(writers) {
        let event = Event::Diffs { from: writer, upto: found[usize::from(writer.0)].1 };
        take(cluster, unit, event, With::Diffs(&found[..writers.len()]));
    }
    true
}
