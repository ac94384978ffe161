//! The tables of synchronization and threads, as the engine's wiring ([`finespun_engine::objects`]) reaches them in a live job: in the
//! memory of nodes that is mapped here, under the tables' locks, or by messages.

use finespun_engine::homes::KEEPER;
use finespun_engine::objects::{About, Answer, Keepers, Start};
use finespun_sync::migratory::{self, Message};
use finespun_sync::{Event, Grant, Place, Table, threads};
use finespun_types::{Counter, NodeId, ProcessorId};

use crate::consistency::along::{self, Told};
use crate::messages::wire::{Reply, Request};
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::{carriers, meter};
use crate::sync::{commands, requests};

/// How many hand-overs of a mutex inside a node may go, one after the other, before another node that waits. A mutex that all want costs
/// 59-143 us over tcp with 0, 42-46 with 1, 24 with 2, 18 with 4, 12-18 with 8, and 6-12 without a bound (two nodes of 2 and of 4
/// threads, docs/protocols/strings-ablation.md): most of what there is to gain, for a wait of nine sections at most.
const LOCAL_MAX: u8 = 8;

/// The tables that this process reaches.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    cluster: &'a Cluster,
    /// What the sender of the event knows.
    told: Option<&'a Told>,
}

impl<'a> Live<'a> {
    /// For an event of an object, whose sender knows this.
    pub const fn told(cluster: &'a Cluster, told: &'a Told) -> Self {
        Self { cluster, told: Some(told) }
    }

    /// For any other event.
    pub const fn of(cluster: &'a Cluster) -> Self {
        Self { cluster, told: None }
    }
}

/// The number of the carrier.
const fn carrier(about: About) -> u64 {
    match about {
        About::Nothing => carriers::NOTHING,
        About::Object(address) => address,
        About::Threads => carriers::THREADS,
    }
}

impl Keepers for Live<'_> {
    type Refusal = Failure;

    #[inline]
    fn runs_tables_of(&self, node: NodeId) -> bool {
        self.cluster.reach.runs_tables_of(node)
    }

    #[inline]
    fn manager_of(&self, object: u64) -> Place {
        self.cluster.manager_of(object)
    }

    #[inline]
    fn node_with(&self, who: ProcessorId) -> NodeId {
        self.cluster.slot_of(who).0
    }

    /// What a grant tells is what is known under the lock.
    #[inline]
    fn puts_off(&self) -> bool {
        !self.cluster.engine.tells_managers()
    }

    #[inline]
    fn on_object(
        &mut self,
        at: &Place,
        event: Event,
        mut granted: impl FnMut(&mut Self, Grant),
    ) -> Result<(), Failure> {
        let cluster = self.cluster;
        let word = cluster.word_of(at);
        let run = |table: &mut Table<'_>| {
            if let Some(told) = self.told {
                along::keep(cluster, at.node, event, told);
            }
            let granted = &mut |grant| granted(self, grant);
            match word {
                Some(word) => table.on_beside(word, event, granted),
                None => table.on(event, granted),
            }
        };
        cluster.at(at.node).with_table(at.table as usize, run).map_err(Failure::from)
    }

    #[inline]
    fn on_mutex(
        &mut self,
        node: NodeId,
        mutex: u64,
        event: &migratory::Event,
        out: &mut dyn FnMut(migratory::Action),
    ) -> Result<bool, Failure> {
        let managed = self.cluster.manager_of(mutex);
        let place =
            |mutex| migratory::Place { me: node, manager: self.cluster.manager_of(mutex).node, local_max: LOCAL_MAX };
        let (stripe, node) = (managed.table as usize, self.cluster.at(node));
        let word = node.own_word(stripe, managed.word as usize);
        node.with_table(stripe, |table| table.on_migratory_beside(word, mutex, &place, event, out))
            .map_err(Failure::from)
    }

    fn on_threads(
        &mut self,
        event: threads::Event,
        mut out: impl FnMut(&mut Self, threads::Action),
    ) -> Result<(), Failure> {
        let keeper = self.cluster.at(KEEPER);
        keeper.with_threads(|table| table.on(event, &mut |action| out(self, action))).map_err(Failure::from)
    }

    #[inline]
    fn answer(&mut self, answer: Answer) {
        let Answer { from, about, who, mailbox, value: (value, extra) } = answer;
        let reply = Reply { mailbox, status: 0, value, extra };
        requests::deliver(self.cluster, (from, carrier(about)), who, reply, "");
    }

    fn send(&mut self, _from: NodeId, to: NodeId, mutex: u64, message: Message) {
        along::send_request(self.cluster, to, Request::Migratory { mutex, message });
    }

    fn start(&mut self, start: Start) {
        let Start { who, function, argument, thread } = start;
        let (cluster, node) = (self.cluster, self.node_with(who));
        if cluster.reach.runs_tables_of(node) {
            along::granted(cluster, KEEPER, carriers::THREADS, node);
            commands::run(cluster, who, (function, argument), thread);
        } else {
            along::send_request(cluster, node, Request::Start { who, function, argument, thread });
            cluster.flush_messages();
        }
    }

    #[inline]
    fn pass(&mut self, from: NodeId, to: NodeId) {
        if from != to {
            meter::count(self.cluster, Counter::SyncMessages, 1);
        }
    }
}
