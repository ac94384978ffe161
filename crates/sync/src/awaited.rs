//! What a processor that waits in a table needs, for [`crate::stuck`].

use finespun_types::ProcessorId;

use crate::barrier::Barrier;
use crate::event::Kind;
use crate::flag::Flag;
use crate::migratory::{Lock, Part};
use crate::mutex::Mutex;
use crate::object::Object;
use crate::rwlock::Rwlock;
use crate::table::Table;

/// A processor's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Awaited {
    /// The object.
    pub object: u64,
    /// What it is.
    pub kind: Kind,
    /// What must happen.
    pub need: Need,
}

/// What must happen for a wait to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// This processor unlocks.
    Unlock(ProcessorId),
    /// The mutex comes from another node, whose table says who holds it.
    FromElsewhere,
    /// One of the readers unlocks; the lock does not know who they are.
    Readers(u32),
    /// More arrive.
    Arrivals {
        /// How many must.
        count: u32,
        /// How many have.
        arrived: u32,
    },
    /// The flag reaches this value.
    Value {
        /// What it is now.
        now: u32,
        /// What is waited for.
        until: u32,
    },
    /// A signal comes.
    Signal,
}

impl Table<'_> {
    /// What `who` waits for in this table.
    #[must_use]
    pub fn wait_of(&self, who: ProcessorId) -> Option<Awaited> {
        let wait = self.wait(who)?;
        let need = match wait.kind {
            Kind::Mutex => match Mutex::from_words(wait.words) {
                Mutex::Held(holder) => Need::Unlock(holder),
                Mutex::Free => return None,
            },
            Kind::Migratory => match Lock::from_words(wait.words).part {
                Part::Held(holder) => Need::Unlock(holder),
                Part::Elsewhere | Part::Asking | Part::Free => Need::FromElsewhere,
            },
            Kind::Rwlock => match Rwlock::from_words(wait.words) {
                Rwlock::Exclusive(writer) => Need::Unlock(writer),
                Rwlock::Shared(readers) => Need::Readers(readers),
                Rwlock::Free => return None,
            },
            Kind::Barrier => match Barrier::from_words(wait.words) {
                Barrier::Filling { count, arrived } => Need::Arrivals { count, arrived },
                Barrier::Empty => return None,
            },
            Kind::Flag => Need::Value { now: Flag::from_words(wait.words).to_words()[0], until: wait.until },
            Kind::Condition => Need::Signal,
        };
        Some(Awaited { object: wait.address, kind: wait.kind, need })
    }

    /// The processor that holds a mutex whose ownership migrates, if one of this node does.
    #[must_use]
    pub fn migratory_holder(&self, mutex: u64) -> Option<ProcessorId> {
        match self.migratory(mutex).part {
            Part::Held(holder) => Some(holder),
            Part::Elsewhere | Part::Asking | Part::Free => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Event, Header, Waiter};

    const P: ProcessorId = ProcessorId(0);
    const Q: ProcessorId = ProcessorId(1);

    /// What Q waits for after these events.
    fn awaited(events: &[Event]) -> Option<Need> {
        let (mut header, mut buckets) = (Header::default(), [0; 4]);
        let (mut entries, mut waiters) = ([Entry::default(); 4], [Waiter::default(); 2]);
        let mut table = Table::new(&mut header, &mut buckets, &mut entries, &mut waiters);
        for &event in events {
            table.on(event, &mut |_| {}).expect("no mistake");
        }
        table.wait_of(Q).map(|awaited| awaited.need)
    }

    #[test]
    fn each_kind_of_object_says_what_would_end_a_wait() {
        let lock = |who| Event::Lock { mutex: 8, who };
        let write = |who| Event::WriteLock { rwlock: 16, who };
        let read = Event::ReadLock { rwlock: 16, who: P, again: false };
        assert_eq!(awaited(&[lock(Q)]), None, "it has it");
        assert_eq!(awaited(&[lock(P), lock(Q)]), Some(Need::Unlock(P)));
        assert_eq!(awaited(&[write(P), write(Q)]), Some(Need::Unlock(P)));
        assert_eq!(awaited(&[read, write(Q)]), Some(Need::Readers(1)));
        let arrive = Event::Arrive { barrier: 24, count: 5, who: Q, weight: 2 };
        assert_eq!(awaited(&[arrive]), Some(Need::Arrivals { count: 5, arrived: 2 }));
        let flag = [Event::SetFlag { flag: 32, value: 2 }, Event::WaitFlag { flag: 32, value: 3, who: Q }];
        assert_eq!(awaited(&flag), Some(Need::Value { now: 2, until: 3 }));
        assert_eq!(awaited(&[Event::Enqueue { condition: 40, who: Q }]), Some(Need::Signal));
    }
}
