//! Waiting: who waits, polls; nobody spins without bound; who sleeps is woken by whoever changes the word.
//!
//! A waiter looks at its word, serves arriving messages meanwhile if nodes send any, and after a bounded time
//! announces that it sleeps, looks once more, and sleeps in the kernel on the word. A waker changes the word first and
//! then looks whether anybody sleeps. Both sides have a full fence between the two, so one of them sees the other.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use finespun_sys::clock;
use finespun_sys::fence;
use finespun_sys::futex::{self, Backoff, Wake};
use finespun_sys::process::thread_id;
use finespun_sys::signals::with_signals_let_in;
use finespun_types::{Counter, NodeId, ViewId};

use crate::messages::poll::poll;
use crate::node::cluster::Cluster;
use crate::node::meter;
use crate::sys::asleep;

/// Waits until `word` is no longer `old`. `sleepers` counts who sleeps on it. Handlers of the program run while the thread sleeps.
pub fn until_changed(cluster: &Cluster, word: &AtomicU32, old: u32, sleepers: &AtomicU32) {
    until_changed_for(cluster, word, old, sleepers, asleep::NOTHING);
}

/// The same, as the thread of a slot, which tells what it sleeps for: see [`asleep`].
pub fn until_changed_for(cluster: &Cluster, word: &AtomicU32, old: u32, sleepers: &AtomicU32, what: u64) {
    sleep_until_changed(cluster, word, old, sleepers, || {
        let slot = meter::slot_index().filter(|_| what != asleep::NOTHING);
        let asleep = slot.map(|slot| &cluster.slot(slot).asleep_for);
        asleep.iter().for_each(|asleep| asleep.begin(what, thread_id(), old));
        // The thread holds no lock of a unit or of a table here, so a fault in the handler can be served.
        let wake = with_signals_let_in(|| futex::wait(word, old, None));
        asleep.iter().for_each(|asleep| asleep.end());
        wake
    });
}

fn sleep_until_changed(cluster: &Cluster, word: &AtomicU32, old: u32, sleepers: &AtomicU32, sleep: impl Fn() -> Wake) {
    if word.load(Ordering::Acquire) != old {
        return;
    }
    let mut backoff = Backoff::new(cluster.spin_ticks);
    loop {
        poll(cluster);
        if word.load(Ordering::Acquire) != old {
            return;
        }
        if !backoff.spin() {
            break;
        }
    }
    while word.load(Ordering::Acquire) == old {
        cluster.flush_messages();
        sleepers.fetch_add(1, Ordering::SeqCst);
        fence::full();
        if word.load(Ordering::SeqCst) == old {
            meter::count(cluster, Counter::Sleeps, 1);
            sleep();
        }
        sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Looks again and again for as long as a waiter may, serving what arrives; `None` if `look` found nothing in that time.
pub fn spin_until<T>(cluster: &Cluster, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut backoff = Backoff::new(cluster.spin_ticks);
    while backoff.spin() {
        poll(cluster);
        let found = look();
        if found.is_some() {
            return found;
        }
    }
    None
}

/// As [`until_changed`] until a moment of the monotonic clock at the latest: false if the word was `old` still.
pub fn until_changed_before(
    cluster: &Cluster,
    word: &AtomicU32,
    old: u32,
    sleepers: &AtomicU32,
    deadline_ns: u64,
) -> bool {
    while word.load(Ordering::Acquire) == old {
        poll(cluster);
        cluster.flush_messages();
        let left = deadline_ns.saturating_sub(clock::now_ns());
        if left == 0 {
            return false;
        }
        sleepers.fetch_add(1, Ordering::SeqCst);
        fence::full();
        if word.load(Ordering::SeqCst) == old {
            meter::count(cluster, Counter::Sleeps, 1);
            with_signals_let_in(|| futex::wait(word, old, Some(Duration::from_nanos(left))));
        }
        sleepers.fetch_sub(1, Ordering::SeqCst);
    }
    true
}

/// After `word` was changed: wakes everybody who sleeps on it.
pub fn wake(cluster: &Cluster, word: &AtomicU32, sleepers: &AtomicU32) {
    fence::full();
    wake_sleepers(cluster, word, sleepers);
}

fn wake_sleepers(cluster: &Cluster, word: &AtomicU32, sleepers: &AtomicU32) {
    if sleepers.load(Ordering::SeqCst) > 0 {
        meter::count(cluster, Counter::Wakes, 1);
        futex::wake_all(word);
    }
}

/// The number of the node's last event, to be read before looking whether there is anything to wait for.
pub fn last_event(cluster: &Cluster) -> u32 {
    cluster.mine().node().event.load(Ordering::Acquire)
}

/// Waits for an event of the node after `last`: for an answer of the protocol, in the middle of a release, an acquire or a fault.
/// Handlers of the program do not run meanwhile, or a release would lose what they store (`finespun_protocol::cashmere::sync`).
pub fn for_event(cluster: &Cluster, last: u32) {
    let node = cluster.mine().node();
    let word = &node.event;
    sleep_until_changed(cluster, word, last, &node.event_sleepers, || futex::wait(word, last, None));
}

/// Lets the views of a node look again.
pub fn wake_views(cluster: &Cluster, node: NodeId) {
    let node = cluster.at(node).node();
    // Both sides' additions and looks are in one order of all (SeqCst), so no fence is needed between.
    node.event.fetch_add(1, Ordering::SeqCst);
    wake_sleepers(cluster, &node.event, &node.event_sleepers);
}

/// A unit was listed for a view whose mappings are revoked: its communication thread is to look.
pub fn wake_revoker(cluster: &Cluster, node: NodeId, view: ViewId) {
    let view = cluster.at(node).view(view);
    view.revocations.fetch_add(1, Ordering::SeqCst);
    wake(cluster, &view.revocations, &view.revoker_sleeps);
}

/// One flush of a view is complete.
pub fn flush_done(cluster: &Cluster, node: NodeId, view: ViewId) {
    cluster.at(node).view(view).outstanding.fetch_sub(1, Ordering::SeqCst);
}
