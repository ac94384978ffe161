//! What a step's actions do: to frames and twins, to this process's mapping, and as messages to other nodes.

use finespun_diff::{DiffBuffer, Malformed};
use finespun_protocol::cashmere::variants::Way;
use finespun_protocol::page::{Action, Carried, Contents, Event, Message};
use finespun_types::{Access, Counter, NodeId, NodeSet, UNIT_BYTES, ViewId};

use super::{Attached, Nest, Rights, has_several_threads};
use crate::live::Live;
use crate::sys::frames::{self, Page};
use crate::{globals, misuse, revoke, wire};

impl<P: Live> Nest<'_, '_, P> {
    pub(super) fn act(&mut self, node: NodeId, action: Action<P::Msg>, attached: Attached<'_>) {
        let (cluster, unit) = (self.cluster, self.unit);
        match action {
            Action::Send { to, msg, contents } => self.send(node, to, msg, contents, attached),
            Action::Install => {
                let page = self.page_of(node, attached);
                let frame = self.at(node).frame();
                match &mut self.row {
                    Some(row) => row.install(page, frame),
                    None => frames::install(page, frame),
                }
            }
            Action::Merge => {
                let page = self.page_of(node, attached);
                self.count(Counter::IncomingDiffs, 1);
                let locked = self.at(node);
                frames::merge(page, locked.twin(), locked.frame());
            }
            Action::ApplyUpdate => match attached {
                Attached::Diff(diff) if self.update(node, diff).is_ok() => {}
                Attached::Diff(_) | Attached::Page(_) | Attached::Buffered(_) | Attached::Nothing => {
                    misuse::malformed(cluster, unit, node)
                }
            },
            Action::MakeTwin => {
                self.count(Counter::Twins, 1);
                let locked = self.at(node);
                let twin = locked.new_twin();
                frames::snapshot(locked.frame(), twin);
            }
            Action::DropTwin => self.at(node).drop_twin(),
            Action::Protect { view, access } => self.protect(node, view, access),
            Action::ListDirty(views) => views.iter().for_each(|view| cluster.at(node).list_dirty(view, unit)),
            Action::ListNotice(views) => views.iter().for_each(|view| {
                cluster.at(node).list_notice(view, unit);
                if P::REVOKES {
                    revoke::wake(cluster, node, view);
                }
            }),
            Action::FlushDone(view) => crate::wait::flush_done(cluster, node, view),
            Action::Wake => crate::wait::wake_views(cluster, node),
            Action::FetchSkipped => self.count(Counter::FetchesSkipped, 1),
            Action::FlushSkipped => self.count(Counter::FlushesSkipped, 1),
            Action::RightKept => self.count(Counter::RightsKept, 1),
            Action::KeptInVain => self.count(Counter::KeptInVain, 1),
            Action::EnteredExclusive => self.count(Counter::ExclusiveEntries, 1),
            Action::Broadcast => {
                let page = self.at(node).released();
                self.count_message(Some(Counter::Broadcasts), Attached::Page(page));
                cluster.at(node).broadcast(unit, page);
            }
            Action::DropBuffer => cluster.at(node).drop_buffer(unit),
            Action::HomeMoved => {
                self.count(Counter::Migrations, 1);
                self.count(Counter::MigrationAttempts, 1);
            }
            // Where the question was a look at the home's own state, there was no attempt.
            Action::HomeKept if cluster.variant.metadata == Way::Direct => {}
            Action::HomeKept => self.count(Counter::MigrationAttempts, 1),
        }
    }

    /// To the frame, and to the twin if there is one.
    fn update(&mut self, node: NodeId, diff: &[u8]) -> Result<(), Malformed> {
        let locked = self.at(node);
        if locked.has_twin() {
            frames::apply(diff, locked.twin())?;
        }
        frames::apply(diff, locked.frame())
    }

    /// The page that must have come.
    fn page_of(&self, node: NodeId, attached: Attached<'_>) -> Page {
        match attached {
            Attached::Page(page) => {
                self.count(Counter::PageTransfers, 1);
                page
            }
            Attached::Buffered(page) => page,
            Attached::Nothing | Attached::Diff(_) => misuse::malformed(self.cluster, self.unit, node),
        }
    }

    /// Changes this process's own mapping.
    fn protect(&mut self, node: NodeId, view: ViewId, access: Access) {
        let cluster = self.cluster;
        let (mine, mapping) = cluster.view.as_ref().expect("only a view's own events change its mapping");
        assert!(node == cluster.me && view == *mine, "nobody can change another process's mapping");
        let page = self.unit.0;
        let frame = self.at(node).frame();
        if access == Access::None {
            self.at(node).forget_flushes();
        }
        let changed = match (access, self.rights) {
            (Access::None, Rights::Left) if self.before != Access::Write || !has_several_threads(cluster) => {
                self.is_left = true;
                Ok(())
            }
            (Access::Read, Rights::Left) => {
                self.is_left = true;
                Ok(())
            }
            (Access::None, _) => {
                self.count(Counter::Invalidations, 1);
                mapping.invalidate(page..page + 1)
            }
            (Access::Read, Rights::Grow) => {
                frames::touch(frame);
                mapping.map_read(page)
            }
            (Access::Read, Rights::Shrink) => mapping.protect(page..page + 1),
            (Access::Read, Rights::Shrunk) => Ok(()),
            (Access::Write, _) if self.before == Access::Read => mapping.upgrade(page),
            (Access::Write, _) => {
                frames::touch(frame);
                mapping.map_write(page)
            }
        };
        if P::REVOKES && self.rights == Rights::Grow {
            revoke::mapped(cluster);
        }
        if let Err(error) = changed {
            globals::not_mapped(cluster, self.unit, access, &error);
        }
    }

    fn send(&mut self, from: NodeId, to: NodeSet, msg: P::Msg, contents: Contents, received: Attached<'_>) {
        let page = match contents {
            Contents::Nothing => None,
            Contents::Frame => Some(Page::at(self.at(from).frame())),
            Contents::Twin => Some(Page::at(self.at(from).twin())),
            Contents::Released => Some(self.at(from).released()),
            Contents::Diff { refresh } => return self.send_diff(from, to, msg, refresh),
            Contents::Received => return to.iter().for_each(|to| self.send_one(from, to, msg, received)),
        };
        for to in to.iter() {
            match page {
                // A node's frame is already at the node itself.
                Some(page) if to != from => self.send_one(from, to, msg, Attached::Page(page)),
                Some(_) | None => self.send_one(from, to, msg, Attached::Nothing),
            }
        }
    }

    fn send_diff(&mut self, from: NodeId, to: NodeSet, msg: P::Msg, refresh: bool) {
        let mut buffer = DiffBuffer::new();
        let diff = self.make_diff(from, refresh, &mut buffer);
        if diff.is_empty() {
            self.at(from).flushed_nothing();
            self.run_unit(from, Event::NothingChanged, Attached::Nothing);
        } else {
            // At the home only whether anything changed is of interest.
            if to != NodeSet::only(from) {
                self.count(Counter::Diffs, 1);
                self.count(Counter::DiffBytes, diff.len() as u64);
            }
            to.iter().for_each(|to| self.send_one(from, to, msg, Attached::Diff(diff)));
        }
    }

    fn make_diff<'b>(&mut self, node: NodeId, refresh: bool, buffer: &'b mut DiffBuffer) -> &'b [u8] {
        let locked = self.at(node);
        let diff = frames::diff(locked.frame(), locked.twin(), refresh, buffer);
        if !refresh {
            locked.drop_twin();
        }
        diff
    }

    fn send_one(&mut self, from: NodeId, to: NodeId, msg: P::Msg, attached: Attached<'_>) {
        let cluster = self.cluster;
        if to == from {
            self.deliver(from, to, msg, attached);
            return;
        }
        let way = cluster.variant.way(msg);
        if let (Way::Message, Some(outbox)) = (way, &mut self.outbox)
            && outbox.put(cluster, to, self.unit, msg.words(), attached)
        {
            // Messages and bytes are counted when they leave.
            if let Some(own) = msg.counter() {
                self.count(own, 1);
            }
            return;
        }
        self.count_message(msg.counter(), attached);
        match way {
            Way::Message => wire::send_protocol(cluster, to, self.unit, msg.words(), attached),
            Way::Direct if msg.is_between_equals() => self.later.put(from, to, msg, attached),
            Way::Direct => self.deliver_nested(from, to, msg, attached),
        }
    }

    /// What crosses between nodes: messages over a network, remote operations over shared memory.
    fn count_message(&self, own: Option<Counter>, attached: Attached<'_>) {
        let contents = match attached {
            Attached::Nothing | Attached::Buffered(_) => 0,
            Attached::Page(_) => UNIT_BYTES,
            Attached::Diff(diff) => diff.len(),
        };
        self.count(Counter::Messages, 1);
        self.count(Counter::Bytes, (wire::HEADER_BYTES + contents) as u64);
        if let Some(own) = own {
            self.count(own, 1);
        }
    }
}
