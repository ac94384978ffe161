//! What a diff costs: nanoseconds for one page, hot in the cache. `cargo run --release -p finespun-diff --example diff_cost`

use std::hint::black_box;
use std::time::Instant;

use finespun_diff::{DiffBuffer, Implementation};
use finespun_types::PAGE_BYTES;

#[repr(C, align(4096))]
#[derive(Clone)]
struct Page([u8; PAGE_BYTES]);

/// A page changed in the 4-byte words that `is_changed` names.
fn changed(twin: &Page, mut is_changed: impl FnMut(usize) -> bool) -> Page {
    let mut page = twin.clone();
    for (word, bytes) in page.0.chunks_exact_mut(4).enumerate() {
        if is_changed(word) {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
    page
}

/// Minimum and median of the time of one call, in nanoseconds: 2,000 samples of 16 calls each.
fn measure(mut call: impl FnMut()) -> (f64, f64) {
    let mut samples: Vec<f64> = (0..2000)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..16 {
                call();
            }
            start.elapsed().as_nanos() as f64 / 16.0
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    (samples[0], samples[samples.len() / 2])
}

fn main() {
    let twin = Page(std::array::from_fn(|byte| ((byte * 7) >> 3) as u8));
    let mut random = 1_u64;
    let mut one_in_ten = |_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33).is_multiple_of(10)
    };
    let pages = [
        ("clean", twin.clone()),
        ("1 word", changed(&twin, |word| word == 500)),
        ("10 % words", changed(&twin, &mut one_in_ten)),
        ("50 % alternate", changed(&twin, |word| word % 2 == 0)),
        ("50 % bytes", {
            let mut page = twin.clone();
            page.0.iter_mut().step_by(2).for_each(|byte| *byte = !*byte);
            page
        }),
        ("100 %", changed(&twin, |_| true)),
    ];
    println!("ns per 4 KiB page: minimum / median");
    println!("{:8} {:15} {:>13} {:>13} {:>13} {:>13} {:>6}", "", "", "make", "refresh", "apply", "merge", "bytes");
    for implementation in Implementation::available() {
        for (name, page) in &pages {
            row(implementation, name, &twin, page);
        }
    }
}

fn row(implementation: Implementation, name: &str, twin: &Page, page: &Page) {
    let mut out = DiffBuffer::new();
    let (mut work, mut other) = (twin.clone(), twin.clone());
    let make = measure(|| {
        // SAFETY: two whole pages of ours.
        black_box(unsafe { implementation.make(black_box(page).0.as_ptr(), twin.0.as_ptr(), black_box(&mut out)) });
    });
    // SAFETY: two whole pages of ours.
    let diff = unsafe { implementation.make(page.0.as_ptr(), twin.0.as_ptr(), &mut out) }.to_vec();
    // The twin is put back before each call; that copy is measured alone and subtracted.
    let restore = measure(|| black_box(&mut work).0.copy_from_slice(&black_box(twin).0));
    let refresh = measure(|| {
        black_box(&mut work).0.copy_from_slice(&black_box(twin).0);
        // SAFETY: two whole pages of ours.
        black_box(unsafe {
            implementation.make_and_refresh(page.0.as_ptr(), work.0.as_mut_ptr(), black_box(&mut out))
        });
    });
    let apply = measure(|| {
        // SAFETY: a whole page of ours.
        unsafe { implementation.apply(black_box(&diff), other.0.as_mut_ptr()) }.expect("made above");
    });
    let merge = measure(|| {
        black_box(&mut work).0.copy_from_slice(&black_box(twin).0);
        // SAFETY: three whole pages of ours.
        black_box(unsafe { implementation.merge(page.0.as_ptr(), work.0.as_mut_ptr(), other.0.as_mut_ptr()) });
    });
    let less = |(min, median): (f64, f64)| (min - restore.0, median - restore.1);
    let show = |(min, median): (f64, f64)| format!("{min:.0} / {median:.0}");
    println!(
        "{:8} {name:15} {:>13} {:>13} {:>13} {:>13} {:>6}",
        implementation.name(),
        show(make),
        show(less(refresh)),
        show(apply),
        show(less(merge)),
        diff.len(),
    );
}
