//! The program's own global variables, in the shared space.
//!
//! A program linked by `fspcc --share-globals` has its `.data` and `.bss` in whole pages of their own, at the same addresses in
//! every process (it is linked to run at a fixed address). Those pages become a *window* of the view: the addresses stay, the
//! memory behind them is a run of units of the shared heap. So a pointer to a global is a pointer into the shared space.
//!
//! ```text
//!                 text  private  [ .data .. .bss )  private        0x200000000000   heap ..
//!                                      |                                 |  units of the heap
//!                                      +---------- the window -----------+  a run of them stands here instead
//! ```
//!
//! Every process opens the window before the program's first constructor runs. Process 0 copies what the linker put there, by
//! stores that fault as any, and goes on; the others have no copy of any page and serve, so they see it by their first acquire.
//! What the program's own libraries keep (the C library's variables, also those that the linker copies into the program, such
//! as `stdout`) stays outside the window, private to each process.
//!
//! In a child made by fork, and in process 0 after the end, the window is a private copy.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use finespun_engine::allocation::Call;
use finespun_errors::Code;
use finespun_sys::signals::Inside;
use finespun_sys::stack;
use finespun_types::{NodeId, PAGE_BYTES, ViewId};

use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::{meter, runtime};
use crate::process::buffers;
use crate::sync::memory;
use crate::sync::touched::Walk;
use crate::sys::{descriptors, window};

/// For the child of a fork, which may not look far: the node's frames, and the window's place in them. No descriptor: none.
static FRAMES: AtomicUsize = AtomicUsize::new(usize::MAX);
static OFFSET: AtomicUsize = AtomicUsize::new(0);

/// Makes the variables at these addresses shared; what they hold in process 0, which [`fill`] is to put back, and nothing in the
/// others. All processes do this before anything else is allocated.
///
/// # Errors
/// [`Code::HeapExhausted`], [`Code::Machine`], [`Code::Argument`].
pub fn open(cluster: &mut Cluster, slot: usize, addresses: &Range<usize>) -> Result<Vec<u8>, Failure> {
    if !addresses.start.is_multiple_of(PAGE_BYTES) || !addresses.len().is_multiple_of(PAGE_BYTES) {
        return Err(Failure::new(
            Code::Argument,
            format!("the program's globals, at {addresses:x?}, are no whole pages"),
        ));
    }
    let size = addresses.len() as u64;
    // The first collective allocation of the job: whoever comes first makes it, and the others get the same.
    let (offset, _) = memory::call(cluster, slot, Call::Together { number: 1, size })?;
    let frames = cluster.job.memory[usize::from(cluster.me.0)].frames;
    let is_first = cluster.me == NodeId(0) && cluster.my_view() == ViewId(0);
    let contents = if is_first { window::copy(addresses) } else { Vec::new() };
    let (_, mapping) = cluster.view.as_mut().expect("only a process of the program has globals");
    window::open(mapping, descriptors::borrow(frames), addresses, offset as usize / PAGE_BYTES)
        .map_err(|error| Failure::new(Code::Machine, format!("the program's globals could not be shared: {error}")))?;
    FRAMES.store(frames as usize, Ordering::Relaxed);
    OFFSET.store(offset as usize, Ordering::Relaxed);
    Ok(contents)
}

/// Puts back what [`open`] took, once faults are served. Pages of zeros are left alone: shared memory begins as zeros, and who
/// uses them first is to be their home.
pub fn fill(addresses: &Range<usize>, contents: &[u8]) {
    for (page, bytes) in contents.chunks(PAGE_BYTES).enumerate() {
        if bytes.iter().any(|&byte| byte != 0) {
            window::store(addresses, page * PAGE_BYTES, bytes);
        }
    }
}

/// What process 0's exit runs after the end of the runtime (destructors, the C library) finds the globals as they are now.
pub fn keep_private(cluster: &'static Cluster) {
    let Some((_, mapping)) = &cluster.view else { return };
    let addresses = mapping.window();
    if !addresses.is_empty() {
        fetch(cluster, &addresses);
        cluster.globals_are_private.store(true, Ordering::SeqCst);
        copy_over(&addresses);
    }
}

/// Before a fork: every global is valid here, so that the child has them all.
pub extern "C" fn before_fork() {
    if let Some(runtime) = runtime::running()
        && let Some((_, mapping)) = &runtime.cluster.view
    {
        fetch(runtime.cluster, &mapping.window());
    }
}

/// Makes valid what a node has touched of the globals. The rest is zero in this node's frames as everywhere.
fn fetch(cluster: &'static Cluster, addresses: &Range<usize>) {
    let (first, size) = (addresses.start, cluster.shape.unit);
    let units = size.units_for(addresses.len() as u64) as u32;
    let Some(unit) = cluster.unit_at(first).map(|unit| unit.0) else { return };
    stack::on_private(move || {
        let _signals = Inside::new();
        let mut walk = Walk::over(unit..unit + units);
        // No program can make a manager refuse the question.
        while let Ok(Some(run)) = memory::next_touched(cluster, meter::slot_index(), &mut walk) {
            let from = first + size.bytes_of((run.start - unit) as usize);
            buffers::make_valid(from, size.bytes_of(run.len()), false);
        }
    });
}

/// In the child of a fork: its own copy of the globals.
pub fn in_child(cluster: &Cluster) {
    if let Some((_, mapping)) = &cluster.view
        && !mapping.window().is_empty()
    {
        copy_over(&mapping.window());
    }
}

fn copy_over(addresses: &Range<usize>) {
    let frames = FRAMES.load(Ordering::Relaxed) as i32;
    // If the kernel has no room for it, touching a global is a fault, and ends the process with a signal.
    let _ = window::map_private(descriptors::borrow(frames), addresses, OFFSET.load(Ordering::Relaxed));
}
