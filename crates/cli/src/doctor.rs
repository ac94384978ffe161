//! `finespun doctor`: what this machine offers, what is used, and why. Everything is tried, nothing is concluded from a
//! version.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use finespun_job::pin;
use finespun_sys::machine;
use finespun_sys::memory::{self, Mapping};
use finespun_sys::probe::{Offered, probe};
use finespun_sys::process;
use finespun_types::SPACE_BASE;

use crate::output;

/// A heap that every program should be able to have: the largest that ever is, then smaller ones.
const WINDOWS: [(usize, &str); 3] = [(32 << 40, "32 TiB"), (1 << 40, "1 TiB"), (64 << 30, "64 GiB")];
const GIB: f64 = (1u64 << 30) as f64;

/// Prints one line for each thing that matters.
pub fn doctor() -> i32 {
    let offered = probe();
    let findings = [
        fault_detection(&offered),
        batched_invalidation(&offered),
        mappings(&offered),
        job_memory(),
        window(),
        randomisation(),
        memory_limits(),
        cores(&offered),
        diffs(),
        loopback(),
    ];
    let text = findings.iter().map(|finding| format!("{finding}\n")).collect::<String>();
    output::print(&text);
    0
}

struct Finding {
    is_well: bool,
    text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {} {}", if self.is_well { "ok  " } else { "warn" }, self.text)
    }
}

fn ok(text: impl Into<String>) -> Finding {
    Finding { is_well: true, text: text.into() }
}

fn warn(text: impl Into<String>) -> Finding {
    Finding { is_well: false, text: text.into() }
}

fn fault_detection(offered: &Offered) -> Finding {
    match &offered.uffd {
        Ok(()) => {
            ok("faults: userfaultfd, user mode, SIGBUS in the faulting thread, write-protect -> --faults auto uses it")
        }
        Err(reason) => warn(format!(
            "faults: userfaultfd is refused ({reason}) -> --faults auto uses mprotect and SIGSEGV, which is slower; \
             containers: allow the system call userfaultfd in the seccomp profile"
        )),
    }
}

fn batched_invalidation(offered: &Offered) -> Finding {
    if offered.process_madvise {
        ok("invalidation: process_madvise drops many pages in one call")
    } else {
        warn("invalidation: no process_madvise on our own memory -> pages are dropped one range at a time")
    }
}

fn mappings(offered: &Offered) -> Finding {
    let used =
        if offered.uffd.is_ok() { "not needed by userfaultfd" } else { "mprotect may run out, then works coarser" };
    match offered.max_map_count {
        Some(count) if count >= 60_000 || offered.uffd.is_ok() => {
            ok(format!("mappings: vm.max_map_count is {count}; {used}"))
        }
        Some(count) => {
            warn(format!("mappings: vm.max_map_count is only {count}; {used} (sysctl vm.max_map_count=1048576)"))
        }
        None => warn("mappings: vm.max_map_count cannot be read"),
    }
}

fn job_memory() -> Finding {
    match memory::create(c"finespun-doctor", 1 << 40) {
        Ok(_) => ok("job memory: memfd, sparse; /dev/shm and its size do not matter"),
        Err(error) => warn(format!(
            "job memory: no memfd of 1 TiB ({error}) -> no job can run; is the file size limited (ulimit -f)?"
        )),
    }
}

fn window() -> Finding {
    let free = WINDOWS.iter().find(|(bytes, _)| Mapping::reserve(SPACE_BASE, *bytes).is_ok());
    match free {
        Some((_, size)) => ok(format!("address window: {size} at {SPACE_BASE:#x} are free for the shared heap")),
        None => warn(format!(
            "address window: {SPACE_BASE:#x} is taken or address space is limited (ulimit -v) -> give a smaller --heap"
        )),
    }
}

fn randomisation() -> Finding {
    match fs::read_to_string("/proc/sys/kernel/randomize_va_space").as_deref().map(str::trim) {
        Ok("0") => ok("ASLR: off; not needed, on is fine too"),
        Ok(_) => ok("ASLR: on; the shared window is the same everywhere, the rest may differ"),
        Err(_) => ok("ASLR: unknown; it does not matter"),
    }
}

fn memory_limits() -> Finding {
    let heap = machine::default_heap_bytes() as f64 / GIB;
    let Some(available) = machine::available_bytes() else {
        return warn(format!("memory: /proc/meminfo cannot be read -> the default heap is {heap:.1} GiB"));
    };
    let limit = match machine::cgroup_bytes() {
        Some(left) => format!("the control group leaves {:.1} GiB", left as f64 / GIB),
        None => "no control group limits it".into(),
    };
    let text =
        format!("memory: {:.1} GiB available, {limit} -> the default heap is {heap:.1} GiB", available as f64 / GIB);
    if available < 256 << 20 { warn(text) } else { ok(text) }
}

fn cores(offered: &Offered) -> Finding {
    match offered.cpus {
        1 => warn("cores: 1 -> everything works, but processors take turns, and times mean little"),
        cores => ok(format!(
            "cores: {cores} ({}); with more processors than that they sleep instead of spinning, and --pin cores is refused",
            usable_cores()
        )),
    }
}

/// Their numbers, as --pin takes them.
fn usable_cores() -> String {
    pin::list(&process::Cores::allowed().map_or_else(|_| Vec::new(), |cores| cores.numbers()))
}

fn diffs() -> Finding {
    match finespun_diff::implementation() {
        "scalar" => warn("diffs: scalar; this processor has neither AVX2 nor AVX-512 VBMI2"),
        "avx2" => ok("diffs: AVX2; this processor has no AVX-512 VBMI2"),
        other => ok(format!("diffs: {other}")),
    }
}

fn loopback() -> Finding {
    match round_trip() {
        Ok(time) => {
            ok(format!("TCP loopback: {:.0} us for a round trip -> --transport tcp works", time.as_secs_f64() * 1e6))
        }
        Err(error) => warn(format!("TCP loopback: {error} -> --transport tcp does not work; shm does")),
    }
}

/// The shortest of some round trips between two sockets of this thread: what the system calls cost, nobody being woken.
fn round_trip() -> io::Result<Duration> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        end.set_read_timeout(Some(Duration::from_secs(1)))?;
    }
    let mut best = Duration::MAX;
    let mut byte = [0];
    for _ in 0..100 {
        let begun = Instant::now();
        near.write_all(&byte)?;
        far.read_exact(&mut byte)?;
        far.write_all(&byte)?;
        near.read_exact(&mut byte)?;
        best = best.min(begun.elapsed());
    }
    Ok(best)
}
