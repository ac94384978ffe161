//! Fetching ahead: where read faults follow each other page by page, one fault opens several pages.
//!
//! A page fetched ahead is a read fault presented early; the protocols' tables know nothing else of it. What is saved is the fault
//! itself (the signal is three quarters of its time where nodes share memory), the system call for each page, and, over messages,
//! the waiting: the requests of a window go out together.
//!
//! **Which pages.** [`super::streams`] finds streams and how far to look ahead; [`super::history`] says which neighbours a view has read together
//! before; [`super::windows`] decides by both. What is fetched and then not used costs bytes, so [`crate::consistency::nest::early`] says which pages are not fetched by a guess.
//!
//! **The lock.** The view's `acquiring` lock is held from before the first transaction until the run is mapped ([`crate::consistency::mappings`] says why).
//! It is tried, not waited for: a fault may come from a signal handler of a thread that holds it. Then, and under protocols that revoke, the
//! fault is served by itself. Under lazy release consistency every fault needs that lock and no thread may sleep with it: there nothing is
//! fetched ahead that has to be waited for.

use std::cell::RefCell;

use finespun_job::switches::Prefetch;
use finespun_protocol::page::Time;
use finespun_types::{Counter, UnitId};

use super::history::History;
use super::streams::{Streams, WINDOW_MAX};
use super::windows::{self, Window};
use crate::consistency::early;
use crate::consistency::guesses::{Guess, Guessed, Tried};
use crate::consistency::mappings::Opening;
use crate::node::cluster::Cluster;
use crate::node::meter;
use crate::sys::frames::Row;

/// A window and the page before it.
const SERVED_MAX: usize = WINDOW_MAX as usize + 1;
thread_local! {
    /// The streams of this thread's loads.
    static STREAMS: RefCell<Streams> = const { RefCell::new(Streams::NONE) };
}

/// Does the job fetch ahead?
pub fn is_on(cluster: &Cluster) -> bool {
    cluster.job.switches.prefetch == Prefetch::Adaptive && early::reads_ahead(cluster)
}

/// Serves a read fault together with those that will follow it, if it is one of a stream. False if it has not been served. `reads` hears of pages
/// that the program reads beside this one.
pub fn serve(cluster: &Cluster, unit: UnitId, since: Time, reads: impl Fn(UnitId)) -> bool {
    STREAMS.with(|streams| match streams.try_borrow_mut() {
        Ok(mut streams) => serve_stream(cluster, &mut streams, (unit, since), reads),
        // A fault in a signal handler, while another fault of this thread is served, finds no streams.
        Err(_) => serve_stream(cluster, &mut { Streams::NONE }, (unit, since), reads),
    })
}

fn serve_stream(
    cluster: &Cluster,
    streams: &mut Streams,
    (unit, since): (UnitId, Time),
    reads: impl Fn(UnitId),
) -> bool {
    let found = streams.fault(unit.0, meter::slot(cluster).interval());
    let history = History::of(cluster.mine().neighbours(cluster.my_view()));
    meter::count(cluster, Counter::PagesAheadFollowed, found.followed.len() as u64);
    found.followed.clone().for_each(|page| reads(UnitId(page)));
    let was_known = windows::learn(history, unit.0, &found);
    let is_taken = || early::is_taken(cluster, unit);
    let window = windows::behind(history, unit.0, (&found, was_known), cluster.reach.sends_messages(), is_taken);
    let view = cluster.mine().view(cluster.my_view());
    let alone = (window.pages > 0).then(|| view.acquiring.try_guard()).flatten();
    if alone.is_some() && window.populates {
        cluster.mine().populate(window.all(cluster.shape.pages as u32));
    }
    let opened = alone.and_then(|_alone| serve_window(cluster, unit, since, &window));
    if let Some(opened) = opened {
        streams.opened(&found, opened);
        if window.guess == Guess::Known {
            // By history they are read with this one: what fetches them ahead each time would fetch them no more often by refreshing.
            let page = |behind: u32| window.page(behind, cluster.shape.pages as u32);
            (1..=opened).filter_map(page).for_each(|page| reads(UnitId(page)));
        }
    }
    opened.is_some()
}

/// Serves the fault and opens the pages of the window behind it; returns how many are open there, side by side. `None` if the fault has
/// to be waited for and this may not be done here.
fn serve_window(cluster: &Cluster, unit: UnitId, since: Time, window: &Window) -> Option<u32> {
    let mut opening = Opening::<SERVED_MAX>::new(cluster);
    let (mut asked, mut asked_len) = ([UnitId(0); SERVED_MAX], 0);
    let mut ask = |unit| {
        asked[asked_len] = unit;
        asked_len += 1;
    };
    // The page that the program waits for is asked for first.
    match early::read(cluster, unit, since) {
        Tried::Refused => return None,
        Tried::WasOpen => {}
        Tried::Wanted => opening.add(unit),
        Tried::Asked => ask(unit),
    }
    let (mut open, mut row) = (0, Row::new());
    for behind in 1..=window.pages {
        let Some(page) = window.page(behind, cluster.shape.pages as u32).map(UnitId) else { break };
        row.next = window.next(behind);
        match early::try_ahead(cluster, Guessed { unit: page, guess: window.guess }, &mut row, since) {
            // The stream ends here for the time being.
            Tried::Refused => break,
            Tried::WasOpen => {}
            Tried::Wanted => opening.add(page),
            Tried::Asked => ask(page),
        }
        open += 1;
    }
    for &page in &asked[..asked_len] {
        if early::until_read(cluster, page, since) {
            opening.add(page);
        }
    }
    cluster.flush_messages();
    let ahead = opening.units().filter(|page| *page != unit).count();
    meter::count(cluster, Counter::PagesAhead, ahead as u64);
    opening.open();
    Some(open)
}
