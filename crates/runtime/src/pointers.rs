//! `--check pointers`: words in shared memory that are addresses of this process's private memory.
//!
//! A page that the process may write is looked at whenever the process releases: what it has stored there others can read from then on.
//! Words that lie in a private mapping are taken for pointers. Any other number looks like one so seldom (a 64-bit number with the upper
//! 17 bits zero, and the rest in one of a few hundred mappings) that it has not been met.
//!
//! In a program at a fixed address its functions and constants stand at one address everywhere, and a pointer to them is good.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use finespun_job::{PrivatePointer, Report};
use finespun_sys::maps::{self, Region};
use finespun_sys::signals::Inside;
use finespun_sys::watch::Image;
use finespun_types::{Access, UnitId};

use crate::cluster::Cluster;
use crate::consistency::units;
use crate::sys::frames::Page;
use crate::{meter, misuse};

/// No process tells of more words than this.
const TOLD_MAX: usize = 1000;
/// No pointer is smaller: the kernel maps nothing there.
const LOWEST: u64 = 1 << 16;

static IS_ON: AtomicBool = AtomicBool::new(false);
/// A bit for each unit that this process may have stored to since it was last looked at.
static WRITTEN: OnceLock<Box<[AtomicU64]>> = OnceLock::new();

/// None of the words from here on has a bit.
static WORDS: AtomicUsize = AtomicUsize::new(0);

/// What is known between two looks.
#[derive(Default)]
struct Known {
    told: HashSet<usize>,
    /// Shared stacks, on which private addresses are as usual as on any.
    stacks: Vec<Range<usize>>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Looks from now on, if the job asks for it and there is more than one process to read what stands there.
pub fn begin(cluster: &Cluster) {
    if cluster.job.checks.pointers && cluster.job.nodes * cluster.job.views > 1 {
        WRITTEN.get_or_init(|| (0..cluster.shape.pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect());
        IS_ON.store(true, Ordering::Release);
    }
}

/// Is anything looked for?
#[inline]
pub fn are_looked_for() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// This process may store to the unit from now on. In the fault handler.
pub fn written(unit: UnitId) {
    if let Some(words) = WRITTEN.get() {
        let index = unit.0 as usize / 64;
        words[index].fetch_or(1 << (unit.0 % 64), Ordering::Relaxed);
        WORDS.fetch_max(index + 1, Ordering::Relaxed);
    }
}

/// This is a stack.
pub fn leave_out(stack: &Range<usize>) {
    if are_looked_for() {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().stacks.push(stack.clone());
    }
}

/// Before a release: looks at what the process may have stored since the last one.
#[inline]
pub fn look(cluster: &Cluster) {
    if are_looked_for() {
        look_at_all(cluster);
    }
}

#[cold]
fn look_at_all(cluster: &Cluster) {
    let Some(written) = WRITTEN.get() else { return };
    let _signals = Inside::new();
    // Who does not know what is private has nothing to tell.
    let Ok(private) = Private::of(cluster) else { return };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    for (index, word) in written.iter().enumerate().take(WORDS.load(Ordering::Relaxed)) {
        let mut bits = word.load(Ordering::Relaxed);
        while bits != 0 {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            let unit = UnitId(index as u32 * 64 + bit);
            if units::access(cluster, unit) != Access::Write {
                // Another store faults, and comes back. A store between the two lines does too, before it is done.
                word.fetch_and(!(1 << bit), Ordering::Relaxed);
            }
            look_at(cluster, unit, &private, known);
        }
    }
}

fn look_at(cluster: &Cluster, unit: UnitId, private: &Private, known: &mut Known) {
    let Some(start) = cluster.view.as_ref().map(|(_, mapping)| mapping.address_of(unit.0)) else { return };
    if known.stacks.iter().any(|stack| stack.contains(&start)) {
        return;
    }
    let page = Page::at(cluster.mine().frame(unit));
    for (index, word) in page.bytes().chunks_exact(8).enumerate() {
        let value = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        let Some(region) = private.region(value) else { continue };
        let address = start + index * 8;
        if known.told.len() < TOLD_MAX && known.told.insert(address) {
            misuse::tell(&Report::PrivatePointer(private.told(cluster, address, value, region)));
        }
    }
}

/// What only this process has.
struct Private {
    image: Image,
    program: String,
    shares_globals: bool,
    regions: Vec<Region>,
}

impl Private {
    fn of(cluster: &Cluster) -> io::Result<Self> {
        let program = std::fs::read_link("/proc/self/exe")?.display().to_string();
        let window = cluster.view.as_ref().map_or(0..0, |(_, mapping)| mapping.window());
        let shared = cluster.view.as_ref().map_or(0..0, |(_, mapping)| mapping.addresses());
        let image = Image::of_this_process();
        let mut private = Self { image, program, shares_globals: !window.is_empty(), regions: Vec::new() };
        let is_apart = |of: &Range<usize>, from: &Range<usize>| of.end <= from.start || of.start >= from.end;
        let regions = maps::of_this_process()?.into_iter();
        let regions =
            regions.filter(|region| is_apart(&region.addresses, &window) && is_apart(&region.addresses, &shared));
        private.regions = regions.filter(|region| private.is_private(region)).collect();
        Ok(private)
    }

    fn is_private(&self, region: &Region) -> bool {
        let is_variable = self.image.variables.contains(&region.addresses.start);
        if is_variable || region.name == self.program {
            // At a fixed address the program is the same everywhere, but for its variables.
            return self.image.base != 0 || is_variable && !self.shares_globals;
        }
        region.is_readable
            && !region.name.starts_with("/memfd:")
            && !["[vdso]", "[vvar]", "[vsyscall]"].contains(&&*region.name)
    }

    fn region(&self, value: u64) -> Option<&Region> {
        if value < LOWEST || value >> 47 != 0 {
            return None;
        }
        let value = value as usize;
        let after = self.regions.partition_point(|region| region.addresses.start <= value);
        self.regions.get(after.checked_sub(1)?).filter(|region| region.addresses.contains(&value))
    }

    fn told(&self, cluster: &Cluster, address: usize, value: u64, region: &Region) -> PrivatePointer {
        let here = (&raw const address).addr();
        let first = usize::from(cluster.my_view().0) * cluster.shape.threads;
        let own = first..first + cluster.shape.threads;
        let is_of_program = region.name == self.program || self.image.variables.contains(&region.addresses.start);
        let memory = match region.name.as_str() {
            _ if region.addresses.contains(&here) => "the stack",
            "[stack]" => "the stack of the first thread",
            "[heap]" => "malloc memory",
            "" => "malloc memory, or a thread's stack,",
            name => Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name),
        };
        PrivatePointer {
            address: address as u64,
            value,
            memory: memory.to_owned(),
            in_program: is_of_program.then(|| value - self.image.base as u64),
            in_variable: cluster.view.as_ref().is_some_and(|(_, mapping)| mapping.window().contains(&address)),
            processor: cluster.processor_at(meter::slot_index().filter(|slot| own.contains(slot)).unwrap_or(first)).0,
            program: self.program.clone(),
        }
    }
}
