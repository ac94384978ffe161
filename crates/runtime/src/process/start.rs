//! How a process joins its job, and serves.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use finespun_errors::{Code, Place};
use finespun_job::{Faults, Job, Report};
use finespun_sys::clock::{self, Calibration};
use finespun_sys::descriptors::keep_all_aside;
use finespun_sys::process::{Cores, Program, cpus};
use finespun_sys::view::{Mechanism, View};

use crate::consistency::revoke;
use crate::consistency::units;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::node::hooks::Hooks;
use crate::node::runtime::{Model, Runtime};
use crate::node::{hooks, limits, meter, misuse, names, runtime};
use crate::process::end::leave;
use crate::process::inherited::{Inherited, faults_wanted, space_base};
use crate::process::subject::Subject;
use crate::process::{buffers, builds, dispatch, faults, gather, globals};
use crate::sync::places::{self, Work};
use crate::sync::threads;
use crate::sys::shape::fingerprint;
use crate::sys::{descriptors, process as own_process};

/// How functions of the program are run.
#[derive(Clone, Copy, Debug)]
pub struct Runners {
    /// Runs a function, given its address and argument; what it returns.
    pub call: fn(usize, u64) -> u64,
    /// Makes a thread, which calls [`crate::program::begin_thread`].
    pub make: fn(Work),
    /// Makes a thread that calls [`crate::program::keep_places`].
    pub keep: fn() -> Result<(), Failure>,
}

/// Begins the diagnoses that the job asks for, given the addresses of the variables that are shared; says what they are to be told.
pub type Diagnose = fn(Subject, &Range<usize>) -> Result<Hooks, Failure>;

static STARTING: Mutex<bool> = Mutex::new(false);

/// Starts the runtime. In a process that only serves it does not return. `globals` are the addresses of the program's
/// variables, if they are to be shared.
///
/// # Errors
/// [`Code::StartedTwice`], [`Code::Forked`], [`Code::Machine`], [`Code::Builds`], [`Code::Usage`].
pub fn start(
    model: Model,
    globals: Range<usize>,
    runners: Runners,
    diagnose: Diagnose,
) -> Result<&'static Runtime, Failure> {
    if runtime::is_forked() {
        return Err(Failure::new(Code::Forked, "fsp_init in a child made by fork"));
    }
    let mut starting = STARTING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *starting {
        return Err(Failure::new(Code::StartedTwice, "fsp_init was called a second time"));
    }
    *starting = true;
    drop(starting);
    let inherited = Inherited::read()?;
    let as_whom = Beginning { model, globals: (globals.start, globals.end), runners, diagnose };
    if model != Model::Threads {
        return start_as(inherited, as_whom);
    }
    start_as(gather::together(inherited, start_sibling, as_whom)?, as_whom)
}

/// What was asked for at the start.
#[derive(Clone, Copy)]
struct Beginning {
    model: Model,
    globals: (usize, usize),
    runners: Runners,
    diagnose: Diagnose,
}

/// Starts in a process that only serves.
fn start_sibling(inherited: Inherited, beginning: Beginning) -> ! {
    match start_as(inherited, beginning) {
        Ok(runtime) => leave(runtime.cluster),
        Err(failure) => misuse::end_job(misuse::joined_as(), &failure),
    }
}

fn start_as(inherited: Inherited, beginning: Beginning) -> Result<&'static Runtime, Failure> {
    let Beginning { model, globals, runners, diagnose } = beginning;
    let globals = globals.0..globals.1;
    let runtime = join(model, inherited, globals.clone())?;
    let cluster = runtime.cluster;
    hooks::set(diagnose(Subject::of(runtime), &globals)?);
    let first = usize::from(cluster.my_view().0) * cluster.shape.threads;
    if model == Model::Threads {
        return start_threads(runtime, first, runners);
    }
    let run = runners.call;
    for slot in first + 1..first + cluster.shape.threads {
        std::thread::Builder::new()
            .name(format!("fsp-{}", cluster.processor_at(slot).0))
            .spawn(move || {
                pin(cluster, slot);
                serve(runtime, slot, run);
            })
            .map_err(|error| Failure::new(Code::Machine, format!("a thread could not be made: {error}")))?;
    }
    pin(cluster, first);
    if model == Model::Main && cluster.processor_at(first).0 != 0 {
        serve(runtime, first, run);
        leave(cluster);
    }
    threads::begin_main(cluster, first)?;
    Ok(runtime)
}

/// Puts the calling thread on its processor's core, if the job is pinned. A process begins on the cores of all of its processors.
fn pin(cluster: &Cluster, slot: usize) {
    let Some(pinned) = cluster.job.pinned.as_ref().filter(|_| cluster.shape.threads > 1) else { return };
    let Some(&core) = pinned.cores.get(cluster.processor_at(slot).0 as usize) else { return };
    if let Err(error) = Cores::of(&[core]).stay() {
        let what = format!("processor {} could not be pinned to core {core}: {error}", cluster.processor_at(slot).0);
        misuse::end_job(misuse::place(cluster), &Failure::new(Code::Machine, what));
    }
}

/// The same in the model of threads.
fn start_threads(runtime: &'static Runtime, first: usize, runners: Runners) -> Result<&'static Runtime, Failure> {
    let cluster = runtime.cluster;
    if cluster.processor_at(first).0 != 0 {
        meter::no_slot();
        places::keep(cluster, runners.make);
        leave(cluster);
    }
    places::main_runs();
    threads::begin_main(cluster, first)?;
    (runners.keep)()?;
    Ok(runtime)
}

fn serve(runtime: &'static Runtime, slot: usize, run: fn(usize, u64) -> u64) {
    meter::become_slot(slot);
    let cluster = runtime.cluster;
    cluster.slot(slot).started_ticks.store(clock::ticks(), Ordering::Relaxed);
    threads::serve_commands(cluster, slot, |function, argument| match runtime.program.address_of(function) {
        Some(address) => run(address, argument),
        None => {
            let what = format!("a thread was to run offset {function:#x}, which is not in this program");
            misuse::end_job(misuse::place(cluster), &Failure { code: Code::Builds, what })
        }
    });
    meter::collect_calls(cluster);
    cluster.slot(slot).ended_ticks.store(clock::ticks(), Ordering::Relaxed);
}

fn join(model: Model, inherited: Inherited, globals: Range<usize>) -> Result<&'static Runtime, Failure> {
    let machine = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| Failure::new(Code::Machine, format!("{what}: {error}"))
    };
    let program = Program::of_this_process().map_err(machine("the program's build could not be read"))?;
    if let Some(control) = inherited.control {
        misuse::report_to(control);
    }
    if inherited.job.layout != fingerprint() {
        let what = format!(
            "the program's libfinespun ({}) and the `finespun` that started it are different builds",
            env!("CARGO_PKG_VERSION")
        );
        return Err(Failure { code: Code::Builds, what });
    }
    let (me, view) = (inherited.node, inherited.view);
    let first = (u32::from(me.0) * inherited.job.views + u32::from(view.0)) * inherited.job.threads;
    names::count(inherited.job.processors() as usize);
    misuse::join_as(Place::Processor { node: u32::from(me.0), processor: first });
    let base = space_base()?;
    let faults = faults_wanted(inherited.job.faults)?;
    let mapping = limits::mapping(&inherited.job, true);
    let not_mapped = |error| Failure::new(Code::Machine, limits::refused(&mapping, &error));
    let calibration = Calibration::measure(200_000);
    let spin_ticks = calibration.ticks(spin_ns(&inherited.job, cpus().unwrap_or(1)));
    let mut cluster =
        Cluster::join(inherited.job, me, inherited.sockets, descriptors::borrow, dispatch::message, spin_ticks)
            .map_err(not_mapped)?;
    let frames = descriptors::borrow(cluster.job.memory[usize::from(me.0)].frames);
    let own_view = View::new(frames, base, cluster.shape.frame_bytes(), faults).map_err(not_mapped)?;
    let mechanism = own_view.mechanism();
    cluster.view = Some((view, own_view));
    cluster.hold_ticks = calibration.ticks(revoke::HOLD_NS);
    let node = cluster.mine().node();
    node.ticks_per_ms.store((calibration.ticks_per_ns * 1e6) as u64, Ordering::Relaxed);
    let _ = node.started_ns.compare_exchange(0, clock::now_ns(), Ordering::Relaxed, Ordering::Relaxed);
    if cluster.shape.threads > 1 || runtime::has_own_threads() {
        cluster.mine().view(view).several_threads.store(1, Ordering::Relaxed);
    }
    let first = usize::from(view.0) * cluster.shape.threads;
    meter::become_slot(first);
    cluster.slot(first).started_ticks.store(clock::ticks(), Ordering::Relaxed);
    builds::check(&cluster, first, &program)?;
    let contents = if globals.is_empty() { Vec::new() } else { globals::open(&mut cluster, first, &globals)? };
    let cluster: &'static Cluster = Box::leak(Box::new(cluster));
    let node = cluster.mine().node();
    let addresses = cluster.view.as_ref().map_or(0..0, |(_, mapping)| mapping.addresses());
    buffers::opened(&addresses, &globals);
    faults::install(cluster).map_err(machine("the fault handler could not be installed"))?;
    if let Some(tables) = units::revoking(cluster) {
        revoke::start(cluster, tables).map_err(machine("a thread could not be made"))?;
    }
    let before_fork = (!globals.is_empty()).then_some(globals::before_fork as extern "C" fn());
    own_process::on_fork(before_fork, forked).map_err(machine("pthread_atfork"))?;
    keep_all_aside();
    node.started.fetch_add(1, Ordering::SeqCst);
    misuse::tell(&Report::Started {
        faults: match mechanism {
            Mechanism::Uffd => Faults::Uffd,
            Mechanism::Mprotect => Faults::Mprotect,
        },
    });
    globals::fill(&globals, &contents);
    Ok(runtime::begin(Runtime { cluster, model, program }))
}

/// Spinning pays only while every thread that may spin has a core of its own. Else only who answers at once from another core is
/// waited for: a barrier of 8 processors on 2 cores takes 23.6 us without any spin, 24.7 with 0.3 us, 29.8 with 1 us; of 3 processors
/// 5.5, 6.9 and 7.6 us.
fn spin_ns(job: &Job, usable: usize) -> u64 {
    let service = if job.sends_messages() { job.nodes } else { 0 };
    // A pinned process counts one core; the service processes have all of them.
    let cores = match &job.pinned {
        Some(pinned) if pinned.is_apart() => pinned.usable as usize,
        Some(_) => 0,
        None => usable,
    };
    if (job.processors() + service) as usize <= cores { 30_000 } else { 300 }
}

/// Runs in a child made by fork, where only this may be done safely.
extern "C" fn forked() {
    runtime::fork();
    hooks::end();
    if let Some(runtime) = runtime::started() {
        globals::in_child(runtime.cluster);
    }
}
