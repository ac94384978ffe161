//! The memory of a job: for each node the frames and the node segment, both without a name in any file system.
//!
//! What stands in a segment is the runtime's; this file is all that the launcher knows of it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use finespun_job::{Job, NodeMemory, messages};
use finespun_runtime::limits;
use finespun_runtime::segment::{self, Told};
use finespun_sys::descriptors;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// The memory of one node, open in the launcher.
#[derive(Debug)]
pub struct Memory {
    /// The frames: sparse.
    pub frames: OwnedFd,
    /// The node segment.
    pub segment: OwnedFd,
}

impl Memory {
    /// Makes the memory of node `node`: address space only, pages come as they are touched.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn create(job: &Job, node: u32) -> io::Result<Self> {
        let make = |name, what, bytes| {
            let made = sparse(&format!("finespun-{name}-n{node}"), bytes);
            made.map_err(|error| io::Error::other(limits::refused(&limits::file(job, what, bytes), &error)))
        };
        let frames = make("frames", "pages", segment::frame_bytes(job))?;
        let segment = make("segment", "tables", segment::segment_bytes(job))?;
        Ok(Self { frames, segment })
    }

    /// The descriptors' numbers, the same in every process.
    #[must_use]
    pub fn numbers(&self) -> NodeMemory {
        NodeMemory { frames: self.frames.as_raw_fd(), segment: self.segment.as_raw_fd() }
    }
}

/// The table of `--check globals`, for all nodes: sparse too.
///
/// # Errors
/// What the kernel says.
pub fn watch_table() -> io::Result<OwnedFd> {
    sparse("finespun-watch", finespun_sys::watch::table::TABLE_BYTES as u64)
}

/// What carries messages between nodes if no sockets do, open in the launcher.
#[derive(Debug)]
pub struct Loopback {
    memory: OwnedFd,
    doorbells: Vec<OwnedFd>,
}

impl Loopback {
    /// For so many nodes: address space only, pages come as they are touched.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn create(nodes: u32) -> io::Result<Self> {
        let memory =
            sparse("finespun-messages", finespun_transport::Loopback::<OwnedFd>::bytes(nodes as usize) as u64)?;
        let doorbells = (0..nodes).map(|_| finespun_transport::doorbell()).collect::<io::Result<_>>()?;
        Ok(Self { memory, doorbells })
    }

    /// The descriptors' numbers, the same in every process.
    #[must_use]
    pub fn numbers(&self) -> messages::Loopback {
        let doorbells = self.doorbells.iter().map(AsRawFd::as_raw_fd).collect();
        messages::Loopback { memory: self.memory.as_raw_fd(), doorbells }
    }
}

/// A memfd that holds `contents` and can no longer be changed. Read it with pread: all processes share its position.
///
/// # Errors
/// What the kernel says.
pub fn sealed(name: &str, contents: &[u8]) -> io::Result<OwnedFd> {
    let file = File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
    file.write_all_at(contents, 0)?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    descriptors::aside(file)
}

/// All that a memfd holds, leaving its position where it is.
///
/// # Errors
/// What the kernel says.
pub fn contents(fd: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let file = File::from(fd.try_clone_to_owned()?);
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut contents = vec![0; length];
    file.read_exact_at(&mut contents, 0)?;
    Ok(contents)
}

/// Zeros that take memory as they are touched, of a size that no process can change.
fn sparse(name: &str, bytes: u64) -> io::Result<OwnedFd> {
    let name = CString::new(name).map_err(io::Error::other)?;
    finespun_sys::memory::create(&name, usize::try_from(bytes).map_err(io::Error::other)?)
}

/// The counters of a node's processors, by processor.
///
/// # Errors
/// What the kernel says.
pub fn read(memory: &Memory, job: &Job) -> io::Result<Told> {
    segment::read(memory.segment.as_fd(), memory.frames.as_fd(), job)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use finespun_job::Job;
    use finespun_types::Counters;

    use super::{Memory, contents, read, sealed};

    #[test]
    fn a_sealed_memfd_keeps_its_contents() {
        let fd = sealed("test", b"hello").expect("a memfd");
        assert_eq!(contents(fd.as_fd()).expect("readable"), b"hello");
        assert_eq!(contents(fd.as_fd()).expect("readable again"), b"hello");
        assert!(File::from(fd).write_all_at(b"j", 0).is_err());
    }

    #[test]
    fn a_fresh_node_has_a_sparse_heap_and_zero_counters() {
        let job = Job { views: 2, threads: 3, heap_bytes: 1 << 36, ..Job::alone() };
        let memory = Memory::create(&job, 0).expect("memory");
        assert_eq!(read(&memory, &job).expect("counters").processors, [Counters::ZERO; 6]);
        assert!(File::from(memory.frames).metadata().expect("metadata").len() >= 1 << 36);
    }
}
