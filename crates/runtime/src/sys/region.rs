//! Where a table stands in the segment.

/// A table in the segment.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First byte.
    pub offset: usize,
    /// How many elements.
    pub len: usize,
}

/// An element of a table of so many. The numbers are told by value: to tell them by reference, each look at a table would write them to
/// the stack.
#[inline(always)]
pub(super) fn within(index: usize, len: usize) {
    if index >= len {
        beyond(index, len);
    }
}

#[cold]
#[inline(never)]
fn beyond(index: usize, len: usize) -> ! {
    panic!("element {index} of a table of {len}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "element 3 of a table of 3")]
    fn an_element_behind_the_last_one_is_not_within() {
        (0..3).for_each(|index| within(index, 3));
        within(3, 3);
    }
}
