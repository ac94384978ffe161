//! Other processors store to a page while it is compared and patched: no store may be lost.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;

use finespun_diff::{DiffBuffer, Implementation, LINE_BYTES};
use finespun_types::PAGE_BYTES;

/// A page that several threads write, each its own bytes.
#[repr(C, align(4096))]
struct Shared([AtomicU8; PAGE_BYTES]);

impl Shared {
    fn new() -> Self {
        Self([const { AtomicU8::new(0) }; PAGE_BYTES])
    }
    fn as_ptr(&self) -> *mut u8 {
        // Atomics may be written through a shared reference.
        self.0.as_ptr().cast_mut().cast()
    }
}

#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Ends the writers also when an assertion of the test fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How many rounds: enough that stores meet the engine's work often.
const ROUNDS: usize = 3000;

/// Stores to the bytes of `own` until `done`, remembering what it stored last; returns that.
fn write_own_bytes(page: &Shared, own: impl Fn(usize) -> bool, done: &AtomicBool, seed: u64) -> Vec<(usize, u8)> {
    let own: Vec<usize> = (0..PAGE_BYTES).filter(|at| own(*at)).collect();
    let (mut last, mut random) = (vec![0; own.len()], Random(seed));
    while !done.load(Ordering::Relaxed) {
        for _ in 0..64 {
            let which = random.below(own.len());
            let value = random.below(256) as u8;
            page.0[own[which]].store(value, Ordering::Relaxed);
            last[which] = value;
            // What a processor stored it must find again, whatever the engine does to the bytes beside it.
            assert_eq!(page.0[own[which]].load(Ordering::Relaxed), value, "byte {} lost a store", own[which]);
        }
    }
    own.into_iter().zip(last).collect()
}

/// A release: the diff of the page goes to the home, and the twin becomes what was sent.
fn release(with: Implementation, page: &Shared, twin: &mut Page, home: &mut Page) {
    let mut out = DiffBuffer::new();
    // SAFETY: whole, aligned pages; the shared one is atomics.
    let diff = unsafe { with.make_and_refresh(page.as_ptr(), twin.0.as_mut_ptr(), &mut out) };
    // SAFETY: a whole, aligned page of ours.
    unsafe { with.apply(diff, home.0.as_mut_ptr()) }.expect("just made");
    assert!(home.0 == twin.0, "{}: the twin is what was sent", with.name());
}

/// Two writers with interleaved bytes; releases go on meanwhile, each diff applied at the home.
#[test]
fn no_store_is_lost_between_refreshing_diffs() {
    for with in Implementation::available() {
        let (page, done) = (Shared::new(), AtomicBool::new(false));
        let (mut twin, mut home) = (Page([0; PAGE_BYTES]), Page([0; PAGE_BYTES]));
        thread::scope(|scope| {
            let stop = StopAtEnd(&done);
            let writers = [0, 1].map(|writer| {
                let (page, done) = (&page, &done);
                scope.spawn(move || write_own_bytes(page, |at| at % 2 == writer, done, writer as u64))
            });
            for _ in 0..ROUNDS {
                release(with, &page, &mut twin, &mut home);
            }
            drop(stop);
            let last = writers.map(|writer| writer.join().expect("no store was lost"));
            release(with, &page, &mut twin, &mut home);
            for (at, value) in last.into_iter().flatten() {
                assert_eq!(home.0[at], value, "{}: byte {at} at the home", with.name());
            }
        });
    }
}

/// The engine patches some bytes of each word, by diffs or two-way diffs; a local writer stores to the others.
#[test]
fn patching_a_page_leaves_the_bytes_beside_to_their_writers() {
    for with in Implementation::available() {
        // Bytes of remote processors, in several shapes: alternating, half words, quads, odd stretches.
        let is_remote = |at: usize| match at / LINE_BYTES % 4 {
            0 => at.is_multiple_of(2),
            1 => at % 4 < 2,
            2 => at % 8 < 4,
            _ => at % 64 < 37,
        };
        let (page, done) = (Shared::new(), AtomicBool::new(false));
        let mut twin = Page([0; PAGE_BYTES]);
        thread::scope(|scope| {
            let stop = StopAtEnd(&done);
            let writer = {
                let (page, done) = (&page, &done);
                scope.spawn(move || write_own_bytes(page, |at| !is_remote(at), done, 7))
            };
            let mut random = Random(8);
            let mut incoming = Page([0; PAGE_BYTES]);
            for round in 0..ROUNDS {
                let mut out = DiffBuffer::new();
                for _ in 0..40 {
                    let at = random.below(PAGE_BYTES);
                    if is_remote(at) {
                        incoming.0[at] = incoming.0[at].wrapping_add(1);
                    }
                }
                // SAFETY: whole, aligned pages; the shared one is atomics.
                unsafe {
                    if round % 2 == 0 {
                        with.merge(incoming.0.as_ptr(), twin.0.as_mut_ptr(), page.as_ptr());
                    } else {
                        let diff = with.make_and_refresh(incoming.0.as_ptr(), twin.0.as_mut_ptr(), &mut out);
                        with.apply(diff, page.as_ptr()).expect("just made");
                    }
                }
            }
            drop(stop);
            for (at, value) in writer.join().expect("no store was lost") {
                assert_eq!(page.0[at].load(Ordering::Relaxed), value, "{}: local byte {at}", with.name());
            }
            for at in (0..PAGE_BYTES).filter(|at| is_remote(*at)) {
                assert_eq!(page.0[at].load(Ordering::Relaxed), incoming.0[at], "{}: remote byte {at}", with.name());
            }
        });
    }
}
