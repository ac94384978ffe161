//! Which rights to write a release leaves to its view.
//!
//! A right that is kept costs a comparison in the next release, 0.1 to 0.3 us. A right that is taken costs a fault at the next store, 2.5 us. So a
//! view keeps its right to a page that it wrote in one of its last [`WRITTEN_WITHIN`] releases before: then the comparisons in vain cost as
//! much as the fault.
//!
//! A release compares each page that the release before it kept, also if the program has written nothing in between. So a release keeps
//! [`KEPT_MAX`] rights at most: that is what a critical section without a store may cost, some 5 us.

/// So many releases ago a page was written, if it is expected to be written again.
const WRITTEN_WITHIN: u32 = 8;
/// The most rights that one release keeps.
const KEPT_MAX: u32 = 32;

/// The rights that one release keeps.
pub struct Rewrites {
    room: u32,
}

impl Rewrites {
    /// None yet.
    pub const fn new() -> Self {
        Self { room: KEPT_MAX }
    }

    /// Does the release keep the right to a page that the view wrote before, so many releases ago?
    pub const fn keeps(&mut self, ago: Option<u32>) -> bool {
        let keeps = matches!(ago, Some(..=WRITTEN_WITHIN)) && self.room > 0;
        if keeps {
            self.room -= 1;
        }
        keeps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_kept_while_the_page_was_written_within_eight_releases() {
        let mut rewrites = Rewrites::new();
        assert_eq!([None, Some(1), Some(8), Some(9)].map(|ago| rewrites.keeps(ago)), [false, true, true, false]);
    }

    #[test]
    fn a_release_keeps_no_more_rights_than_a_critical_section_without_a_store_may_compare() {
        let mut rewrites = Rewrites::new();
        assert_eq!((0..1024).filter(|_| rewrites.keeps(Some(1))).count(), KEPT_MAX as usize);
    }
}
