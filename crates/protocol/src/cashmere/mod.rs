//! `csm-2l`: Cashmere's two-level protocol [Cashmere05 §2.1], home-based and moderately lazy release consistency.
//!
//! Two levels: inside a node the hardware keeps the frame coherent, and all views of the node share it; between nodes
//! this protocol does, and only there does it cost anything. Three roles:
//!
//! * every node runs one [`Unit`] for each unit: the node's copy, and what its views may do with it (`requester.rs`);
//! * the unit's home also runs one [`Directory`]: the sharing set, or the exclusive owner (`home.rs`). The home's frame
//!   is the master copy, so the home needs neither fetches nor diffs, and a twin only to see whether
//!   a view that kept its right has written;
//! * where the address does not fix the home, the unit's manager runs one [`Homes`] entry: first touch (`home.rs`).
//!
//! Acquire and release, the steps around these tables, are in `sync.rs`; what must always hold, in `invariants.rs`.
//!
//! ```text
//!  requester                       home                      owner               other sharers
//!     | -- Fetch -------------------> |                         |                        |
//!     |                               | -- Break -------------> |  exclusive: snapshot becomes its twin, its
//!     |                               | <- BreakReply(page) --- |  writers' dirty lists get the unit
//!     | <- Grant(page) -------------- |                         |                        |
//!     |                               |                         |                        |
//!     | -- Upgrade -----------------> |   only sharer? then exclusive mode               |
//!     | <- UpgradeReply ------------- |                         |                        |
//!     |                               |                         |                        |
//!     | -- Flush(diff) -------------> |   at a release          |                        |
//!     | <- FlushAck(sharing set) ---- |                         |                        |
//!     | -- Notice ---------------------------------------------------------------------> |  listed; obeyed at
//!     | <- NoticeAck ------------------------------------------------------------------- |  the next acquire
//!     | -- Leave -------------------> |   after the last view dropped its mapping        |
//! ```
//!
//! **Two forms, one table.** In the form `None` an action `Send` is a message, and nodes answer when they get to it.
//! In the form `DMS` the sender runs the receiver's table itself, on the receiver's memory: directory, diffs and
//! notices are written directly, as the paper's remote writes do [Cashmere05 §2.3.1.1], and acknowledgements cost
//! nothing because they are returns. Locks are taken from requester to home to owner. A notice, and its acknowledgement,
//! go between equals: the driver puts each aside until it holds no lock, for two releasers that notify each other would
//! block each other (the checker's `AckUnderLock`).
//!
//! **Channel assumption**: messages from one node to another arrive in the order sent, none is lost. Direct execution
//! keeps it by running a handler under the unit's lock (ARCHITECTURE.md, "Locks"). The checker shows what breaks without.
//!
//! **Where we differ from the paper**, and why:
//!
//! * The owner of an exclusive unit keeps its write mappings when another node asks. The paper downgrades the processor
//!   that answers; here anyone may answer on the node's behalf, for nobody can change another process's mapping. So
//!   *all* the node's writers get the paper's no-longer-exclusive notice: the unit enters their dirty lists.
//! * The directory remembers which sharers are [`Directory::stale`]. A node whose copy misses another's flush must not
//!   become exclusive by an upgrade, for its frame would then be taken for the master.
//! * A write to a unit that others share asks nobody: the node knows from its last answer that it is not alone, and
//!   away from home that hint can only be too pessimistic. The home's own copy hears when the last other sharer leaves, and then
//!   asks once, which costs no message.
//! * A view may keep its right to write from one release to the next ([`Event::Flush`]): the twin is then refreshed with what
//!   the diff tells, and the next store costs no fault. The paper's page faults anew in every interval.
//! * The home is asked for a sharing set by a message of the node to itself, so that home and others run the same rows.

pub mod broadcast;
mod home;
pub mod invariants;
pub mod migration;
mod requester;
pub mod sync;
pub mod variants;
mod vocabulary;

pub use home::{Directory, Homes};
pub use requester::Unit;
pub use vocabulary::{Action, Actions, Event, Impossible, Mode, Msg, Phase, Step};

use finespun_types::{Access, NodeId, ViewId};

use crate::page::{self, Ahead, Protocol};
pub use crate::page::{Contents, Outcome, Place, Time};

/// The family's tables, for drivers that run any protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cashmere {}

impl Protocol for Cashmere {
    type Msg = Msg;
    type Unit = Unit;
    type Directory = Directory;
    type Manager = Homes;
    type Impossible = Impossible;
    const KEEPS: bool = true;
    const READS_AHEAD: bool = true;

    fn on_unit(
        unit: &mut Unit,
        place: Place,
        now: Time,
        event: Event,
        out: &mut Actions,
    ) -> Result<Outcome, Impossible> {
        unit.on(place, now, event, out)
    }

    fn on_directory(
        directory: &mut Directory,
        home: NodeId,
        from: NodeId,
        msg: Msg,
        out: &mut Actions,
    ) -> Result<Outcome, Impossible> {
        directory.on(home, from, msg, out)
    }

    fn on_manager(homes: &mut Homes, from: NodeId, msg: Msg, out: &mut Actions) -> Result<Outcome, Impossible> {
        homes.on(from, msg, out)
    }

    fn home(unit: &Unit) -> Option<NodeId> {
        unit.home()
    }

    fn managed_home(manager: &Self::Manager) -> Option<NodeId> {
        manager.home()
    }

    fn access(unit: &Unit, view: ViewId) -> Access {
        page::access(unit.mapped, unit.writers, view)
    }

    fn ahead(unit: &Unit, place: Place, view: ViewId) -> Ahead {
        unit.ahead(place, view)
    }

    fn is_read(directory: &Directory) -> bool {
        directory.owner().is_none() && !directory.sharers.is_empty()
    }

    fn is_exclusive(directory: &Directory) -> bool {
        directory.phase == Phase::Owned
    }
}
