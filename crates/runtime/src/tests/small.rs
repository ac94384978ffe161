//! A job whose processes are all in the test's own process: each has its own view, with real rights, of its node's frames.
//!
//! A processor does what the hardware and the C library do for a program: it accesses memory, presents the fault if the mapping lacks the right,
//! and repeats the access; it locks and unlocks a mutex, with the acquire and the release. All below is production code. One thread runs all
//! processors in turn. Where nodes send messages, each node has its service in a thread of its own.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use finespun_job::messages::Messages;
use finespun_job::switches::Switches;
use finespun_job::{Faults, Job, NodeMemory, Transport};
use finespun_sync::Event;
use finespun_sys::maps::Rights;
use finespun_sys::memory;
use finespun_sys::view::{Mechanism, View};
use finespun_transport::Wait;
use finespun_types::{Access, Counter, NodeId, PAGE_BYTES, UnitId, ViewId};

use crate::consistency;
use crate::messages::poll;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::meter;
use crate::process::{dispatch, faults};
use crate::sync::{barrier, locks, objects};
use crate::sys::shape::Shape;
use crate::sys::{access, descriptors};

/// A mutex of the job.
const MUTEX: u64 = 64;

/// Where the next view stands.
static NEXT_BASE: AtomicUsize = AtomicUsize::new(0x3000_0000_0000);

/// What a job is made of.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub protocol: &'static str,
    pub transport: Transport,
    pub nodes: u32,
    /// Processes of each node.
    pub views: u32,
    /// Does the runtime have to think that each process has other threads, too?
    pub several_threads: bool,
    pub switches: Switches,
    /// Messages are delayed, and overtake each other between different pairs of nodes, by this seed.
    pub delay: Option<u64>,
}

/// The job.
pub struct Small {
    pub processors: Vec<Processor>,
    services: Vec<(UnixStream, JoinHandle<()>)>,
    _memory: Vec<OwnedFd>,
}

/// A processor of the job, with its process.
pub struct Processor {
    pub cluster: Cluster,
    slot: usize,
}

impl Small {
    pub fn new(made: Made) -> Self {
        let mut job = Job {
            nodes: made.nodes,
            views: made.views,
            transport: made.transport,
            faults: Faults::Mprotect,
            protocol: made.protocol.into(),
            switches: made.switches,
            messages: Messages { loopback: None, delay: made.delay },
            ..Job::alone()
        };
        let shape = Shape::of(&job);
        let mut kept = Vec::new();
        for _ in 0..made.nodes {
            let mut file = |bytes| {
                kept.push(memory::create(c"test", bytes).expect("a memfd"));
                kept[kept.len() - 1].as_raw_fd()
            };
            job.memory.push(NodeMemory { frames: file(shape.pages * PAGE_BYTES), segment: file(shape.bytes) });
        }
        let sockets = Sockets::new(made.nodes as usize);
        let mut small = Self { processors: Vec::new(), services: Vec::new(), _memory: kept };
        for node in 0..made.nodes as usize {
            let join = || join(&job, NodeId::of(node), sockets.of(node));
            for view in 0..made.views {
                small.processors.push(Processor::new(join(), ViewId(view as u8), made.several_threads));
            }
            if job.sends_messages() {
                small.services.push(serve(join()));
            }
        }
        small
    }

    /// What all processors counted.
    pub fn counted(&self, counter: Counter) -> u64 {
        let of = |processor: &Processor| processor.cluster.slot(processor.slot).read(0, 1).counts[counter as usize];
        self.processors.iter().map(of).sum()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        for (stop, thread) in self.services.drain(..) {
            drop(stop);
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a service ends well");
        }
    }
}

fn join(job: &Job, me: NodeId, sockets: Vec<Option<OwnedFd>>) -> Cluster {
    Cluster::join(job.clone(), me, sockets, descriptors::borrow, dispatch::message, 0).expect("the job's memory")
}

/// A node's service, as [`crate::process::service`] has it.
fn serve(cluster: Cluster) -> (UnixStream, JoinHandle<()>) {
    let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
    let thread = std::thread::spawn(move || {
        let waiter = cluster.mesh().waiter(stopped.as_fd()).expect("connections to watch");
        loop {
            poll::poll(&cluster);
            match waiter.sleep() {
                Wait::Ready | Wait::TimedOut => {}
                Wait::Also => return,
                Wait::PeerGone(node) => panic!("{node:?} is gone"),
            }
        }
    });
    (stop, thread)
}

/// The connections between nodes.
struct Sockets(Vec<Vec<Option<UnixStream>>>);

impl Sockets {
    fn new(nodes: usize) -> Self {
        let mut all: Vec<Vec<_>> = (0..nodes).map(|_| (0..nodes).map(|_| None).collect()).collect();
        for (one, other) in (0..nodes).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let (here, there) = UnixStream::pair().expect("a pair of sockets");
            (all[one][other], all[other][one]) = (Some(here), Some(there));
        }
        Self(all)
    }

    fn of(&self, node: usize) -> Vec<Option<OwnedFd>> {
        let copy = |socket: &UnixStream| OwnedFd::from(socket.try_clone().expect("a descriptor"));
        self.0[node].iter().map(|socket| socket.as_ref().map(copy)).collect()
    }
}

impl Processor {
    fn new(mut cluster: Cluster, view: ViewId, several_threads: bool) -> Self {
        let bytes = cluster.shape.pages * PAGE_BYTES;
        let base = NEXT_BASE.fetch_add(bytes.next_power_of_two(), Ordering::Relaxed);
        let frames = descriptors::borrow(cluster.job.memory[usize::from(cluster.me.0)].frames);
        let mapping = View::new(frames, base, bytes, Some(Mechanism::Mprotect)).expect("addresses for a view");
        cluster.view = Some((view, mapping));
        cluster.mine().view(view).several_threads.store(several_threads.into(), Ordering::Relaxed);
        Self { slot: usize::from(view.0), cluster }
    }

    fn view(&self) -> &View {
        let (_, view) = self.cluster.view.as_ref().expect("a process of the program");
        view
    }

    /// Loads a word, by faults where the mapping does not let it through.
    pub fn load(&self, page: u32, word: usize) -> u64 {
        self.open(page, false);
        access::load(self.view(), page, word)
    }

    /// Stores a word, likewise.
    pub fn store(&self, page: u32, word: usize, value: u64) {
        self.open(page, true);
        access::store(self.view(), page, word, value);
    }

    /// An access until it does not fault any more.
    fn open(&self, page: u32, writes: bool) {
        meter::become_slot(self.slot);
        for _ in 0..3 {
            let rights = access::rights(self.view(), page);
            let by_the_books = consistency::units::access(&self.cluster, UnitId(page));
            assert_eq!(rights.writes, by_the_books == Access::Write, "page {page}: {rights:?} and {by_the_books:?}");
            assert_eq!(rights.reads, by_the_books != Access::None, "page {page}: {rights:?} and {by_the_books:?}");
            if if writes { rights.writes } else { rights.reads } {
                return;
            }
            faults::serve(&self.cluster, UnitId(page), writes);
        }
        panic!("page {page} faults again and again");
    }

    /// Locks the job's mutex, which is free, and acquires.
    pub fn lock(&self) {
        meter::become_slot(self.slot);
        let who = self.cluster.processor_at(self.slot);
        if locks::migrate(&self.cluster) {
            done(locks::lock(&self.cluster, self.slot, MUTEX));
        } else {
            done(objects::call(&self.cluster, self.slot, Event::Lock { mutex: MUTEX, who }));
        }
        consistency::acquire(&self.cluster);
        self.cluster.flush_messages();
    }

    /// Releases, and unlocks.
    pub fn unlock(&self) {
        meter::become_slot(self.slot);
        consistency::release(&self.cluster);
        let who = self.cluster.processor_at(self.slot);
        if locks::migrate(&self.cluster) {
            done(locks::unlock(&self.cluster, self.slot, MUTEX));
        } else {
            done(objects::call(&self.cluster, self.slot, Event::Unlock { mutex: MUTEX, who }));
        }
        self.cluster.flush_messages();
    }

    /// Releases, meets all others at the barrier of all, and acquires.
    pub fn meet(&self) {
        meter::become_slot(self.slot);
        consistency::release(&self.cluster);
        done(barrier::arrive(&self.cluster, self.slot, 1));
        consistency::acquire(&self.cluster);
        self.cluster.flush_messages();
    }

    /// Sees what was released before, and releases.
    pub fn synchronize(&self) {
        self.lock();
        self.unlock();
    }

    /// May its process store to a page without a fault, or load from it?
    pub fn rights(&self, page: u32) -> Rights {
        access::rights(self.view(), page)
    }
}

fn done<T>(result: Result<T, Failure>) -> T {
    result.unwrap_or_else(|failure| panic!("{:?}: {}", failure.code, failure.what))
}
