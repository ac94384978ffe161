//! Phases that the program marks, timed and counted per processor.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

use finespun_sys::clock::ticks;
use finespun_types::Counter;

use crate::sys::phase::{NAME_WORDS, name_words};
use crate::sys::slot::Slot;

/// Phases that may be open at once.
const DEPTH_MAX: usize = 16;

/// Where a phase began.
struct Begun {
    phase: usize,
    ticks: u64,
    counts: [u64; Counter::COUNT],
}

thread_local! {
    /// The open phases.
    static OPEN: RefCell<Vec<Begun>> = const { RefCell::new(Vec::new()) };
    static TOO_DEEP: Cell<usize> = const { Cell::new(0) };
}

/// Opens a phase of the slot's processor. More names than there is room for, and more nesting, are not recorded.
pub fn begin(slot: &Slot, name: &str) {
    let words = name_words(name);
    let unused = [0; NAME_WORDS];
    let found = slot.phases.iter().position(|phase| phase.has_name(words) || phase.has_name(unused));
    OPEN.with_borrow_mut(|open| match found {
        Some(phase) if open.len() < DEPTH_MAX && !name.is_empty() => {
            slot.phases[phase].set_name(words);
            open.push(Begun { phase, ticks: ticks(), counts: slot.counts() });
        }
        Some(_) | None => TOO_DEEP.set(TOO_DEEP.get() + 1),
    });
}

/// Closes the last phase opened.
pub fn end(slot: &Slot) {
    if TOO_DEEP.get() > 0 {
        TOO_DEEP.set(TOO_DEEP.get() - 1);
        return;
    }
    let Some(begun) = OPEN.with_borrow_mut(Vec::pop) else { return };
    let phase = &slot.phases[begun.phase];
    phase.ticks.fetch_add(ticks().wrapping_sub(begun.ticks), Ordering::Relaxed);
    phase.count.fetch_add(1, Ordering::Relaxed);
    for ((sum, now), before) in phase.counts.iter().zip(slot.counts()).zip(begun.counts) {
        sum.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }
}
