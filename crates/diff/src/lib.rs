//! Twins and diffs of a page of 4 KiB. A larger unit is several of them.
//!
//! At the first store to a page its node keeps a copy, the *twin*. At a release the page is compared with its twin,
//! and what differs, the *diff*, goes to the home ([`make`], [`make_and_refresh`]), which puts it into its own copy
//! ([`apply`]). A page fetched while local processors write it is compared with the twin too, the *two-way diff* or
//! incoming diff: what differs was written elsewhere, and goes into the page and the twin ([`merge`])
//! [Cashmere05 §2.1].
//!
//! # Others write at the same time
//!
//! The page of every one of these functions may be written by other processors meanwhile. In a program without data
//! races they write other bytes than we do, perhaps the very next ones, so two rules hold for every implementation:
//!
//! - *Bytes that did not change are never written*: no word is read, changed and written back. A processor's store
//!   to the byte beside ours would be lost.
//! - *A byte of the page is read once*: the value compared is the value sent and the value the refreshed twin keeps.
//!   A store that comes later leaves the page different from the twin, and goes into the next diff.
//!
//! Bytes are the grain because words lose updates: of two nodes that write adjacent 4-byte integers, an 8-byte
//! grain would make each send the other's old value.
//!
//! # The format
//!
//! ```text
//! 0                    p                            p + 8 n      p + 8 n + 8
//! +--------------------+----------------------------+------------+
//! | changed bytes      | mask of each changed line  | line map   |    a clean page: no bytes at all
//! | p of them, packed  | n words of 64 bits         | 64 bits    |    the worst: MAX_DIFF_BYTES
//! +--------------------+----------------------------+------------+
//!   in address order     bit i: byte i of the line    bit j: line j (bytes 64 j .. 64 j + 63 of the page)
//! ```
//!
//! Words are little-endian. No mask and no line map is zero, so a page's changes have exactly one encoding. The words
//! come *after* the bytes so that the encoder needs one pass, storing whole vectors where the next line's bytes will
//! go, and the decoder finds all masks side by side: where a line's bytes start then follows by counting bits, not by
//! a chain of loads through the diff.
//!
//! Three implementations write the same bits: portable 64-bit words, AVX2 (a table of shuffles packs eight bytes),
//! and AVX-512 with VBMI2 (`vpcompressb` packs a line). The best one is found at the first use, without locks, so
//! that a fault handler may call these functions.

#![deny(unsafe_code)]

mod format;
// The only unsafe code of the crate: pages that others write are raw pointers, and vectors are intrinsics.
#[allow(unsafe_code)]
mod simd;

pub use format::{Malformed, changed_bytes};
pub use simd::{DiffBuffer, Implementation, apply, implementation, make, make_and_refresh, merge};

use finespun_types::PAGE_BYTES;

/// Bytes of a line, the part of a page that one mask describes.
pub const LINE_BYTES: usize = 64;

/// Lines of a page: as many as a line map has bits.
pub const LINES: usize = PAGE_BYTES / LINE_BYTES;

/// The longest a diff can be: every byte changed, all masks and the line map.
pub const MAX_DIFF_BYTES: usize = PAGE_BYTES + LINES * 8 + 8;

const _: () = assert!(LINES == 64, "a line map is one 64-bit word");
