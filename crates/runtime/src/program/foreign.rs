//! Locks and mappings of the C library, in shared memory: its calls for them are asked about.

use finespun_errors::Code;

use super::Result;
use crate::node::failure::Failure;
use crate::node::runtime::running;
use crate::process::buffers;

/// The C library is called to lock what stands at this address of shared memory.
///
/// # Errors
/// [`Code::NodeLock`] where that would lock for one node only.
pub fn lock_of_one_node(address: usize, call: &str) -> Result<()> {
    // On one node it works, between processes if it was made for several.
    let Some(runtime) = running().filter(|runtime| runtime.cluster.shape.nodes > 1) else { return Ok(()) };
    let node = runtime.cluster.me.0;
    let what = format!(
        "{call} of the C library is called for {address:#x}, which is shared memory: it would lock for node {node} only"
    );
    Err(Failure { code: Code::NodeLock, what })
}

/// The C library is called to change the mapping of these addresses.
///
/// # Errors
/// [`Code::Mapping`] if they are shared.
pub fn mapping_of_program(address: usize, bytes: usize, call: &str) -> Result<()> {
    if running().is_none() || !buffers::is_shared(address, bytes) {
        return Ok(());
    }
    let what = format!("{call} is called for {bytes} bytes at {address:#x}, which is shared memory");
    Err(Failure { code: Code::Mapping, what })
}
