//! What a process is given when it begins: by the launcher in descriptors and in the environment, or nothing.

use std::os::fd::{AsRawFd, OwnedFd};

use finespun_errors::Code;
use finespun_job::{self as job, Faults, Job, NodeMemory, Transport};
use finespun_sys::descriptors::keep;
use finespun_sys::machine;
use finespun_sys::view::Mechanism;
use finespun_types::{NodeId, SPACE_BASE, UnitSize, ViewId};

use crate::node::failure::Failure;
use crate::node::limits;
use crate::sys::descriptors;
use crate::sys::shape::{Shape, fingerprint};

/// What the launcher gave to the process.
pub struct Inherited {
    /// The job.
    pub job: Job,
    /// The process's node.
    pub node: NodeId,
    /// Its view.
    pub view: ViewId,
    /// Connections to the other nodes.
    pub sockets: Vec<Option<OwnedFd>>,
    /// The stream to the node's service process.
    pub control: Option<OwnedFd>,
}

impl Inherited {
    /// From the environment; a job of one processor where there is none.
    ///
    /// # Errors
    /// [`Code::Closed`], [`Code::Machine`], [`Code::Usage`].
    pub fn read() -> Result<Self, Failure> {
        let Some(fd) = number(job::ENV_JOB)? else { return Self::alone() };
        let text = descriptors::read_all(fd).map_err(|error| {
            let code = if error.kind() == std::io::ErrorKind::NotFound { Code::Closed } else { Code::Machine };
            Failure::new(code, format!("fsp_init: the job's description, {}={fd}: {error}", job::ENV_JOB))
        })?;
        let parsed: Job = serde_json::from_slice(&text).map_err(|error| {
            Failure::new(Code::Usage, format!("{}={fd} is no job description: {error}", job::ENV_JOB))
        })?;
        let sockets = match std::env::var(job::ENV_SOCKETS) {
            Ok(list) => list.split(',').map(|fd| fd.parse().ok().and_then(descriptors::own)).collect(),
            Err(_) => Vec::new(),
        };
        let inherited = Self {
            job: parsed,
            node: NodeId(number(job::ENV_NODE)?.unwrap_or(0) as u8),
            view: ViewId(number(job::ENV_VIEW)?.unwrap_or(0) as u8),
            sockets,
            control: number(job::ENV_CONTROL)?.and_then(descriptors::own),
        };
        inherited.keep_from_children(fd);
        Ok(inherited)
    }

    /// What the program executes is no part of the job: it gets neither the descriptors nor the variables.
    fn keep_from_children(&self, job_fd: i32) {
        let of_nodes = self.job.memory.iter().flat_map(|memory| [memory.frames, memory.segment]);
        let own = self.sockets.iter().flatten().chain(&self.control).map(AsRawFd::as_raw_fd);
        for fd in of_nodes.chain(own).chain([job_fd]).chain(self.job.common_descriptors()) {
            // With messages, other nodes' memory is not open here.
            let _ = descriptors::close_on_exec(fd);
            keep(fd);
        }
        descriptors::forget_variables(&[
            job::ENV_JOB,
            job::ENV_NODE,
            job::ENV_VIEW,
            job::ENV_SOCKETS,
            job::ENV_CONTROL,
            job::ENV_KEEP,
        ]);
    }

    /// Without a launcher: one node, one processor.
    fn alone() -> Result<Self, Failure> {
        let mut job = Job {
            nodes: 1,
            views: 1,
            threads: 1,
            transport: Transport::Shm,
            faults: Faults::Auto,
            unit_bytes: UnitSize::PAGE.bytes() as u32,
            heap_bytes: machine::default_heap_bytes(),
            memory: Vec::new(),
            protocol: job::protocols::DEFAULT.to_owned(),
            layout: fingerprint(),
            switches: job::switches::Switches::DEFAULT,
            checks: job::checks::Checks::default(),
            watch: None,
            messages: job::messages::Messages::default(),
            pinned: None,
        };
        let shape = Shape::of(&job);
        let create = |name, what, bytes| {
            finespun_sys::memory::create(name, bytes).map_err(|error| {
                Failure::new(Code::Machine, limits::refused(&limits::file(&job, what, bytes as u64), &error))
            })
        };
        let frames = create(c"finespun-frames", "pages", shape.frame_bytes())?;
        let segment = create(c"finespun-segment", "tables", shape.bytes)?;
        job.memory.push(NodeMemory { frames: frames.as_raw_fd(), segment: segment.as_raw_fd() });
        // They live as long as the process.
        std::mem::forget((frames, segment));
        Ok(Self { job, node: NodeId(0), view: ViewId(0), sockets: Vec::new(), control: None })
    }
}

/// Where the shared space begins.
///
/// # Errors
/// [`Code::Usage`].
pub fn space_base() -> Result<usize, Failure> {
    let Some(text) = std::env::var_os("FINESPUN_BASE") else { return Ok(SPACE_BASE) };
    let parsed = text.to_str().and_then(|text| usize::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    parsed.filter(|base| UnitSize::PAGE.divides(*base) && *base > 0).ok_or_else(|| {
        Failure::new(Code::Usage, format!("FINESPUN_BASE={text:?} is no page-aligned hexadecimal address"))
    })
}

/// How faults are caught; `None` for the best that there is.
///
/// # Errors
/// [`Code::Usage`].
pub fn faults_wanted(of_job: Faults) -> Result<Option<Mechanism>, Failure> {
    match std::env::var(job::ENV_FAULTS).as_deref() {
        Ok("mprotect") => Ok(Some(Mechanism::Mprotect)),
        Ok("uffd") => Ok(Some(Mechanism::Uffd)),
        Ok("auto" | "") | Err(_) => Ok(match of_job {
            Faults::Auto => None,
            Faults::Uffd => Some(Mechanism::Uffd),
            Faults::Mprotect => Some(Mechanism::Mprotect),
        }),
        Ok(other) => {
            Err(Failure::new(Code::Usage, format!("FINESPUN_FAULTS={other} is neither auto, uffd nor mprotect")))
        }
    }
}

fn number(name: &str) -> Result<Option<i32>, Failure> {
    match std::env::var(name) {
        Err(_) => Ok(None),
        Ok(text) => match text.parse() {
            Ok(number) if number >= 0 => Ok(Some(number)),
            Ok(_) | Err(_) => Err(Failure::new(Code::Usage, format!("{name}={text} is no descriptor or number"))),
        },
    }
}
