//! A mark for each unit of the shared space, set in the fault handler.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use finespun_types::UnitId;

/// A bit for each unit.
pub struct Marks {
    words: Box<[AtomicU64]>,
    /// No word from here on has a bit.
    used: AtomicUsize,
}

impl Marks {
    /// None, of so many units.
    pub fn none(units: usize) -> Self {
        Self { words: (0..units.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(), used: AtomicUsize::new(0) }
    }

    /// Sets a unit's mark. Allocates nothing and takes no lock.
    pub fn set(&self, unit: UnitId) {
        let index = unit.0 as usize / 64;
        self.words[index].fetch_or(1 << (unit.0 % 64), Ordering::Relaxed);
        self.used.fetch_max(index + 1, Ordering::Relaxed);
    }

    /// Takes a unit's mark away.
    pub fn clear(&self, unit: UnitId) {
        self.words[unit.0 as usize / 64].fetch_and(!(1 << (unit.0 % 64)), Ordering::Relaxed);
    }

    /// The units that have a mark, in their order.
    pub fn units(&self) -> impl Iterator<Item = UnitId> + '_ {
        let used = self.words.iter().take(self.used.load(Ordering::Relaxed)).enumerate();
        used.flat_map(|(index, word)| {
            let bits = word.load(Ordering::Relaxed);
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| UnitId(index as u32 * 64 + bit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(marks: &Marks) -> Vec<u32> {
        marks.units().map(|unit| unit.0).collect()
    }

    #[test]
    fn a_mark_stays_until_it_is_taken_away() {
        let marks = Marks::none(200);
        assert!(marked(&marks).is_empty());
        [199, 0, 63, 64, 63].into_iter().for_each(|unit| marks.set(UnitId(unit)));
        assert_eq!(marked(&marks), [0, 63, 64, 199]);
        marks.clear(UnitId(64));
        assert_eq!(marked(&marks), [0, 63, 199]);
    }

    #[test]
    fn a_mark_may_be_taken_away_while_units_are_looked_at() {
        let marks = Marks::none(100);
        [1, 2, 99].into_iter().for_each(|unit| marks.set(UnitId(unit)));
        let seen: Vec<u32> = marks.units().inspect(|unit| marks.clear(*unit)).map(|unit| unit.0).collect();
        assert_eq!(seen, [1, 2, 99]);
        assert!(marked(&marks).is_empty());
    }
}
