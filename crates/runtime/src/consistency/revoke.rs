//! The communication thread of a process under a protocol that takes mappings away while programs compute
//! ([`finespun_protocol::page::Protocol::REVOKES`]): only the process itself can change its mapping, and its own threads are busy
//! [Strings §2.4].
//!
//! Whoever runs the table lists the unit for the view and wakes this thread, which presents the event that takes the mapping
//! away. It runs nothing of the program, touches no shared page, and has all signals blocked.
//!
//! **Holding on.** A page that was mapped a moment ago is left alone for a moment ([`HOLD_NS`]): the thread whose fault asked for
//! it has to repeat its instruction, or it might lose the page each time before. That is what Mirage does against
//! ping-pong [Strings §1], with a shorter time. The thread yields meanwhile, so that a waiting thread can run on a loaded
//! machine; nobody spins beyond that time.

use std::sync::atomic::Ordering;

use finespun_protocol::page::Demand;
use finespun_sys::calls;
use finespun_sys::clock::ticks;
use finespun_sys::process::{SignalsBlocked, thread_id};
use finespun_types::{Counter, UnitId};

use crate::consistency::mappings::Change;
use crate::consistency::nest;
use crate::messages::{closing, wait};
use crate::node::cluster::Cluster;
use crate::node::engine::Tables;
use crate::node::meter;

/// How long a page stays at least. Repeating an instruction takes less than a microsecond where the thread has a core; the rest is
/// for a signal's return and for a core that is shared.
pub const HOLD_NS: u64 = 20_000;

/// Starts the communication thread of this process.
///
/// # Errors
/// The kernel's, when no thread can be made.
pub fn start(cluster: &'static Cluster, tables: Tables) -> std::io::Result<()> {
    // The new thread inherits the mask, and never lets a signal in.
    let _signals = SignalsBlocked::new();
    let slot = meter::slot_index();
    std::thread::Builder::new().name("fsp-comm".to_owned()).spawn(move || {
        if let Some(slot) = slot {
            meter::become_slot(slot);
        }
        serve(cluster, tables);
    })?;
    Ok(())
}

/// For the life of the process: others may need its mappings gone as long as it has any.
fn serve(cluster: &Cluster, tables: Tables) {
    let (node, id) = (cluster.mine(), cluster.my_view());
    let view = node.view(id);
    view.helpers[0].store(thread_id(), Ordering::Relaxed);
    loop {
        let last = view.revocations.load(Ordering::Acquire);
        let Some(busy) = closing::enter() else { return };
        let mut taken = node.take_notices(id);
        if taken.is_empty() {
            drop(busy);
            wait::until_changed(cluster, &view.revocations, last, &view.revoker_sleeps);
            continue;
        }
        hold(cluster);
        taken.each_portion(|units| {
            for &mut unit in units {
                meter::count(cluster, Counter::Revocations, 1);
                nest::present(
                    (cluster, meter::slot(cluster)),
                    tables,
                    UnitId(unit),
                    Demand::Invalidate { view: id },
                    Change::Shrink,
                );
            }
        });
        cluster.flush_messages();
        meter::collect_calls(cluster);
    }
}

/// Waits until what was mapped last has been so for long enough.
fn hold(cluster: &Cluster) {
    let view = cluster.mine().view(cluster.my_view());
    let began = ticks();
    loop {
        let now = ticks();
        let since = now.wrapping_sub(view.mapped_ticks.load(Ordering::Relaxed));
        // Not longer than the time, however often the program faults meanwhile.
        if since >= cluster.hold_ticks || now.wrapping_sub(began) >= cluster.hold_ticks {
            return;
        }
        calls::one();
        std::thread::yield_now();
    }
}
