//! First-in, first-out queues of processors, threaded through one array.
//!
//! A processor waits for at most one object at a time, so the array has one slot for each processor and a queue is
//! just its two ends. Links are the index plus one, so that zero memory is an array in which nobody waits.

use finespun_types::ProcessorId;

/// A processor's slot: all zeros while it waits for nothing in this table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Waiter {
    /// Link to the one that came next.
    next: u32,
    /// Link to the entry waited at.
    pub(crate) entry: u32,
    /// What is waited for (flags).
    pub(crate) until: u32,
}

/// The two ends of a queue, as links into the waiters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    /// Does nobody wait?
    pub(crate) fn is_empty(self) -> bool {
        self.first == 0
    }

    /// Who has waited longest?
    pub(crate) fn first(self) -> Option<ProcessorId> {
        self.first.checked_sub(1).map(ProcessorId)
    }

    /// Puts `who` last.
    pub(crate) fn push(&mut self, waiters: &mut [Waiter], who: ProcessorId, entry: u32, until: u32) {
        let slot = &mut waiters[who.0 as usize];
        debug_assert!(*slot == Waiter::default(), "a processor waits for one object at a time");
        *slot = Waiter { next: 0, entry, until };
        let link = who.0 + 1;
        match self.last.checked_sub(1) {
            None => self.first = link,
            Some(last) => waiters[last as usize].next = link,
        }
        self.last = link;
    }

    /// Takes the longest waiter.
    pub(crate) fn pop(&mut self, waiters: &mut [Waiter]) -> Option<ProcessorId> {
        let (who, _) = self.take_first(waiters)?;
        Some(who)
    }

    /// Takes all, oldest first.
    pub(crate) fn drain(&mut self, waiters: &mut [Waiter], taken: impl FnMut(ProcessorId)) {
        self.take_reached(waiters, u32::MAX, taken);
    }

    /// Takes those who wait for `value` or less, oldest first; the others keep their order.
    pub(crate) fn take_reached(&mut self, waiters: &mut [Waiter], value: u32, mut taken: impl FnMut(ProcessorId)) {
        let mut rest = core::mem::take(self);
        while let Some((who, slot)) = rest.take_first(waiters) {
            if slot.until <= value {
                taken(who);
            } else {
                self.push(waiters, who, slot.entry, slot.until);
            }
        }
    }

    /// Takes one from wherever it stands; the others keep their order. False if it is not here.
    pub(crate) fn remove(&mut self, waiters: &mut [Waiter], who: ProcessorId) -> bool {
        let mut found = false;
        let mut rest = core::mem::take(self);
        while let Some((other, slot)) = rest.take_first(waiters) {
            if other == who {
                found = true;
            } else {
                self.push(waiters, other, slot.entry, slot.until);
            }
        }
        found
    }

    /// How many at the head wait for this value, one after the other.
    pub(crate) fn leading(self, waiters: &[Waiter], until: u32) -> u32 {
        let mut count = 0;
        let mut link = self.first;
        while let Some(waiter) = link.checked_sub(1).and_then(|who| waiters.get(who as usize)) {
            if waiter.until != until {
                break;
            }
            (count, link) = (count + 1, waiter.next);
        }
        count
    }

    fn take_first(&mut self, waiters: &mut [Waiter]) -> Option<(ProcessorId, Waiter)> {
        let who = self.first()?;
        let slot = core::mem::take(&mut waiters[who.0 as usize]);
        self.first = slot.next;
        if self.first == 0 {
            self.last = 0;
        }
        Some((who, slot))
    }
}
