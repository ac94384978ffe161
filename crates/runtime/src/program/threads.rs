//! Threads on any processor, as a program makes them.

use std::sync::atomic::{AtomicU32, Ordering};

use finespun_errors::Code;
use finespun_sync::threads::Handle;
use finespun_sys::process::SignalsBlocked;
use finespun_types::{PAGE_BYTES, ProcessorId};

use super::{Entered, Result, inside, stacks};
use crate::consistency;
use crate::node::failure::Failure;
use crate::node::runtime::{self, Model, running, runtime};
use crate::sync::places::{self, Work};
use crate::sync::threads;

/// Creates a thread on an idle processor, or on the given one; `None` when there is none.
///
/// # Errors
/// [`Code::Argument`].
pub fn create_thread(on: Option<usize>, function: usize, argument: u64) -> Result<Option<u64>> {
    inside(move |entered| {
        let cluster = entered.cluster;
        let on = match on {
            Some(processor) if processor < cluster.shape.processors() => Some(ProcessorId(processor as u32)),
            Some(processor) => {
                let what = format!("fsp_thread_create_on: processor {processor} of {}", cluster.shape.processors());
                return Err(Failure { code: Code::Argument, what });
            }
            None => None,
        };
        let function = offset_of_function(entered, function)?;
        consistency::release(cluster);
        Ok(threads::create(cluster, entered.slot, on, function, argument)?.map(|handle| handle.0))
    })
}

fn offset_of_function(entered: &Entered, function: usize) -> Result<u64> {
    entered.runtime.program.offset_of(function).ok_or_else(|| {
        let what = format!("the function at {function:#x} is not one of the program itself");
        Failure::new(Code::Argument, what)
    })
}

/// Waits for the end of a thread: its result.
///
/// # Errors
/// [`Code::Argument`].
pub fn join_thread(handle: u64) -> Result<u64> {
    inside(move |entered| {
        let result = threads::join(entered.cluster, entered.slot, Handle(handle))?;
        consistency::acquire(entered.cluster);
        Ok(result)
    })
}

/// Creates a thread on an idle processor, or beside others; near a node, or by turns. `None` when every place is taken.
/// In the model of threads only. The stack's size, in bytes, is 0 for the usual one.
///
/// # Errors
/// [`Code::Argument`].
pub fn spawn_thread(near: Option<u32>, stack: usize, function: usize, argument: u64) -> Result<Option<u64>> {
    inside(move |entered| {
        let cluster = entered.cluster;
        let offset = offset_of_function(entered, function)?;
        let pages = (stack.div_ceil(PAGE_BYTES) as u64).min(STACK_PAGES_MAX);
        consistency::release(cluster);
        let function = offset | pages << STACK_SHIFT;
        Ok(threads::spawn(cluster, entered.slot, near, function, argument)?.map(|handle| handle.0))
    })
}

/// The size of a thread's stack, in pages, stands above the offset of its function.
const STACK_SHIFT: u32 = 40;
const STACK_PAGES_MAX: u64 = (1 << (u64::BITS - STACK_SHIFT)) - 1;

/// The size of the stack that a thread was asked for with; 0 for the usual one.
#[must_use]
pub const fn stack_of(work: &Work) -> usize {
    (work.function >> STACK_SHIFT) as usize * PAGE_BYTES
}

/// A function of the program as an offset that means the same in every process.
///
/// # Errors
/// [`Code::Argument`] if it is none of the program's.
pub fn function_offset(function: usize) -> Result<u64> {
    inside(move |entered| offset_of_function(entered, function))
}

/// The address of such an offset in this process.
#[must_use]
pub fn function_at(offset: u64) -> Option<usize> {
    running()?.program.address_of(offset)
}

/// Is this the process that runs main?
#[must_use]
pub fn is_main_process() -> bool {
    running().is_some_and(|runtime| {
        let cluster = runtime.cluster;
        cluster.processor_at(usize::from(cluster.my_view().0) * cluster.shape.threads).0 == 0
    })
}

/// Makes the threads of this process until the job ends. In a thread that does nothing else.
pub fn keep_places(make: fn(Work)) {
    if let Some(runtime) = running() {
        places::keep(runtime.cluster, make);
    }
}

/// The calling thread is the one that [`spawn_thread`] asked for: the address of its function.
///
/// # Errors
/// [`Code::Builds`], [`Code::NotStarted`].
pub fn begin_thread(work: Work) -> Result<usize> {
    let runtime = runtime()?;
    let offset = work.function & ((1 << STACK_SHIFT) - 1);
    let Some(address) = runtime.program.address_of(offset) else {
        let what = format!("a thread was to run offset {offset:#x}, which is not in this program");
        return Err(Failure { code: Code::Builds, what });
    };
    let _signals = SignalsBlocked::new();
    places::begin(runtime.cluster, work);
    Ok(address)
}

/// The calling thread, one of [`spawn_thread`], has come to its end. It must make no call afterwards.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn end_thread(result: u64) -> Result<()> {
    inside(move |entered| places::end(entered.cluster, result))
}

/// The handle of the calling thread, if it is one of [`spawn_thread`].
#[must_use]
pub fn own_thread() -> Option<u64> {
    runtime::own_thread()
}

/// Nobody will join the thread.
///
/// # Errors
/// [`Code::Argument`].
pub fn detach_thread(handle: u64) -> Result<()> {
    inside(move |entered| threads::detach(entered.cluster, entered.slot, Handle(handle)))
}

/// Waits until no thread of the job runs, besides main.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn await_all_threads() -> Result<()> {
    inside(move |entered| {
        consistency::release(entered.cluster);
        threads::await_quiet(entered.cluster, entered.slot)?;
        consistency::acquire(entered.cluster);
        Ok(())
    })
}

/// The calls of `fsp_parallel` under way in this process.
pub(super) static PARALLEL: AtomicU32 = AtomicU32::new(0);

/// Runs `body`, which runs a function on all of [`parallel_processors`], as an `fsp_parallel`.
pub fn in_parallel<R>(body: impl FnOnce() -> R) -> R {
    PARALLEL.fetch_add(1, Ordering::Relaxed);
    let result = body();
    PARALLEL.fetch_sub(1, Ordering::Relaxed);
    result
}

/// The processors, besides the caller's, on which `fsp_parallel` runs a function: all of the job in the main model, those
/// of the process in SPMD.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn parallel_processors() -> Result<std::ops::Range<usize>> {
    let runtime = runtime()?;
    let (cluster, shape) = (runtime.cluster, &runtime.cluster.shape);
    Ok(match runtime.model {
        Model::Main | Model::Threads => 0..shape.processors(),
        Model::Spmd => {
            let first = cluster.processor_at(usize::from(cluster.my_view().0) * shape.threads).0 as usize;
            first..first + shape.threads
        }
    })
}

/// Gives the calling thread a stack in the shared space; see the module `stacks`. After [`begin_thread`], or in main.
///
/// # Errors
/// [`Code::HeapExhausted`], [`Code::Machine`].
pub fn begin_stack(asked: usize, usual: usize) -> Result<()> {
    stacks::begin(asked, usual)
}

/// Takes it back, if the thread has one.
///
/// # Errors
/// A bug of ours.
pub fn end_stack(usual: usize) -> Result<()> {
    stacks::end(usual)
}
