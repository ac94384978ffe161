//! What a program can ask, as the borders (the C API) call it: release and acquire where they belong, counted and timed.
//!
//! Every function may be called by any thread of the process. Each blocks signals while it is inside the engine, so
//! that a signal handler of the program, which may touch shared memory, never finds the engine's locks taken by the
//! thread it interrupted.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use finespun_errors::Code;
use finespun_heap::Policy;
use finespun_sync::Event;
use finespun_sync::threads::Handle;
use finespun_sys::process::{ErrnoKept, SignalsBlocked};
use finespun_types::{Bucket, Counter, NodeId, ProcessorId, UNIT_BYTES, UnitId};

use crate::cluster::Cluster;
use crate::memory::{self, Call};
use crate::misuse::{self, Failure};
use crate::start::{self, Model, Runtime, runtime};
use crate::{barrier, consistency, meter, objects, phases, threads};

/// What a call returns.
pub type Result<T> = std::result::Result<T, Failure>;

/// Starts the runtime; see [`Model`]. `run` runs a function of the program by address and argument.
///
/// # Errors
/// Why the process cannot take part.
pub fn start(model: Model, run: fn(usize, u64) -> u64) -> Result<&'static Runtime> {
    start::start(model, run)
}

/// Ends the runtime of this process; nothing if it is not running.
pub fn end() {
    start::end();
}

/// Is the runtime running in this process?
#[must_use]
pub fn is_running() -> bool {
    start::running().is_some()
}

/// Ends the job with an error of the program.
pub fn fail(failure: &Failure) -> ! {
    let place = runtime().map_or_else(|_| misuse::joined_as(), |runtime| misuse::place(runtime.cluster));
    misuse::end_job(place, failure)
}

/// Ends the job because the program says so.
pub fn abort(code: i32, why: &str) -> ! {
    let place = runtime().map_or_else(|_| misuse::joined_as(), |runtime| misuse::place(runtime.cluster));
    misuse::end_job_with(place, &Failure::new(Code::Aborted, why), code.clamp(1, 255))
}

/// Who the caller is and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The caller's node.
    pub node: usize,
    /// Nodes of the job.
    pub nodes: usize,
    /// The caller's processor; a thread that the program made itself has the number of its process's first.
    pub processor: usize,
    /// Processors of the job.
    pub processors: usize,
    /// Processors on each node.
    pub per_node: usize,
    /// The caller's process.
    pub process: usize,
    /// Processes of the job.
    pub processes: usize,
}

/// See [`Identity`].
///
/// # Errors
/// [`Code::NotStarted`], [`Code::Forked`].
pub fn identity() -> Result<Identity> {
    let cluster = runtime()?.cluster;
    let shape = &cluster.shape;
    let first = usize::from(cluster.my_view().0) * shape.threads;
    let slot = meter::slot_index().filter(|slot| *slot < shape.processors_per_node()).unwrap_or(first);
    Ok(Identity {
        node: usize::from(cluster.me.0),
        nodes: shape.nodes,
        processor: cluster.processor_at(slot).0 as usize,
        processors: shape.processors(),
        per_node: shape.processors_per_node(),
        process: usize::from(cluster.me.0) * shape.views + usize::from(cluster.my_view().0),
        processes: shape.nodes * shape.views,
    })
}

/// The engine, entered by a call of the program.
struct Entered {
    runtime: &'static Runtime,
    cluster: &'static Cluster,
    slot: usize,
    _signals: SignalsBlocked,
    /// What waits makes system calls that fail in the ordinary course of things; the program's `errno` is its own.
    _errno: ErrnoKept,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.cluster.flush_messages();
    }
}

fn enter() -> Result<Entered> {
    let runtime = runtime()?;
    let cluster = runtime.cluster;
    let errno = ErrnoKept::new();
    let signals = SignalsBlocked::new();
    let slot = match meter::slot_index() {
        Some(slot) => slot,
        None => adopt(cluster)?,
    };
    Ok(Entered { runtime, cluster, slot, _signals: signals, _errno: errno })
}

/// Gives a thread that the program made itself a slot to wait in.
fn adopt(cluster: &'static Cluster) -> Result<usize> {
    several_threads_now(cluster);
    let Some(slot) = cluster.take_guest_slot() else {
        let what = "more threads of the program's own call the library at once than a node has room for (31)";
        return Err(Failure::new(Code::Argument, what));
    };
    meter::become_slot(slot);
    GUEST.set(Some(Guest { cluster, slot }));
    Ok(slot)
}

thread_local! {
    /// Gives the thread's slot back when the thread ends.
    static GUEST: Cell<Option<Guest>> = const { Cell::new(None) };
}

/// A slot taken by a thread that the program made itself.
struct Guest {
    cluster: &'static Cluster,
    slot: usize,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.cluster.give_guest_slot(self.slot);
    }
}

fn several_threads_now(cluster: &Cluster) {
    cluster.mine().view(cluster.my_view()).several_threads.store(1, Ordering::SeqCst);
}

/// The program is about to make a thread of its own, perhaps before the start: from now on nothing may be skipped at a
/// release.
pub fn note_own_thread() {
    start::OWN_THREADS.store(true, Ordering::Relaxed);
    if let Some(runtime) = start::running() {
        several_threads_now(runtime.cluster);
    }
}

/// Opens a phase of the program, for reports.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn begin_phase(name: &str) -> Result<()> {
    let cluster = runtime()?.cluster;
    phases::begin(&meter::slot(cluster).phases, name);
    Ok(())
}

/// Closes the last phase opened.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn end_phase() -> Result<()> {
    let cluster = runtime()?.cluster;
    phases::end(&meter::slot(cluster).phases);
    Ok(())
}

// Memory.

/// Where the caller wants homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// At whoever touches a page first.
    FirstTouch,
    /// At this node.
    Node(usize),
    /// Dealt to the nodes in blocks of so many bytes.
    Dealt(u64),
}

/// Allocates; the address. Acquires, as [`free`] releases: memory may come from another node, whose last stores to it must
/// neither arrive later nor be missing from this node's copy, against which its diffs are made.
///
/// # Errors
/// [`Code::HeapExhausted`], [`Code::Argument`].
pub fn allocate(size: u64, align: u64, home: Home) -> Result<usize> {
    let entered = enter()?;
    let policy = match home {
        Home::FirstTouch => Policy::FirstTouch,
        Home::Node(node) if node < entered.cluster.shape.nodes => Policy::On(NodeId(node as u8)),
        Home::Node(node) => {
            let what = format!("fsp_malloc_on: node {node} of {}", entered.cluster.shape.nodes);
            return Err(Failure { code: Code::Argument, what });
        }
        Home::Dealt(block) => memory::dealt(block),
    };
    let call = Call::Allocate { size, align, policy, node: entered.cluster.me };
    let (offset, _) = memory::call(entered.cluster, entered.slot, call)?;
    consistency::acquire(entered.cluster);
    Ok(base(entered.cluster) + offset as usize)
}

/// Memory that all processes of an SPMD program get together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Together {
    /// Its address, the same in each process.
    pub address: usize,
    /// This process zeroes it, before [`meet`].
    pub zero: bool,
}

/// Allocates together with all processes of an SPMD program, which make the same calls in the same order. In the main
/// model the memory is the caller's alone. [`meet`] comes next.
///
/// # Errors
/// [`Code::HeapExhausted`]; [`Code::Argument`] when processes disagree about the size.
pub fn allocate_together(size: u64) -> Result<Together> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let entered = enter()?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    if entered.runtime.model == Model::Main {
        return Ok(Together { address: allocate(size, UNIT_BYTES as u64, Home::FirstTouch)?, zero: true });
    }
    let number = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    let (offset, _) = memory::call(cluster, slot, Call::Together { number, size })?;
    consistency::acquire(cluster);
    let zero = cluster.me == NodeId(0) && cluster.my_view().0 == 0;
    Ok(Together { address: base(cluster) + offset as usize, zero })
}

/// Waits for all processes of an SPMD program; releases and acquires. Nothing in the main model.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn meet() -> Result<()> {
    let entered = enter()?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    if entered.runtime.model == Model::Spmd {
        consistency::release(cluster);
        meter::timed(cluster, Bucket::BarrierWait, || barrier::arrive_together(cluster, slot))?;
        consistency::acquire(cluster);
    }
    Ok(())
}

/// Gives an allocation back. Releases: what this view stored there must be at its home before another node's stores.
///
/// # Errors
/// [`Code::BadFree`].
pub fn free(address: usize) -> Result<()> {
    let entered = enter()?;
    let result = match offset(entered.cluster, address) {
        Some(offset) => {
            consistency::release(entered.cluster);
            memory::call(entered.cluster, entered.slot, Call::Free { offset }).map(|_| ())
        }
        None => Err(Failure::new(Code::BadFree, "it lies outside the shared heap")),
    };
    result.map_err(|failure| Failure { what: format!("fsp_free({address:#x}): {}", failure.what), ..failure })
}

/// The usable bytes of an allocation; 0 if it is none.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn usable(address: usize) -> Result<u64> {
    let entered = enter()?;
    match offset(entered.cluster, address) {
        Some(offset) => Ok(memory::call(entered.cluster, entered.slot, Call::Usable { offset })?.0),
        None => Ok(0),
    }
}

/// Does the address lie in the shared space?
#[must_use]
pub fn is_shared(address: usize) -> bool {
    start::running().is_some_and(|runtime| offset(runtime.cluster, address).is_some())
}

/// The home of an address, as this node knows it.
#[must_use]
pub fn home(address: usize) -> Option<usize> {
    let entered = enter().ok()?;
    let cluster = entered.cluster;
    let unit = UnitId((offset(cluster, address)? / UNIT_BYTES as u64) as u32);
    let place = cluster.place(cluster.me, unit);
    let home = place.fixed_home.or_else(|| cluster.mine().lock(unit).state().home()).or_else(|| {
        // Another node may have touched it first.
        cluster.reaches(place.manager).then(|| cluster.at(place.manager).lock(unit).homes().home()).flatten()
    });
    home.map(|home| usize::from(home.0))
}

fn base(cluster: &Cluster) -> usize {
    cluster.view.as_ref().map_or(0, |(_, mapping)| mapping.addresses().start)
}

fn offset(cluster: &Cluster, address: usize) -> Option<u64> {
    let offset = address.checked_sub(base(cluster))?;
    (offset < cluster.shape.pages * UNIT_BYTES).then_some(offset as u64)
}

// Synchronization.

/// Locks a mutex.
///
/// # Errors
/// [`Code::Relock`], [`Code::Argument`].
pub fn lock(mutex: usize) -> Result<()> {
    let entered = enter_for(mutex, "mutex")?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    let who = cluster.processor_at(slot);
    meter::timed(cluster, Bucket::LockWait, || objects::call(cluster, slot, Event::Lock { mutex: mutex as u64, who }))?;
    meter::count(cluster, Counter::LockAcquires, 1);
    consistency::acquire(cluster);
    Ok(())
}

/// Locks a mutex if nobody holds it.
///
/// # Errors
/// [`Code::Argument`].
pub fn try_lock(mutex: usize) -> Result<bool> {
    let entered = enter_for(mutex, "mutex")?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    let who = cluster.processor_at(slot);
    let locked = objects::call(cluster, slot, Event::TryLock { mutex: mutex as u64, who })? == 1;
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
    let entered = enter_for(mutex, "mutex")?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    consistency::release(cluster);
    let who = cluster.processor_at(slot);
    objects::call(cluster, slot, Event::Unlock { mutex: mutex as u64, who })?;
    Ok(())
}

/// Waits for a condition variable with the mutex given up.
///
/// # Errors
/// [`Code::NotOwner`], [`Code::Argument`].
pub fn wait_condition(condition: usize, mutex: usize) -> Result<()> {
    let entered = enter_for(condition, "condition variable")?;
    check_object(entered.cluster, mutex, "mutex")?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    consistency::release(cluster);
    meter::count(cluster, Counter::ConditionWaits, 1);
    let who = cluster.processor_at(slot);
    meter::timed(cluster, Bucket::LockWait, || {
        objects::wait_condition(cluster, slot, condition as u64, mutex as u64)?;
        objects::call(cluster, slot, Event::Lock { mutex: mutex as u64, who })
    })?;
    consistency::acquire(cluster);
    Ok(())
}

/// Wakes the longest waiter of a condition variable, or all.
///
/// # Errors
/// [`Code::Argument`].
pub fn signal(condition: usize, all: bool) -> Result<()> {
    let entered = enter_for(condition, "condition variable")?;
    let condition = condition as u64;
    let event = if all { Event::Broadcast { condition } } else { Event::Signal { condition } };
    objects::call(entered.cluster, entered.slot, event)?;
    Ok(())
}

/// Waits until `count` processors have arrived at a barrier.
///
/// # Errors
/// [`Code::BarrierCount`], [`Code::Argument`].
pub fn barrier(barrier: usize, count: u32) -> Result<()> {
    let entered = enter_for(barrier, "barrier")?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    consistency::release(cluster);
    let who = cluster.processor_at(slot);
    let event = Event::Arrive { barrier: barrier as u64, count, who, weight: 1 };
    meter::timed(cluster, Bucket::BarrierWait, || objects::call(cluster, slot, event))?;
    meter::count(cluster, Counter::Barriers, 1);
    consistency::acquire(cluster);
    Ok(())
}

/// Waits until all processors of the job have arrived.
///
/// # Errors
/// [`Code::BarrierCount`], [`Code::Argument`].
pub fn barrier_all() -> Result<()> {
    let entered = enter()?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    if slot >= cluster.shape.processors_per_node() {
        let what = "fsp_barrier_all in a thread that the program made itself: it is no processor";
        return Err(Failure::new(Code::Argument, what));
    }
    consistency::release(cluster);
    // Where every process runs main, and no fsp_parallel is under way, main speaks for the process's serving threads too.
    let alone = entered.runtime.model == Model::Spmd && PARALLEL.load(Ordering::Relaxed) == 0;
    let weight = if alone { cluster.shape.threads as u32 } else { 1 };
    meter::timed(cluster, Bucket::BarrierWait, || barrier::arrive(cluster, slot, weight))?;
    meter::count(cluster, Counter::Barriers, 1);
    consistency::acquire(cluster);
    Ok(())
}

/// Raises a flag.
///
/// # Errors
/// [`Code::Argument`].
pub fn set_flag(flag: usize, value: u32) -> Result<()> {
    let entered = enter_for(flag, "flag")?;
    consistency::release(entered.cluster);
    meter::count(entered.cluster, Counter::Flags, 1);
    objects::call(entered.cluster, entered.slot, Event::SetFlag { flag: flag as u64, value })?;
    Ok(())
}

/// Waits for a flag.
///
/// # Errors
/// [`Code::Argument`].
pub fn wait_flag(flag: usize, value: u32) -> Result<u32> {
    let entered = enter_for(flag, "flag")?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    let who = cluster.processor_at(slot);
    let event = Event::WaitFlag { flag: flag as u64, value, who };
    let value = meter::timed(cluster, Bucket::LockWait, || objects::call(cluster, slot, event))?;
    meter::count(cluster, Counter::Flags, 1);
    consistency::acquire(cluster);
    Ok(value as u32)
}

/// The value of a flag.
///
/// # Errors
/// [`Code::Argument`].
pub fn read_flag(flag: usize) -> Result<u32> {
    let entered = enter_for(flag, "flag")?;
    let (cluster, slot) = (entered.cluster, entered.slot);
    let who = cluster.processor_at(slot);
    let value = objects::call(cluster, slot, Event::ReadFlag { flag: flag as u64, who })?;
    consistency::acquire(cluster);
    Ok(value as u32)
}

/// Puts a flag back to 0.
///
/// # Errors
/// [`Code::Argument`].
pub fn reset_flag(flag: usize) -> Result<()> {
    let entered = enter_for(flag, "flag")?;
    objects::call(entered.cluster, entered.slot, Event::ResetFlag { flag: flag as u64 })?;
    Ok(())
}

fn enter_for(object: usize, kind: &str) -> Result<Entered> {
    let entered = enter()?;
    check_object(entered.cluster, object, kind)?;
    Ok(entered)
}

/// Objects are known by their addresses, which mean the same to everybody only in the shared space.
fn check_object(cluster: &Cluster, object: usize, kind: &str) -> Result<()> {
    match offset(cluster, object) {
        Some(offset) if offset % 8 == 0 => Ok(()),
        Some(_) => Err(Failure::new(Code::Argument, format!("the {kind} at {object:#x} is not aligned to 8 bytes"))),
        None => Err(Failure::new(
            Code::Argument,
            format!("the {kind} at {object:#x} is not in shared memory: allocate it with fsp_malloc"),
        )),
    }
}

// Threads.

/// Creates a thread on an idle processor, or on the given one; `None` when there is none.
///
/// # Errors
/// [`Code::Argument`].
pub fn create_thread(on: Option<usize>, function: usize, argument: u64) -> Result<Option<u64>> {
    let entered = enter()?;
    let cluster = entered.cluster;
    let on = match on {
        Some(processor) if processor < cluster.shape.processors() => Some(ProcessorId(processor as u32)),
        Some(processor) => {
            let what = format!("fsp_thread_create_on: processor {processor} of {}", cluster.shape.processors());
            return Err(Failure { code: Code::Argument, what });
        }
        None => None,
    };
    let function = offset_of_function(&entered, function)?;
    consistency::release(cluster);
    Ok(threads::create(cluster, entered.slot, on, function, argument)?.map(|handle| handle.0))
}

fn offset_of_function(entered: &Entered, function: usize) -> Result<u64> {
    entered.runtime.program.offset_of(function).ok_or_else(|| {
        let what = format!("the function at {function:#x} is not one of the program itself");
        Failure::new(Code::Argument, what)
    })
}

/// Waits for the end of a thread: its result.
///
/// # Errors
/// [`Code::Argument`].
pub fn join_thread(handle: u64) -> Result<u64> {
    let entered = enter()?;
    let result = threads::join(entered.cluster, entered.slot, Handle(handle))?;
    consistency::acquire(entered.cluster);
    Ok(result)
}

/// The calls of `fsp_parallel` under way in this process.
static PARALLEL: AtomicU32 = AtomicU32::new(0);

/// Runs `body`, which runs a function on all of [`parallel_processors`], as an `fsp_parallel`.
pub fn in_parallel<R>(body: impl FnOnce() -> R) -> R {
    PARALLEL.fetch_add(1, Ordering::Relaxed);
    let result = body();
    PARALLEL.fetch_sub(1, Ordering::Relaxed);
    result
}

/// The processors, besides the caller's, on which `fsp_parallel` runs a function: all of the job in the main model, those
/// of the process in SPMD.
///
/// # Errors
/// [`Code::NotStarted`].
pub fn parallel_processors() -> Result<std::ops::Range<usize>> {
    let runtime = runtime()?;
    let (cluster, shape) = (runtime.cluster, &runtime.cluster.shape);
    Ok(match runtime.model {
        Model::Main => 0..shape.processors(),
        Model::Spmd => {
            let first = cluster.processor_at(usize::from(cluster.my_view().0) * shape.threads).0 as usize;
            first..first + shape.threads
        }
    })
}
