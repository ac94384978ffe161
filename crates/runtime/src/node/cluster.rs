//! What a process knows of its job: who it is, and the memory it can reach.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use finespun_engine::homes::Homes;
use finespun_job::{Job, Reach};
use finespun_protocol::page::Place;
use finespun_sync::{Word, place};
use finespun_sys::view;
use finespun_transport::Messages;
use finespun_types::{NodeId, PAGE_BYTES, ProcessorId, UnitId, ViewId};

use crate::node::engine::Engine;
use crate::sys::carrier;
use crate::sys::segment::Segment;
use crate::sys::shape::{GUESTS, SEATS, STRIPE_WORDS, STRIPES, Shape};
use crate::sys::slot::Slot;

/// What is done about a message that has arrived from a node. Set once, when the process joins: what a message is for stands above
/// everything that waits, and whatever waits receives.
pub type OnMessage = fn(&Cluster, NodeId, &[u8]);

/// One process's job.
pub struct Cluster {
    /// The job.
    pub job: Job,
    /// The places of everything.
    pub shape: Shape,
    /// This process's node.
    pub me: NodeId,
    /// What keeps memory consistent.
    pub engine: Engine,
    /// Which nodes manage which units.
    homes: Homes,
    /// What goes by direct access and what by messages.
    pub reach: Reach,
    /// The connections to the others, if anything goes by messages.
    pub mesh: Option<Box<dyn Messages>>,
    /// The nodes' memory; only this node's own over a network.
    nodes: Vec<Option<Segment>>,
    /// This process's view of its node's frames; none in a service process.
    pub view: Option<(ViewId, view::View)>,
    /// The end has come, and the program's globals are this process's own memory: see [`crate::process::globals`].
    pub globals_are_private: AtomicBool,
    /// What is done about a message that has arrived.
    pub on_message: OnMessage,
    /// How long to look again before sleeping, in ticks.
    pub spin_ticks: u64,
    /// How long a page stays mapped at least where others may ask for it, in ticks.
    pub hold_ticks: u64,
}

/// Units whose homes one manager decides, side by side, as a power of two.
const MANAGER_RUN_LOG2: u32 = 4;

impl Cluster {
    /// Maps what this process may reach. `fd_of` turns a descriptor number of the job into a descriptor.
    ///
    /// # Errors
    /// The kernel's, when memory cannot be mapped.
    pub fn join(
        job: Job,
        me: NodeId,
        sockets: Vec<Option<OwnedFd>>,
        fd_of: impl Fn(i32) -> BorrowedFd<'static>,
        on_message: OnMessage,
        spin_ticks: u64,
    ) -> io::Result<Self> {
        let (shape, reach) = (Shape::of(&job), job.reach(me));
        let mut nodes = Vec::with_capacity(shape.nodes);
        for (node, memory) in job.memory.iter().enumerate() {
            let map = || Segment::map(fd_of(memory.segment), fd_of(memory.frames), shape);
            nodes.push(reach.maps(NodeId::of(node)).then(map).transpose()?);
        }
        let engine = Engine::of(shape.family);
        let homes = Homes::new(shape.nodes as u32, MANAGER_RUN_LOG2);
        let mut cluster = Self {
            job,
            shape,
            me,
            engine,
            homes,
            reach,
            mesh: None,
            nodes,
            view: None,
            globals_are_private: AtomicBool::new(false),
            on_message,
            spin_ticks,
            hold_ticks: 0,
        };
        if reach.sends_messages() {
            cluster.mesh = Some(carrier::attach(&cluster.job, cluster.mine(), me, sockets, &fd_of)?);
        }
        Ok(cluster)
    }

    /// Gives to the network what was sent. Whoever leaves the engine does so first: nobody else may know of it.
    pub fn flush_messages(&self) {
        if let Some(mesh) = &self.mesh
            && mesh.pending() > 0
        {
            mesh.flush();
        }
    }

    /// This node's memory.
    #[inline]
    pub fn mine(&self) -> &Segment {
        self.at(self.me)
    }

    /// A node's memory. With messages only this node's own.
    #[inline]
    pub fn at(&self, node: NodeId) -> &Segment {
        self.nodes[usize::from(node.0)].as_ref().expect("only this node's memory is reached when nodes send messages")
    }

    /// The connections, where something goes by messages.
    pub fn mesh(&self) -> &dyn Messages {
        self.mesh.as_deref().expect("what goes by messages has connections")
    }

    /// This process's view number.
    #[inline]
    pub fn my_view(&self) -> ViewId {
        self.view.as_ref().map(|(id, _)| *id).expect("only a process of the program has a view")
    }

    /// May threads of this process beside the calling one touch shared memory?
    pub fn has_several_threads(&self) -> bool {
        self.mine().view(self.my_view()).several_threads.load(Ordering::Relaxed) != 0
    }

    /// The unit at an address of the shared space, or of shared globals.
    #[inline]
    pub fn unit_at(&self, address: usize) -> Option<UnitId> {
        let (_, view) = self.view.as_ref()?;
        self.shape.unit.at(u64::from(view.page_of(address)?) * PAGE_BYTES as u64)
    }

    /// What a unit's address says, at a node.
    pub fn place(&self, node: NodeId, unit: UnitId) -> Place {
        self.homes.place(node, unit, self.shape.layout.home_of(unit.0))
    }

    /// Where the state of a synchronization object stands.
    #[inline]
    pub fn manager_of(&self, address: u64) -> finespun_sync::Place {
        place(address, self.shape.nodes as u32, STRIPES as u32, STRIPE_WORDS as u32)
    }

    /// The word beside the table where the state of an object stands, if this process may change it.
    #[inline]
    pub fn word_of(&self, at: &finespun_sync::Place) -> Option<&Word> {
        let is_quick = !self.engine.tells_managers() && self.reach.runs_tables_of(at.node);
        is_quick.then(|| self.at(at.node).word(at.table as usize, at.word as usize))
    }

    /// A processor's node, and the index of its slot there.
    pub fn slot_of(&self, who: ProcessorId) -> (NodeId, usize) {
        let (who, each, all) = (who.0 as usize, self.shape.processors_per_node(), self.shape.processors());
        if who < all {
            (NodeId::of(who / each), who % each)
        } else {
            let guest = who - all;
            (NodeId::of(guest / GUESTS), each + guest % GUESTS)
        }
    }

    /// A slot of this node as a processor of the job.
    #[inline]
    pub fn processor_at(&self, slot: usize) -> ProcessorId {
        let (each, me) = (self.shape.processors_per_node(), usize::from(self.me.0));
        let number = if slot < each { me * each + slot } else { self.shape.processors() + me * GUESTS + (slot - each) };
        ProcessorId(number as u32)
    }

    /// A slot of this node.
    #[inline]
    pub fn slot(&self, index: usize) -> &Slot {
        self.mine().slot(index)
    }

    /// A slot for one more thread that the program made itself; `None` when all are taken.
    pub fn take_guest_slot(&self) -> Option<usize> {
        let guests = &self.mine().node().guests;
        // The last one is the service process's.
        let all = (1_u32 << (GUESTS - SEATS - 1)) - 1;
        let free = |taken: u32| (taken != all).then(|| (!taken).trailing_zeros());
        let taken = guests
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| free(taken).map(|bit| taken | 1 << bit))
            .ok()?;
        Some(self.shape.processors_per_node() + SEATS + free(taken)? as usize)
    }

    /// Gives such a slot back: its thread has ended.
    pub fn give_guest_slot(&self, slot: usize) {
        let bit = slot - self.shape.processors_per_node() - SEATS;
        self.mine().node().guests.fetch_and(!(1 << bit), Ordering::AcqRel);
    }
}
