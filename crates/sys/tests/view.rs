//! Rights of a view against real loads and stores, the same tests under both mechanisms.

mod common;

use common::{BASE, Random, Rig, Rights, in_own_process, is_offered, rig, rig_with_window};
use finespun_sys::memory::{self, Mapping};
use finespun_sys::view::{Mechanism, Remote, View};
use finespun_sys::{PAGE_BYTES, calls};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Makes a test of this name for each mechanism out of one body, each in a process of its own.
macro_rules! under_both_mechanisms {
    ($($body:ident)*) => {
        mod uffd { $(#[test] fn $body() { super::start(concat!("uffd::", stringify!($body)), super::Mechanism::Uffd, super::$body) })* }
        mod mprotect { $(#[test] fn $body() { super::start(concat!("mprotect::", stringify!($body)), super::Mechanism::Mprotect, super::$body) })* }
    };
}

under_both_mechanisms! {
    faults_open_pages_and_protection_and_invalidation_close_them
    the_first_touch_of_a_page_that_has_no_memory_yet_faults
    a_run_is_opened_at_once_with_its_holes_and_around_what_is_open
    scattered_pages_are_closed_in_few_calls_and_what_is_open_between_them_stays_open
    writes_of_the_engine_are_seen_at_once_on_open_pages_and_after_the_fault_on_closed_ones
    calls_that_change_nothing_are_harmless
    a_random_sequence_of_changes_agrees_with_the_books
    a_random_sequence_of_changes_agrees_with_the_books_also_with_a_window
    threads_that_store_while_rights_come_and_go_lose_nothing
    a_child_of_fork_faults_instead_of_reading_stale_bytes
    an_unprivileged_user_has_the_same_rights
    a_view_takes_the_place_of_a_reservation
    memory_locked_by_the_program_can_still_be_invalidated
    a_core_has_the_pages_that_are_open_and_the_window_and_nothing_else_of_the_frames
}

fn start(test: &str, mechanism: Mechanism, body: fn(Mechanism)) {
    in_own_process(test, || {
        if is_offered(mechanism) {
            body(mechanism);
        }
    });
}

fn faults_open_pages_and_protection_and_invalidation_close_them(mechanism: Mechanism) {
    let rig = rig(mechanism, 8);
    assert_eq!(rig.view.mechanism(), mechanism);
    rig.frame_store(3, 9, 42);

    assert_eq!(rig.load(3, 9), 42);
    assert_eq!((rig.faults(), rig.seen(3)), ((1, 0), Rights::Read));
    rig.store(3, 9, 43);
    assert_eq!((rig.faults(), rig.seen(3)), ((1, 1), Rights::Write));
    rig.store(3, 10, 44);
    assert_eq!(rig.load(3, 10), 44);
    assert_eq!(rig.faults(), (1, 1));
    assert_eq!(rig.frame_load(3, 9), 43);

    rig.book(3, Rights::Read);
    rig.view.protect(3..4).unwrap();
    assert_eq!(rig.load(3, 9), 43);
    assert_eq!(rig.faults(), (1, 1));
    rig.store(3, 9, 45);
    assert_eq!(rig.faults(), (1, 2));

    rig.book(3, Rights::None);
    rig.view.invalidate(3..4).unwrap();
    assert_eq!(rig.seen(3), Rights::None);
    rig.store(3, 9, 46);
    assert_eq!((rig.faults(), rig.seen(3)), ((1, 3), Rights::Write));
    assert_eq!(rig.frame_load(3, 9), 46);
    assert_eq!(rig.frame_load(3, 10), 44);

    for page in [0, 1, 2, 4, 5, 6, 7] {
        assert_eq!(rig.seen(page), Rights::None);
    }
}

fn the_first_touch_of_a_page_that_has_no_memory_yet_faults(mechanism: Mechanism) {
    let rig = rig(mechanism, 64);
    assert_eq!(rig.load(10, 0), 0);
    assert_eq!((rig.faults(), rig.seen(10)), ((1, 0), Rights::Read));
    rig.store(20, 0, 1);
    assert_eq!((rig.faults(), rig.seen(20)), ((1, 1), Rights::Write));
    assert_eq!((rig.frame_load(10, 0), rig.frame_load(20, 0), rig.frame_load(20, 1)), (0, 1, 0));
    assert_eq!((rig.seen(9), rig.seen(11), rig.seen(21)), (Rights::None, Rights::None, Rights::None));
}

fn a_run_is_opened_at_once_with_its_holes_and_around_what_is_open(mechanism: Mechanism) {
    let rig = rig(mechanism, 64);
    for page in [3, 4, 9] {
        rig.frame_store(page, 0, 7);
    }
    rig.view.map_read(4).unwrap();
    rig.view.map_read(5).unwrap();
    rig.view.map_read_run(2..12).unwrap();
    for page in 2..12 {
        assert_eq!(rig.seen(page), Rights::Read);
        assert_eq!(rig.load(page, 0), if [3, 4, 9].contains(&page) { 7 } else { 0 });
    }
    assert_eq!((rig.seen(1), rig.seen(12)), (Rights::None, Rights::None));
    rig.view.map_read_run(20..20).unwrap();
    assert_eq!(rig.view.map_read_run(60..65).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    assert_eq!(rig.faults(), (0, 0));
}

fn scattered_pages_are_closed_in_few_calls_and_what_is_open_between_them_stays_open(mechanism: Mechanism) {
    let rig = rig(mechanism, 2048);
    let scattered: Vec<u32> = (0..64).map(|page| page * 16 + 3).collect();
    for (neighbours, calls_at_most) in [(false, 3), (true, 64)] {
        for &page in &scattered {
            rig.frame_store(page, 1, 9);
            rig.view.map_write(page).unwrap();
            if neighbours {
                rig.view.map_read_run(page + 2..page + 5).unwrap();
                rig.view.map_write(page + 7).unwrap();
            }
        }
        let _ = calls::collect();
        rig.view.invalidate_scattered(&scattered).unwrap();
        assert!(calls::collect() <= calls_at_most);
        for &page in &scattered {
            assert_eq!((rig.seen(page), rig.frame_load(page, 1)), (Rights::None, 9));
            let between = [2, 3, 4, 7].map(|further| rig.seen(page + further));
            let expected =
                if neighbours { [Rights::Read, Rights::Read, Rights::Read, Rights::Write] } else { [Rights::None; 4] };
            assert_eq!(between, expected);
        }
    }
    assert_eq!(rig.faults(), (0, 0));
}

fn writes_of_the_engine_are_seen_at_once_on_open_pages_and_after_the_fault_on_closed_ones(mechanism: Mechanism) {
    let rig = rig(mechanism, 4);
    for (round, page) in [(1, 0), (2, 1), (3, 0)] {
        rig.view.invalidate(page..page + 1).unwrap();
        rig.frame_store(page, 100, round);
        rig.view.map_read(page).unwrap();
        assert_eq!(rig.load(page, 100), round);
        rig.frame_store(page, 100, round + 10);
        assert_eq!(rig.load(page, 100), round + 10);
        rig.view.map_write(page).unwrap();
        rig.frame_store(page, 101, round);
        assert_eq!(rig.load(page, 101), round);
    }
    assert_eq!(rig.faults(), (0, 0));
}

fn calls_that_change_nothing_are_harmless(mechanism: Mechanism) {
    let rig = rig(mechanism, 8);
    let view = &rig.view;
    for _ in 0..2 {
        view.map_read(1).unwrap();
        assert_eq!(rig.seen(1), Rights::Read);
    }
    for _ in 0..2 {
        view.map_write(1).unwrap();
        assert_eq!(rig.seen(1), Rights::Write);
    }
    view.upgrade(1).unwrap();
    assert_eq!(rig.seen(1), Rights::Write);
    view.map_read(1).unwrap();
    assert_eq!(rig.seen(1), Rights::Read);
    for _ in 0..2 {
        view.protect(1..2).unwrap();
        assert_eq!(rig.seen(1), Rights::Read);
    }
    for _ in 0..2 {
        view.invalidate(0..8).unwrap();
        assert_eq!(rig.seen(1), Rights::None);
    }
    view.invalidate_scattered(&[]).unwrap();
    view.invalidate(3..3).unwrap();
    view.protect(3..3).unwrap();
    // Invalidated while write-protected, then opened: the protection must not come back from the dead.
    view.map_write(1).unwrap();
    assert_eq!(rig.seen(1), Rights::Write);
    for result in [view.map_read(8), view.map_write(8), view.invalidate(7..9), view.invalidate_scattered(&[0, 8])] {
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
    assert_eq!(rig.faults(), (0, 0));
}

/// One random change of rights in the view and in the books.
fn change(rig: &Rig, random: &mut Random) {
    let pages = rig.view.pages();
    let page = random.below(pages);
    let run = page..(page + 1 + random.below(12)).min(pages);
    match random.below(8) {
        0 => {
            rig.view.map_read(page).unwrap();
            rig.book(page, Rights::Read);
        }
        1 => {
            rig.view.map_write(page).unwrap();
            rig.book(page, Rights::Write);
        }
        2 if rig.booked(page) == Rights::Read => {
            rig.view.upgrade(page).unwrap();
            rig.book(page, Rights::Write);
        }
        7 => {
            let end = run.clone().find(|&page| rig.booked(page) != Rights::None).unwrap_or(run.end);
            rig.view.map_read_run(run.start..end).unwrap();
            (run.start..end).for_each(|page| rig.book(page, Rights::Read));
        }
        3 => {
            let end = run.clone().find(|&page| rig.booked(page) == Rights::None).unwrap_or(run.end);
            rig.view.protect(run.start..end).unwrap();
            (run.start..end).for_each(|page| rig.book(page, Rights::Read));
        }
        4 => {
            rig.view.invalidate(run.clone()).unwrap();
            run.for_each(|page| rig.book(page, Rights::None));
        }
        5 => {
            let some: Vec<u32> = (0..random.below(200)).map(|_| random.below(pages)).collect();
            rig.view.invalidate_scattered(&some).unwrap();
            some.iter().for_each(|&page| rig.book(page, Rights::None));
        }
        _ if random.below(2) == 0 => {
            let value = rig.frame_load(page, 5);
            assert_eq!(rig.load(page, 5), value);
        }
        _ => {
            let value = random.below(256) as u8;
            rig.store(page, 5, value);
            assert_eq!(rig.frame_load(page, 5), value);
        }
    }
}

fn a_random_sequence_of_changes_agrees_with_the_books(mechanism: Mechanism) {
    check_random_sequence(rig(mechanism, 512));
}

fn a_random_sequence_of_changes_agrees_with_the_books_also_with_a_window(mechanism: Mechanism) {
    let address = 0x40_0000_0000;
    let taken = Mapping::reserve(address, 100 * PAGE_BYTES).unwrap();
    let rig = rig_with_window(mechanism, 512, address, 150..250);
    std::mem::forget(taken);
    rig.store(150, 9, 42);
    assert_eq!((rig.frame_load(150, 9), rig.cell(150, 9).addr()), (42, address + 9));
    assert_eq!((rig.frame_load(149, 9), rig.frame_load(250, 9)), (0, 0));
    rig.book(150, Rights::None);
    rig.view.invalidate(150..151).unwrap();
    check_random_sequence(rig);
}

fn check_random_sequence(rig: &Rig) {
    let mut random = Random(88_172_645_463_325_252);
    for step in 0..20_000 {
        change(rig, &mut random);
        let page = random.below(512);
        assert_eq!(rig.seen(page), rig.booked(page), "step {step}, page {page}");
    }
    for page in 0..512 {
        assert_eq!(rig.seen(page), rig.booked(page));
    }
    assert_eq!((rig.repairs.load(Ordering::Relaxed), rig.view.coarse_invalidations()), (0, 0));
    let (reads, writes) = rig.faults();
    assert!(reads > 100 && writes > 100);
}

fn threads_that_store_while_rights_come_and_go_lose_nothing(mechanism: Mechanism) {
    const THREADS: usize = 3;
    const ROUNDS: u32 = 4_000;
    let rig = rig(mechanism, 32);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || count_in_own_words(rig, thread, ROUNDS))).collect();
        scope.spawn(|| {
            let mut random = Random(0x5eed);
            while !done.load(Ordering::Relaxed) {
                let page = random.below(32);
                let _guard = rig.lock(page).guard();
                if random.below(2) == 0 && rig.booked(page) != Rights::None {
                    rig.view.protect(page..page + 1).unwrap();
                    rig.book(page, Rights::Read);
                } else {
                    rig.view.invalidate(page..page + 1).unwrap();
                    rig.book(page, Rights::None);
                }
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    for thread in 0..THREADS {
        let total: u32 = (0..32).map(|page| word(rig.frame(page, thread * 4)).load(Ordering::Relaxed)).sum();
        assert_eq!(total, ROUNDS);
    }
}

fn word<'a>(cell: *mut u8) -> &'a AtomicU32 {
    // SAFETY: callers pass aligned addresses of the view or the engine's mapping, which the rig never unmaps.
    unsafe { AtomicU32::from_ptr(cell.cast()) }
}

fn count_in_own_words(rig: &Rig, thread: usize, rounds: u32) {
    let mut random = Random(thread as u64 + 1);
    for _ in 0..rounds {
        // Load, then store: a read fault, then an upgrade, with rights lost in between now and then.
        let word = word(rig.cell(random.below(32), thread * 4));
        let seen = word.load(Ordering::Relaxed);
        word.store(seen + 1, Ordering::Relaxed);
    }
}

/// Runs `body` in a child of fork; true if it ended well.
fn in_child(body: impl FnOnce()) -> i32 {
    // SAFETY: this test process runs one thread besides the test program's own, which only waits for it.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(result.is_err())) };
    }
    let mut status = -1;
    // SAFETY: `status` is a valid int to write to.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

fn a_child_of_fork_faults_instead_of_reading_stale_bytes(mechanism: Mechanism) {
    let rig = rig(mechanism, 4);
    rig.store(1, 0, 5);
    let status = in_child(|| {
        // The range is not mapped here, so the handler's map_* fail, it declines, and the fault is fatal.
        rig.load(1, 0);
    });
    assert!(libc::WIFSIGNALED(status));
    assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV);
    assert_eq!(rig.load(1, 0), 5);
}

fn an_unprivileged_user_has_the_same_rights(mechanism: Mechanism) {
    // SAFETY: asks only.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: already unprivileged, all other tests show it");
        return;
    }
    let status = in_child(|| {
        // SAFETY: numbers only. glibc changes all threads of the child, and there is one.
        assert_eq!(unsafe { libc::setgid(65534) | libc::setuid(65534) }, 0);
        assert!(is_offered(mechanism));
        faults_open_pages_and_protection_and_invalidation_close_them(mechanism);
        common_scattered();
    });
    assert_eq!(status, 0);

    fn common_scattered() {
        let frames = memory::create(c"test", 300 * PAGE_BYTES).unwrap();
        let view = View::new(frames.as_fd(), BASE + (1 << 30), 300 * PAGE_BYTES, None).unwrap();
        (0..300).for_each(|page| view.map_write(page).unwrap());
        view.invalidate_scattered(&(0..300).step_by(2).collect::<Vec<_>>()).unwrap();
    }
}

fn a_view_takes_the_place_of_a_reservation(mechanism: Mechanism) {
    let frames = memory::create(c"test", 4 * PAGE_BYTES).unwrap();
    let reservation = Mapping::reserve(BASE, 4 * PAGE_BYTES).unwrap();
    let refused = View::new(frames.as_fd(), BASE, 4 * PAGE_BYTES, Some(mechanism)).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EEXIST));
    let view = View::in_reservation(reservation, frames.as_fd(), Some(mechanism)).unwrap();
    assert_eq!(view.addresses(), BASE..BASE + 4 * PAGE_BYTES);
    view.map_write(2).unwrap();
    // SAFETY: page 2 of the view was made writable just now.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(BASE + 2 * PAGE_BYTES).write_volatile(3) };
    let engine = Mapping::shared(frames.as_fd(), 4 * PAGE_BYTES).unwrap();
    // SAFETY: inside the engine's mapping.
    assert_eq!(unsafe { engine.as_ptr().add(2 * PAGE_BYTES).read_volatile() }, 3);
    assert_eq!((view.page_of(BASE + 2 * PAGE_BYTES + 7), view.page_of(BASE - 1)), (Some(2), None));
    assert_eq!(view.page_of(BASE + 4 * PAGE_BYTES), None);
    drop(view);
    Mapping::reserve(BASE, 4 * PAGE_BYTES).unwrap();
}

fn memory_locked_by_the_program_can_still_be_invalidated(mechanism: Mechanism) {
    let rig = rig(mechanism, 16);
    // SAFETY: numbers only.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT) } != 0 {
        println!("skipped: mlockall: {}", std::io::Error::last_os_error());
        return;
    }
    rig.store(1, 0, 1);
    rig.load(2, 0);
    rig.view.invalidate(1..2).unwrap();
    rig.view.invalidate_scattered(&[2, 5, 9]).unwrap();
    assert_eq!((rig.seen(1), rig.seen(2)), (Rights::None, Rights::None));
}

#[test]
fn another_process_can_write_protect_pages_of_a_view() {
    in_own_process("another_process_can_write_protect_pages_of_a_view", || {
        if !is_offered(Mechanism::Uffd) {
            return;
        }
        let rig = rig(Mechanism::Uffd, 8);
        (0..8).for_each(|page| rig.store(page, 0, 1));
        let status = in_child(|| {
            let descriptor = rig.view.descriptor().unwrap().try_clone_to_owned().unwrap();
            let remote = Remote::new(descriptor, BASE, 8 * PAGE_BYTES).unwrap();
            remote.protect(2..5).unwrap();
            assert!(remote.protect(2..9).is_err());
        });
        assert_eq!(status, 0);
        for page in 0..8 {
            let expected = if (2..5).contains(&page) { Rights::Read } else { Rights::Write };
            assert_eq!(rig.seen(page), expected);
        }
    });
}

/// Forbids userfaultfd to this process, as container runtimes do.
fn forbid_userfaultfd() {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const SKIP_UNLESS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let line = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut filter = [
        line(LOAD_NUMBER, 0, 0),
        line(SKIP_UNLESS, 1, libc::SYS_userfaultfd as u32),
        line(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        line(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: numbers, then a program of the length it says; the kernel copies it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn where_userfaultfd_is_forbidden_the_view_uses_mprotect_and_the_probe_says_why() {
    in_own_process("where_userfaultfd_is_forbidden_the_view_uses_mprotect_and_the_probe_says_why", || {
        forbid_userfaultfd();
        let reason = finespun_sys::probe::probe().uffd.unwrap_err();
        assert!(reason.contains("userfaultfd") && reason.contains("not permitted"), "{reason}");
        let frames = memory::create(c"test", PAGE_BYTES).unwrap();
        let refused = View::new(frames.as_fd(), BASE, PAGE_BYTES, Some(Mechanism::Uffd)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        let view = View::new(frames.as_fd(), BASE, PAGE_BYTES, None).unwrap();
        assert_eq!(view.mechanism(), Mechanism::Mprotect);
        assert!(view.descriptor().is_none());
        view.map_read(0).unwrap();
    });
}

/// Does the kernel leave the page at this address out of a core?
fn is_left_out_of_cores(address: usize) -> bool {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_here = false;
    for line in text.lines() {
        let range = line.split(' ').next().and_then(|word| word.split_once('-'));
        let range = range.and_then(|(from, to)| Some((hex(from)?, hex(to)?)));
        if let Some((from, to)) = range {
            is_here = (from..to).contains(&address);
        } else if is_here && let Some(flags) = line.strip_prefix("VmFlags:") {
            return flags.split(' ').any(|flag| flag == "dd");
        }
    }
    panic!("{address:#x} is not mapped");
}

fn hex(digits: &str) -> Option<usize> {
    usize::from_str_radix(digits, 16).ok()
}

fn a_core_has_the_pages_that_are_open_and_the_window_and_nothing_else_of_the_frames(mechanism: Mechanism) {
    const WINDOW: usize = 0x2344_0000_0000;
    let rig = rig_with_window(mechanism, 16, WINDOW, 8..12);
    for page in [2, 3, 7, 12] {
        rig.store(page, 0, 1);
    }
    let left_out = |page: u32| is_left_out_of_cores(rig.view.address_of(page));
    assert!((0..16).all(|page| left_out(page) != (8..12).contains(&page)));
    rig.view.put_into_core();
    let expected = [2, 3, 7, 8, 9, 10, 11, 12];
    assert_eq!((0..16).filter(|&page| !left_out(page)).collect::<Vec<_>>(), expected);
    assert!(rig.load(3, 0) == 1 && rig.load(4, 0) == 0, "the rights are what they were");
}
