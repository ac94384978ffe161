//! The steps of a collection: what a processor does, for itself or for all of its node, and where all meet in between.

use std::collections::BTreeSet;

use finespun_engine::lazy::Collection;
use finespun_engine::objects::Mailbox;
use finespun_protocol::tmk::Event;
use finespun_types::NodeId;

use super::Lazy;
use super::news::CARRIED;
use super::steps::Stage;
use crate::bugs::Bug;
use crate::job::Job;
use crate::objects::Request;
use crate::processor::Doing;
use crate::program::Sync;

/// The meetings behind those of the program.
const MEETINGS: [Sync; 2] = [254, 255];

/// A processor's collection.
pub struct Collecting {
    /// The time of the barrier.
    upto: Vec<u32>,
    wish: u32,
    weight: usize,
    step: Collection,
}

impl Job<'_, Lazy> {
    /// All have met. Does the processor collect, or go on with that?
    pub fn collects_now(&mut self, who: usize) -> bool {
        let node_number = self.node_of(who);
        let weight = if self.setting.collects { self.program.shape.meeting_per_node() } else { 1 };
        let stands = !self.setting.collects || self.gathered[node_number].last() == Some(&who);
        let node = &self.engine.nodes[node_number];
        let Some(collecting) = &mut self.engine.collections[who] else {
            let (wish, upto) = node.at_barrier.split_last().expect("a time has one word more");
            let begins = stands && *wish > node.collections;
            if begins {
                let collecting = Collecting { upto: upto.to_vec(), wish: *wish, weight, step: Collection::Keep };
                self.engine.collections[who] = Some(collecting);
                self.begin_stage(who, Stage::Begin);
            }
            return begins;
        };
        let next = collecting.step.next().expect("no meeting follows the last step");
        collecting.step = next;
        match next {
            Collection::Keep => unreachable!("it is the first"),
            Collection::Drop => {
                let left = self.collected(who);
                self.begin_stage(who, Stage::Drop(left));
            }
            Collection::Forget => self.forget(who),
        }
        true
    }

    /// Do the node's faults wait, because all of its processors that come to the barrier collect?
    pub fn holds_faults(&self, node: usize) -> bool {
        let all = self.program.shape.meeting_per_node();
        let enough = if self.has(Bug::FaultsHeldTooEarly) { 1 } else { all };
        self.engine.nodes[node].collecting >= enough && !self.has(Bug::FaultInCollection)
    }

    /// No fault is presented meanwhile: one that was is seen by what follows.
    pub fn begin_collection(&mut self, who: usize) {
        let node = self.node_of(who);
        let Some(Collecting { weight, .. }) = &self.engine.collections[who] else { return };
        let node = &mut self.engine.nodes[node];
        if node.acquiring.is_free_or_queues(who) {
            node.collecting += weight;
            self.begin_acquire(who);
        }
    }

    pub fn begin_keeping(&mut self, who: usize) {
        let units: BTreeSet<usize> = self.collected(who).into_iter().map(|(unit, ..)| unit).collect();
        let left = if self.has(Bug::NothingKept) { Vec::new() } else { units.into_iter().collect() };
        self.begin_stage(who, Stage::Keep(left));
    }

    fn upto(&self, who: usize) -> Vec<u32> {
        self.engine.collections[who].as_ref().map(|collecting| collecting.upto.clone()).unwrap_or_default()
    }

    pub fn keep(&mut self, who: usize, unit: Option<usize>) {
        let Some(unit) = unit else { return self.meet_to_collect(who) };
        let mut upto = self.upto(who);
        if self.has(Bug::KeepForgetsOwn) {
            upto[self.program.shape.node_of(who)] = u32::MAX;
        }
        self.present(who, unit, Event::Keep { upto: &upto }, true);
    }

    pub fn drop_next(&mut self, who: usize, next: Option<(usize, NodeId, u32)>) {
        let Some((unit, from, index)) = next else { return self.meet_to_collect(who) };
        if self.interval(self.node_of(who), from, index).is_none() && !self.has(Bug::CollectByTime) {
            return self.fail(CARRIED, format!("p{who} collects u{unit} without interval {index} of {from:?}"));
        }
        let upto = self.upto(who);
        self.present(who, unit, Event::Collect { from, index, upto: &upto }, false);
    }

    /// The node's own diffs up to the barrier.
    pub fn forget_diffs(&mut self, who: usize, dropped: Option<(usize, NodeId, u32)>) {
        let (node, upto) = (self.node_of(who), self.upto(who));
        if let Some((unit, ..)) = dropped {
            self.engine.nodes[node].copies[unit].diffs.retain(|kept| kept.index > upto[node]);
        }
    }

    /// All meet before the next step.
    fn meet_to_collect(&mut self, who: usize) {
        let Some(Collecting { step, .. }) = &self.engine.collections[who] else { return };
        let (barrier, skipped) = match step {
            Collection::Keep => (MEETINGS[0], Bug::DroppedTooEarly),
            Collection::Drop | Collection::Forget => (MEETINGS[1], Bug::ForgottenTooEarly),
        };
        if self.has(skipped) {
            self.collects_now(who);
            return;
        }
        let processor = &mut self.processors[who];
        (processor.answer, processor.doing) = (None, Doing::Answer(Mailbox::Answer));
        let arrival = self.arrival(who, barrier);
        self.ask(who, Request::Object(arrival));
        if self.has(Bug::HandlerInCollection) {
            self.take_signal(who);
        }
    }

    /// All have dropped what lacks something.
    fn forget(&mut self, who: usize) {
        let node = self.node_of(who);
        let Some(Collecting { upto, wish, weight, .. }) = self.engine.collections[who].take() else { return };
        let at = &mut self.engine.nodes[node];
        for (log, upto) in at.log.iter_mut().zip(&upto) {
            log.retain(|interval| interval.index > *upto);
        }
        (at.collected, at.collections) = (upto, wish);
        at.collecting -= weight;
        self.wake_if(node, |stage| matches!(stage, Stage::Fault { .. } | Stage::Keep(_)));
        let op = self.op(who);
        self.end_answer(who, op);
    }

    /// What is collected: unit, writer and interval, the first last.
    fn collected(&mut self, who: usize) -> Vec<(usize, NodeId, u32)> {
        let (node, upto, mut all) = (self.node_of(who), self.upto(who), Vec::new());
        let collected = self.engine.nodes[node].collected.clone();
        for (writer, (after, upto)) in collected.iter().zip(&upto).enumerate() {
            for index in *after + 1..=*upto {
                match self.interval(node, NodeId::of(writer), index) {
                    Some(interval) => all.extend(interval.units.iter().map(|unit| (*unit, NodeId::of(writer), index))),
                    None => self.fail(CARRIED, format!("n{node} collects without interval {index} of n{writer}")),
                }
            }
        }
        if self.has(Bug::CollectByTime) {
            for (unit, writer, index) in &mut all {
                let noticed = self.engine.nodes[node].copies[*unit].writers[usize::from(writer.0)].noticed;
                *index = noticed.min(upto[usize::from(writer.0)]);
            }
        }
        all.reverse();
        all
    }
}
