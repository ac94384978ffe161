//! The word beside a node's part in mutexes whose ownership migrates: the last one of a place that came to rest here.
//!
//! ```text
//!                 lock               unlock
//!   Rests(m) -----------> Mutex(m) ---------> Rests(m)         one compare-and-exchange, by processors of this node
//!      |                     |
//!      +----- recall --------+----> Empty                      by the holder of the table's lock, before every event of the place
//!                                     |
//!                                     +---> Rests(m)           after it, if m is this node's and free, and nobody has asked for it
//! ```
//!
//! As in `thin.rs`, with one difference: not all free mutexes are this node's, so a word that says nothing gives
//! nothing away. `Rests` says what the table says too: free, and this node's. `Mutex` says more: who holds it; to recall
//! it is to present to the table the lock that the word had granted, which finds the mutex free there and takes it. No message
//! can come in between: it comes to the table, and whoever brings it recalls first.

use core::sync::atomic::Ordering;

use finespun_types::ProcessorId;

use crate::Error;
use crate::event::Grant;
use crate::migratory::{Action, Event, Part, Place};
use crate::table::Table;
use crate::thin::{Quick, Thin, Word};

impl Word {
    /// Takes one event of a processor of this node for a mutex that rests here.
    #[inline(always)] // its callers know which event it is
    pub fn on_resting(&self, mutex: u64, event: &Event) -> Quick {
        match *event {
            Event::Lock(who) => self.taken(mutex, who, 0).unwrap_or(Quick::ForTable),
            Event::TryLock(who) => self.taken(mutex, who, 1).unwrap_or_else(|| self.tried(mutex, who)),
            Event::Unlock(who) => match (Thin::Mutex { mutex, holder: who }.to_bits(), Thin::Rests { mutex }.to_bits())
            {
                (Some(held), Some(rests)) if self.change(held, rests, Ordering::Release) => Quick::Taken,
                (_, _) => Quick::ForTable,
            },
            Event::HandOver { .. } | Event::Receive(_) => Quick::ForTable,
        }
    }

    #[inline(always)]
    fn taken(&self, mutex: u64, who: ProcessorId, value: u64) -> Option<Quick> {
        let (rests, held) = (Thin::Rests { mutex }.to_bits()?, Thin::Mutex { mutex, holder: who }.to_bits()?);
        self.change(rests, held, Ordering::Acquire).then_some(Quick::Granted(Grant { who, value }))
    }
}

impl Table<'_> {
    /// Takes one event for a mutex whose ownership migrates and whose place has this word. As [`Table::on_migratory`]; `at` tells of
    /// any mutex where an event for it meets it.
    ///
    /// # Errors
    /// As [`Table::on_migratory`].
    pub fn on_migratory_beside(
        &mut self,
        word: &Word,
        mutex: u64,
        at: &dyn Fn(u64) -> Place,
        event: &Event,
        out: &mut dyn FnMut(Action),
    ) -> Result<bool, Error> {
        self.recall(word, at)?;
        let result = self.on_migratory(mutex, at(mutex), event, out);
        if self.rests(mutex, at(mutex)) {
            word.write(Thin::Rests { mutex });
        }
        result
    }

    /// What the word says is in the table from here on, and the word says nothing.
    fn recall(&mut self, word: &Word, at: &dyn Fn(u64) -> Place) -> Result<(), Error> {
        let said = word.take();
        let Thin::Mutex { mutex, holder } = said else { return Ok(()) };
        let taken = self.on_migratory(mutex, at(mutex), &Event::Lock(holder), &mut |_| {});
        taken.map(|_| ()).inspect_err(|_| word.write(said))
    }

    /// Is the mutex this node's and free, and has nobody asked for it? At its manager also if nobody has used it.
    fn rests(&self, mutex: u64, at: Place) -> bool {
        let lock = self.migratory(mutex);
        match lock.part {
            Part::Free => lock.next.is_none(),
            Part::Elsewhere => at.me == at.manager && lock.tail.is_none(),
            Part::Asking | Part::Held(_) => false,
        }
    }
}
