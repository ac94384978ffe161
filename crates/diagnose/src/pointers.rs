//! `--check pointers`: words in shared memory that are addresses of this process's private memory.
//!
//! A page that the process may write is looked at whenever the process releases: what it has stored there others can read from then on.
//! Words that lie in a private mapping are taken for pointers. Any other number looks like one so seldom (a 64-bit number with the upper
//! 17 bits zero, and the rest in one of a few hundred mappings) that it has not been met.
//!
//! In a program at a fixed address its functions and constants stand at one address everywhere, and a pointer to them is good.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use finespun_job::Report;
use finespun_runtime::{Stores, Subject};
use finespun_sys::signals::Inside;
use finespun_types::UnitId;

use crate::marks::Marks;
use crate::private::Private;

/// No process tells of more words than this.
const TOLD_MAX: usize = 1000;

/// What is looked at, and what was found.
struct Pointers {
    subject: Subject,
    /// The units that this process may have stored to since they were looked at.
    written: Marks,
    known: Mutex<Known>,
}

/// What is known between two looks.
#[derive(Default)]
struct Known {
    told: HashSet<usize>,
    /// Shared stacks, on which private addresses are as usual as on any.
    stacks: Vec<Range<usize>>,
}

/// Looks from now on, if the job asks for it and there is more than one process to read what stands there.
pub fn begin(subject: Subject) -> Option<&'static dyn Stores> {
    let is_on = subject.job().checks.pointers && subject.processes() > 1;
    is_on.then(|| {
        let pointers = Pointers { subject, written: Marks::none(subject.units()), known: Mutex::default() };
        // For the life of the process.
        &*Box::leak(Box::new(pointers)) as &dyn Stores
    })
}

impl Stores for Pointers {
    fn opens(&self, unit: UnitId) {
        self.written.set(unit);
    }

    fn is_stack(&self, addresses: &Range<usize>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).stacks.push(addresses.clone());
    }

    fn releases(&self) {
        let _signals = Inside::new();
        // Without the mappings nothing is known to be private.
        let Ok(private) = Private::of(self.subject) else { return };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for unit in self.written.units() {
            if !self.subject.may_store(unit) {
                // Another store faults, and comes back. A store between the two lines does too, before it is done.
                self.written.clear(unit);
            }
            self.look_at(unit, &private, &mut known);
        }
    }
}

impl Pointers {
    fn look_at(&self, unit: UnitId, private: &Private, known: &mut Known) {
        let start = self.subject.address_of(unit);
        if known.stacks.iter().any(|stack| stack.contains(&start)) {
            return;
        }
        self.subject.look_into(unit, |bytes| {
            for (index, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
                let value = u64::from_ne_bytes(*word);
                let Some(region) = private.region(value) else { continue };
                let address = start + index * 8;
                if known.told.len() < TOLD_MAX && known.told.insert(address) {
                    self.subject.tell(&Report::PrivatePointer(private.told(self.subject, address, value, region)));
                }
            }
        });
    }
}
