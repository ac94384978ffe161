//! What a process is given when it begins: by the launcher in descriptors and in the environment, or nothing.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};

use finespun_errors::Code;
use finespun_job::{self as job, Faults, Job, NodeMemory};
use finespun_sys::descriptors::keep;
use finespun_sys::machine;
use finespun_sys::view::Mechanism;
use finespun_types::{NodeId, NodeIndex, SPACE_BASE, UnitSize, ViewId};

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
            node: NodeId(number(job::ENV_NODE)?.unwrap_or(0) as NodeIndex),
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
        let mut job = Job { heap_bytes: machine::default_heap_bytes(), layout: fingerprint(), ..Job::alone() };
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
    std::env::var_os("FINESPUN_BASE").map_or(Ok(SPACE_BASE), |text| base_of(&text))
}

fn base_of(text: &OsStr) -> Result<usize, Failure> {
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
    mechanism_of(std::env::var(job::ENV_FAULTS).as_deref().unwrap_or_default(), of_job)
}

fn mechanism_of(text: &str, of_job: Faults) -> Result<Option<Mechanism>, Failure> {
    match text {
        "mprotect" => Ok(Some(Mechanism::Mprotect)),
        "uffd" => Ok(Some(Mechanism::Uffd)),
        "auto" | "" => Ok(match of_job {
            Faults::Auto => None,
            Faults::Uffd => Some(Mechanism::Uffd),
            Faults::Mprotect => Some(Mechanism::Mprotect),
        }),
        other => Err(Failure::new(Code::Usage, format!("FINESPUN_FAULTS={other} is neither auto, uffd nor mprotect"))),
    }
}

fn number(name: &str) -> Result<Option<i32>, Failure> {
    std::env::var(name).ok().map(|text| number_of(name, &text)).transpose()
}

fn number_of(name: &str, text: &str) -> Result<i32, Failure> {
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| Failure::new(Code::Usage, format!("{name}={text} is no descriptor or number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_begins_at_a_page_that_is_given_in_hexadecimal() {
        let base = |text: &str| base_of(OsStr::new(text)).map_err(|failure| failure.code);
        assert_eq!(base("0x200000000000"), Ok(0x2000_0000_0000));
        assert_eq!(base("10000"), Ok(0x10000));
        assert!(["", "0", "1234", "0x20001", "page"].iter().all(|text| base(text) == Err(Code::Usage)));
    }

    #[test]
    fn the_environment_goes_before_the_job() {
        let wanted = |text| mechanism_of(text, Faults::Uffd).map_err(|failure| failure.code);
        assert_eq!(wanted("mprotect"), Ok(Some(Mechanism::Mprotect)));
        assert_eq!(wanted("auto"), Ok(Some(Mechanism::Uffd)));
        assert_eq!(wanted(""), Ok(Some(Mechanism::Uffd)));
        assert_eq!(wanted("sigsegv"), Err(Code::Usage));
    }

    #[test]
    fn a_descriptor_is_a_number_that_is_not_negative() {
        let number = |text| number_of("FD", text).map_err(|failure| failure.what);
        assert_eq!(number("7"), Ok(7));
        assert_eq!(number("-1"), Err("FD=-1 is no descriptor or number".to_owned()));
        assert!(number("seven").is_err());
    }
}
