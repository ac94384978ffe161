//! `strings-rc`: release consistency by update, multiple writers [Strings §2.3].
//!
//! A store to a page makes a twin; at a release the differences go to everybody who has the page, whether they want it or not.
//! So an acquire has nothing to do, and a copy, once made, stays for ever: there is no invalidation, no exclusive mode, and the
//! sharing set only grows. Roles: every node runs one [`Unit`] for each unit (`copy.rs`), the unit's home one [`Directory`]
//! (`home.rs`), its manager one [`FirstTouch`].
//!
//! ```text
//!  requester                       home                           other sharers
//!     | -- Fetch -------------------> |                                  |
//!     | <- Page(page) --------------- |   a sharer from now on           |
//!     |                               |                                  |
//!     | -- Flush(diff) -------------> |   at a release; applied          |
//!     | <- FlushAck(updates) -------- | -- Update(releaser, diff) -----> |   applied to frame and twin
//!     | <- UpdateAck --------------------------------------------------- |
//!     |   FlushAck and that many UpdateAcks: the flush is done           |
//! ```
//!
//! **The diff goes through the home.** The home applies it and passes it on to the sharers, who acknowledge to the releaser. In the
//! paper the releaser sends it to the sharers itself; the number of messages and bytes is the same (the sharing set has to be
//! asked for there), and since everything about a unit that a node receives comes from the home in one order, an update cannot
//! meet a copy that is still being fetched: a node is sent the page, which has the diff, or the update after the page.
//!
//! **Alone at home.** The home needs twins too, for the sharers; but not while there are none ([`Unit::alone`]): what only its own
//! processors use costs nothing. When another node asks for the page, the home's copy goes on the dirty list with a twin,
//! before the page is read.
//!
//! **The node releases.** Strings' threads share an address space, so a release by one thread sends what all of them have written
//! [Strings §2.6]. Here too the dirty list is the node's ([`Protocol::RELEASES_NODE`]), whichever of its processes stored. A view
//! that releases loses its own right to write, or keeps it ([`Event::Flush`]: no notice ever takes its mapping); other views go on writing against a refreshed twin, and the unit stays
//! on the list. Therefore a lock may pass inside a node without a release: what was stored before goes out with the node's
//! next release, whoever makes it, and inside the node the hardware has shown it already.
//!
//! **Many diffs in one message** [Strings §2.3]: the driver may join what one release sends to one node, and what the home passes
//! on while it works through such a message. The table knows nothing of it.
//!
//! **Channel assumption**: messages from one node to another arrive in the order sent, none is lost. In direct form an `Update`
//! and its acknowledgement go between equals: put aside until the sender holds no lock. Updates of two releases may then
//! reach a sharer in another order than the home: they change different bytes, or the second release began after the first
//! had ended, with all its acknowledgements.

mod copy;
mod home;
pub mod invariants;
mod vocabulary;

pub use copy::Unit;
pub use home::Directory;
pub use vocabulary::{Action, Actions, Event, Impossible, Mode, Msg, Step};

use finespun_types::{Access, NodeId, ViewId};

use super::FirstTouch;
use crate::page::{self, Outcome, Place, Protocol, Time, send};

/// The tables, for drivers that run any protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringsRc {}

impl Protocol for StringsRc {
    type Msg = Msg;
    type Unit = Unit;
    type Directory = Directory;
    type Manager = FirstTouch;
    type Impossible = Impossible;

    const RELEASES_NODE: bool = true;
    const KEEPS: bool = true;

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
            Msg::HomeIs(_) | Msg::Fetch | Msg::Page { .. } | Msg::NotAlone | Msg::Flush | Msg::FlushAck { .. } => {
                Err(Impossible::Manager { msg })
            }
            Msg::Update { .. } | Msg::UpdateAck => Err(Impossible::Manager { msg }),
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
