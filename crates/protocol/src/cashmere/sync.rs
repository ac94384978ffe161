//! Acquire and release: the steps around the tables [Cashmere05 §2.1]. Every driver takes them in this order.
//!
//! **Release** of a view (unlock, arrival at a barrier, setting a flag, ending a thread):
//!
//! 1. Tick the clock: the release begins *now*. Take the view's dirty list, whole, and leave it empty.
//! 2. Present [`Event::Flush`](crate::page::Event::Flush) for each unit of it. `Wait` means: another flush or a fetch of that
//!    unit is under way; keep the unit and present it again when the node was woken.
//! 3. Wait until every flush that `Begun` announced its [`Action::FlushDone`](crate::page::Action::FlushDone): the home has
//!    the diff, and every sharer has the notice on its lists.
//! 4. Only now tell anybody: give the lock away, arrive at the barrier.
//!
//! **Acquire** (a lock granted, a barrier passed, a flag seen, a thread started or joined):
//!
//! 1. Tick the clock. Take the view's list of write notices, whole, and leave it empty.
//! 2. Present [`Event::Invalidate`](crate::page::Event::Invalidate) for each unit of it.
//!
//! A view's releases exclude each other, and so do its acquires: a second thread of the view must not find the list
//! empty and go on while the first is still working through it.
//!
//! Why a notice is never late: the releaser tells nobody before step 4, and by then the notice is on the acquirer's
//! list. Why a diff is never late: the notice is sent after the home applied the diff, and an acquirer that drops its
//! mapping fetches from the home.
//!
//! No signal handler of the program runs in the middle of a release or an acquire, not even while it waits. If another view flushes a unit after
//! step 1 of a release, step 2 skips that unit. If a handler stored to the unit in between, the store would be lost. A handler runs while its thread
//! waits for a lock, a barrier or a flag: after step 4 of the release, and before step 1 of the acquire.

use super::Time;

/// The start of a release, for [`Event::Flush`](crate::page::Event::Flush).
///
/// A flush that another view of the node began since then covers this view's stores, as long as the view's only
/// thread is the one that releases, and runs no signal handler meanwhile. In a view with several threads another of them may have stored after that flush,
/// so nothing may be skipped: the stores would lose their place on the dirty list.
#[must_use]
pub const fn release_began(now: Time, several_threads: bool) -> Time {
    if several_threads { Time::MAX } else { now }
}
