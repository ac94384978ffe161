//! Fetching ahead: where read faults follow each other page by page, one fault opens several pages.
//!
//! A page fetched ahead is a read fault presented early; the protocols' tables know nothing else of it. What is saved is the fault
//! itself (the signal is three quarters of its time where nodes share memory), the system call for each page, and, over messages,
//! the waiting: the requests of a window go out together.
//!
//! **Which pages.** [`super::streams`] finds streams and how far to look ahead. What is fetched and then not used costs bytes, so
//! [`super::history`] decides too: which neighbours a view has read together before. Where these go on behind a stream, windows double and
//! end with them. Where the stream is on new ground, windows are a sixteenth of what it has read so far. If a stream stops short of pages
//! that it should have gone on to by this history, its last window is forgotten. [`early`] says which pages are not fetched by a guess.
//!
//! **The lock.** The view's `acquiring` lock is held from before the first transaction until the run is mapped ([`crate::mappings`] says why).
//! It is tried, not waited for: a fault may come from a signal handler of a thread that holds it. Then, and under protocols that revoke, the
//! fault is served by itself. Under lazy release consistency every fault needs that lock and no thread may sleep with it: there nothing is
//! fetched ahead that has to be waited for.

use std::cell::RefCell;

use finespun_job::switches::Prefetch;
use finespun_protocol::page::Time;
use finespun_types::{Counter, UnitId};

use super::history::History;
use super::streams::{Found, Streams, WINDOW_MAX};
use crate::cluster::Cluster;
use crate::mappings::Opening;
use crate::meter;
use crate::nest::early::{self, Guess, Guessed, Tried};
use crate::sys::frames::Row;

/// Pages of a stream that do not count as known: a window may be this part of them.
const NEW_GROUND: u32 = 16;
/// A window and the page before it.
const SERVED_MAX: usize = WINDOW_MAX as usize + 1;
/// On new ground the node's frames may not be there yet: so many are made at once, and mapped by the engine.
const POPULATED_MIN: u32 = 4;

thread_local! {
    /// The streams of this thread's loads.
    static STREAMS: RefCell<Streams> = const { RefCell::new(Streams::NONE) };
}

/// Does the job fetch ahead?
pub fn is_on(cluster: &Cluster) -> bool {
    cluster.job.switches.prefetch == Prefetch::Adaptive && early::reads_ahead(cluster)
}

/// Pages that may be fetched behind a fault.
#[derive(Clone, Copy)]
struct Room {
    pages: u32,
    guess: Guess,
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
    found.followed.clone().for_each(|page| reads(UnitId(page)));
    let was_known = learn(cluster, history, unit, &found);
    let room = look_ahead(cluster, history, unit, &found, was_known);
    let view = cluster.mine().view(cluster.my_view());
    let alone = (room.pages > 0).then(|| view.acquiring.try_guard()).flatten();
    if alone.is_some() && found.run >= NEW_GROUND * POPULATED_MIN && room.guess != Guess::Known {
        let (a, b) = (unit.0, unit.0.saturating_add_signed(found.step * room.pages as i32));
        cluster.mine().populate(a.min(b)..a.max(b).saturating_add(1).min(cluster.shape.pages as u32));
    }
    let opened = alone.and_then(|_alone| serve_window(cluster, unit, since, found.step, room));
    if let Some(opened) = opened {
        streams.opened(&found, opened);
        if room.guess == Guess::Known {
            // By history they are read with this one: what fetches them ahead each time would fetch them no more often by refreshing.
            let page = |ahead: u32| unit.0.checked_add_signed(found.step * ahead as i32);
            (1..=opened).filter_map(page).for_each(|page| reads(UnitId(page)));
        }
    }
    opened.is_some()
}

/// Remembers what the fault tells of pages. Was it known that the stream would come here?
fn learn(cluster: &Cluster, history: History<'_>, unit: UnitId, found: &Found) -> bool {
    if let Some(lost) = &found.lost {
        let (end, step) = lost.end();
        if history.goes_on(end, step, 1) > 0 {
            history.join(lost.last, lost.next, false);
        }
    }
    meter::count(cluster, Counter::PagesAheadFollowed, found.followed.len() as u64);
    let Some((from, together)) = found.from else { return false };
    let pages = from.abs_diff(unit.0);
    let was_known = history.goes_on(from, found.step, pages) == pages;
    if !was_known || !together {
        let before = unit.0.saturating_add_signed(-found.step);
        history.join(from, before, true);
        history.join(before, unit.0, together);
    }
    was_known
}

/// How many pages may be fetched behind the fault?
fn look_ahead(cluster: &Cluster, history: History<'_>, unit: UnitId, found: &Found, was_known: bool) -> Room {
    let known = history.goes_on(unit.0, found.step, found.window);
    if known > 0 || was_known {
        return Room { pages: known, guess: Guess::Known };
    }
    let pages = found.window.min(found.run / NEW_GROUND);
    let is_long = cluster.mesh.is_some() && found.run >= NEW_GROUND * POPULATED_MIN;
    let exclusive = pages > 0 && (is_long || early::is_taken(cluster, unit));
    Room { pages, guess: Guess::New { exclusive } }
}

/// Serves the fault and opens up to `room.pages` behind it; returns how many are open there, side by side. `None` if the fault has
/// to be waited for and this may not be done here.
fn serve_window(cluster: &Cluster, unit: UnitId, since: Time, step: i32, room: Room) -> Option<u32> {
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
    for ahead in 1..=room.pages {
        let page = unit.0.checked_add_signed(step * ahead as i32).filter(|page| (*page as usize) < cluster.shape.pages);
        let Some(page) = page.map(UnitId) else { break };
        // Whose frames the engine has not mapped yet, as on new ground, nobody can ask for in advance.
        row.next = if ahead < room.pages && room.guess == Guess::Known { step } else { 0 };
        match early::try_ahead(cluster, Guessed { unit: page, guess: room.guess }, &mut row, since) {
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
