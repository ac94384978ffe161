//! A home's broadcast buffers: pages that all nodes can read, for the protocol that broadcasts.
//!
//! They are a ring in the home's segment. A page is written into the oldest of them, whatever that holds: the unit that was
//! there is then no longer held, which its own next look finds out, for a buffer bears the number of its unit. A buffer's
//! lock is a leaf (ARCHITECTURE.md, "Locks"): it is held while one page is copied, so that nobody reads half of one page
//! and half of another.

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

use finespun_types::{PAGE_BYTES, UnitId};

use super::frames::{self, Page};
use super::records::{BUFFERS, Buffer};
use super::segment::Segment;

/// Room for a page's bytes, copied out of a buffer; takes no time to make.
#[repr(align(64))]
pub struct Copied(MaybeUninit<[u8; PAGE_BYTES]>);

impl Copied {
    /// Nothing is in it yet.
    pub const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }
}

impl Segment {
    /// Does a buffer of this node hold the unit? Under the unit's lock, or as a hint.
    pub fn holds(&self, unit: UnitId) -> bool {
        self.labelled(unit).is_some_and(|(buffer, _)| buffer.unit.load(Ordering::Acquire) == unit.0 + 1)
    }

    /// Copies the unit's page, as the node has released it, into the oldest buffer. Under the unit's lock.
    pub fn broadcast(&self, unit: UnitId, released: Page) {
        let oldest = self.node().next_buffer.fetch_add(1, Ordering::Relaxed) as usize % BUFFERS;
        let (buffer, page) = self.buffer(oldest);
        let _guard = buffer.lock.guard();
        frames::install(released, page);
        buffer.unit.store(unit.0 + 1, Ordering::Release);
        self.buffer_of(unit).store(oldest as u32 + 1, Ordering::Release);
    }

    /// The unit's buffer, if one holds it, holds it no more. Under the unit's lock.
    pub fn drop_buffer(&self, unit: UnitId) {
        let Some((buffer, _)) = self.labelled(unit) else { return };
        // Another unit may have taken it meanwhile.
        let _ = buffer.unit.compare_exchange(unit.0 + 1, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The page of a unit, if a buffer holds it, copied into that room. Under the unit's lock.
    pub fn take_from_buffer(&self, unit: UnitId, room: &mut Copied) -> Option<Page> {
        let (buffer, page) = self.labelled(unit)?;
        let _guard = buffer.lock.guard();
        if buffer.unit.load(Ordering::Relaxed) != unit.0 + 1 {
            return None;
        }
        let copied = room.0.as_mut_ptr().cast();
        frames::install(Page::at(page), copied);
        Some(Page::at(copied))
    }

    /// The buffer that the unit was last written to, and its page.
    fn labelled(&self, unit: UnitId) -> Option<(&Buffer, *mut u8)> {
        let number = self.buffer_of(unit).load(Ordering::Acquire).checked_sub(1)?;
        Some(self.buffer(number as usize))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use finespun_job::Job;

    use super::*;
    use crate::sys::shape::Shape;

    fn home() -> Segment {
        let job = Job { nodes: 2, heap_bytes: 4 << 20, protocol: "csm-adb".into(), ..Job::alone() };
        let shape = Shape::of(&job);
        let create = |bytes| finespun_sys::memory::create(c"buffers", bytes).unwrap();
        let (segment, frames) = (create(shape.bytes), create(shape.frame_bytes()));
        Segment::map(segment.as_fd(), frames.as_fd(), shape).unwrap()
    }

    fn fill(home: &Segment, unit: UnitId, byte: u8) {
        frames::install(Page::in_message(&[byte; PAGE_BYTES]).unwrap(), home.frame(unit));
    }

    fn first_byte(home: &Segment, unit: UnitId) -> Option<u8> {
        home.take_from_buffer(unit, &mut Copied::new()).map(|page| page.bytes()[0])
    }

    #[test]
    fn a_buffer_keeps_what_the_frame_was_until_it_is_dropped() {
        let (home, unit) = (home(), UnitId(3));
        assert!(!home.holds(unit) && first_byte(&home, unit).is_none());
        fill(&home, unit, 7);
        home.broadcast(unit, Page::at(home.frame(unit)));
        fill(&home, unit, 8);
        assert_eq!((home.holds(unit), first_byte(&home, unit)), (true, Some(7)));
        home.drop_buffer(unit);
        assert_eq!((home.holds(unit), first_byte(&home, unit)), (false, None));
        home.broadcast(unit, Page::at(home.frame(unit)));
        assert_eq!(first_byte(&home, unit), Some(8));
    }

    #[test]
    fn when_all_are_taken_the_oldest_is_given_up() {
        let home = home();
        let units: Vec<_> = (0..=BUFFERS as u32).map(UnitId).collect();
        for &unit in &units {
            fill(&home, unit, unit.0 as u8 ^ 0x55);
            home.broadcast(unit, Page::at(home.frame(unit)));
        }
        assert!(!home.holds(units[0]) && first_byte(&home, units[0]).is_none());
        assert!(units[1..].iter().all(|&unit| first_byte(&home, unit) == Some(unit.0 as u8 ^ 0x55)));
        home.drop_buffer(units[0]);
        assert!(home.holds(units[BUFFERS]), "the buffer is another unit's now");
    }
}
