//! The home's entry of one unit: who has a copy.

use finespun_types::{NodeId, NodeSet};
use zerocopy::{FromZeros, Immutable};

use super::vocabulary::{Action, Actions, Impossible, Msg};
use crate::page::{Contents, Outcome, send, send_with};

/// The directory entry of one unit, at its home. All-zero: nobody has touched it. The home's frame is the master copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Directory {
    /// The nodes that have copies; the home too, if it has touched the unit.
    pub sharers: NodeSet,
}

impl Directory {
    /// One row for each message.
    ///
    /// # Errors
    /// [`Impossible`] when the message cannot come.
    #[rustfmt::skip]
    pub fn on(&mut self, home: NodeId, from: NodeId, msg: Msg, out: &mut Actions) -> Result<Outcome, Impossible> {
        let sharer = self.sharers.contains(from);
        Ok(match msg {
            // A sharer before the page is read: whatever is applied from now on is sent to it too, behind the page.
            Msg::Fetch if !sharer => self.fetch(home, from, out),
            Msg::Flush if sharer  => self.flush(home, from, out),

            Msg::Fetch | Msg::Flush // of whom nobody would expect it
            | Msg::AskHome | Msg::HomeIs(_) | Msg::Page { .. } | Msg::NotAlone | Msg::FlushAck { .. } | Msg::Update { .. } | Msg::UpdateAck
                => return Err(Impossible::Directory { from, msg }),
        })
    }

    /// The page to a new sharer, without the stores that the home's views have not released: their diff is against what others have.
    /// The home, if it was alone with it, is told first: what its views store from now on is in its diff.
    fn fetch(&mut self, home: NodeId, from: NodeId, out: &mut Actions) -> Outcome {
        let ends_alone = self.sharers == NodeSet::only(home);
        self.sharers = self.sharers.with(from);
        let alone = self.sharers == NodeSet::only(home);
        let page = send_with(from, Msg::Page { alone }, Contents::Released);
        if ends_alone { out.done(&[send(home, Msg::NotAlone), page]) } else { out.done(&[page]) }
    }

    /// Into the master copy, and on to everybody else who has one. The home's own diff is in its frame already.
    fn flush(&self, home: NodeId, from: NodeId, out: &mut Actions) -> Outcome {
        let others = self.sharers.without(from).without(home);
        let ack = send(from, Msg::FlushAck { updates: others.len() as u8 });
        let update = Action::Send { to: others, msg: Msg::Update { releaser: from }, contents: Contents::Received };
        match (from == home, others.is_empty()) {
            (true, true) => out.done(&[ack]),
            (true, false) => out.done(&[update, ack]),
            (false, true) => out.done(&[Action::ApplyUpdate, ack]),
            (false, false) => out.done(&[Action::ApplyUpdate, update, ack]),
        }
    }
}
