//! What a processor asks of the tables at another node, or of its own, and the answers. A processor waits in its own slot; whoever runs the
//! table writes the answer there and wakes it.

use std::sync::atomic::Ordering;

use finespun_engine::objects::Mailbox;
use finespun_errors::Code;
use finespun_types::{NodeId, ProcessorId};

use crate::consistency::along;
use crate::messages::wait;
use crate::messages::wire::{Reply, Request};
use crate::node::carriers;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::sys::asleep;
use crate::sys::slot::Slot;

/// Makes the slot ready for one answer.
pub fn expect_answer(slot: &Slot) {
    slot.granted.store(0, Ordering::Relaxed);
}

/// Waits for the answer, that of an object or of the thread table: see [`crate::sys::asleep`].
pub fn await_answer(cluster: &Cluster, slot: &Slot, from: u64) -> Result<(u64, u64), Failure> {
    wait::until_changed_for(cluster, &slot.granted, 0, &slot.asleep, from);
    let status = slot.status.load(Ordering::Relaxed);
    if status == 0 {
        return Ok((slot.value.load(Ordering::Relaxed), slot.extra.load(Ordering::Relaxed)));
    }
    let code = Code::ALL.iter().copied().find(|code| *code as u32 == status).unwrap_or(Code::Bug);
    Err(Failure { code, what: slot.text.read() })
}

/// Sends a request to a node and waits for the answer.
pub fn ask(cluster: &Cluster, slot: &Slot, to: NodeId, request: Request) -> Result<(u64, u64), Failure> {
    let from = match request {
        Request::Object { event, .. } => event.object(),
        Request::Thread { .. } => asleep::THREADS,
        Request::Migratory { .. } | Request::Start { .. } | Request::Build { .. } => asleep::NOTHING,
        Request::Stop | Request::Heap { .. } | Request::Touched { .. } => asleep::NOTHING,
    };
    expect_answer(slot);
    along::send_request(cluster, to, request);
    cluster.mesh().flush();
    await_answer(cluster, slot, from)
}

/// Gives a processor of the job its answer.
pub fn answer(cluster: &Cluster, who: ProcessorId, result: Result<(u64, u64), Failure>) {
    answer_about(cluster, (NodeId(0), carriers::NOTHING), who, result);
}

/// The same, from the heap or the threads at `keeper`: with what their releasers knew.
pub fn answer_about(cluster: &Cluster, keeper: (NodeId, u64), who: ProcessorId, result: Result<(u64, u64), Failure>) {
    let mailbox = Mailbox::Answer;
    match result {
        Ok((value, extra)) => deliver(cluster, keeper, who, Reply { mailbox, status: 0, value, extra }, ""),
        Err(Failure { code, what }) => {
            deliver(cluster, keeper, who, Reply { mailbox, status: code as u16, value: 0, extra: 0 }, &what);
        }
    }
}

/// Brings a reply to a processor, into its mailbox or by a message; `text` words an error.
pub fn deliver(cluster: &Cluster, (keeper, about): (NodeId, u64), who: ProcessorId, reply: Reply, text: &str) {
    let (node, _) = cluster.slot_of(who);
    if cluster.reach.runs_tables_of(node) {
        along::granted(cluster, keeper, about, node);
        answer_here(cluster, who, reply, text.as_bytes());
    } else {
        along::send_reply(cluster, node, who, reply, about, text.as_bytes());
    }
}

/// Gives a processor whose node's memory is mapped its answer.
pub fn answer_here(cluster: &Cluster, who: ProcessorId, reply: Reply, text: &[u8]) {
    let (node, index) = cluster.slot_of(who);
    let slot = cluster.at(node).slot(index);
    if reply.mailbox == Mailbox::Signal {
        slot.signalled.store(1, Ordering::SeqCst);
        return wait::wake(cluster, &slot.signalled, &slot.signal_sleepers);
    }
    slot.value.store(reply.value, Ordering::Relaxed);
    slot.extra.store(reply.extra, Ordering::Relaxed);
    slot.status.store(u32::from(reply.status), Ordering::Relaxed);
    if reply.status != 0 {
        slot.text.write(text);
    }
    slot.granted.store(1, Ordering::SeqCst);
    wait::wake(cluster, &slot.granted, &slot.asleep);
}
