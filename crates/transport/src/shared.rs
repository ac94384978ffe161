//! Where everything lies in the shared memory. The only unsafe code of the crate.
//!
//! ```text
//! 0        Header: which mesh this is; sets of peers
//! 4096     Link of node 0, of node 1, ...: the states of its two queues
//!          queue out of node 0, buffer in of node 0, queue out of node 1, ...
//! ```
//!
//! A node's own place is left unused, so that a place is found by multiplying. The queues are large and the
//! memory is touched only where it is used: untouched, it costs address space alone.

#![allow(unsafe_code)]

use crate::outcome::AttachError;
use crate::queue::{In, InState, Out, OutState};
use finespun_types::{NodeId, NodeSet, Set};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A queue out: what may wait for one peer before a send is refused.
pub(crate) const OUT_BYTES: usize = 16 << 20;
/// A buffer in: four of the longest messages.
pub(crate) const IN_BYTES: usize = 256 << 10;

const HEADER_BYTES: usize = 4096;
/// Two cache lines: processors fetch neighbouring lines in pairs.
const ALIGNMENT: usize = 128;
/// Changes with the layout.
const LAYOUT: u64 = 1;

/// What the node's processes know together of all peers.
#[repr(C, align(128))]
pub(crate) struct Header {
    /// 0 in fresh memory, then which mesh this is: see [`identity`].
    identity: AtomicU64,
    /// Peers with bytes queued. A peer's bit changes under its send lock.
    pub(crate) pending: AtomicU64,
    /// Peers lost. Bits are only ever set.
    pub(crate) gone: AtomicU64,
    /// Those of them that were told.
    pub(crate) reported: AtomicU64,
    /// Threads of the node that sleep until a sender rings; 0 where the kernel wakes them.
    pub(crate) sleepers: AtomicU32,
}

impl Header {
    /// A lost peer of which nothing in the node has been told: each is returned once.
    pub(crate) fn take_gone(&self) -> Option<NodeId> {
        let unreported: NodeSet = Set(self.gone.load(Ordering::Acquire) & !self.reported.load(Ordering::Acquire));
        unreported.iter().find(|&peer| {
            let bit = NodeSet::only(peer).0;
            self.reported.fetch_or(bit, Ordering::AcqRel) & bit == 0
        })
    }
}

/// One peer's part.
#[repr(C)]
pub(crate) struct Link {
    pub(crate) out: OutState,
    pub(crate) r#in: InState,
}

/// The memory of one mesh, in the address space of this process.
pub(crate) struct Shared {
    base: NonNull<u8>,
    nodes: usize,
    /// The states are shared with other processes and threads through atomics and locks.
    _states: PhantomData<&'static Header>,
}

// SAFETY: `base` points to memory that the caller of `attach` promised to keep mapped; the states in it are
// atomics, and the bytes of a queue are reached only through a guard that holds the queue's lock.
unsafe impl Send for Shared {}
// SAFETY: as for Send.
unsafe impl Sync for Shared {}

const fn links_end(nodes: usize) -> usize {
    (HEADER_BYTES + nodes * size_of::<Link>()).next_multiple_of(4096)
}

/// Bytes needed for `nodes` nodes.
pub(crate) const fn bytes(nodes: usize) -> usize {
    links_end(nodes) + nodes * (OUT_BYTES + IN_BYTES)
}

fn identity(me: NodeId, nodes: usize) -> u64 {
    u64::from(u32::from_be_bytes(*b"fspT")) << 32 | LAYOUT << 16 | (nodes as u64) << 8 | u64::from(me.0)
}

impl Shared {
    /// Uses the memory, which is either fresh, all zeroes, or already a mesh of the same node.
    ///
    /// # Safety
    /// `memory` is mapped readable and writable for `len` bytes as long as the result lives, and is used by
    /// nothing but meshes attached to it, in this process or another.
    pub(crate) unsafe fn attach(memory: *mut u8, len: usize, me: NodeId, nodes: usize) -> Result<Self, AttachError> {
        let needed = bytes(nodes);
        if len < needed {
            return Err(AttachError::TooSmall { needed, given: len });
        }
        let base = NonNull::new(memory).ok_or(AttachError::Misaligned)?;
        if !memory.addr().is_multiple_of(ALIGNMENT) {
            return Err(AttachError::Misaligned);
        }
        let shared = Self { base, nodes, _states: PhantomData };
        let ours = identity(me, nodes);
        match shared.header().identity.compare_exchange(0, ours, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(shared),
            Err(there) if there == ours => Ok(shared),
            Err(_) => Err(AttachError::OtherMesh),
        }
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the memory is at least `bytes(nodes)` long, aligned (both checked by `attach`), and zeroes are
        // a Header; it holds only atomics, so other processes may change it at any time.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    pub(crate) fn link(&self, peer: NodeId) -> &Link {
        let index = self.index(peer);
        // SAFETY: `index < nodes`, so the Link ends before `links_end(nodes)`; HEADER_BYTES and the size of a
        // Link are multiples of its alignment, as is `base`; zeroes are a Link, which holds only atomics.
        unsafe { self.base.byte_add(HEADER_BYTES + index * size_of::<Link>()).cast::<Link>().as_ref() }
    }

    /// Takes the peer's send lock, and with it the queue.
    pub(crate) fn lock_out(&self, peer: NodeId) -> Out<'_> {
        let state = &self.link(peer).out;
        let held = state.lock.guard();
        let at = links_end(self.nodes) + self.index(peer) * (OUT_BYTES + IN_BYTES);
        // SAFETY: `index < nodes`, so the queue ends before `bytes(nodes)`, checked by `attach`. The queue is
        // reached only here, with its lock held until the `Out` is gone: nobody else reads or writes it.
        let ring = unsafe { std::slice::from_raw_parts_mut(self.base.byte_add(at).as_ptr(), OUT_BYTES) };
        Out { state, ring, _held: held }
    }

    /// Takes the peer's receive lock, and with it the buffer, unless somebody is receiving from the peer now.
    pub(crate) fn try_lock_in(&self, peer: NodeId) -> Option<In<'_>> {
        let state = &self.link(peer).r#in;
        let held = state.lock.try_guard()?;
        let at = links_end(self.nodes) + self.index(peer) * (OUT_BYTES + IN_BYTES) + OUT_BYTES;
        // SAFETY: as in `lock_out`, with the receive lock.
        let buffer = unsafe { std::slice::from_raw_parts_mut(self.base.byte_add(at).as_ptr(), IN_BYTES) };
        Some(In { state, buffer, _held: held })
    }

    fn index(&self, peer: NodeId) -> usize {
        let index = usize::from(peer.0);
        assert!(index < self.nodes, "node {index} of a mesh of {}", self.nodes);
        index
    }
}
