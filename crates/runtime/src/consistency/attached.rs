//! What goes with a message of a home-based protocol, and how it stands in the envelope.

use finespun_types::{NodeId, PAGE_BYTES, UnitId};

use crate::messages::wire::{self, Letter};
use crate::node::cluster::Cluster;
use crate::sys::frames::Page;

/// What came with a message.
#[derive(Clone, Copy)]
pub enum Attached<'a> {
    /// Nothing but its words.
    Nothing,
    /// A page.
    Page(Page),
    /// A page that was in a broadcast buffer: it crossed between nodes when it was written there.
    Buffered(Page),
    /// An encoded diff.
    Diff(&'a [u8]),
}

const WITH_PAGE: u16 = 1;
const WITH_DIFF: u16 = 2;

impl<'a> Attached<'a> {
    /// The bytes that it takes in a message, as far as they are counted there.
    pub const fn len(&self) -> usize {
        match self {
            Self::Nothing | Self::Buffered(_) => 0,
            Self::Page(_) => PAGE_BYTES,
            Self::Diff(diff) => diff.len(),
        }
    }

    fn parts(&self) -> (u16, &[u8]) {
        match self {
            Self::Nothing => (0, &[]),
            Self::Page(page) | Self::Buffered(page) => (WITH_PAGE, page.bytes()),
            Self::Diff(diff) => (WITH_DIFF, diff),
        }
    }

    /// What a letter brought; `None` if it is malformed.
    pub fn of(letter: &Letter<'a>) -> Option<Self> {
        match letter.flags {
            0 => Some(Self::Nothing),
            WITH_PAGE => Page::in_message(letter.contents).map(Self::Page),
            WITH_DIFF => Some(Self::Diff(letter.contents)),
            _ => None,
        }
    }
}

/// Sends a message of the protocol, given by its words.
pub fn send(cluster: &Cluster, to: NodeId, unit: UnitId, msg: (u8, u64), attached: Attached<'_>) {
    let (flags, contents) = attached.parts();
    wire::send_letter(cluster, to, Letter { unit: unit.0, msg, flags, contents }, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(flags: u16, contents: &[u8]) -> Letter<'_> {
        Letter { unit: 0, msg: (1, 2), flags, contents }
    }

    #[test]
    fn what_is_attached_survives_the_envelope() {
        let (flags, contents) = Attached::Diff(&[1, 2, 3]).parts();
        assert!(matches!(Attached::of(&letter(flags, contents)), Some(Attached::Diff([1, 2, 3]))));
        let page = [7; PAGE_BYTES];
        let (flags, _) = Attached::Page(Page::at(page.as_ptr())).parts();
        assert!(matches!(Attached::of(&letter(flags, &page)), Some(Attached::Page(_))));
        assert!(matches!(Attached::of(&letter(0, &[])), Some(Attached::Nothing)));
    }

    #[test]
    fn a_page_that_is_cut_and_flags_that_nobody_sets_are_refused() {
        assert!(Attached::of(&letter(WITH_PAGE, &[0; 100])).is_none());
        assert!(Attached::of(&letter(8, &[])).is_none());
    }
}
