//! What the calling thread holds: recursive mutexes count here, and readers of a lock are known here. No destructor, so
//! that it can be asked to the very end of a thread.

use std::cell::Cell;

/// The most objects of a list that a thread can hold at once and be sure to have counted.
const MOST: usize = 64;

/// Objects that a thread holds, and how often.
pub struct Held(Cell<[(usize, u32); MOST]>);

impl Held {
    pub const fn nothing() -> Self {
        Self(Cell::new([(0, 0); MOST]))
    }

    /// How often the thread holds the object.
    pub fn count(&self, object: usize) -> u32 {
        self.0.get().iter().find(|(address, _)| *address == object).map_or(0, |(_, count)| *count)
    }

    /// Once more; false if there is no room to count it.
    pub fn push(&self, object: usize) -> bool {
        let mut list = self.0.get();
        let place = list.iter().position(|(address, _)| *address == object);
        let Some(place) = place.or_else(|| list.iter().position(|(_, count)| *count == 0)) else { return false };
        list[place] = (object, list[place].1 + 1);
        self.0.set(list);
        true
    }

    /// Once less: how often it is held still. An object that was not counted is held no more.
    pub fn pop(&self, object: usize) -> u32 {
        let mut list = self.0.get();
        let Some(entry) = list.iter_mut().find(|(address, _)| *address == object) else { return 0 };
        entry.1 -= 1;
        let left = entry.1;
        if left == 0 {
            *entry = (0, 0);
        }
        self.0.set(list);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_apart_and_forgotten_when_given_up() {
        let held = Held::nothing();
        assert!(held.push(8) && held.push(16) && held.push(8));
        assert_eq!((held.count(8), held.count(16), held.count(24)), (2, 1, 0));
        assert_eq!((held.pop(8), held.pop(8), held.pop(16)), (1, 0, 0));
        assert_eq!((held.count(8), held.pop(8)), (0, 0));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let held = Held::nothing();
        assert!((1..=MOST).all(|object| held.push(object)));
        assert!(!held.push(1000) && held.push(1));
    }
}
