//! Fetching ahead: where read faults follow each other page by page, one fault opens several pages.
//!
//! A page fetched ahead is a read fault presented early; the protocols' tables know nothing else of it. What is saved is the fault
//! itself (the signal is three quarters of its time where nodes share memory), the system call for each page, and, over messages,
//! the waiting: the requests of a window go out together.
//!
//! **Which pages.** [`streams`] finds streams and how far to look ahead. What is fetched and then not used costs bytes, so [`history`]
//! decides too: which neighbours a view has read together before. Where these go on behind a stream, windows double and end with them.
//! Where the stream is on new ground, windows are a sixteenth of what it has read so far. If a stream stops short of pages that it
//! should have gone on to by this history, its last window is forgotten. [`nest::ahead`] says which pages are not fetched by a guess.
//!
//! **Why the mapping may be made when the unit's lock is given back.** A page of the window is in the sharing set and counted as mapped when
//! its nest is over; the run is mapped when all nests are. In between, whatever comes from other nodes only lists the
//! unit; it is an acquire of this view that takes the mapping away, under the view's `acquiring` lock, which is held here from before the
//! first nest until the run is mapped. It is tried, not waited for: a fault may come from a signal handler of a thread that
//! holds it. Then, and under protocols that revoke, the fault is served by itself. Under lazy release consistency every fault
//! needs that lock and nobody may sleep with it: there nothing is fetched ahead that has to be waited for. Releases do not need to be kept out:
//! opening a run never makes a page writable, and never writable pages less than the books say for longer than a fault.

mod history;
mod streams;

use std::cell::RefCell;

use finespun_job::switches::Prefetch;
use finespun_protocol::page::{Outcome, Time};
use finespun_types::{Access, Counter, UnitId};

use crate::cluster::Cluster;
use crate::nest::ahead::{Guess, Guessed, Tried};
use crate::sys::frames::Row;
use crate::{meter, misuse, nest, refresh, tmk, wait};
use history::History;
use streams::{Found, Streams, WINDOW_MAX};

/// Pages of a stream that do not count as known: a window may be this part of them.
const NEW_GROUND: u32 = 16;
/// On new ground the node's frames may not be there yet: so many are made at once, and mapped by the engine.
const POPULATED_MIN: u32 = 4;

thread_local! {
    /// The streams of this thread's loads.
    static STREAMS: RefCell<Streams> = const { RefCell::new(Streams::NONE) };
}

/// Does the job fetch ahead?
pub fn is_on(cluster: &Cluster) -> bool {
    let lazy_over_messages = tmk::runs(cluster) && cluster.mesh.is_some();
    cluster.job.switches.prefetch == Prefetch::Adaptive && nest::ahead::reads_ahead(cluster) && !lazy_over_messages
}

/// Pages that may be fetched behind a fault.
#[derive(Clone, Copy)]
struct Room {
    pages: u32,
    guess: Guess,
}

/// Serves a read fault together with those that will follow it, if it is one of a stream. False if it has not been served.
pub fn serve(cluster: &Cluster, unit: UnitId, since: Time) -> bool {
    STREAMS.with(|streams| match streams.try_borrow_mut() {
        Ok(mut streams) => serve_stream(cluster, &mut streams, unit, since),
        // A fault in a signal handler, while another fault of this thread is served, finds no streams.
        Err(_) => serve_stream(cluster, &mut { Streams::NONE }, unit, since),
    })
}

fn serve_stream(cluster: &Cluster, streams: &mut Streams, unit: UnitId, since: Time) -> bool {
    let found = streams.fault(unit.0, meter::slot(cluster).interval());
    let history = History::of(cluster.mine().neighbours(cluster.my_view()));
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
            (1..=opened).filter_map(page).for_each(|page| refresh::read(cluster, UnitId(page)));
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
    found.followed.clone().for_each(|page| refresh::read(cluster, UnitId(page)));
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
    let exclusive = pages > 0 && (is_long || nest::ahead::is_taken(cluster, unit));
    Room { pages, guess: Guess::New { exclusive } }
}

/// Serves the fault and opens up to `room.pages` behind it; returns how many are open there, side by side. `None` if the fault has
/// to be waited for and this may not be done here.
fn serve_window(cluster: &Cluster, unit: UnitId, since: Time, step: i32, room: Room) -> Option<u32> {
    let (mut left, mut asked) = (Few::NONE, Few::NONE);
    // The page that the program waits for is asked for first.
    match present(cluster, unit, since) {
        Some(true) => left.push(unit.0),
        Some(false) => {}
        None if tmk::runs(cluster) => return None,
        None => asked.push(unit.0),
    }
    let (mut open, mut row) = (0, Row::new());
    for ahead in 1..=room.pages {
        let Some(page) =
            unit.0.checked_add_signed(step * ahead as i32).filter(|page| (*page as usize) < cluster.shape.pages)
        else {
            break;
        };
        // Whose frames the engine has not mapped yet, as on new ground, nobody can ask for in advance.
        row.next = if ahead < room.pages && room.guess == Guess::Known { step } else { 0 };
        match try_ahead(cluster, Guessed { unit: UnitId(page), guess: room.guess }, &mut row, since) {
            Tried::Refused => break,
            Tried::WasOpen => {}
            Tried::Left => left.push(page),
            Tried::Asked => asked.push(page),
        }
        open += 1;
    }
    for &page in asked.as_slice() {
        if until_present(cluster, UnitId(page), since) {
            left.push(page);
        }
    }
    cluster.flush_messages();
    let ahead = left.as_slice().iter().filter(|&&page| page != unit.0).count();
    meter::count(cluster, Counter::PagesAhead, ahead as u64);
    open_runs(cluster, &mut left);
    Some(open)
}

fn try_ahead(cluster: &Cluster, guessed: Guessed, row: &mut Row, since: Time) -> Tried {
    let unit = guessed.unit;
    if !tmk::runs(cluster) {
        return nest::ahead::try_ahead(cluster, guessed, row, since);
    }
    if tmk::access(cluster, unit) != Access::None {
        return Tried::WasOpen;
    }
    match tmk::try_ahead(cluster, unit) {
        // Another thread of the view has asked for it.
        Tried::Asked => Tried::Refused,
        tried @ (Tried::Refused | Tried::WasOpen | Tried::Left) => tried,
    }
}

/// Presents a read fault once: whether the page is left to be opened; `None` if the answer is awaited.
fn present(cluster: &Cluster, unit: UnitId, since: Time) -> Option<bool> {
    if tmk::runs(cluster) {
        return match tmk::try_ahead(cluster, unit) {
            Tried::Left => Some(true),
            Tried::WasOpen => Some(false),
            Tried::Asked | Tried::Refused => None,
        };
    }
    match nest::present_leaving(cluster, unit, since) {
        (Outcome::Done | Outcome::Begun, is_left) => Some(is_left),
        (Outcome::Wait, _) => None,
    }
}

/// Presents a read fault until the page is there: whether it is left to be opened.
pub fn until_present(cluster: &Cluster, unit: UnitId, since: Time) -> bool {
    await_answer(cluster, || present(cluster, unit, since))
}

/// Looks until something is found; over messages it sleeps until it may be worth another look.
fn await_answer<T>(cluster: &Cluster, look: impl Fn() -> Option<T>) -> T {
    loop {
        let last = wait::last_event(cluster);
        if let Some(found) = look() {
            return found;
        }
        // Without messages the answer came inside the nest.
        if cluster.mesh.is_some() {
            cluster.flush_messages();
            wait::for_event(cluster, last);
        }
    }
}

fn open_runs(cluster: &Cluster, pages: &mut Few) {
    let (_, mapping) = cluster.view.as_ref().expect("only a process of the program has faults");
    let pages = &mut pages.pages[..pages.len];
    pages.sort_unstable();
    for run in pages.chunk_by(|a, b| a + 1 == *b) {
        if let Err(error) = mapping.map_read_run(run[0]..run[run.len() - 1] + 1) {
            misuse::mapping(cluster, UnitId(run[0]), Access::Read, &error);
        }
    }
}

/// A window's pages and the one before them.
struct Few {
    pages: [u32; WINDOW_MAX as usize + 1],
    len: usize,
}

impl Few {
    const NONE: Self = Self { pages: [0; WINDOW_MAX as usize + 1], len: 0 };

    fn push(&mut self, page: u32) {
        self.pages[self.len] = page;
        self.len += 1;
    }

    fn as_slice(&self) -> &[u32] {
        &self.pages[..self.len]
    }
}
