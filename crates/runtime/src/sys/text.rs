//! The text of an error that waits in a slot.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of an error's text that fit in a slot.
const TEXT_BYTES: usize = 256;

/// The text of an error, in a slot.
#[repr(C)]
pub struct Text([AtomicU64; TEXT_BYTES / 8 + 1]);

impl Text {
    /// Keeps a text, or what fits of it.
    pub fn write(&self, text: &[u8]) {
        let len = text.len().min(TEXT_BYTES);
        self.0[0].store(len as u64, Ordering::Relaxed);
        for (word, bytes) in self.0[1..].iter().zip(text[..len].chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
    }

    /// The text.
    pub fn read(&self) -> String {
        let len = (self.0[0].load(Ordering::Relaxed) as usize).min(TEXT_BYTES);
        let bytes: Vec<u8> = self.0[1..].iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }
}
