//! `--check locks`: a lock of the C library in a private variable that several processes of the job use.

use std::collections::HashMap;
use std::path::Path;

use finespun_errors::{Code, Place, Report};

use crate::names;

/// Who uses which lock: by the lock's place in the program, the first process, its node and view.
#[derive(Debug, Default)]
pub struct PrivateLocks(HashMap<u64, (u32, u32)>);

/// A process's call.
#[derive(Clone, Copy, Debug)]
pub struct Use<'a> {
    /// Its node and view.
    pub by: (u32, u32),
    /// Its first processor.
    pub processor: u32,
    /// The function.
    pub call: &'a str,
    /// The lock's address.
    pub address: u64,
    /// Where the program is loaded in this process.
    pub image: u64,
}

impl PrivateLocks {
    /// One more use; the report if it is that of a second process.
    pub fn used(&mut self, lock: Use<'_>, program: &Path) -> Option<Report> {
        let first = *self.0.entry(lock.address - lock.image).or_insert(lock.by);
        if first == lock.by {
            return None;
        }
        let (name, call, node) = (names::of(lock.address, program, lock.image), lock.call, first.0);
        let what = format!(
            "{call} of the C library is called for {name}, a private variable, as by a process of node {node} before: \
             each locks its own"
        );
        let place = Place::Processor { node: lock.by.0, processor: lock.processor };
        Some(Report { code: Code::PrivateObject, place, what })
    }
}

#[cfg(test)]
mod tests {
    use super::{PrivateLocks, Use};

    #[test]
    fn a_lock_of_one_process_is_no_business_of_ours_and_one_of_two_is() {
        let mut locks = PrivateLocks::default();
        let lock = |by, image| Use { by, processor: 3, call: "pthread_mutex_lock", address: image + 0x4050, image };
        let program = std::path::Path::new("/no/such/program");
        assert!(locks.used(lock((0, 0), 0x1000), program).is_none());
        assert!(locks.used(lock((0, 0), 0x1000), program).is_none());
        let report = locks.used(lock((1, 0), 0x2000), program).expect("two processes");
        assert_eq!(
            report.what,
            "pthread_mutex_lock of the C library is called for the variable at 0x6050, a private variable, as by a process of \
             node 0 before: each locks its own"
        );
    }
}
