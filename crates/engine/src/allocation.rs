//! Calls of the shared heap, run at the node that keeps it ([`KEEPER`]).

use finespun_heap::{BadFree, Heap, Policy};
use finespun_types::NodeId;

use crate::homes::KEEPER;

/// A call of the heap. Offsets are bytes from the start of the shared space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Memory for a processor of a node: its offset, and how many of its bytes an earlier allocation may have had, from the first on.
    Allocate {
        /// Bytes.
        size: u64,
        /// A power of two.
        align: u64,
        /// Where the homes are.
        policy: Policy,
        /// Whose processor asks.
        node: NodeId,
    },
    /// Gives memory back: zeros.
    Free {
        /// What `Allocate` returned.
        offset: u64,
    },
    /// The usable size of an allocation, 0 if there is none; and 0.
    Usable {
        /// What `Allocate` returned.
        offset: u64,
    },
    /// The collective allocation with this number, which all processes ask for: as `Allocate`.
    Together {
        /// Counted from 1.
        number: u64,
        /// Bytes; all must agree.
        size: u64,
    },
}

impl Call {
    /// Does the call pass on what its caller knows? A later owner of the memory has it from this one.
    #[must_use]
    pub const fn releases(&self) -> bool {
        match self {
            Self::Free { .. } => true,
            Self::Allocate { .. } | Self::Usable { .. } | Self::Together { .. } => false,
        }
    }
}

/// A collective allocation: the first process that asks makes it, the others are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Together {
    /// Which one, counted from 1.
    pub number: u64,
    /// Its size.
    pub size: u64,
    /// Where it is.
    pub offset: u64,
    /// How many of its bytes an earlier allocation may have had.
    pub reused: u64,
}

/// Why the heap refused a call. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No free run is long enough.
    NoRoom {
        /// Bytes asked for.
        size: u64,
        /// Bytes of all pages in use.
        used: u64,
        /// The largest size that there is room for, by first touch.
        largest: u64,
    },
    /// No allocation begins at the offset.
    BadFree(BadFree),
    /// Two processes disagree about the size of a collective allocation.
    Disagreement {
        /// Which one, counted from 1.
        number: u64,
        /// What this process asks for.
        size: u64,
        /// What the first one asked for.
        first: u64,
    },
}

/// Runs a call under the heap's lock. `together`: the last two collective allocations; no process is further behind the first.
///
/// # Errors
/// The reasons are [`Refused`]'s.
pub fn run(heap: &mut Heap<'_>, together: &mut [Together; 2], call: Call) -> Result<(u64, u64), Refused> {
    match call {
        Call::Allocate { size, align, policy, node } => allocate(heap, size, align, policy, node),
        Call::Free { offset } => heap.free(offset).map(|_| (0, 0)).map_err(Refused::BadFree),
        Call::Usable { offset } => Ok((heap.usable(offset).unwrap_or(0), 0)),
        Call::Together { number, size } => {
            let entry = &mut together[(number % 2) as usize];
            if entry.number != number {
                let page = heap.page();
                let (offset, reused) = allocate(heap, size, page, Policy::FirstTouch, KEEPER)?;
                *entry = Together { number, size, offset, reused };
            }
            if entry.size == size {
                Ok((entry.offset, entry.reused))
            } else {
                Err(Refused::Disagreement { number, size, first: entry.size })
            }
        }
    }
}

fn allocate(heap: &mut Heap<'_>, size: u64, align: u64, policy: Policy, node: NodeId) -> Result<(u64, u64), Refused> {
    match heap.alloc(size, align, policy, node) {
        Some(placement) => Ok((placement.offset, placement.reused)),
        None => Err(Refused::NoRoom { size, used: heap.used_bytes(), largest: heap.largest_free() }),
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use finespun_heap::{Header, Layout, Page, Span, Tables};

    use finespun_types::UnitSize;

    use super::*;

    /// Runs calls one after the other on a heap of so many pages for two nodes.
    fn answers<const N: usize>(pages: u32, calls: [Call; N]) -> [Result<(u64, u64), Refused>; N] {
        let layout = Layout::new(pages, 2, UnitSize::PAGE).expect("a small heap has a layout");
        let mut header = Header::EMPTY;
        let mut tables =
            (vec![Page::default(); layout.pages() as usize], vec![Span::default(); layout.limit_pages() as usize]);
        let tables = Tables { header: &mut header, pages: &mut tables.0, spans: &mut tables.1 };
        let (mut heap, mut together) = (Heap::new(layout, tables), [Together::default(); 2]);
        calls.map(|call| run(&mut heap, &mut together, call))
    }

    fn page_of(node: u8) -> Call {
        Call::Allocate { size: 4096, align: 16, policy: Policy::FirstTouch, node: NodeId(node.into()) }
    }

    #[test]
    fn memory_that_was_freed_is_told_from_fresh_memory() {
        let [first, freed, second] = answers(8, [page_of(0), Call::Free { offset: 0 }, page_of(1)]);
        let Ok((offset, 0)) = first else { panic!("{first:?}") };
        assert_eq!((offset, freed), (0, Ok((0, 0))));
        assert_eq!(second, Ok((offset, 4096)));
    }

    #[test]
    fn every_process_gets_the_collective_allocation_that_the_first_has_made() {
        let ask = |number, size| Call::Together { number, size };
        let [first, again, next, late] = answers(64, [ask(1, 5000), ask(1, 5000), ask(2, 100), ask(1, 5000)]);
        assert!(first.is_ok());
        assert_eq!((first, first), (again, late));
        assert_ne!(first, next);
    }

    #[test]
    fn processes_that_disagree_about_a_collective_allocation_are_told_both_sizes() {
        let [_, refused] = answers(64, [Call::Together { number: 1, size: 8 }, Call::Together { number: 1, size: 9 }]);
        assert_eq!(refused, Err(Refused::Disagreement { number: 1, size: 9, first: 8 }));
    }

    #[test]
    fn a_refusal_tells_what_there_is_room_for_and_changes_nothing() {
        let of = |size| Call::Allocate { size, align: 16, policy: Policy::FirstTouch, node: NodeId(0) };
        let [_, too_large, interior, usable] =
            answers(8, [page_of(0), of(1 << 40), Call::Free { offset: 64 }, Call::Usable { offset: 0 }]);
        let Err(Refused::NoRoom { size, used, largest }) = too_large else { panic!("{too_large:?}") };
        assert_eq!((size, used), (1 << 40, 4096));
        assert_eq!(interior, Err(Refused::BadFree(BadFree::Interior { start: 0 })));
        assert_eq!(usable, Ok((4096, 0)));
        let [_, more, most] = answers(8, [page_of(0), of(largest + 1), of(largest)]);
        assert_eq!((more.is_ok(), most.is_ok()), (false, true));
    }

    #[test]
    fn only_a_free_passes_on_what_its_caller_knows() {
        let others = [page_of(0), Call::Usable { offset: 0 }, Call::Together { number: 1, size: 8 }];
        assert!(Call::Free { offset: 0 }.releases());
        assert!(others.iter().all(|call| !call.releases()));
    }
}
