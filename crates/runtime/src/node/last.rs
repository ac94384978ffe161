//! The last word of a process that a signal ends: kept in its node's memory, where the launcher reads it when the process is gone.
//!
//! A report on the process's stream would need memory of the C library, whose lock the thread may hold.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use finespun_errors::Place;
use finespun_job::Job;
use finespun_sys::faults::{Death, Fault, FaultKind};
use finespun_sys::watch::Image;
use finespun_sys::{caller, maps};
use finespun_types::ViewId;

use super::cluster::Cluster;
use super::{meter, names};
use crate::sys::records::Last;
use crate::sys::segment::Segment;
use crate::sys::shape::Shape;

/// What the thread's instruction wanted of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// No fault raised the signal.
    Nothing,
    /// To load.
    Load,
    /// To store.
    Store,
    /// The processor does not say.
    Access,
}

impl Wanted {
    fn of(fault: Option<Fault>) -> Self {
        match fault.map(|fault| fault.kind) {
            None => Self::Nothing,
            Some(FaultKind::Read) => Self::Load,
            Some(FaultKind::Write) => Self::Store,
            Some(FaultKind::Unknown) => Self::Access,
        }
    }

    const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Nothing,
            1 => Self::Load,
            2 => Self::Store,
            _ => Self::Access,
        }
    }
}

/// How a signal ended a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The thread.
    pub place: Place,
    /// The signal.
    pub signal: i32,
    /// What the instruction wanted of memory.
    pub wanted: Wanted,
    /// The address that it wanted, if any.
    pub address: u64,
    /// Could the process read what is there?
    pub is_readable: bool,
    /// The instruction, as the linker numbers addresses, if it is the program's own.
    pub instruction: Option<u64>,
    /// The call of the program's own from which a library's instruction was reached, likewise.
    pub caller: Option<u64>,
}

static IMAGE: OnceLock<Image> = OnceLock::new();

/// Finds out, ahead of the signal, where the program's code is.
pub fn prepare() {
    IMAGE.get_or_init(Image::of_this_process);
}

/// A signal is about to end the process. In the signal's handler.
pub fn leave_word(cluster: &Cluster, death: Death) {
    if let (Some((view, _)), Some(image)) = (&cluster.view, IMAGE.get()) {
        write(&cluster.mine().view(*view).last, death, image, meter::slot_index());
    }
}

fn write(last: &Last, death: Death, image: &Image, slot: Option<usize>) {
    let of_linker = |address: usize| (address - image.base) as u64;
    let is_own = image.code.contains(&death.instruction);
    let caller = if is_own { None } else { caller::of(death.stack, &image.code) };
    let address = death.fault.map_or(0, |fault| fault.address);
    let is_readable = death.fault.is_some() && maps::rights_at(address).is_some_and(|rights| rights.reads);
    last.slot.store(slot.map_or(0, |slot| slot as u32 + 1), Relaxed);
    last.wanted.store(Wanted::of(death.fault) as u32, Relaxed);
    last.is_readable.store(u32::from(is_readable), Relaxed);
    last.address.store(address as u64, Relaxed);
    last.instruction.store(if is_own { of_linker(death.instruction) } else { 0 }, Relaxed);
    last.caller.store(caller.map_or(0, of_linker), Relaxed);
    last.signal.store(death.signal.cast_unsigned(), Release);
}

/// The last word of a process that has ended, if it left one.
///
/// # Errors
/// The kernel's, when the memory cannot be mapped.
pub fn read(
    segment: BorrowedFd<'_>,
    frames: BorrowedFd<'_>,
    job: &Job,
    node: u32,
    view: u32,
) -> io::Result<Option<Told>> {
    let segment = Segment::map(segment, frames, Shape::of(job))?;
    let last = &segment.view(ViewId(view as u8)).last;
    let signal = last.signal.load(Acquire).cast_signed();
    if signal == 0 {
        return Ok(None);
    }
    let slot = last.slot.load(Relaxed).checked_sub(1).unwrap_or(view * job.threads);
    Ok(Some(Told {
        place: place(job, node, slot),
        signal,
        wanted: Wanted::from_number(last.wanted.load(Relaxed)),
        address: last.address.load(Relaxed),
        is_readable: last.is_readable.load(Relaxed) != 0,
        instruction: Some(last.instruction.load(Relaxed)).filter(|&address| address != 0),
        caller: Some(last.caller.load(Relaxed)).filter(|&address| address != 0),
    }))
}

/// Where a slot of a node stands: a processor, or a thread beside them.
fn place(job: &Job, node: u32, slot: u32) -> Place {
    let of_node = job.views * job.threads;
    match slot.checked_sub(of_node) {
        None => Place::Processor { node, processor: node * of_node + slot },
        Some(guest) => Place::Thread { node, name: names::of_guest(guest) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Image = Image { base: 0x10_0000, variables: 0..0, code: 0x10_1000..0x10_2000 };

    #[test]
    fn what_is_written_is_what_happened() {
        let last = Last::default();
        let fault = Some(Fault { address: 8, kind: FaultKind::Write });
        write(&last, Death { signal: 11, fault, instruction: 0x10_1234, stack: 0 }, &PROGRAM, Some(3));
        let words = [&last.signal, &last.slot, &last.wanted, &last.is_readable].map(|word| word.load(Relaxed));
        assert_eq!(words, [11, 4, Wanted::Store as u32, 0]);
        let words = [&last.address, &last.instruction, &last.caller].map(|word| word.load(Relaxed));
        assert_eq!(words, [8, 0x1234, 0], "addresses of code are the linker's");
    }

    #[test]
    fn numbers_stand_for_what_was_wanted() {
        for wanted in [Wanted::Nothing, Wanted::Load, Wanted::Store, Wanted::Access] {
            assert_eq!(Wanted::from_number(wanted as u32), wanted);
        }
    }

    #[test]
    fn a_slot_is_a_processor_or_a_thread_beside() {
        let job = Job { nodes: 2, views: 2, threads: 2, ..Job::alone() };
        assert_eq!(place(&job, 1, 3), Place::Processor { node: 1, processor: 7 });
        assert!(matches!(place(&job, 1, 4), Place::Thread { node: 1, .. }));
    }
}
