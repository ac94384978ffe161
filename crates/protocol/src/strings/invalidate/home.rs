//! The home's entry of one unit: who owns or reads it, and who waits.

use finespun_types::{NodeId, NodeIndex, NodeSet};
use zerocopy::{FromZeros, Immutable};

use super::vocabulary::{Action, Actions, Impossible, Msg, Phase};
use crate::page::{Contents, Outcome, send, send_with};

/// The directory entry of one unit, at its home. All-zero: nobody has touched it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Directory {
    /// The nodes that have copies.
    pub sharers: NodeSet,
    /// Nodes that wait to read.
    pub readers: NodeSet,
    /// Nodes that wait to write.
    pub writers: NodeSet,
    /// The entry's state.
    pub phase: Phase,
    /// The writer being served, or the last one, plus one: the next in turn comes after it.
    writer_plus_one: NodeIndex,
    /// A writer is being served. While recalling, otherwise, the readers are.
    pub for_writer: bool,
    /// The last ones served were readers: a writer is next.
    pub readers_last: bool,
}

impl Directory {
    /// One row per (phase, message). `home` is the node this entry stands at.
    ///
    /// # Errors
    /// [`Impossible`] when the pair cannot occur.
    #[rustfmt::skip]
    pub fn on(&mut self, home: NodeId, from: NodeId, msg: Msg, out: &mut Actions) -> Result<Outcome, Impossible> {
        use Msg::{AskHome, Fetch, Grant, HomeIs, Invalidate, InvalidateAck, Recall, RecallReply};
        use Phase::{Invalidating, Owned, Recalling, Shared};

        let sharer = self.sharers.contains(from);
        match (self.phase, msg) {
            (Shared,                   Fetch { write })           => { self.wait(from, write); self.next(out); }
            (Owned,                    Fetch { write }) if !sharer => { self.wait(from, write); self.next(out); }
            // Also from a node whose acknowledgement is still on its way.
            (Invalidating | Recalling, Fetch { write })           => self.wait(from, write),

            (Invalidating, InvalidateAck) if sharer               => self.left(from, out),
            (Recalling,    RecallReply)   if sharer               => self.recalled(home, from, out),

            (Owned, Fetch { .. })                                  // the owner has everything already
            | (Shared | Owned | Recalling, InvalidateAck) | (Shared | Owned | Invalidating, RecallReply)
            | (Invalidating, InvalidateAck) | (Recalling, RecallReply) // not a sharer
            | (Shared | Owned | Invalidating | Recalling, AskHome | HomeIs(_) | Grant { .. } | Invalidate | Recall { .. })
                => return Err(Impossible::Directory { phase: self.phase, from, msg }),
        }
        Ok(Outcome::Done)
    }

    fn wait(&mut self, from: NodeId, write: bool) {
        let waiting = if write { &mut self.writers } else { &mut self.readers };
        *waiting = waiting.with(from);
    }

    /// Serves the next ones, as long as nobody has to be asked: readers all together, writers one by one, in turn.
    fn next(&mut self, out: &mut Actions) {
        loop {
            let readers = !self.readers.is_empty() && (self.writers.is_empty() || !self.readers_last);
            match (self.phase, readers) {
                (Phase::Shared, true) => self.grant_readers(out),
                (Phase::Owned, true) => {
                    self.for_writer = false;
                    return self.recall(out);
                }
                (Phase::Shared, false) if !self.writers.is_empty() => {
                    let writer = self.next_writer();
                    let others = self.sharers.without(writer);
                    if !others.is_empty() {
                        self.phase = Phase::Invalidating;
                        let gone = Action::Send { to: others, msg: Msg::Invalidate, contents: Contents::Nothing };
                        return out.push(gone);
                    }
                    self.grant_writer(out);
                }
                (Phase::Owned, false) if !self.writers.is_empty() => {
                    self.next_writer();
                    return self.recall(out);
                }
                (Phase::Shared | Phase::Owned | Phase::Invalidating | Phase::Recalling, _) => return,
            }
        }
    }

    fn grant_readers(&mut self, out: &mut Actions) {
        let to = core::mem::take(&mut self.readers);
        self.sharers = self.sharers.union(to);
        self.readers_last = true;
        let msg = Msg::Grant { write: false, page: true };
        out.push(Action::Send { to, msg, contents: Contents::Frame });
    }

    /// The first one that waits behind the last one served.
    fn next_writer(&mut self) -> NodeId {
        let behind = self.writers.iter().find(|writer| writer.0 >= self.writer_plus_one);
        let writer = behind.or_else(|| self.writers.iter().next()).expect("somebody waits to write");
        self.writers = self.writers.without(writer);
        self.writer_plus_one = writer.0 + 1;
        self.for_writer = true;
        writer
    }

    fn recall(&mut self, out: &mut Actions) {
        self.phase = Phase::Recalling;
        let msg = Msg::Recall { write: self.for_writer };
        out.push(Action::Send { to: self.sharers, msg, contents: Contents::Nothing });
    }

    /// The writer being served becomes the owner; it may have the page already.
    fn grant_writer(&mut self, out: &mut Actions) {
        let writer = NodeId(self.writer_plus_one - 1);
        let page = !self.sharers.contains(writer);
        self.sharers = NodeSet::only(writer);
        self.phase = Phase::Owned;
        self.readers_last = false;
        let msg = Msg::Grant { write: true, page };
        out.push(if page { send_with(writer, msg, Contents::Frame) } else { send(writer, msg) });
    }

    /// A reader has gone; behind the last one the writer may come.
    fn left(&mut self, from: NodeId, out: &mut Actions) {
        self.sharers = self.sharers.without(from);
        if self.sharers.without(NodeId(self.writer_plus_one - 1)).is_empty() {
            self.grant_writer(out);
            self.next(out);
        }
    }

    /// The owner's page is here.
    fn recalled(&mut self, home: NodeId, owner: NodeId, out: &mut Actions) {
        if owner != home {
            out.push(Action::Install);
        }
        if self.for_writer {
            self.sharers = NodeSet::EMPTY;
            self.grant_writer(out);
        } else {
            self.phase = Phase::Shared;
            self.grant_readers(out);
        }
        self.next(out);
    }

    /// The owner, or who was it until it has answered.
    #[must_use]
    pub fn owner(&self) -> Option<NodeId> {
        match self.phase {
            Phase::Owned | Phase::Recalling => self.sharers.iter().next(),
            Phase::Shared | Phase::Invalidating => None,
        }
    }
}
