//! Stacks of the program's threads in the shared space (`fspcc --share-stacks`): a pointer to a local variable of one thread means
//! the same to all.
//!
//! A stack is a piece of the shared heap whose home is the thread's node, so that its own pushes stay there. What it takes to run on
//! pages that may lose their rights is in `finespun_sys::stack`; calls of the program leave them at one place
//! (`program::inside`). Threads get them in `program::stacks`.
//!
//! **System calls.** What the C library gives the kernel is most often a small object in the frame that makes the call, and where
//! that page is not writable the call fails with `EFAULT`. So a call of ours, at whose acquire or release pages lose rights, makes
//! those around the stack pointer writable again before the program goes on ([`revive`]). That saves their faults too.

use std::ops::Range;

use finespun_sys::stack;
use finespun_types::PAGE_BYTES;

use crate::node::cluster::Cluster;
use crate::process::buffers;
use crate::sys::{descriptors, window};

/// Below the stack pointer: what the frames of a C library's function take that makes a system call.
const BELOW: usize = PAGE_BYTES;
/// Above: variables of the caller.
const ABOVE: usize = 1024;

/// Makes the pages around the calling thread's stack pointer writable, if it left a shared stack to come here.
pub fn revive() {
    let (Some(at), Some(stack)) = (stack::left_at(), stack::of_caller()) else { return };
    let pages = around(at, &stack);
    buffers::make_valid(pages.start, pages.len(), true);
}

/// What of a stack is used next from this stack pointer on, and by the caller.
fn around(at: usize, stack: &Range<usize>) -> Range<usize> {
    at.saturating_sub(BELOW).max(stack.start)..(at + ABOVE).min(stack.end)
}

/// The runtime ends while main stands on a shared stack: from now on that is a private copy.
pub fn keep_private(cluster: &Cluster) {
    let Some(stack) = stack::of_caller() else { return };
    let Some((_, mapping)) = &cluster.view else { return };
    if let Some(at) = stack::left_at() {
        let from = around(at, &stack).start;
        buffers::make_valid(from, stack.end - from, false);
    }
    let frames = cluster.job.memory[usize::from(cluster.me.0)].frames;
    let offset = stack.start - mapping.addresses().start;
    // If the kernel has no room for it, the stack stays as it is, and may fault with nobody to serve it.
    let _ = window::map_private(descriptors::borrow(frames), &stack, offset);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_revived_stays_inside_the_stack() {
        let stack = 0x10_0000..0x20_0000;
        assert_eq!(around(0x18_0000, &stack), 0x18_0000 - BELOW..0x18_0000 + ABOVE);
        assert_eq!(around(0x10_0010, &stack), 0x10_0000..0x10_0010 + ABOVE);
        assert_eq!(around(0x1f_fff0, &stack), 0x1f_fff0 - BELOW..0x20_0000);
    }
}
