//! Jobs of real processes on this machine, as a user runs them: `build/bin/finespun run ... build/apps/sor ...`.
//!
//! `make test-cluster` builds what they need and runs them two at a time. Each job runs under a time limit, in a process
//! group and with a mark of its own, and the mark must be gone from /proc when the job is (`support`).

mod applications;
mod atomics;
mod bench;
mod broadcast;
mod c_programs;
mod carriers;
mod check_globals;
mod check_pointers;
mod clib_locks;
mod copies;
mod descriptors;
mod explain;
mod fastlink;
mod fspcc;
mod hangs;
mod header;
mod install;
mod launch;
mod manners;
mod memory;
mod misuse;
mod openmp;
mod pages;
mod pins;
mod ports;
mod pthread;
mod spins;
mod stacks;
mod stress;
mod support;
mod switches;
mod tmk;
