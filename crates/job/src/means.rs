//! By what means a job runs: how nodes reach each other, how accesses are detected.

use serde::{Deserialize, Serialize};

/// How nodes reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Nodes on one host, each other's memory mapped: data, metadata and locks by direct access (`csm-2l`, DMS).
    Shm,
    /// Messages and acknowledgements only, over TCP (`csm-2l`, None).
    Tcp,
}

/// How accesses are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Faults {
    /// Userfaultfd if the machine offers it, else mprotect; found by trying.
    Auto,
    /// Userfaultfd, user mode, SIGBUS in the faulting thread, write-protect.
    Uffd,
    /// SIGSEGV and mprotect.
    Mprotect,
}
