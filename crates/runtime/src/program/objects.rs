//! Mutexes, condition variables, barriers and flags, as a program uses them.

use std::sync::atomic::Ordering;

use finespun_errors::Code;
use finespun_sync::Event;
use finespun_types::{Bucket, Counter};

use super::memory::offset;
use super::threads::PARALLEL;
use super::{Entered, Result, inside, quick};
use crate::consistency;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::runtime::Model;
use crate::node::{meter, private};
use crate::sync::{barrier, locks, objects, threads};

/// Locks a mutex.
///
/// # Errors
/// [`Code::Relock`], [`Code::Argument`].
pub fn lock(mutex: usize) -> Result<()> {
    if quick::lock(mutex) {
        return Ok(());
    }
    inside_for(mutex, "mutex", move |entered| lock_entered(entered, mutex))
}

/// Locks an address of the shared space, whatever stands there, as if it were a mutex.
///
/// # Errors
/// As [`lock`].
pub fn lock_address(address: usize) -> Result<()> {
    if quick::lock(address) {
        return Ok(());
    }
    inside_at(address, "word", move |entered| lock_entered(entered, address))
}

pub(super) fn lock_entered(entered: &Entered, mutex: usize) -> Result<()> {
    let (cluster, slot) = (entered.cluster, entered.slot);
    meter::timed(cluster, Bucket::LockWait, || acquire_mutex(cluster, slot, mutex as u64))?;
    meter::count(cluster, Counter::LockAcquires, 1);
    consistency::acquire(cluster);
    Ok(())
}

/// Locks a mutex if nobody holds it.
///
/// # Errors
/// [`Code::Argument`].
pub fn try_lock(mutex: usize) -> Result<bool> {
    inside_for(mutex, "mutex", move |entered| try_lock_entered(entered, mutex))
}

/// As [`lock_address`], if nobody has locked it.
///
/// # Errors
/// [`Code::Argument`].
pub fn try_lock_address(address: usize) -> Result<bool> {
    inside_at(address, "word", move |entered| try_lock_entered(entered, address))
}

fn try_lock_entered(entered: &Entered, mutex: usize) -> Result<bool> {
    let (cluster, slot) = (entered.cluster, entered.slot);
    let (mutex, who) = (mutex as u64, cluster.processor_at(slot));
    let locked = if locks::migrate(cluster) {
        locks::try_lock(cluster, slot, mutex)?
    } else {
        objects::call(cluster, slot, Event::TryLock { mutex, who })? == 1
    };
    if locked {
        meter::count(cluster, Counter::LockAcquires, 1);
        consistency::acquire(cluster);
    }
    Ok(locked)
}

/// Unlocks a mutex.
///
/// # Errors
/// [`Code::NotOwner`], [`Code::Argument`].
pub fn unlock(mutex: usize) -> Result<()> {
    if quick::unlock(mutex) {
        return Ok(());
    }
    inside_for(mutex, "mutex", move |entered| unlock_entered(entered, mutex))
}

/// Unlocks what [`lock_address`] locked.
///
/// # Errors
/// [`Code::NotOwner`], [`Code::Argument`].
pub fn unlock_address(address: usize) -> Result<()> {
    if quick::unlock(address) {
        return Ok(());
    }
    inside_at(address, "word", move |entered| unlock_entered(entered, address))
}

pub(super) fn unlock_entered(entered: &Entered, mutex: usize) -> Result<()> {
    let (cluster, slot) = (entered.cluster, entered.slot);
    let (mutex, who) = (mutex as u64, cluster.processor_at(slot));
    if !locks::migrate(cluster) {
        consistency::release(cluster);
        objects::call(cluster, slot, Event::Unlock { mutex, who })?;
        return Ok(());
    }
    let heirs = locks::heirs(cluster);
    if locks::may_defer(cluster, slot, &heirs) && locks::hand_over(cluster, slot, mutex, heirs)? {
        meter::count(cluster, Counter::DeferredReleases, 1);
        return Ok(());
    }
    consistency::release(cluster);
    locks::unlock(cluster, slot, mutex)
}

/// Unlocks a mutex under which the processor has written nothing that another may need: without a release, where the next holder takes
/// over no other's.
pub(super) fn leave_entered(entered: &Entered, mutex: usize) -> Result<()> {
    let (cluster, slot) = (entered.cluster, entered.slot);
    // An earlier holder may have handed the mutex over without a release of its own.
    if locks::migrate(cluster) {
        return unlock_entered(entered, mutex);
    }
    objects::call(cluster, slot, Event::Unlock { mutex: mutex as u64, who: cluster.processor_at(slot) })?;
    Ok(())
}

/// Waits until the processor holds the mutex, without an acquire.
fn acquire_mutex(cluster: &Cluster, slot: usize, mutex: u64) -> Result<()> {
    if locks::migrate(cluster) {
        return locks::lock(cluster, slot, mutex);
    }
    let who = cluster.processor_at(slot);
    objects::call(cluster, slot, Event::Lock { mutex, who })?;
    Ok(())
}

/// Waits for a condition variable with the mutex given up.
///
/// # Errors
/// [`Code::NotOwner`], [`Code::Argument`].
pub fn wait_condition(condition: usize, mutex: usize) -> Result<()> {
    inside_for(condition, "condition variable", move |entered| {
        check_object(entered.cluster, mutex, "mutex")?;
        let (cluster, slot) = (entered.cluster, entered.slot);
        consistency::release(cluster);
        meter::count(cluster, Counter::ConditionWaits, 1);
        meter::timed(cluster, Bucket::LockWait, || {
            objects::wait_condition(cluster, slot, condition as u64, mutex as u64)?;
            acquire_mutex(cluster, slot, mutex as u64)
        })?;
        consistency::acquire(cluster);
        Ok(())
    })
}

/// The same for at most so many nanoseconds; false if they passed and no signal came. The mutex is locked either way.
///
/// # Errors
/// [`Code::NotOwner`], [`Code::Argument`].
pub fn wait_condition_for(condition: usize, mutex: usize, limit_ns: u64) -> Result<bool> {
    inside_for(condition, "condition variable", move |entered| {
        check_object(entered.cluster, mutex, "mutex")?;
        let (cluster, slot) = (entered.cluster, entered.slot);
        consistency::release(cluster);
        meter::count(cluster, Counter::ConditionWaits, 1);
        let signalled = meter::timed(cluster, Bucket::LockWait, || {
            let signalled = objects::wait_condition_for(cluster, slot, condition as u64, mutex as u64, limit_ns)?;
            acquire_mutex(cluster, slot, mutex as u64)?;
            Ok::<_, Failure>(signalled)
        })?;
        consistency::acquire(cluster);
        Ok(signalled)
    })
}

/// Wakes the longest waiter of a condition variable, or all.
///
/// # Errors
/// [`Code::Argument`].
pub fn signal(condition: usize, all: bool) -> Result<()> {
    inside_for(condition, "condition variable", move |entered| {
        let condition = condition as u64;
        let event = if all { Event::Broadcast { condition } } else { Event::Signal { condition } };
        objects::call(entered.cluster, entered.slot, event)?;
        Ok(())
    })
}

/// Waits until `count` processors have arrived at a barrier.
///
/// # Errors
/// [`Code::BarrierCount`], [`Code::Argument`].
pub fn barrier(barrier: usize, count: u32) -> Result<()> {
    barrier_told_last(barrier, count).map(|_| ())
}

/// The same; tells one of those who arrived, the last, that it is the one.
///
/// # Errors
/// As [`barrier`].
pub fn barrier_told_last(barrier: usize, count: u32) -> Result<bool> {
    inside_for(barrier, "barrier", move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        consistency::release(cluster);
        let who = cluster.processor_at(slot);
        let event = Event::Arrive { barrier: barrier as u64, count, who, weight: 1 };
        let last = meter::timed(cluster, Bucket::BarrierWait, || objects::call(cluster, slot, event))?;
        meter::count(cluster, Counter::Barriers, 1);
        consistency::acquire(cluster);
        Ok(last == 1)
    })
}

/// How a lock for readers and writers is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RwAccess {
    /// To read.
    Read {
        /// By a thread that holds it to read already.
        again: bool,
    },
    /// To write.
    Write,
}

/// Locks a lock for readers and writers.
///
/// # Errors
/// [`Code::Relock`], [`Code::Argument`].
pub fn lock_rw(rwlock: usize, access: RwAccess) -> Result<()> {
    inside_for(rwlock, "rwlock", move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        let (rwlock, who) = (rwlock as u64, cluster.processor_at(slot));
        let event = match access {
            RwAccess::Read { again } => Event::ReadLock { rwlock, who, again },
            RwAccess::Write => Event::WriteLock { rwlock, who },
        };
        meter::timed(cluster, Bucket::LockWait, || objects::call(cluster, slot, event))?;
        meter::count(cluster, Counter::LockAcquires, 1);
        consistency::acquire(cluster);
        Ok(())
    })
}

/// The same if that needs no waiting.
///
/// # Errors
/// [`Code::Argument`].
pub fn try_lock_rw(rwlock: usize, access: RwAccess) -> Result<bool> {
    inside_for(rwlock, "rwlock", move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        let (rwlock, who) = (rwlock as u64, cluster.processor_at(slot));
        let event = match access {
            RwAccess::Read { again } => Event::TryReadLock { rwlock, who, again },
            RwAccess::Write => Event::TryWriteLock { rwlock, who },
        };
        let locked = objects::call(cluster, slot, event)? == 1;
        if locked {
            meter::count(cluster, Counter::LockAcquires, 1);
            consistency::acquire(cluster);
        }
        Ok(locked)
    })
}

/// Unlocks a lock for readers and writers.
///
/// # Errors
/// [`Code::NotOwner`], [`Code::Argument`].
pub fn unlock_rw(rwlock: usize) -> Result<()> {
    inside_for(rwlock, "rwlock", move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        consistency::release(cluster);
        let who = cluster.processor_at(slot);
        objects::call(cluster, slot, Event::RwUnlock { rwlock: rwlock as u64, who })?;
        Ok(())
    })
}

/// Waits until all processors of the job have arrived.
///
/// # Errors
/// [`Code::BarrierCount`], [`Code::Argument`], [`Code::NobodyElse`].
pub fn barrier_all() -> Result<()> {
    inside(move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        if slot >= cluster.shape.processors_per_node() {
            let what = "fsp_barrier_all in a thread that the program made itself: it is no processor";
            return Err(Failure::new(Code::Argument, what));
        }
        let speaks = PARALLEL.load(Ordering::Relaxed) == 0;
        let weight = match entered.runtime.model {
            // Where every process runs main, and no fsp_parallel is under way, main speaks for the process's serving threads too.
            Model::Spmd if speaks => cluster.shape.threads as u32,
            Model::Spmd | Model::Main | Model::Threads => 1,
        };
        if entered.runtime.model == Model::Main && speaks {
            others_come(cluster, slot)?;
        }
        consistency::release(cluster);
        meter::timed(cluster, Bucket::BarrierWait, || barrier::arrive(cluster, slot, weight))?;
        meter::count(cluster, Counter::Barriers, 1);
        consistency::acquire(cluster);
        Ok(())
    })
}

/// An arrival outside of fsp_parallel, where main goes on in processor 0 only: can others come?
fn others_come(cluster: &Cluster, slot: usize) -> Result<()> {
    let others = cluster.shape.processors() - 1;
    if others > 0 && cluster.processor_at(slot).0 == 0 && threads::is_main_alone(cluster) {
        let others = if others == 1 {
            "processor 1 runs nothing".into()
        } else {
            format!("none of the {others} others runs anything")
        };
        let what = format!("processor 0 waits at the barrier of all, and {others}");
        return Err(Failure::new(Code::NobodyElse, what));
    }
    Ok(())
}

/// Raises a flag.
///
/// # Errors
/// [`Code::Argument`].
pub fn set_flag(flag: usize, value: u32) -> Result<()> {
    if quick::set_flag(flag, value) {
        return Ok(());
    }
    inside_for(flag, "flag", move |entered| {
        consistency::release(entered.cluster);
        meter::count(entered.cluster, Counter::Flags, 1);
        objects::call(entered.cluster, entered.slot, Event::SetFlag { flag: flag as u64, value })?;
        Ok(())
    })
}

/// Waits for a flag.
///
/// # Errors
/// [`Code::Argument`].
pub fn wait_flag(flag: usize, value: u32) -> Result<u32> {
    if let Some(value) = quick::wait_flag(flag, value) {
        return Ok(value);
    }
    inside_for(flag, "flag", move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        let who = cluster.processor_at(slot);
        let event = Event::WaitFlag { flag: flag as u64, value, who };
        let value = meter::timed(cluster, Bucket::LockWait, || objects::call(cluster, slot, event))?;
        meter::count(cluster, Counter::Flags, 1);
        consistency::acquire(cluster);
        Ok(value as u32)
    })
}

/// The value of a flag.
///
/// # Errors
/// [`Code::Argument`].
pub fn read_flag(flag: usize) -> Result<u32> {
    if let Some(value) = quick::read_flag(flag) {
        return Ok(value);
    }
    inside_for(flag, "flag", move |entered| {
        let (cluster, slot) = (entered.cluster, entered.slot);
        let who = cluster.processor_at(slot);
        let value = objects::call(cluster, slot, Event::ReadFlag { flag: flag as u64, who })?;
        consistency::acquire(cluster);
        Ok(value as u32)
    })
}

/// Puts a flag back to 0.
///
/// # Errors
/// [`Code::Argument`].
pub fn reset_flag(flag: usize) -> Result<()> {
    inside_for(flag, "flag", move |entered| {
        objects::call(entered.cluster, entered.slot, Event::ResetFlag { flag: flag as u64 })?;
        Ok(())
    })
}

fn inside_for<R: 'static>(
    object: usize,
    kind: &'static str,
    body: impl FnOnce(&Entered) -> Result<R> + 'static,
) -> Result<R> {
    inside(move |entered| {
        check_object(entered.cluster, object, kind)?;
        body(entered)
    })
}

fn inside_at<R: 'static>(
    address: usize,
    kind: &'static str,
    body: impl FnOnce(&Entered) -> Result<R> + 'static,
) -> Result<R> {
    inside(move |entered| match offset(entered.cluster, address) {
        Some(_) => body(entered),
        None => Err(not_shared(entered.cluster, address, kind)),
    })
}

fn not_shared(cluster: &Cluster, address: usize, kind: &str) -> Failure {
    let (me, views) = (usize::from(cluster.me.0), cluster.shape.views);
    if cluster.shape.nodes * views > 1 && private::is_mapped(address) {
        return private::object(address, kind, me * views + usize::from(cluster.my_view().0));
    }
    let what = format!("the {kind} at {address:#x} is not in shared memory: allocate it with fsp_malloc");
    Failure { code: Code::Argument, what }
}

/// Objects are known by their addresses, which mean the same to everybody only in the shared space.
fn check_object(cluster: &Cluster, object: usize, kind: &str) -> Result<()> {
    match offset(cluster, object) {
        Some(offset) if offset % 8 == 0 => Ok(()),
        Some(_) => Err(Failure::new(Code::Argument, format!("the {kind} at {object:#x} is not aligned to 8 bytes"))),
        None => Err(not_shared(cluster, object, kind)),
    }
}
