//! What a fault, a change of rights, a lock and a wake-up cost on this machine: `cargo run --release --example cost`.
//!
//! Minimum and median in nanoseconds, one thread on one 4 KiB page each, network and protocol excluded. "Read miss" is
//! a load that faults, a copy of a page into the frame, `map_read`, and the load again.

use finespun_sys::clock::{self, Calibration};
use finespun_sys::faults::{self, FaultKind};
use finespun_sys::lock::WordLock;
use finespun_sys::memory::{self, Mapping};
use finespun_sys::view::{Mechanism, View};
use finespun_sys::{PAGE_BYTES, futex, probe};
use std::hint::black_box;
use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const BASE: usize = 0x2000_0000_0000;
const PAGES: u32 = 1024;
const BYTES: usize = PAGES as usize * PAGE_BYTES;

/// What the fault handler needs.
struct Rig {
    view: View,
    engine: Mapping,
    /// Where incoming pages and twins are copied from and to.
    scratch: Mapping,
}

static RIGS: [OnceLock<Rig>; 2] = [const { OnceLock::new() }; 2];
static SECOND: AtomicBool = AtomicBool::new(false);

fn answer(address: usize, kind: FaultKind) -> bool {
    let Some(rig) = RIGS[usize::from(SECOND.load(Ordering::Relaxed))].get() else { return false };
    let Some(page) = rig.view.page_of(address) else { return false };
    let frame = page as usize * PAGE_BYTES;
    // SAFETY: both mappings are BYTES long and `frame` lies below; they do not overlap.
    let (frame, scratch) = unsafe { (rig.engine.as_ptr().add(frame), rig.scratch.as_ptr().add(frame)) };
    match kind {
        FaultKind::Read => {
            // SAFETY: as above, one page each.
            unsafe { std::ptr::copy_nonoverlapping(scratch, frame, PAGE_BYTES) };
            rig.view.map_read(page).is_ok()
        }
        FaultKind::Write => {
            // SAFETY: as above; the twin.
            unsafe { std::ptr::copy_nonoverlapping(frame, scratch, PAGE_BYTES) };
            rig.view.upgrade(page).is_ok()
        }
        FaultKind::Unknown => false,
    }
}

fn main() -> io::Result<()> {
    let calibration = Calibration::measure(20_000_000);
    println!("{:#?}", probe::probe());
    println!("{calibration:?}");
    for (index, mechanism) in [Mechanism::Uffd, Mechanism::Mprotect].into_iter().enumerate() {
        let frames = memory::create(c"cost", BYTES)?;
        let view = match View::new(frames.as_fd(), BASE + index * (1 << 32), BYTES, Some(mechanism)) {
            Ok(view) => view,
            Err(error) => {
                println!("{mechanism:?}: {error}");
                continue;
            }
        };
        let scratch = memory::create(c"scratch", BYTES)?;
        let engine = Mapping::shared(frames.as_fd(), BYTES)?;
        let scratch = Mapping::shared(scratch.as_fd(), BYTES)?;
        SECOND.store(index == 1, Ordering::Relaxed);
        let rig = RIGS[index].get_or_init(|| Rig { view, engine, scratch });
        faults::install(rig.view.addresses(), mechanism, answer)?;
        println!("\n{mechanism:?}");
        measure_view(&calibration, rig)?;
        faults::uninstall()?;
    }
    println!("\nwords");
    measure_words(&calibration);
    Ok(())
}

fn measure_view(calibration: &Calibration, rig: &Rig) -> io::Result<()> {
    const ROUNDS: usize = 20;
    let mut times: [Vec<u64>; 7] = Default::default();
    let [read_miss, upgrade, protect, one, scattered, contiguous, released] = &mut times;
    let view = &rig.view;
    let even: Vec<u32> = (0..PAGES).step_by(2).collect();
    for _ in 0..ROUNDS {
        // Every second page, so that mprotect cannot merge.
        for &page in &even {
            read_miss.push(time(|| load(view, page)));
        }
        for &page in &even {
            upgrade.push(time(|| store(view, page)));
        }
        for &page in even.iter().skip(1).step_by(2) {
            protect.push(time(|| black_box(view.protect(page..page + 1).is_ok())));
        }
        for &page in even.iter().take(128) {
            one.push(time(|| black_box(view.invalidate(page..page + 1).is_ok())));
        }
        let rest = &even[128..];
        scattered.push(time(|| black_box(view.invalidate_scattered(rest).is_ok())) / rest.len() as u64);
        (0..64).try_for_each(|page| view.map_write(page))?;
        released.push(time(|| black_box(view.protect(0..64).is_ok())));
        contiguous.push(time(|| black_box(view.invalidate(0..64).is_ok())));
    }
    let names = [
        "read miss, with a copy of 4 KiB",
        "write upgrade, with the twin",
        "write-protect 1 page",
        "invalidate 1 page",
        "invalidate 384 scattered, a page",
        "invalidate 64 contiguous, total",
        "write-protect 64 contiguous, total",
    ];
    names.iter().zip(&mut times).for_each(|(name, times)| show(calibration, name, times));
    Ok(())
}

fn load(view: &View, page: u32) {
    let address = view.addresses().start + page as usize * PAGE_BYTES;
    // SAFETY: inside the view; the fault is answered by `answer`.
    black_box(unsafe { std::ptr::with_exposed_provenance::<u8>(address).read_volatile() });
}

fn store(view: &View, page: u32) {
    let address = view.addresses().start + page as usize * PAGE_BYTES;
    // SAFETY: inside the view; the fault is answered by `answer`.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(1) };
}

fn measure_words(calibration: &Calibration) {
    let mut times = Vec::new();
    let word = AtomicU32::new(0);
    let lock = WordLock::new();
    repeat(&mut times, || drop(lock.guard()));
    show(calibration, "WordLock, taken and given back", &mut times);
    repeat(&mut times, || futex::wake(&word, 1));
    show(calibration, "futex wake, nobody there", &mut times);
    repeat(&mut times, || futex::wait(&word, 1, None));
    show(calibration, "futex wait, value changed", &mut times);
    repeat(&mut times, clock::ticks);
    show(calibration, "ticks()", &mut times);
    repeat(&mut times, clock::now_ns);
    show(calibration, "now_ns()", &mut times);
    for (name, spin_ns) in [("futex round trip, two threads", 0), ("the same, spinning 50 us first", 50_000)] {
        round_trips(&mut times, calibration.ticks(spin_ns));
        show(calibration, name, &mut times);
    }
}

/// There and back between two threads: even values are ours, odd ones theirs.
fn round_trips(times: &mut Vec<u64>, spin_ticks: u64) {
    const ROUNDS: u32 = 2_000;
    let word = AtomicU32::new(0);
    times.clear();
    let pass = |from: u32| {
        word.store(from + 1, Ordering::Release);
        futex::wake(&word, 1);
    };
    let await_turn = |turn: u32| {
        while word.load(Ordering::Acquire) != turn {
            futex::spin_then_wait(&word, turn - 1, spin_ticks, None);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                await_turn(2 * round + 1);
                pass(2 * round + 1);
            }
        });
        for round in 0..ROUNDS {
            times.push(time(|| {
                pass(2 * round);
                await_turn(2 * round + 2);
            }));
        }
    });
}

fn repeat<T>(times: &mut Vec<u64>, mut action: impl FnMut() -> T) {
    times.clear();
    times.extend((0..20_000).map(|_| time(&mut action)));
}

fn time<T>(action: impl FnOnce() -> T) -> u64 {
    let before = clock::ticks();
    black_box(action());
    clock::ticks().wrapping_sub(before)
}

fn show(calibration: &Calibration, name: &str, times: &mut [u64]) {
    times.sort_unstable();
    let (least, median) = (times[0], times[times.len() / 2]);
    println!("{name:36} {:7} {:7}", calibration.ns(least), calibration.ns(median));
}
