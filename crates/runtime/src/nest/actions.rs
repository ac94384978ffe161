//! What a transaction's effects do: to frames and twins, to this process's mapping, to lists.

use finespun_diff::Malformed;
use finespun_engine::Limit;
use finespun_protocol::cashmere::variants::Way;
use finespun_protocol::page::Effect;
use finespun_types::{Access, Counter, NodeId, NodeSet, ViewId};

use super::scene::Scene;
use crate::attached::Attached;
use crate::live::Live;
use crate::sys::frames::{self, Page};
use crate::{misuse, wait};

impl<'a, P: Live> Scene<'a, '_, P> {
    /// Performs an action.
    #[inline(always)]
    pub fn act(&mut self, node: NodeId, effect: Effect, attached: Attached<'_>) {
        let (cluster, unit) = (self.cluster, self.unit);
        match effect {
            Effect::Install => {
                let page = self.page_of(node, attached);
                let frame = self.at(node).frame();
                match &mut self.early.copies {
                    Some(copies) => copies.install(page, frame),
                    None => frames::install(page, frame),
                }
            }
            Effect::Merge => {
                let page = self.page_of(node, attached);
                self.count(Counter::IncomingDiffs, 1);
                let locked = self.at(node);
                frames::merge(page, locked.twin(), locked.frame());
            }
            Effect::ApplyUpdate => match attached {
                Attached::Diff(diff) if self.update(node, diff).is_ok() => {}
                Attached::Diff(_) | Attached::Page(_) | Attached::Buffered(_) | Attached::Nothing => {
                    misuse::malformed(cluster, unit, node)
                }
            },
            Effect::MakeTwin => {
                self.count(Counter::Twins, 1);
                let locked = self.at(node);
                let twin = locked.new_twin();
                frames::snapshot(locked.frame(), twin);
            }
            Effect::DropTwin => self.at(node).drop_twin(),
            Effect::Protect { view, access } => self.protect(node, view, access),
            Effect::ListDirty(views) => views.iter().for_each(|view| cluster.at(node).list_dirty(view, unit)),
            Effect::ListNotice(views) => views.iter().for_each(|view| {
                cluster.at(node).list_notice(view, unit);
                if P::REVOKES {
                    wait::wake_revoker(cluster, node, view);
                }
            }),
            Effect::FlushDone(view) => wait::flush_done(cluster, node, view),
            Effect::Wake => wait::wake_views(cluster, node),
            Effect::FetchSkipped => self.count(Counter::FetchesSkipped, 1),
            Effect::FlushSkipped => self.count(Counter::FlushesSkipped, 1),
            Effect::RightKept => self.count(Counter::RightsKept, 1),
            Effect::KeptInVain => self.count(Counter::KeptInVain, 1),
            Effect::EnteredExclusive => self.count(Counter::ExclusiveEntries, 1),
            Effect::Broadcast => {
                let page = self.at(node).released();
                self.count_message(Some(Counter::Broadcasts), Attached::Page(page));
                cluster.at(node).broadcast(unit, page);
            }
            Effect::DropBuffer => cluster.at(node).drop_buffer(unit),
            Effect::HomeMoved => {
                self.count(Counter::Migrations, 1);
                self.count(Counter::MigrationAttempts, 1);
            }
            // Where the question was a look at the home's own state, there was no attempt.
            Effect::HomeKept if cluster.variant.metadata == Way::Direct => {}
            Effect::HomeKept => self.count(Counter::MigrationAttempts, 1),
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

    /// The table wants this process's own mapping changed.
    fn protect(&mut self, node: NodeId, view: ViewId, access: Access) {
        let cluster = self.cluster;
        assert!(node == cluster.me && view == cluster.my_view(), "nobody can change another process's mapping");
        let frame = self.at(node).frame();
        if access == Access::None {
            self.at(node).forget_flushes();
        }
        self.wanted.want(cluster, self.unit, access, frame);
        if P::REVOKES {
            self.wanted.hold(cluster);
        }
    }

    /// The diff, unless it is empty.
    pub fn make_diff(&mut self, node: NodeId, to: NodeSet, refresh: bool) -> Option<&'a [u8]> {
        let Some(buffer) = self.buffer.take() else { self.too_many(Limit::Diffs) };
        let locked = self.at(node);
        let diff = frames::diff(locked.frame(), locked.twin(), refresh, buffer);
        if !refresh {
            locked.drop_twin();
        }
        if diff.is_empty() {
            locked.flushed_nothing();
            return None;
        }
        // At the home only whether anything changed is of interest.
        if to != NodeSet::only(node) {
            self.count(Counter::Diffs, 1);
            self.count(Counter::DiffBytes, diff.len() as u64);
        }
        Some(diff)
    }
}
