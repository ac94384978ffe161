//! What this machine offers, found by trying it on scratch memory, never by version. For `finespun doctor`.

use crate::maps::max_map_count;
use crate::process;
use crate::view::{Mechanism, features, try_everything};

/// What was found.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Userfaultfd as a view needs it: everything was done once. Otherwise what was refused, in words.
    pub uffd: Result<(), String>,
    /// The kernel says that userfaultfd can write-protect shared memory.
    pub write_protect: bool,
    /// The kernel says that userfaultfd reports missing entries of pages that exist.
    pub minor_shmem: bool,
    /// The kernel says that userfaultfd can raise SIGBUS in the faulting thread.
    pub sigbus: bool,
    /// The kernel drops several ranges of our own memory in one call.
    pub process_madvise: bool,
    /// How many mappings a process may have, if it can be read.
    pub max_map_count: Option<u64>,
    /// Processors that this process may use.
    pub cpus: usize,
}

impl Offered {
    /// What a view uses if it is not told otherwise.
    #[must_use]
    pub const fn mechanism(&self) -> Mechanism {
        if self.uffd.is_ok() { Mechanism::Uffd } else { Mechanism::Mprotect }
    }
}

/// Tries everything. Takes some hundred microseconds.
#[must_use]
pub fn probe() -> Offered {
    let tried = try_everything();
    let features = features().ok();
    Offered {
        write_protect: features.is_some_and(|features| features.write_protect),
        minor_shmem: features.is_some_and(|features| features.minor_shmem),
        sigbus: features.is_some_and(|features| features.sigbus),
        process_madvise: tried.as_ref().is_ok_and(|tried| tried.process_madvise),
        uffd: tried.map(drop),
        max_map_count: max_map_count(),
        cpus: process::cpus().unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_userfaultfd_says_why_and_an_offered_one_has_its_features() {
        let offered = probe();
        match &offered.uffd {
            Ok(()) => assert!(offered.write_protect && offered.minor_shmem && offered.sigbus),
            Err(reason) => assert!(!reason.is_empty() && !offered.process_madvise),
        }
        assert_eq!(offered.mechanism() == Mechanism::Uffd, offered.uffd.is_ok());
        assert!(offered.cpus >= 1);
    }
}
