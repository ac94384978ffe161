//! `strings-sc`: sequential consistency by invalidation, single writer [Strings §2.3], after Li and Hudak's shared virtual
//! memory, which the paper builds on, with a directory at the home.
//!
//! At any time a unit has either one owner, which may write it, or any number of readers. Before a node may write, every
//! other copy is gone; so a load returns the last store there was, races or not, and releases and acquires have nothing to do.
//! Roles: every node runs one [`Unit`] for each unit (`copy.rs`), the unit's home one [`Directory`] (`home.rs`), its manager one
//! [`FirstTouch`]. The owner is the last writer, and stays it until somebody asks.
//!
//! ```text
//!  requester                    home                        owner, or readers
//!     | -- Fetch { write } ------> |                              |
//!     |                            | -- Recall { write } -------> |  an owner: its writers' (write: all) mappings go,
//!     |                            | <- RecallReply(page) ------- |  then the page, which nobody can change any more
//!     |                            |                              |
//!     |                            | -- Invalidate -------------> |  readers, for a writer: their mappings go
//!     |                            | <- InvalidateAck ----------- |
//!     | <- Grant { write }(page) - |  the page if the requester lacks it
//! ```
//!
//! The home serves one request at a time; others wait in its entry: all readers together, writers one by one, the two kinds in
//! turn.
//!
//! **Mappings are taken away while their programs compute.** Only a process itself can change its mapping, so each has a
//! communication thread [Strings §2.4]. The table lists the unit for the views concerned ([`Action::ListNotice`]), their
//! communication threads present [`Event::Invalidate`] at once ([`Protocol::REVOKES`]), and when the last has done so the reply
//! goes out.
//!
//! **Progress.** A page that was granted is held until the views whose faults asked for it have it mapped
//! ([`Unit::awaited`]): a request that comes earlier waits. The driver adds a moment for the faulting instruction to be
//! repeated; holding on to a fresh page against ping-pong is Mirage's idea [Strings §1]. So each transfer serves somebody.
//!
//! **Channel assumption**: what goes from the home to a node arrives in the order sent. In direct form the home's messages are
//! executed under the lock of its entry, and what goes to the home is put aside until the sender holds no lock
//! ([`Message::is_between_equals`](crate::page::Message::is_between_equals)): locks are taken from the home outwards.
//! So a node's request may overtake its own
//! acknowledgement, which does no harm: the home looks at it when the acknowledgement is there.

mod copy;
mod home;
pub mod invariants;
mod vocabulary;

pub use copy::Unit;
pub use home::Directory;
pub use vocabulary::{Action, Actions, Event, Impossible, Leaving, Mode, Msg, Phase, Step};

use finespun_types::{Access, NodeId, ViewId};

use super::FirstTouch;
use crate::page::{self, Outcome, Place, Protocol, Time, send};

/// The tables, for drivers that run any protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringsSc {}

impl Protocol for StringsSc {
    type Msg = Msg;
    type Unit = Unit;
    type Directory = Directory;
    type Manager = FirstTouch;
    type Impossible = Impossible;

    const REVOKES: bool = true;

    fn on_unit(
        unit: &mut Unit,
        place: Place,
        _now: Time,
        event: Event,
        out: &mut Actions,
    ) -> Result<Outcome, Impossible> {
        unit.on(place, event, out)
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

    fn on_manager(manager: &mut FirstTouch, from: NodeId, msg: Msg, out: &mut Actions) -> Result<Outcome, Impossible> {
        match msg {
            Msg::AskHome => Ok(out.done(&[send(from, Msg::HomeIs(manager.decide(from)))])),
            Msg::HomeIs(_) | Msg::Fetch { .. } | Msg::Grant { .. } | Msg::Invalidate | Msg::InvalidateAck => {
                Err(Impossible::Manager { msg })
            }
            Msg::Recall { .. } | Msg::RecallReply => Err(Impossible::Manager { msg }),
        }
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
}
