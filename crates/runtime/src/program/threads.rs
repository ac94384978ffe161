//! Threads on any processor, as a program makes them.

use std::sync::atomic::{AtomicU32, Ordering};

use finespun_errors::Code;
use finespun_sync::threads::Handle;
use finespun_types::ProcessorId;

use super::{Entered, Result, enter};
use crate::misuse::Failure;
use crate::start::{Model, runtime};
use crate::{consistency, threads};

/// Creates a thread on an idle processor, or on the given one; `None` when there is none.
///
/// # Errors
/// [`Code::Argument`].
pub fn create_thread(on: Option<usize>, function: usize, argument: u64) -> Result<Option<u64>> {
    let entered = enter()?;
    let cluster = entered.cluster;
    let on = match on {
        Some(processor) if processor < cluster.shape.processors() => Some(ProcessorId(processor as u32)),
        Some(processor) => {
            let what = format!("fsp_thread_create_on: processor {processor} of {}", cluster.shape.processors());
            return Err(Failure { code: Code::Argument, what });
        }
        None => None,
    };
    let function = offset_of_function(&entered, function)?;
    consistency::release(cluster);
    Ok(threads::create(cluster, entered.slot, on, function, argument)?.map(|handle| handle.0))
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
    let entered = enter()?;
    let result = threads::join(entered.cluster, entered.slot, Handle(handle))?;
    consistency::acquire(entered.cluster);
    Ok(result)
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
        Model::Main => 0..shape.processors(),
        Model::Spmd => {
            let first = cluster.processor_at(usize::from(cluster.my_view().0) * shape.threads).0 as usize;
            first..first + shape.threads
        }
    })
}
