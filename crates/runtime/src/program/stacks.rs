//! Shared stacks for the program's threads ([`crate::process::stacks`]): pieces of the shared heap, each at the node of its thread.

use std::sync::atomic::{AtomicUsize, Ordering};

use finespun_errors::Code;
use finespun_sys::stack;
use finespun_types::PAGE_BYTES;

use super::Result;
use super::memory::{Home, allocate, free};
use crate::node::failure::Failure;
use crate::node::{hooks, runtime};

/// No stack is smaller, whatever its thread asked for: a fault's frames do not lie there, but a printf's do.
const SMALLEST: usize = 16 * PAGE_BYTES;
/// A stack of the usual size takes no more of the heap than this part, so that a hundred threads fit into a small one.
const PART_OF_HEAP: usize = 256;

/// Stacks of the usual size that wait for the process's next threads; 0 where there is none.
static IDLE: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];

/// Gives the calling thread, whose place this process is, a shared stack of so many bytes; 0 stands for `usual` ones, or fewer in a small
/// heap.
///
/// # Errors
/// [`Code::HeapExhausted`], [`Code::Machine`].
pub fn begin(asked: usize, usual: usize) -> Result<()> {
    let cluster = runtime::runtime()?.cluster;
    let usual = usual_size(cluster.job.heap_bytes, usual);
    let bytes = if asked == 0 { usual } else { size(asked) };
    let idle = IDLE.iter().filter(|_| bytes == usual).map(|place| place.swap(0, Ordering::Acquire)).find(|at| *at > 0);
    let address = match idle {
        Some(address) => address,
        None => allocate(bytes as u64, PAGE_BYTES as u64, Home::Node(usize::from(cluster.me.0)))?.address,
    };
    if let Some(told) = hooks::stores() {
        told.is_stack(&(address..address + bytes));
    }
    stack::begin(address..address + bytes)
        .map_err(|error| Failure::new(Code::Machine, format!("memory for a thread's signals: {error}")))
}

fn usual_size(heap_bytes: u64, usual: usize) -> usize {
    size(usual.min(heap_bytes as usize / PART_OF_HEAP))
}

/// With the guard, in whole pages.
fn size(bytes: usize) -> usize {
    bytes.max(SMALLEST).next_multiple_of(PAGE_BYTES) + stack::GUARD_BYTES
}

/// Takes the calling thread's shared stack back, if it has one: nobody may look at it any more.
///
/// # Errors
/// A bug of ours.
pub fn end(usual: usize) -> Result<()> {
    let (Some(stack), Some(runtime)) = (stack::end(), runtime::running()) else { return Ok(()) };
    let is_usual = stack.len() == usual_size(runtime.cluster.job.heap_bytes, usual);
    let keeps =
        |place: &AtomicUsize| place.compare_exchange(0, stack.start, Ordering::Release, Ordering::Relaxed).is_ok();
    if is_usual && IDLE.iter().any(keeps) {
        return Ok(());
    }
    free(stack.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_whole_pages_with_its_guard_and_never_too_small() {
        assert_eq!(size(1), SMALLEST + stack::GUARD_BYTES);
        assert_eq!(size(SMALLEST + 1), SMALLEST + PAGE_BYTES + stack::GUARD_BYTES);
    }

    #[test]
    fn a_usual_stack_takes_a_small_part_of_the_heap() {
        let usual = 8 << 20;
        assert_eq!(usual_size(1 << 40, usual), size(usual));
        assert_eq!(usual_size(256 << 20, usual), size(1 << 20));
        assert_eq!(usual_size(1 << 20, usual), size(SMALLEST));
    }
}
