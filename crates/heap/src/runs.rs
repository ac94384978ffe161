//! Runs of pages in one part of the space.
//!
//! Below `top` the part is tiled by runs, in use or free, and no two free runs touch: a run that becomes free joins
//! its free neighbours, and a free run at the top lowers the top. So a heap in which everything is free is all zero
//! again. Free runs are in lists by length, eight for each doubling; the first that fits is taken, looking at a few
//! in each list, and from the second list on the first fits unless it must be aligned: a two-level segregated fit.

use crate::tables::{ArenaHeader, BINS, Entry, Page};

/// How many runs of one list are looked at.
const LOOKS: usize = 8;

/// The list for a length; longer runs are in the same list or a later one.
fn bin_of(len: u32) -> usize {
    if len < 8 {
        return len as usize;
    }
    let log2 = len.ilog2();
    (8 * (log2 - 2) + (len >> (log2 - 3) & 7)) as usize
}

/// Where in the free run `start..start + have` an aligned run of `len` begins.
fn fit(start: u32, have: u32, len: u32, step: u32) -> Option<u32> {
    let at = if step == 1 { start } else { start.checked_next_multiple_of(step)? };
    (at.checked_add(len)? <= start + have).then_some(at)
}

/// One part of the space; page numbers count from its start.
pub(crate) struct Runs<'t> {
    pub arena: &'t mut ArenaHeader,
    pub pages: &'t mut [Page],
}

impl Runs<'_> {
    /// Takes `len` pages, the first a multiple of `step`. The first, and how many of them may have been in use before: no page
    /// from `highest` on has been.
    pub fn take(&mut self, len: u32, step: u32) -> Option<(u32, u32)> {
        let highest = self.arena.highest;
        let at = match self.find(len, step) {
            Some((start, at)) => {
                let have = self.unlink(start);
                self.link(start, at - start);
                self.link(at + len, start + have - (at + len));
                at
            }
            None => self.take_from_top(len, step)?,
        };
        self.set(at, Entry::Run { len });
        Some((at, highest.saturating_sub(at).min(len)))
    }

    fn take_from_top(&mut self, len: u32, step: u32) -> Option<u32> {
        let top = self.arena.top;
        let at = fit(top, self.pages.len() as u32 - top, len, step)?;
        // The run before the top is in use, so the gap has no free neighbour.
        self.link(top, at - top);
        self.arena.top = at + len;
        self.arena.highest = self.arena.highest.max(self.arena.top);
        Some(at)
    }

    /// Frees `len` pages from `start`, a run or a page in use.
    pub fn give(&mut self, start: u32, len: u32) {
        self.set(start, Entry::Nothing);
        let (mut first, mut end) = (start, start + len);
        if let Some(before) = self.free_run_before(start) {
            self.unlink(before);
            first = before;
        }
        if let Some(Entry::Free { .. }) = self.entry(end) {
            end += self.unlink(end);
        }
        if end == self.arena.top {
            self.arena.top = first;
        } else {
            self.link(first, end - first);
        }
    }

    fn free_run_before(&self, page: u32) -> Option<u32> {
        match self.entry(page.checked_sub(1)?)? {
            Entry::Free { .. } => Some(page - 1),
            Entry::FreeEnd { len } => Some(page - len),
            Entry::Nothing | Entry::Run { .. } | Entry::Span { .. } => None,
        }
    }

    /// The entry of a page below the top.
    pub fn entry(&self, page: u32) -> Option<Entry> {
        (page < self.arena.top).then(|| self.pages[page as usize].entry())
    }

    pub fn set(&mut self, page: u32, entry: Entry) {
        self.pages[page as usize] = entry.into();
    }

    /// The run that contains a page below the top: its first page, and what it is. By walking over all runs before
    /// it: only errors need this.
    pub fn containing(&self, page: u32) -> Option<(u32, Entry)> {
        let mut start = 0;
        while let Some(entry) = self.entry(start) {
            let end = match entry {
                Entry::Run { len } | Entry::Free { len, .. } => start + len,
                Entry::Span { .. } => start + 1,
                Entry::Nothing | Entry::FreeEnd { .. } => panic!("the heap's tables are damaged: no run at {start}"),
            };
            if page < end {
                return Some((start, entry));
            }
            start = end;
        }
        None
    }

    /// The longest run that could be taken, without alignment.
    pub fn longest(&self) -> u32 {
        let above = self.pages.len() as u32 - self.arena.top;
        let Some(bin) = (0..BINS).rev().find(|bin| self.arena.bins[*bin] != 0) else { return above };
        self.list(bin).map(|(_, len)| len).fold(above, u32::max)
    }

    /// The free runs of a list: first page, and length.
    fn list(&self, bin: usize) -> impl Iterator<Item = (u32, u32)> {
        let mut link = self.arena.bins[bin];
        core::iter::from_fn(move || {
            let start = link.checked_sub(1)?;
            let (len, _, next) = self.free(start);
            link = next;
            Some((start, len))
        })
    }

    /// A free run, and where in it the allocation begins.
    fn find(&self, len: u32, step: u32) -> Option<(u32, u32)> {
        let mut bin = bin_of(len);
        while let Some(in_use) = self.bin_in_use_from(bin) {
            let mut looks = self.list(in_use).take(LOOKS);
            if let Some(found) = looks.find_map(|(start, have)| Some((start, fit(start, have, len, step)?))) {
                return Some(found);
            }
            bin = in_use + 1;
        }
        None
    }

    fn bin_in_use_from(&self, bin: usize) -> Option<usize> {
        let mut rest = u64::MAX << (bin % 64);
        for word in bin / 64..self.arena.bins_in_use.len() {
            let bits = self.arena.bins_in_use[word] & rest;
            if bits != 0 {
                return Some(64 * word + bits.trailing_zeros() as usize);
            }
            rest = u64::MAX;
        }
        None
    }

    /// Length, previous and next of the free run at `start`.
    fn free(&self, start: u32) -> (u32, u32, u32) {
        match self.pages[start as usize].entry() {
            Entry::Free { len, previous, next } => (len, previous, next),
            other @ (Entry::Nothing | Entry::Run { .. } | Entry::FreeEnd { .. } | Entry::Span { .. }) => {
                panic!("the heap's tables are damaged: {other:?} at {start} in a list of free runs")
            }
        }
    }

    /// Makes `len` pages a free run, if there are any, in front of its list.
    fn link(&mut self, start: u32, len: u32) {
        if len == 0 {
            return;
        }
        let bin = bin_of(len);
        let next = core::mem::replace(&mut self.arena.bins[bin], start + 1);
        self.arena.bins_in_use[bin / 64] |= 1 << (bin % 64);
        if let Some(neighbour) = next.checked_sub(1) {
            let (len, _, next) = self.free(neighbour);
            self.set(neighbour, Entry::Free { len, previous: start + 1, next });
        }
        if len > 1 {
            self.set(start + len - 1, Entry::FreeEnd { len });
        }
        self.set(start, Entry::Free { len, previous: 0, next });
    }

    /// Takes the free run at `start` out of its list and clears its entries; returns its length.
    fn unlink(&mut self, start: u32) -> u32 {
        let (len, previous, next) = self.free(start);
        match previous.checked_sub(1) {
            None => {
                let bin = bin_of(len);
                self.arena.bins[bin] = next;
                if next == 0 {
                    self.arena.bins_in_use[bin / 64] &= !(1 << (bin % 64));
                }
            }
            Some(neighbour) => {
                let (len, previous, _) = self.free(neighbour);
                self.set(neighbour, Entry::Free { len, previous, next });
            }
        }
        if let Some(neighbour) = next.checked_sub(1) {
            let (len, _, next) = self.free(neighbour);
            self.set(neighbour, Entry::Free { len, previous, next });
        }
        self.set(start + len - 1, Entry::Nothing);
        self.set(start, Entry::Nothing);
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_ordered_by_length() {
        let mut last = 0;
        for len in (1..5000).chain([1 << 20, 1 << 28, (1 << 30) - 1]) {
            let bin = bin_of(len);
            assert!(bin >= last && bin < BINS, "{len}: {bin} after {last}");
            last = bin;
        }
    }
}
