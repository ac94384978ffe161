//! `--check globals`: the program's private variables, watched from the moment at which processes may differ.
//!
//! That is the start of the runtime: before it every process does the same (in the main model, all run main as far as `fsp_init`),
//! and what is set there is the same everywhere. Whatever a process changes later, the others do not see.

use std::ops::Range;

use finespun_errors::Code;
use finespun_sys::watch::{self, table};

use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::sys::descriptors;
use crate::{buffers, meter, process};

/// Watches from now on, if the job asks for it. `shared` are the addresses of variables that are shared.
///
/// # Errors
/// [`Code::Machine`] if it cannot be done.
pub fn begin(cluster: &Cluster, shared: &Range<usize>) -> Result<(), Failure> {
    let Some(fd) = cluster.job.watch.map(descriptors::borrow) else { return Ok(()) };
    let refuse = |error| {
        let what = format!(
            "--check globals: {error}; it works on x86-64, in programs that are linked with libfinespun.so, not libfinespun.a"
        );
        Failure::new(Code::Machine, what)
    };
    if !shared.is_empty() {
        return table::nothing_to_watch(fd).map_err(refuse);
    }
    let (nodes, views) = (cluster.job.nodes as usize, cluster.job.views as usize);
    let own = table::Own {
        process: usize::from(cluster.me.0) * views + usize::from(cluster.my_view().0),
        processors_each: cluster.job.threads,
        processes: nodes * views,
    };
    let variables = watch::begin(fd, own, processor).map_err(refuse)?;
    // The kernel has no rights there either: its transfers go by loads and stores, which are seen.
    buffers::watched(variables);
    Ok(())
}

/// The calling thread's processor; for a thread that is none, the first of its process.
fn processor() -> u32 {
    let Some(runtime) = process::started() else { return 0 };
    let cluster = runtime.cluster;
    let first = usize::from(cluster.my_view().0) * cluster.shape.threads;
    let own = first..first + cluster.shape.threads;
    cluster.processor_at(meter::slot_index().filter(|slot| own.contains(slot)).unwrap_or(first)).0
}

/// No more.
pub fn end() {
    watch::end();
}
