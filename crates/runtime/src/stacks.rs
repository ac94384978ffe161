//! Stacks of the program's threads in the shared space (`fspcc --share-stacks`): a pointer to a local variable of one thread means
//! the same to all.
//!
//! A stack is a piece of the shared heap whose home is the thread's node, so that its own pushes stay there. What it takes to run on
//! pages that may lose their rights is in `finespun_sys::stack`; calls of the program leave them at one place
//! (`program::inside`).
//!
//! **System calls.** What the C library gives the kernel is most often a small object in the frame that makes the call, and where
//! that page is not writable the call fails with `EFAULT`. So a call of ours, at whose acquire or release pages lose rights, makes
//! those around the stack pointer writable again before the program goes on ([`revive`]). That saves their faults too.

use std::sync::atomic::{AtomicUsize, Ordering};

use finespun_errors::Code;
use finespun_sys::stack;
use finespun_types::UNIT_BYTES;

use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::program::{self, Home};
use crate::sys::{descriptors, window};
use crate::{buffers, pointers, process};

/// Below the stack pointer: what the frames of a C library's function take that makes a system call.
const BELOW: usize = UNIT_BYTES;
/// Above: variables of the caller.
const ABOVE: usize = 1024;

/// No stack is smaller, whatever its thread asked for: a fault's frames do not lie there, but a printf's do.
const SMALLEST: usize = 16 * UNIT_BYTES;
/// A stack of the usual size takes no more of the heap than this part, so that a hundred threads fit into a small one.
const PART_OF_HEAP: usize = 256;

/// Stacks of the usual size that wait for the process's next threads; 0 where there is none.
static IDLE: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];

/// Makes the pages around the calling thread's stack pointer writable, if it left a shared stack to come here.
pub fn revive() {
    let (Some(at), Some(stack)) = (stack::left_at(), stack::of_caller()) else { return };
    let from = at.saturating_sub(BELOW).max(stack.start);
    let to = (at + ABOVE).min(stack.end);
    buffers::make_valid(from, to.saturating_sub(from), true);
}

/// Gives the calling thread, whose place this process is, a shared stack of so many bytes; 0 stands for `usual` ones, or fewer in a small
/// heap.
///
/// # Errors
/// [`Code::HeapExhausted`], [`Code::Machine`].
pub fn begin(asked: usize, usual: usize) -> program::Result<()> {
    let cluster = process::runtime()?.cluster;
    let usual = usual_size(cluster, usual);
    let bytes = if asked == 0 { usual } else { size(asked) };
    let idle = IDLE.iter().filter(|_| bytes == usual).map(|place| place.swap(0, Ordering::Acquire)).find(|at| *at > 0);
    let address = match idle {
        Some(address) => address,
        None => program::allocate(bytes as u64, UNIT_BYTES as u64, Home::Node(usize::from(cluster.me.0)))?.address,
    };
    pointers::leave_out(&(address..address + bytes));
    stack::begin(address..address + bytes)
        .map_err(|error| Failure::new(Code::Machine, format!("memory for a thread's signals: {error}")))
}

fn usual_size(cluster: &Cluster, usual: usize) -> usize {
    size(usual.min(cluster.job.heap_bytes as usize / PART_OF_HEAP))
}

/// With the guard, in whole pages.
fn size(bytes: usize) -> usize {
    bytes.max(SMALLEST).next_multiple_of(UNIT_BYTES) + stack::GUARD_BYTES
}

/// Takes the calling thread's shared stack back, if it has one: nobody may look at it any more.
///
/// # Errors
/// A bug of ours.
pub fn end(usual: usize) -> program::Result<()> {
    let (Some(stack), Some(runtime)) = (stack::end(), process::running()) else { return Ok(()) };
    let is_usual = stack.len() == usual_size(runtime.cluster, usual);
    let keeps =
        |place: &AtomicUsize| place.compare_exchange(0, stack.start, Ordering::Release, Ordering::Relaxed).is_ok();
    if is_usual && IDLE.iter().any(keeps) {
        return Ok(());
    }
    program::free(stack.start)
}

/// The runtime ends while main stands on a shared stack: from now on that is a private copy.
pub fn keep_private(cluster: &Cluster) {
    let Some(stack) = stack::of_caller() else { return };
    let Some((_, mapping)) = &cluster.view else { return };
    if let Some(at) = stack::left_at() {
        let from = at.saturating_sub(BELOW).max(stack.start);
        buffers::make_valid(from, stack.end - from, false);
    }
    let frames = cluster.job.memory[usize::from(cluster.me.0)].frames;
    let offset = stack.start - mapping.addresses().start;
    // If the kernel has no room for it, the stack stays as it is, and may fault with nobody to serve it.
    let _ = window::map_private(descriptors::borrow(frames), &stack, offset);
}
