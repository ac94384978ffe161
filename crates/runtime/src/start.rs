//! How a process joins its job and leaves it.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use finespun_errors::{Code, Place};
use finespun_job::{self as job, Faults, Job, NodeMemory, Report, Transport};
use finespun_sys::clock::{self, Calibration};
use finespun_sys::descriptors::{keep, keep_all_aside};
use finespun_sys::machine;
use finespun_sys::process::{Cores, Program, cpus, fnv1a};
use finespun_sys::view::{Mechanism, View};
use finespun_types::{Counter, NodeId, SPACE_BASE, UNIT_BYTES, ViewId};

use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::places::{self, Work};
use crate::process::{Model, Runtime};
use crate::program::foreign;
use crate::sys::shape::{Shape, fingerprint};
use crate::sys::{descriptors, process as own_process};
use crate::wire::Request;
use crate::{
    barrier, buffers, closing, consistency, faults, globals, limits, meter, misuse, names, nest, objects, pointers,
    process, revoke, stacks, threads, watch,
};

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

static STARTING: Mutex<bool> = Mutex::new(false);

/// Starts the runtime. In a process that only serves it does not return. `globals` are the addresses of the program's
/// variables, if they are to be shared.
///
/// # Errors
/// [`Code::StartedTwice`], [`Code::Forked`], [`Code::Machine`], [`Code::Builds`], [`Code::Usage`].
pub fn start(model: Model, globals: Range<usize>, runners: Runners) -> Result<&'static Runtime, Failure> {
    if process::is_forked() {
        return Err(Failure::new(Code::Forked, "fsp_init in a child made by fork"));
    }
    let mut starting = STARTING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *starting {
        return Err(Failure::new(Code::StartedTwice, "fsp_init was called a second time"));
    }
    *starting = true;
    let runtime = join(model, globals.clone())?;
    drop(starting);
    let cluster = runtime.cluster;
    watch::begin(cluster, &globals)?;
    pointers::begin(cluster);
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

/// A process that only served ends.
fn leave(cluster: &Cluster) -> ! {
    watch::end();
    closing::close();
    cluster.flush_messages();
    end_processor(cluster);
    misuse::tell(&Report::Finalized);
    process::end();
    if cluster.view.as_ref().is_some_and(|(_, mapping)| !mapping.window().is_empty()) {
        // The variables that its exit would look at are gone, and main's own process does what is to be done.
        own_process::leave();
    }
    std::process::exit(0);
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

/// Ends the runtime: in SPMD after all processes have come here.
pub fn end() {
    let Ok(runtime) = process::runtime() else { return };
    let cluster = runtime.cluster;
    let slot = meter::slot_index().unwrap_or(usize::from(cluster.my_view().0) * cluster.shape.threads);
    consistency::release(cluster);
    match runtime.model {
        Model::Main | Model::Threads => {
            globals::keep_private(cluster);
            stacks::keep_private(cluster);
            threads::stop_all(cluster);
        }
        Model::Spmd => {
            threads::stop_own(cluster);
            if let Err(failure) = barrier::arrive_at_end(cluster, slot) {
                misuse::end_job(misuse::place(cluster), &failure);
            }
        }
    }
    watch::end();
    closing::close();
    cluster.flush_messages();
    end_processor(cluster);
    misuse::tell(&Report::Finalized);
    process::end();
    buffers::closed();
}

/// Takes the shared memory away, after the end.
pub fn close_memory() {
    let Some(runtime) = process::ended() else { return };
    if let Some((_, mapping)) = &runtime.cluster.view {
        process::close();
        if let Err(error) = mapping.close() {
            let what = limits::refused("taking the shared memory away", &error);
            misuse::end_job(misuse::place(runtime.cluster), &Failure { code: Code::Machine, what });
        }
    }
}

fn end_processor(cluster: &Cluster) {
    meter::collect_calls(cluster);
    if let Some((_, mapping)) = &cluster.view {
        meter::count(cluster, Counter::CoarseInvalidations, mapping.coarse_invalidations());
    }
    let first = usize::from(cluster.my_view().0) * cluster.shape.threads;
    cluster.slot(first).ended_ticks.store(clock::ticks(), Ordering::Relaxed);
    let node = cluster.mine().node();
    node.ended_ns.fetch_max(clock::now_ns(), Ordering::Relaxed);
}

fn join(model: Model, globals: Range<usize>) -> Result<&'static Runtime, Failure> {
    let machine = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| Failure::new(Code::Machine, format!("{what}: {error}"))
    };
    let program = Program::of_this_process().map_err(machine("the program's build could not be read"))?;
    let inherited = Inherited::read()?;
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
    let spin_ticks = calibration.ticks(spin_ns(&inherited.job));
    let mut cluster =
        Cluster::join(inherited.job, me, inherited.sockets, descriptors::borrow, spin_ticks).map_err(not_mapped)?;
    let frames = descriptors::borrow(cluster.job.memory[usize::from(me.0)].frames);
    let own_view = View::new(frames, base, cluster.shape.pages * UNIT_BYTES, faults).map_err(not_mapped)?;
    let mechanism = own_view.mechanism();
    cluster.view = Some((view, own_view));
    cluster.hold_ticks = calibration.ticks(revoke::HOLD_NS);
    let node = cluster.mine().node();
    node.ticks_per_ms.store((calibration.ticks_per_ns * 1e6) as u64, Ordering::Relaxed);
    let _ = node.started_ns.compare_exchange(0, clock::now_ns(), Ordering::Relaxed, Ordering::Relaxed);
    if cluster.shape.threads > 1 || process::has_own_threads() {
        cluster.mine().view(view).several_threads.store(1, Ordering::Relaxed);
    }
    let first = usize::from(view.0) * cluster.shape.threads;
    meter::become_slot(first);
    cluster.slot(first).started_ticks.store(clock::ticks(), Ordering::Relaxed);
    check_build(&cluster, first, &program)?;
    let contents = if globals.is_empty() { Vec::new() } else { globals::open(&mut cluster, first, &globals)? };
    let cluster: &'static Cluster = Box::leak(Box::new(cluster));
    let node = cluster.mine().node();
    let addresses = cluster.view.as_ref().map_or(0..0, |(_, mapping)| mapping.addresses());
    buffers::opened(addresses, globals.clone());
    faults::install(cluster).map_err(machine("the fault handler could not be installed"))?;
    if nest::revokes(cluster) {
        revoke::start(cluster).map_err(machine("a thread could not be made"))?;
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
    foreign::look_at_locks(cluster.job.checks.locks);
    Ok(process::begin(Runtime { cluster, model, program }))
}

/// All processes of a job must run one build: node 0 remembers that of the first to come.
fn check_build(cluster: &Cluster, slot: usize, program: &Program) -> Result<(), Failure> {
    let build = build_hash(&program.build_id);
    let keeper = NodeId(0);
    let first = if cluster.runs_tables_of(keeper) {
        remember_build(cluster, build)
    } else {
        let request = Request::Build { who: cluster.processor_at(slot), build };
        objects::ask(cluster, cluster.slot(slot), keeper, request)?.0
    };
    if first == build {
        return Ok(());
    }
    let what =
        format!("node {} runs another build of the program than node 0 (build {})", cluster.me.0, program.build_id);
    Err(Failure { code: Code::Builds, what })
}

/// The build of the first process of the job that came, at node 0.
pub fn remember_build(cluster: &Cluster, build: u64) -> u64 {
    let first = &cluster.at(NodeId(0)).node().build;
    match first.compare_exchange(0, build, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => build,
        Err(first) => first,
    }
}

/// Never 0, which stands for no build.
fn build_hash(build: &str) -> u64 {
    fnv1a(build.as_bytes()).max(1)
}

/// Spinning pays only while every thread that may spin has a core of its own. Else only who answers at once from another core is
/// waited for: a barrier of 8 processors on 2 cores takes 23.6 us without any spin, 24.7 with 0.3 us, 29.8 with 1 us; of 3 processors
/// 5.5, 6.9 and 7.6 us.
fn spin_ns(job: &Job) -> u64 {
    let service = if job.variant().sends_messages() { job.nodes } else { 0 };
    // A pinned process counts one core; the service processes have all of them.
    let cores = match &job.pinned {
        Some(pinned) if pinned.is_apart() => pinned.usable as usize,
        Some(_) => 0,
        None => cpus().unwrap_or(1),
    };
    if (job.processors() + service) as usize <= cores { 30_000 } else { 300 }
}

fn space_base() -> Result<usize, Failure> {
    let Some(text) = std::env::var_os("FINESPUN_BASE") else { return Ok(SPACE_BASE) };
    let parsed = text.to_str().and_then(|text| usize::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    parsed.filter(|base| base % UNIT_BYTES == 0 && *base > 0).ok_or_else(|| {
        Failure::new(Code::Usage, format!("FINESPUN_BASE={text:?} is no page-aligned hexadecimal address"))
    })
}

fn faults_wanted(of_job: Faults) -> Result<Option<Mechanism>, Failure> {
    match std::env::var(job::ENV_FAULTS).as_deref() {
        Ok("mprotect") => Ok(Some(Mechanism::Mprotect)),
        Ok("uffd") => Ok(Some(Mechanism::Uffd)),
        Ok("auto" | "") | Err(_) => Ok(match of_job {
            Faults::Auto => None,
            Faults::Uffd => Some(Mechanism::Uffd),
            Faults::Mprotect => Some(Mechanism::Mprotect),
        }),
        Ok(other) => {
            Err(Failure::new(Code::Usage, format!("FINESPUN_FAULTS={other} is neither auto, uffd nor mprotect")))
        }
    }
}

/// What the process was given by whoever started it.
struct Inherited {
    job: Job,
    node: NodeId,
    view: ViewId,
    sockets: Vec<Option<OwnedFd>>,
    control: Option<OwnedFd>,
}

impl Inherited {
    fn read() -> Result<Self, Failure> {
        let Some(fd) = number(job::ENV_JOB)? else { return Self::alone() };
        let text = descriptors::read_all(fd).map_err(|error| {
            let code = if error.kind() == std::io::ErrorKind::NotFound { Code::Closed } else { Code::Machine };
            Failure::new(code, format!("fsp_init: the job's description, {}={fd}: {error}", job::ENV_JOB))
        })?;
        let parsed: Job = serde_json::from_slice(&text).map_err(|error| {
            Failure::new(Code::Usage, format!("{}={fd} is no job description: {error}", job::ENV_JOB))
        })?;
        let sockets = match std::env::var(job::ENV_SOCKETS) {
            Ok(list) => list.split(',').map(|fd| fd.parse().ok().and_then(descriptors::own)).collect(),
            Err(_) => Vec::new(),
        };
        let inherited = Self {
            job: parsed,
            node: NodeId(number(job::ENV_NODE)?.unwrap_or(0) as u8),
            view: ViewId(number(job::ENV_VIEW)?.unwrap_or(0) as u8),
            sockets,
            control: number(job::ENV_CONTROL)?.and_then(descriptors::own),
        };
        inherited.keep_from_children(fd);
        Ok(inherited)
    }

    /// What the program executes is no part of the job: it gets neither the descriptors nor the variables.
    fn keep_from_children(&self, job_fd: i32) {
        let of_nodes = self.job.memory.iter().flat_map(|memory| [memory.frames, memory.segment]);
        let own = self.sockets.iter().flatten().chain(&self.control).map(AsRawFd::as_raw_fd);
        for fd in of_nodes.chain(own).chain([job_fd]).chain(self.job.watch) {
            // With messages, other nodes' memory is not open here.
            let _ = descriptors::close_on_exec(fd);
            keep(fd);
        }
        descriptors::forget_variables(&[
            job::ENV_JOB,
            job::ENV_NODE,
            job::ENV_VIEW,
            job::ENV_SOCKETS,
            job::ENV_CONTROL,
            job::ENV_KEEP,
        ]);
    }

    /// Without a launcher: one node, one processor.
    fn alone() -> Result<Self, Failure> {
        let mut job = Job {
            nodes: 1,
            views: 1,
            threads: 1,
            transport: Transport::Shm,
            faults: Faults::Auto,
            heap_bytes: machine::default_heap_bytes(),
            memory: Vec::new(),
            protocol: job::protocols::DEFAULT.to_owned(),
            layout: fingerprint(),
            switches: job::switches::Switches::DEFAULT,
            checks: job::checks::Checks::default(),
            watch: None,
            pinned: None,
        };
        let shape = Shape::of(&job);
        let create = |name, what, bytes| {
            finespun_sys::memory::create(name, bytes).map_err(|error| {
                Failure::new(Code::Machine, limits::refused(&limits::file(&job, what, bytes as u64), &error))
            })
        };
        let frames = create(c"finespun-frames", "pages", shape.pages * UNIT_BYTES)?;
        let segment = create(c"finespun-segment", "tables", shape.bytes)?;
        job.memory.push(NodeMemory { frames: frames.as_raw_fd(), segment: segment.as_raw_fd() });
        // They live as long as the process.
        std::mem::forget((frames, segment));
        Ok(Self { job, node: NodeId(0), view: ViewId(0), sockets: Vec::new(), control: None })
    }
}

/// Runs in a child made by fork, where only this may be done safely.
extern "C" fn forked() {
    process::fork();
    watch::end();
    if let Some(runtime) = process::started() {
        globals::in_child(runtime.cluster);
    }
}

fn number(name: &str) -> Result<Option<i32>, Failure> {
    match std::env::var(name) {
        Err(_) => Ok(None),
        Ok(text) => match text.parse() {
            Ok(number) if number >= 0 => Ok(Some(number)),
            Ok(_) | Err(_) => Err(Failure::new(Code::Usage, format!("{name}={text} is no descriptor or number"))),
        },
    }
}
