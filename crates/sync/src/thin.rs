//! The word beside a table: most events of mutexes and flags need no more.
//!
//! A table costs its lock, a search, an entry made and dropped, a queue. A mutex that nobody waits for and a flag that has its value
//! already need none of it: their whole state fits in one word, which is changed by one atomic instruction. Each word stands
//! for all objects of a *place*, those whose addresses the hash sends there; it is *thin* while it says all there is to say
//! of them, and *fat* while the table does.
//!
//! ```text
//!            lock            unlock                     set              set to more
//!   Empty ---------> Mutex ---------> Empty    Empty ---------> Flag ---------------> Flag
//!     |                |                |                         |
//!     +----------------+--- inflate ----+-------------------------+--->  Fat(entries) --- deflate ---> Empty or Flag
//! ```
//!
//! Two ways lead to an object. The quick one, [`Word::on`], is one compare-and-exchange by anybody at any time, and it
//! succeeds on a thin word only. The other, [`Table::on_beside`], is taken under the table's lock: it *inflates* the word, that is,
//! puts what it said into the table; presents the event to the table, which is the specification of all objects; and *deflates* the
//! word if the table has become simple enough again.
//!
//! Why the two agree:
//!
//! - While the word is thin, no object of the place has an entry in the table: what the word does not name is as it was at
//!   first. So who finds `Empty` may take any mutex of the place, and knows any flag to be 0.
//! - A fat word is changed under the table's lock only, and a thin one becomes fat by a compare-and-exchange too. So
//!   between inflating and deflating no quick event can happen, and those before are in the table.
//! - Nobody waits while the word is thin: to wait is the table's business. So a quick unlock has nobody to hand the mutex to, a quick
//!   set nobody to wake, and a mutex that somebody waits for cannot be taken out of turn.
//! - Whatever is a mistake, or is of another kind, finds the word in its way and is judged by the table.
//!
//! Mutexes that migrate have words of their own at each node, with other rules: `resting.rs`.
//!
//! Release and acquire need no more than the word: a quick unlock or set is a store-release, a quick lock or wait a load-acquire
//! of the same word, and inflating is both.

use core::sync::atomic::{AtomicU64, Ordering};

use finespun_types::ProcessorId;

use crate::Error;
use crate::event::{Event, Grant, Kind};
use crate::table::Table;

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Thin {
    /// All objects of the place are as they were before anybody used them.
    Empty,
    /// The same, but that this mutex is held, and nobody waits for it.
    Mutex {
        /// Its address.
        mutex: u64,
        /// Who holds it.
        holder: ProcessorId,
    },
    /// The same, but that this flag has a value other than 0, and nobody waits for it.
    Flag {
        /// Its address.
        flag: u64,
        /// Its value.
        value: u32,
    },
    /// Of mutexes whose ownership migrates, this one is this node's and free (`resting.rs`).
    Rests {
        /// Its address.
        mutex: u64,
    },
    /// The table says it.
    Fat {
        /// How many objects of the place have an entry there.
        entries: u32,
    },
}

/// Bits of a word: two for what it is, 44 for an object's address without its last three bits, 18 for a number.
const KIND_BITS: u32 = 2;
const ADDRESS_BITS: u32 = 44;
const NUMBER_BITS: u32 = 64 - KIND_BITS - ADDRESS_BITS;

const FAT: u64 = 0;
const MUTEX: u64 = 1;
const FLAG: u64 = 2;
const RESTS: u64 = 3;

impl Thin {
    /// The bits that say it; `None` where the address or the number does not fit, and then the table must.
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Fat { entries } => Some((entries as u64 + 1) << KIND_BITS | FAT),
            Self::Mutex { mutex, holder } => pack(MUTEX, mutex, holder.0),
            Self::Flag { flag, value } => pack(FLAG, flag, value),
            Self::Rests { mutex } => pack(RESTS, mutex, 0),
        }
    }

    /// What these bits say.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        let address = (bits >> KIND_BITS & ((1 << ADDRESS_BITS) - 1)) << 3;
        let number = (bits >> (KIND_BITS + ADDRESS_BITS)) as u32;
        match (bits & 0b11, bits >> KIND_BITS) {
            (FAT, 0) => Self::Empty,
            (FAT, more) => Self::Fat { entries: (more - 1) as u32 },
            (MUTEX, _) => Self::Mutex { mutex: address, holder: ProcessorId(number) },
            (FLAG, _) => Self::Flag { flag: address, value: number },
            (_, _) => Self::Rests { mutex: address },
        }
    }
}

#[inline]
const fn pack(kind: u64, address: u64, number: u32) -> Option<u64> {
    if address & 0b111 != 0 || address >> 3 >> ADDRESS_BITS != 0 || number >> NUMBER_BITS != 0 {
        return None;
    }
    Some(kind | address >> 3 << KIND_BITS | (number as u64) << (KIND_BITS + ADDRESS_BITS))
}

/// What the quick way made of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quick {
    /// It is done, and this is its grant.
    Granted(Grant),
    /// It is done, and has no grant.
    Taken,
    /// Not yet, but it may be soon: look again for a while, then go to the table. Nothing has changed.
    NotYet,
    /// It is for the table. Nothing has changed.
    ForTable,
}

/// The word of a place, alone in its cache line: neighbours are other processors' objects. Zeros are `Empty`.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Word(AtomicU64);

impl Word {
    /// A word that says this; `Empty` where a word cannot.
    #[must_use]
    pub fn saying(thin: Thin) -> Self {
        Self(AtomicU64::new(thin.to_bits().unwrap_or(EMPTY)))
    }

    /// What it says now.
    #[inline]
    #[must_use]
    pub fn says(&self) -> Thin {
        Thin::from_bits(self.0.load(Ordering::Acquire))
    }

    /// Takes one event of an object of this place, if that needs no table.
    #[inline(always)] // its callers know which event it is: what is left of the match is one row
    pub fn on(&self, event: Event) -> Quick {
        match event {
            Event::Lock { mutex, who } => self.locked(mutex, who, 0).unwrap_or(Quick::ForTable),
            Event::TryLock { mutex, who } => self.locked(mutex, who, 1).unwrap_or_else(|| self.tried(mutex, who)),
            Event::Unlock { mutex, who } => self.unlocked(mutex, who),
            Event::SetFlag { flag, value } => self.set(flag, value),
            Event::WaitFlag { flag, value, who } => match self.value_of(flag) {
                Some(now) if now >= value => Quick::Granted(Grant { who, value: now.into() }),
                Some(_) => Quick::NotYet,
                None => Quick::ForTable,
            },
            Event::ReadFlag { flag, who } => match self.value_of(flag) {
                Some(now) => Quick::Granted(Grant { who, value: now.into() }),
                None => Quick::ForTable,
            },
            Event::ResetFlag { .. } | Event::Arrive { .. } | Event::Enqueue { .. } | Event::Signal { .. } => {
                Quick::ForTable
            }
            Event::Broadcast { .. } | Event::Leave { .. } | Event::ReadLock { .. } => Quick::ForTable,
            Event::TryReadLock { .. } | Event::WriteLock { .. } | Event::TryWriteLock { .. } => Quick::ForTable,
            Event::RwUnlock { .. } => Quick::ForTable,
        }
    }

    /// Does the word say that this processor holds the mutex?
    #[inline]
    #[must_use]
    pub fn is_held_by(&self, mutex: u64, who: ProcessorId) -> bool {
        Thin::Mutex { mutex, holder: who }.to_bits() == Some(self.0.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn locked(&self, mutex: u64, who: ProcessorId, value: u64) -> Option<Quick> {
        let held = Thin::Mutex { mutex, holder: who }.to_bits()?;
        self.change(EMPTY, held, Ordering::Acquire).then_some(Quick::Granted(Grant { who, value }))
    }

    /// A try that found the word taken: by this mutex, and then it fails.
    pub(crate) fn tried(&self, mutex: u64, who: ProcessorId) -> Quick {
        match self.says() {
            Thin::Mutex { mutex: held, .. } if held == mutex => Quick::Granted(Grant { who, value: 0 }),
            Thin::Mutex { .. } | Thin::Empty | Thin::Flag { .. } => Quick::ForTable,
            Thin::Rests { .. } | Thin::Fat { .. } => Quick::ForTable,
        }
    }

    #[inline(always)]
    fn unlocked(&self, mutex: u64, who: ProcessorId) -> Quick {
        match (Thin::Mutex { mutex, holder: who }).to_bits() {
            Some(held) if self.change(held, EMPTY, Ordering::Release) => Quick::Taken,
            Some(_) | None => Quick::ForTable,
        }
    }

    #[inline(always)]
    fn set(&self, flag: u64, value: u32) -> Quick {
        let Some(raised) = (Thin::Flag { flag, value }).to_bits() else { return Quick::ForTable };
        loop {
            let before = self.0.load(Ordering::Acquire);
            match Thin::from_bits(before) {
                Thin::Empty if value == 0 => return Quick::Taken,
                Thin::Flag { flag: there, value: now } if there == flag && value <= now => return Quick::Taken,
                Thin::Flag { flag: there, .. } if there != flag => return Quick::ForTable,
                Thin::Empty | Thin::Flag { .. } => {
                    if self.change(before, raised, Ordering::Release) {
                        return Quick::Taken;
                    }
                }
                Thin::Mutex { .. } | Thin::Rests { .. } | Thin::Fat { .. } => return Quick::ForTable,
            }
        }
    }

    /// The flag's value, if the word tells.
    #[inline(always)]
    fn value_of(&self, flag: u64) -> Option<u32> {
        match self.says() {
            Thin::Empty => Some(0),
            Thin::Flag { flag: there, value } if there == flag => Some(value),
            Thin::Flag { .. } | Thin::Mutex { .. } | Thin::Rests { .. } | Thin::Fat { .. } => None,
        }
    }

    #[inline(always)]
    pub(crate) fn change(&self, from: u64, to: u64, order: Ordering) -> bool {
        self.0.compare_exchange(from, to, order, Ordering::Relaxed).is_ok()
    }

    /// Makes the word empty, and returns what it said.
    pub(crate) fn take(&self) -> Thin {
        match self.says() {
            Thin::Empty => Thin::Empty,
            Thin::Mutex { .. } | Thin::Flag { .. } | Thin::Rests { .. } | Thin::Fat { .. } => {
                Thin::from_bits(self.0.swap(EMPTY, Ordering::AcqRel))
            }
        }
    }

    /// The holder of the table's lock says what a word is to say that nobody else may change.
    pub(crate) fn write(&self, thin: Thin) {
        self.0.store(thin.to_bits().unwrap_or(EMPTY), Ordering::Release);
    }
}

const EMPTY: u64 = 0;

impl Table<'_> {
    /// Takes one event of an object whose place has this word. As [`Table::on`].
    ///
    /// # Errors
    /// As [`Table::on`].
    pub fn on_beside(&mut self, word: &Word, event: Event, out: &mut dyn FnMut(Grant)) -> Result<(), Error> {
        self.inflate(word)?;
        self.on_fat(word, event, out)
    }

    /// The first half of [`Self::on_beside`]: what the word says is in the table from here on.
    ///
    /// # Errors
    /// [`Error::Full`]: the word is as it was.
    pub fn inflate(&mut self, word: &Word) -> Result<(), Error> {
        let mut bits = word.0.load(Ordering::Relaxed);
        let said = loop {
            let said = Thin::from_bits(bits);
            let entries = match said {
                Thin::Fat { .. } => return Ok(()),
                Thin::Empty => 0,
                Thin::Mutex { .. } | Thin::Flag { .. } | Thin::Rests { .. } => 1,
            };
            let fat = (Thin::Fat { entries }).to_bits().unwrap_or(EMPTY);
            match word.0.compare_exchange_weak(bits, fat, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break said,
                Err(now) => bits = now,
            }
        };
        let (address, kind, state) = match said {
            Thin::Empty | Thin::Rests { .. } | Thin::Fat { .. } => return Ok(()),
            Thin::Mutex { mutex, holder } => (mutex, Kind::Mutex, [holder.0 + 1, 0]),
            Thin::Flag { flag, value } => (flag, Kind::Flag, [value, 0]),
        };
        // Nobody but us can have changed it meanwhile.
        self.put(address, kind, state).inspect_err(|_| word.write(said))
    }

    /// The second half: the event, and the word is thin again if that says all.
    ///
    /// # Errors
    /// As [`Table::on`].
    pub fn on_fat(&mut self, word: &Word, event: Event, out: &mut dyn FnMut(Grant)) -> Result<(), Error> {
        let before = self.in_use();
        let result = self.on(event, out);
        let Thin::Fat { entries: had } = word.says() else {
            unreachable!("fat until the lock's holder says otherwise")
        };
        let entries = had + self.in_use() - before;
        let thin = match entries {
            0 => Thin::Empty,
            1 => self.take_lone_flag(event.object()).unwrap_or(Thin::Fat { entries }),
            _ => Thin::Fat { entries },
        };
        if thin != (Thin::Fat { entries: had }) {
            word.write(thin);
        }
        result
    }

    /// Flags stay in use for long: one that nobody waits for moves back into the word, if it is there alone.
    fn take_lone_flag(&mut self, flag: u64) -> Option<Thin> {
        let value = self.calm(flag, Kind::Flag)?[0];
        let thin = Thin::Flag { flag, value };
        thin.to_bits()?;
        self.drop_calm(flag);
        Some(thin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 0x2000_0000_0040;
    const P: ProcessorId = ProcessorId(0);

    #[test]
    fn every_thin_state_survives_its_word_and_what_does_not_fit_is_refused() {
        let far = 0x7fff_ffff_fff8;
        for thin in [
            Thin::Empty,
            Thin::Fat { entries: 0 },
            Thin::Fat { entries: u32::MAX },
            Thin::Mutex { mutex: M, holder: P },
            Thin::Mutex { mutex: far, holder: ProcessorId((1 << 18) - 1) },
            Thin::Flag { flag: 8, value: 1 },
            Thin::Rests { mutex: M },
        ] {
            assert_eq!(thin.to_bits().map(Thin::from_bits), Some(thin));
        }
        assert_eq!(Thin::Empty.to_bits(), Some(0), "zeros are Empty");
        let refused = [
            Thin::Mutex { mutex: M + 4, holder: P },
            Thin::Mutex { mutex: 1 << 47, holder: P },
            Thin::Flag { flag: M, value: 1 << 18 },
        ];
        assert_eq!(refused.map(Thin::to_bits), [None; 3]);
    }

    #[test]
    fn what_the_word_does_not_name_is_for_the_table() {
        let word = Word::default();
        let (lock, unlock) = (Event::Lock { mutex: M, who: P }, Event::Unlock { mutex: M, who: P });
        assert_eq!(word.on(unlock), Quick::ForTable);
        assert_eq!(word.on(lock), Quick::Granted(Grant { who: P, value: 0 }));
        assert_eq!(word.on(lock), Quick::ForTable, "a second lock by the holder is a mistake, which the table tells");
        assert_eq!(word.on(Event::Lock { mutex: M + 8, who: P }), Quick::ForTable);
        assert_eq!(word.on(Event::Unlock { mutex: M, who: ProcessorId(1) }), Quick::ForTable);
        assert_eq!(word.on(Event::SetFlag { flag: M, value: 1 }), Quick::ForTable);
        assert_eq!(word.on(Event::TryLock { mutex: M, who: P }), Quick::Granted(Grant { who: P, value: 0 }));
        assert_eq!(word.on(unlock), Quick::Taken);
        assert_eq!(word.says(), Thin::Empty);
    }
}
