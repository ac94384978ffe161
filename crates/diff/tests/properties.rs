//! All implementations against a model in safe, byte-by-byte code, and against each other.

use finespun_diff::{DiffBuffer, Implementation, LINE_BYTES, LINES, MAX_DIFF_BYTES, Malformed, changed_bytes};
use finespun_types::PAGE_BYTES;
use proptest::prelude::*;

#[repr(C, align(4096))]
#[derive(Clone, PartialEq, Debug)]
struct Page([u8; PAGE_BYTES]);

fn make(with: Implementation, page: &Page, twin: &Page) -> Vec<u8> {
    let mut out = DiffBuffer::new();
    // SAFETY: two whole, aligned pages.
    unsafe { with.make(page.0.as_ptr(), twin.0.as_ptr(), &mut out) }.to_vec()
}

fn make_and_refresh(with: Implementation, page: &Page, twin: &mut Page) -> Vec<u8> {
    let mut out = DiffBuffer::new();
    // SAFETY: two whole, aligned pages.
    unsafe { with.make_and_refresh(page.0.as_ptr(), twin.0.as_mut_ptr(), &mut out) }.to_vec()
}

fn apply(with: Implementation, diff: &[u8], page: &mut Page) -> Result<(), Malformed> {
    // SAFETY: a whole, aligned page.
    unsafe { with.apply(diff, page.0.as_mut_ptr()) }
}

/// The format as the crate's documentation draws it, one byte after the other.
fn model(page: &Page, twin: &Page) -> Vec<u8> {
    let (mut bytes, mut masks, mut map) = (Vec::new(), Vec::new(), 0_u64);
    for line in 0..LINES {
        let mut mask = 0_u64;
        for byte in 0..LINE_BYTES {
            let at = line * LINE_BYTES + byte;
            if page.0[at] != twin.0[at] {
                bytes.push(page.0[at]);
                mask |= 1 << byte;
            }
        }
        if mask != 0 {
            masks.extend(mask.to_le_bytes());
            map |= 1 << line;
        }
    }
    if map != 0 {
        bytes.extend(masks);
        bytes.extend(map.to_le_bytes());
    }
    bytes
}

/// Pages as programs change them: stretches of bytes, of words, alternating, or everything.
fn a_twin_and_a_page() -> impl Strategy<Value = (Page, Page)> {
    let stretch = (0..PAGE_BYTES, 1..200_usize, prop::sample::select(vec![1, 2, 3, 4, 8, 16]), any::<u8>());
    (any::<u8>(), prop::collection::vec(stretch, 0..12), prop::bool::weighted(0.1)).prop_map(
        |(seed, stretches, everything)| {
            let twin = Page(std::array::from_fn(|at| (at as u8).wrapping_mul(seed).wrapping_add(seed >> 3)));
            let mut page = twin.clone();
            for (start, len, step, value) in stretches {
                page.0.iter_mut().skip(start).step_by(step).take(len).for_each(|byte| *byte = value);
            }
            if everything {
                page.0.iter_mut().for_each(|byte| *byte = !*byte);
            }
            (twin, page)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn every_implementation_writes_what_the_model_writes((twin, page) in a_twin_and_a_page()) {
        let expected = model(&page, &twin);
        let differing = page.0.iter().zip(&twin.0).filter(|(new, old)| new != old).count();
        prop_assert_eq!(changed_bytes(&expected), Ok(differing));
        for with in Implementation::available() {
            prop_assert_eq!(make(with, &page, &twin), &expected[..], "{}", with.name());
            let mut refreshed = twin.clone();
            prop_assert_eq!(make_and_refresh(with, &page, &mut refreshed), &expected[..], "{}", with.name());
            prop_assert!(refreshed == page, "{}: the twin is what was sent", with.name());
        }
    }

    #[test]
    fn a_diff_turns_the_twin_into_the_page((twin, page) in a_twin_and_a_page()) {
        let diff = model(&page, &twin);
        for with in Implementation::available() {
            let mut copy = twin.clone();
            prop_assert_eq!(apply(with, &diff, &mut copy), Ok(()));
            prop_assert!(copy == page, "{}", with.name());
        }
    }

    /// Local changes and remote changes of other bytes both survive a two-way diff.
    #[test]
    fn a_merge_brings_in_remote_changes_and_keeps_local_ones(
        (twin, incoming) in a_twin_and_a_page(),
        (_, other) in a_twin_and_a_page(),
    ) {
        // The local processors wrote, of the bytes in which `other` differs, those that nobody wrote remotely.
        let local = Page(std::array::from_fn(|at| {
            if incoming.0[at] == twin.0[at] { other.0[at] } else { twin.0[at] }
        }));
        let remote = incoming.0.iter().zip(&twin.0).filter(|(new, old)| new != old).count();
        let expected = Page(std::array::from_fn(|at| {
            if incoming.0[at] == twin.0[at] { local.0[at] } else { incoming.0[at] }
        }));
        for with in Implementation::available() {
            let (mut new_twin, mut page) = (twin.clone(), local.clone());
            // SAFETY: three whole, aligned pages.
            let count = unsafe { with.merge(incoming.0.as_ptr(), new_twin.0.as_mut_ptr(), page.0.as_mut_ptr()) };
            prop_assert_eq!(count, remote);
            prop_assert!(page == expected, "{}", with.name());
            prop_assert!(new_twin == incoming, "{}", with.name());
        }
    }

    #[test]
    fn a_damaged_diff_is_refused_or_applied_alike_by_all(
        (twin, page) in a_twin_and_a_page(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut diff = model(&page, &twin);
        prop_assume!(!diff.is_empty());
        for (at, value) in damage {
            let at = at.index(diff.len());
            diff[at] ^= value;
        }
        if is_cut {
            diff.drain(..cut.index(diff.len()));
        }
        // A vector of exactly this length, so that a checker of memory sees a read behind it.
        let diff = diff.into_boxed_slice();
        let mut results = Implementation::available().map(|with| {
            let mut guarded = [twin.clone(), twin.clone(), twin.clone()];
            let result = apply(with, &diff, &mut guarded[1]);
            assert!(guarded[0] == twin && guarded[2] == twin, "{} wrote beside the page", with.name());
            assert!(result.is_ok() || guarded[1] == twin, "{} wrote part of a refused diff", with.name());
            (result, guarded)
        });
        let first = results.next();
        prop_assert!(results.all(|other| Some(other) == first));
    }

    #[test]
    fn random_bytes_are_refused_or_applied_alike_by_all(diff in prop::collection::vec(any::<u8>(), 0..700)) {
        let mut results = Implementation::available().map(|with| {
            let mut page = Page([0; PAGE_BYTES]);
            (apply(with, &diff, &mut page), page)
        });
        let first = results.next();
        prop_assert!(results.all(|other| Some(other) == first));
    }
}

#[test]
fn the_longest_diff_has_the_stated_length_and_a_clean_page_has_none() {
    let (zeros, ones) = (Page([0; PAGE_BYTES]), Page([1; PAGE_BYTES]));
    for with in Implementation::available() {
        assert_eq!(make(with, &ones, &zeros).len(), MAX_DIFF_BYTES);
        assert_eq!(make(with, &ones, &ones), [0; 0]);
    }
}

#[test]
fn the_best_implementation_is_one_that_runs_here() {
    assert_eq!(Some(Implementation::best()), Implementation::available().last());
    assert_eq!(finespun_diff::implementation(), Implementation::best().name());
}
