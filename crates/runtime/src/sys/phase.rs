//! A phase of one processor, as a slot keeps it.

use std::sync::atomic::{AtomicU64, Ordering};

use finespun_types::Counter;

/// Different phases that a processor can have.
pub const PHASES_MAX: usize = 16;
/// Bytes of a phase's name, with the length.
pub const NAME_WORDS: usize = 4;
/// One phase of one processor, in its slot.
#[repr(C)]
pub struct Phase {
    name: [AtomicU64; NAME_WORDS],
    /// Ticks spent in it.
    pub ticks: AtomicU64,
    /// How often it was begun.
    pub count: AtomicU64,
    /// What the processor counted in it.
    pub counts: [AtomicU64; Counter::COUNT],
}

impl Phase {
    /// The name; `None` if the entry is not used.
    pub fn name(&self) -> Option<String> {
        let bytes: Vec<u8> = self.name.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let (len, text) = bytes.split_first()?;
        (*len > 0).then(|| String::from_utf8_lossy(&text[..usize::from(*len).min(text.len())]).into_owned())
    }

    /// What the processor counted from its begins to its ends.
    pub fn counted(&self) -> [u64; Counter::COUNT] {
        std::array::from_fn(|counter| self.counts[counter].load(Ordering::Relaxed))
    }

    /// Gives it a name, as [`name_words`].
    pub fn set_name(&self, words: [u64; NAME_WORDS]) {
        for (word, value) in self.name.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Is this its name?
    pub fn has_name(&self, words: [u64; NAME_WORDS]) -> bool {
        self.name.iter().zip(words).all(|(word, value)| word.load(Ordering::Relaxed) == value)
    }
}

/// The first 31 bytes of a name, with their number before them.
pub fn name_words(name: &str) -> [u64; NAME_WORDS] {
    let mut bytes = [0; NAME_WORDS * 8];
    let kept = name.as_bytes();
    let len = kept.len().min(bytes.len() - 1);
    bytes[0] = len as u8;
    bytes[1..=len].copy_from_slice(&kept[..len]);
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|index| u64::from_le_bytes(words[index]))
}
