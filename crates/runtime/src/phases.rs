//! Phases that the program marks, timed and counted per processor.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use finespun_sys::clock::ticks;
use finespun_types::Counter;

use crate::sys::slot::Slot;

/// Different phases that a processor can have.
pub const PHASES_MAX: usize = 16;
/// Bytes of a phase's name, with the length.
const NAME_WORDS: usize = 4;
/// Phases that may be open at once.
const DEPTH_MAX: usize = 16;

/// One phase of one processor, in its slot.
#[repr(C)]
pub struct Phase {
    name: [AtomicU64; NAME_WORDS],
    /// Ticks spent in it.
    pub ticks: AtomicU64,
    /// How often it was begun.
    pub count: AtomicU64,
    counts: [AtomicU64; Counter::COUNT],
}

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

impl Phase {
    /// The name; `None` if the entry is not used.
    pub fn name(&self) -> Option<String> {
        let bytes: Vec<u8> = self.name.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let (len, text) = bytes.split_first()?;
        (*len > 0).then(|| String::from_utf8_lossy(&text[..usize::from(*len).min(text.len())]).into_owned())
    }

    /// What the processor counted from its begins to its ends.
    pub fn counts(&self) -> [u64; Counter::COUNT] {
        std::array::from_fn(|counter| self.counts[counter].load(Ordering::Relaxed))
    }

    fn set_name(&self, words: [u64; NAME_WORDS]) {
        for (word, value) in self.name.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn has_name(&self, words: [u64; NAME_WORDS]) -> bool {
        self.name.iter().zip(words).all(|(word, value)| word.load(Ordering::Relaxed) == value)
    }
}

/// The first 31 bytes of a name, with their number before them.
fn name_words(name: &str) -> [u64; NAME_WORDS] {
    let mut bytes = [0; NAME_WORDS * 8];
    let kept = name.as_bytes();
    let len = kept.len().min(bytes.len() - 1);
    bytes[0] = len as u8;
    bytes[1..=len].copy_from_slice(&kept[..len]);
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|index| u64::from_le_bytes(words[index]))
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
