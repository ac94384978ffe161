//! What a process must know of its job, and how it is handed down.
//!
//! The launcher writes one [`Job`] as JSON into a memfd that every process of the job inherits. The environment
//! says where it is and who the process is:
//!
//! ```text
//! FINESPUN_JOB=5        descriptor of the memfd with the Job
//! FINESPUN_NODE=1       the process's node
//! FINESPUN_VIEW=0       its view (process) of the node; absent in the node's service process
//! FINESPUN_SOCKETS=7,-1,9   transport tcp: a connected descriptor to each node, -1 for the node itself
//! FINESPUN_CONTROL=6    stream socket to the node's service process (reports, one JSON line each)
//! FINESPUN_KEEP=5,6,7   all descriptors of the job that the process has, which must stay open
//! ```
//!
//! With `shm`, every process inherits every node's memory; with `tcp`, only that of its own node.

#![forbid(unsafe_code)]

pub mod checks;
mod means;
pub mod messages;
pub mod pin;
pub mod protocols;
pub mod reach;
pub mod switches;

pub use means::{Faults, Transport};
pub use reach::Reach;

use finespun_protocol::Family;
use finespun_protocol::cashmere::variants::Variant;
use finespun_types::NodeId;
use finespun_types::UnitSize;
use serde::{Deserialize, Serialize};

/// Environment variable: descriptor of the memfd with the [`Job`].
pub const ENV_JOB: &str = "FINESPUN_JOB";
/// Environment variable: the process's node.
pub const ENV_NODE: &str = "FINESPUN_NODE";
/// Environment variable: the process's view of its node.
pub const ENV_VIEW: &str = "FINESPUN_VIEW";
/// Environment variable: connected sockets to the nodes, comma-separated.
pub const ENV_SOCKETS: &str = "FINESPUN_SOCKETS";
/// Environment variable: the stream to the node's service process.
pub const ENV_CONTROL: &str = "FINESPUN_CONTROL";
/// Environment variable: the job's descriptors in this process, comma-separated.
pub const ENV_KEEP: &str = "FINESPUN_KEEP";
/// Environment variable a user may set: `uffd` or `mprotect`.
pub const ENV_FAULTS: &str = "FINESPUN_FAULTS";

/// The descriptors of one node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeMemory {
    /// The frames: `heap_bytes` long, that of unit `u` at `u` times [`Job::unit_bytes`].
    pub frames: i32,
    /// The node segment: units, directory, lists, locks, counters. Its layout is the runtime's.
    pub segment: i32,
}

/// One job, the same for all its processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// How many nodes (`-n`), 1 to 64.
    pub nodes: u32,
    /// Views, that is processes, per node (`-p`), 1 to 32.
    pub views: u32,
    /// Threads per view (`-t`), 1 to 64.
    pub threads: u32,
    /// The transport.
    pub transport: Transport,
    /// The fault mechanism asked for.
    pub faults: Faults,
    /// Bytes of a unit of coherence: see [`Job::unit`].
    pub unit_bytes: u32,
    /// The limit of the shared heap in bytes, a multiple of 2 MiB.
    pub heap_bytes: u64,
    /// The memory of each node, by node. With `tcp` a process may use only that of its own node.
    pub memory: Vec<NodeMemory>,
    /// The protocol, one of [`protocols::PROTOCOLS`] that runs over the transport.
    pub protocol: String,
    /// What the launcher's runtime lays out in memory and sends, as one number: a process built with another is refused.
    pub layout: u64,
    /// What of the runtime was chosen beside the protocol.
    pub switches: switches::Switches,
    /// What mistakes of the program are looked for.
    pub checks: checks::Checks,
    /// With [`checks::Checks::globals`]: descriptor of the table in which processes note what they do with private variables.
    pub watch: Option<i32>,
    /// How messages are carried, if nodes send any.
    pub messages: messages::Messages,
    /// Where the processes of this host meet that are to share one table of descriptors: the end that processor 0's process reads, and the
    /// one that the others write to. `None`: each keeps its own.
    pub gathering: Option<[i32; 2]>,
    /// The core that each processor stays on, if they are pinned.
    pub pinned: Option<pin::Pinned>,
}

impl Job {
    /// One node with one process and one thread, the smallest heap, and nothing chosen. Its memory is still to be made.
    #[must_use]
    pub fn alone() -> Self {
        Self {
            nodes: 1,
            views: 1,
            threads: 1,
            transport: Transport::Shm,
            faults: Faults::Auto,
            unit_bytes: UnitSize::PAGE.bytes() as u32,
            heap_bytes: 2 << 20,
            memory: Vec::new(),
            protocol: protocols::DEFAULT.to_owned(),
            layout: 0,
            switches: switches::Switches::DEFAULT,
            checks: checks::Checks::default(),
            watch: None,
            messages: messages::Messages::default(),
            gathering: None,
            pinned: None,
        }
    }

    /// What goes by direct access and what by messages. The launcher has checked the name.
    ///
    /// # Panics
    /// If nobody has.
    #[must_use]
    pub fn variant(&self) -> Variant {
        self.named().over(self.transport).expect("whoever makes a job checks its protocol")
    }

    /// What a process of a node reaches.
    ///
    /// # Panics
    /// As [`Job::variant`].
    #[must_use]
    pub fn reach(&self, me: NodeId) -> Reach {
        Reach::of(self.variant(), self.transport, me)
    }

    /// Does anything go by messages?
    ///
    /// # Panics
    /// As [`Job::variant`].
    #[must_use]
    pub fn sends_messages(&self) -> bool {
        self.reach(NodeId(0)).sends_messages()
    }

    /// Whose tables it runs.
    ///
    /// # Panics
    /// As [`Job::variant`].
    #[must_use]
    pub fn family(&self) -> Family {
        self.named().family
    }

    /// Is there a socket between each two nodes?
    ///
    /// # Panics
    /// As [`Job::variant`].
    #[must_use]
    pub fn has_sockets(&self) -> bool {
        self.sends_messages() && self.messages.loopback.is_none()
    }

    /// The descriptors that every process of the job has, beside those of nodes' memory.
    pub fn common_descriptors(&self) -> impl Iterator<Item = i32> {
        let loopback = self.messages.loopback.iter();
        let loopback =
            loopback.flat_map(|loopback| [loopback.memory].into_iter().chain(loopback.doorbells.iter().copied()));
        self.watch.into_iter().chain(loopback).chain(self.gathering.iter().copied().flatten())
    }

    /// The descriptors of the job that every process of a node has: of the memory that it maps, and the common ones.
    ///
    /// # Panics
    /// As [`Job::variant`].
    #[must_use]
    pub fn descriptors_at(&self, node: u32) -> Vec<i32> {
        let reach = self.reach(NodeId::of(node as usize));
        let mapped = self.memory.iter().zip(0..).filter(|&(_, of)| reach.maps(NodeId(of)));
        mapped.flat_map(|(memory, _)| [memory.frames, memory.segment]).chain(self.common_descriptors()).collect()
    }

    fn named(&self) -> &'static protocols::Named {
        protocols::named(&self.protocol, self.transport).expect("whoever makes a job checks its protocol")
    }

    /// The size of its units.
    ///
    /// # Panics
    /// If it is none. Whatever makes a job has it from a [`UnitSize`].
    #[must_use]
    pub fn unit(&self) -> UnitSize {
        UnitSize::of(self.unit_bytes as usize).expect("a job is made with a size of units")
    }

    /// Processors of the whole job.
    #[must_use]
    pub const fn processors(&self) -> u32 {
        self.nodes * self.views * self.threads
    }
}

/// What a process of the program tells its node's service process over [`ENV_CONTROL`], one JSON line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// `fsp_init` succeeded, with this fault mechanism.
    Started {
        /// What is used.
        faults: Faults,
    },
    /// `fsp_finalize` ran: the process may now end with any code.
    Finalized,
    /// What this process was begins anew as a copy of processor 0's process, which tells the rest on this stream; this one ends.
    Moving,
    /// It has begun.
    Moved {
        /// Its process id.
        pid: u32,
    },
    /// The program ends here, with all its threads, and with this exit code: exit() in a program of many threads.
    Exited {
        /// The exit code of the job.
        exit_code: i32,
    },
    /// The connection to a node closed, or the node does not answer. That is seldom the cause: the launcher waits a
    /// moment for the message that names it, and only then ends the job by this one.
    PeerLost {
        /// The node that is gone.
        node: u32,
    },
    /// With [`checks::Checks::pointers`]: a pointer to private memory was found in shared memory.
    PrivatePointer(PrivatePointer),
    /// An error that ends the job, already worded for the user (the Display of `finespun_errors::Report`).
    Failed {
        /// The whole message.
        message: String,
        /// The exit code of the job.
        exit_code: i32,
        /// Where the program is loaded, to give addresses in the message their names; 0: not known.
        #[serde(default)]
        image: u64,
    },
    /// With `--check locks`: a lock of the C library is used in a private variable of the program.
    Locked {
        /// The function.
        call: String,
        /// The lock's address.
        address: u64,
        /// Where the program is loaded.
        image: u64,
    },
}

/// What a process of a program of threads is, told to the one of whose descriptors it is to have a share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its node.
    pub node: u32,
    /// Its view.
    pub view: u32,
    /// To which nodes it has a connection, by node; empty if to none.
    pub peers: Vec<bool>,
    /// The cores that it may run on.
    pub cores: Vec<u32>,
}

/// A word of shared memory that is an address of its process's private memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivatePointer {
    /// Where it stands, in the shared space.
    pub address: u64,
    /// What it is.
    pub value: u64,
    /// What memory that is, as a sentence has it.
    pub memory: String,
    /// If that is the program's own (a variable, a function, a constant): the linker's address of it.
    pub in_program: Option<u64>,
    /// It stands in a global variable of the program, which is shared: `address` is the linker's too.
    pub in_variable: bool,
    /// The processor that was about to release it.
    pub processor: u32,
    /// The program's file.
    pub program: String,
}
