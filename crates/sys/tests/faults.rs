//! What the fault handler answers, and what it leaves to the actions that the program has.
#![cfg(target_arch = "x86_64")]

mod common;

use common::{BASE, in_own_process, is_offered, part_of, rig, run_own_process};
use finespun_sys::faults::{self, FaultKind, set_user_action};
use finespun_sys::view::Mechanism;
use finespun_sys::{PAGE_BYTES, process};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// What handlers of the "program" saw.
static CALLS: AtomicI32 = AtomicI32::new(0);
static ADDRESS: AtomicUsize = AtomicUsize::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);

/// An address that nothing maps, outside of any view.
const ELSEWHERE: usize = 0x2fff_0000_0000;

extern "C" fn with_info(_signal: i32, info: *mut libc::siginfo_t, context: *mut std::ffi::c_void) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the kernel's siginfo and context, handed on. The mask is asked for only.
    unsafe {
        ADDRESS.store((*info).si_addr().addr(), Ordering::Relaxed);
        let mut mask = 0_u64;
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, std::ptr::null::<u64>(), &raw mut mask, 8_usize);
        MASK.store(mask, Ordering::Relaxed);
        skip_load(context);
    }
}

extern "C" fn plain(signal: i32) {
    CALLS.fetch_add(signal, Ordering::Relaxed);
}

/// Steps over the three bytes of `load_elsewhere`'s instruction.
///
/// # Safety
/// `context` is that of a fault in `load_elsewhere`.
unsafe fn skip_load(context: *mut std::ffi::c_void) {
    // SAFETY: by contract a ucontext_t, restored by the kernel when the handler returns.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] += 3 };
}

/// A load from `address` by an instruction of known length: `mov rax, [rdi]`, 48 8b 07.
fn load_elsewhere(address: usize) {
    // SAFETY: loads only; a fault kills the test or is stepped over.
    unsafe { std::arch::asm!("mov rax, [rdi]", in("rdi") address, out("rax") _, options(nostack, readonly)) };
}

fn action(handler: usize, flags: i32) -> libc::sigaction {
    // SAFETY: integers and an optional function pointer: zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    action
}

fn act(signal: i32, action: &libc::sigaction) {
    // SAFETY: a valid action, nothing asked back.
    assert_eq!(unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) }, 0);
}

fn decline(_address: usize, _kind: FaultKind) -> bool {
    false
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

#[test]
fn loads_and_stores_are_told_apart_and_errno_survives() {
    in_own_process("loads_and_stores_are_told_apart_and_errno_survives", || {
        let mechanism = if is_offered(Mechanism::Uffd) { Mechanism::Uffd } else { Mechanism::Mprotect };
        let rig = rig(mechanism, 8);
        // SAFETY: this thread's errno.
        unsafe { libc::__errno_location().write(77) };
        rig.load(0, 0);
        rig.store(1, 0, 1);
        // SAFETY: a read-modify-write of a byte in the view, and a load that gives zero.
        unsafe {
            std::sync::atomic::AtomicU8::from_ptr(rig.cell(2, 0)).fetch_add(1, Ordering::Relaxed);
            assert_eq!(std::sync::atomic::AtomicU8::from_ptr(rig.cell(3, 0)).load(Ordering::Relaxed), 0);
            assert_eq!(libc::__errno_location().read(), 77);
        }
        assert_eq!(rig.faults(), (2, 2));
    });
}

#[test]
fn a_fault_elsewhere_goes_to_the_handler_that_was_there_before() {
    in_own_process("a_fault_elsewhere_goes_to_the_handler_that_was_there_before", || {
        let mut before = action(with_info as *const () as usize, libc::SA_SIGINFO);
        // SAFETY: a valid set.
        unsafe { libc::sigaddset(&raw mut before.sa_mask, libc::SIGUSR2) };
        act(libc::SIGSEGV, &before);
        rig(Mechanism::Mprotect, 8).store(0, 0, 1);
        load_elsewhere(ELSEWHERE);
        assert_eq!((CALLS.load(Ordering::Relaxed), ADDRESS.load(Ordering::Relaxed)), (1, ELSEWHERE));
        // It ran with the mask it asked for, not with ours; but SIGBUS stands in for SIGSEGV, by which the faults of the space come.
        let mask = MASK.load(Ordering::Relaxed);
        assert_eq!(mask & (bit(libc::SIGBUS) | bit(libc::SIGUSR2)), bit(libc::SIGBUS) | bit(libc::SIGUSR2));
        assert_eq!(mask & (bit(libc::SIGUSR1) | bit(libc::SIGSEGV)), 0);
        // And again: our own handler is still in front.
        common_rig_still_answers();
        load_elsewhere(ELSEWHERE);
        assert_eq!(CALLS.load(Ordering::Relaxed), 2);
    });

    fn common_rig_still_answers() {
        // SAFETY: page 3 of the rig's view; the fault is answered.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(BASE + 3 * PAGE_BYTES).write_volatile(1) };
    }
}

#[test]
fn a_program_that_installs_its_handler_later_stays_behind_ours() {
    in_own_process("a_program_that_installs_its_handler_later_stays_behind_ours", || {
        act(libc::SIGSEGV, &action(plain as *const () as usize, 0));
        let rig = rig(Mechanism::Mprotect, 8);
        let later = action(with_info as *const () as usize, libc::SA_SIGINFO | libc::SA_NODEFER);
        let mut old = action(0, 0);
        // SAFETY: valid actions to read and to write.
        assert_eq!(unsafe { set_user_action(libc::SIGSEGV, &raw const later, &raw mut old) }, 0);
        assert_eq!(old.sa_sigaction, plain as *const () as usize);
        // SAFETY: as above; null asks only.
        assert_eq!(unsafe { set_user_action(libc::SIGSEGV, std::ptr::null(), &raw mut old) }, 0);
        assert_eq!(old.sa_sigaction, with_info as *const () as usize);
        rig.store(2, 0, 1);
        assert_eq!((rig.faults().1, CALLS.load(Ordering::Relaxed)), (1, 0));
        load_elsewhere(ELSEWHERE);
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        assert_eq!(MASK.load(Ordering::Relaxed) & bit(libc::SIGSEGV), 0);
        // A signal that is none of ours goes straight to the kernel.
        let user = action(plain as *const () as usize, 0);
        // SAFETY: valid actions; then a signal to ourselves that has a handler.
        unsafe {
            assert_eq!(set_user_action(libc::SIGUSR1, &raw const user, std::ptr::null_mut()), 0);
            libc::raise(libc::SIGUSR1);
        }
        assert_eq!(CALLS.load(Ordering::Relaxed), 1 + libc::SIGUSR1);
    });
}

#[test]
fn signals_that_somebody_sent_reach_the_program_even_while_they_look_like_faults() {
    in_own_process("signals_that_somebody_sent_reach_the_program_even_while_they_look_like_faults", || {
        act(libc::SIGBUS, &action(plain as *const () as usize, libc::SA_RESETHAND));
        act(libc::SIGSEGV, &action(libc::SIG_IGN, 0));
        rig(Mechanism::Mprotect, 8);
        // SAFETY: signals to ourselves, handled or ignored.
        unsafe { libc::raise(libc::SIGBUS) };
        assert_eq!(CALLS.load(Ordering::Relaxed), libc::SIGBUS);
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGSEGV) };
        let mut now = action(1, 0);
        // SAFETY: a valid action to write; null asks only. SA_RESETHAND has spent the handler.
        unsafe { set_user_action(libc::SIGBUS, std::ptr::null(), &raw mut now) };
        assert_eq!(now.sa_sigaction, libc::SIG_DFL);
    });
}

#[test]
fn uninstalling_gives_the_signals_back_and_a_second_space_is_refused() {
    in_own_process("uninstalling_gives_the_signals_back_and_a_second_space_is_refused", || {
        act(libc::SIGSEGV, &action(with_info as *const () as usize, libc::SA_SIGINFO));
        faults::install(BASE..BASE + PAGE_BYTES, Mechanism::Mprotect, decline).unwrap();
        assert_eq!(faults::install(1..2, Mechanism::Mprotect, decline).unwrap_err().raw_os_error(), Some(libc::EBUSY));
        faults::uninstall().unwrap();
        let mut now = action(0, 0);
        // SAFETY: a valid action to write; null asks only.
        assert_eq!(unsafe { libc::sigaction(libc::SIGSEGV, std::ptr::null(), &raw mut now) }, 0);
        assert_eq!(now.sa_sigaction, with_info as *const () as usize);
        faults::install(BASE..BASE + PAGE_BYTES, Mechanism::Mprotect, decline).unwrap();
    });
}

#[test]
fn what_nobody_handles_kills_with_the_right_signal() {
    const TEST: &str = "what_nobody_handles_kills_with_the_right_signal";
    let Some(part) = part_of(TEST) else {
        for (part, signal) in [
            ("elsewhere", libc::SIGSEGV),
            ("declined", libc::SIGSEGV),
            ("ignored", libc::SIGSEGV),
            ("sent", libc::SIGBUS),
            ("blocked", libc::SIGSEGV),
        ] {
            let (status, output) = run_own_process(TEST, part);
            assert_eq!(status.signal(), Some(signal), "{part}: {status}\n{output}");
        }
        return;
    };
    // The test program's own handler for stack overflows would be in between, and core files would be left behind.
    let default = if part == "ignored" { libc::SIG_IGN } else { libc::SIG_DFL };
    act(libc::SIGSEGV, &action(default, 0));
    act(libc::SIGBUS, &action(libc::SIG_DFL, 0));
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid limit to read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) }, 0);
    faults::install(BASE..BASE + PAGE_BYTES, Mechanism::Mprotect, decline).unwrap();
    match part.as_str() {
        "elsewhere" | "ignored" => load_elsewhere(ELSEWHERE),
        "declined" => load_elsewhere(BASE),
        "sent" => {
            // SAFETY: a signal to ourselves, meant to kill.
            unsafe { libc::raise(libc::SIGBUS) };
        }
        "blocked" => {
            let _blocked = process::SignalsBlocked::new();
            load_elsewhere(BASE);
        }
        other => panic!("no part {other}"),
    }
}
