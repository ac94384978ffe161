//! What the runtime guesses about a program. A guess decides when an event is presented, and never what comes of it: the tables know of none.
//!
//! ```text
//!   faults       fault seen     --> prefetch (streams, history, windows): the fault is served with those that will follow it
//!                page opened    --> refresh (habit): the program reads the page
//!   consistency  notices seen   --> refresh: an acquire fetches pages anew, instead of closing them
//!                release seen   --> rewrites: a release leaves rights to write
//! ```
//!
//! [`crate::consistency::early`] presents what prefetch and refresh guess.

mod habit;
mod history;
mod prefetch;
mod refresh;
mod rewrites;
mod streams;
mod windows;

use finespun_protocol::page::Time;
use finespun_types::UnitId;

use crate::consistency::nest::Here;
use crate::node::cluster::Cluster;
use crate::node::engine::Tables;
use refresh::Refresh;
pub use rewrites::Rewrites;

/// A page fault was seen. True if it is served, with pages that will be wanted.
pub fn fault_seen(cluster: &Cluster, unit: UnitId, writes: bool, since: Time) -> bool {
    if writes {
        return false;
    }
    page_opened(cluster, unit);
    prefetch::is_on(cluster) && prefetch::serve(cluster, unit, since, |page| page_opened(cluster, page))
}

/// A page was opened for a load, or a page that was open is known to have been loaded.
fn page_opened(cluster: &Cluster, unit: UnitId) {
    refresh::read(cluster, unit);
}

/// An acquire obeys notices. Only under the view's `acquiring` lock.
pub fn notices_seen<'a>(here: Here<'a>, tables: Tables, since: Time) -> Refresh<'a> {
    Refresh::begin(here, tables, since)
}

/// A release flushes pages.
pub const fn release_seen() -> Rewrites {
    Rewrites::new()
}
