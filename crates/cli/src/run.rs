//! `finespun run`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::thread;

use finespun_errors::{Code, Place, Report};
use finespun_job::pin::{Pin, Pinned};
use finespun_job::switches::{Cores, Locks, Receive, Strings, Switches};
use finespun_job::{Faults, Job, Transport, checks, protocols};
use finespun_launch::{Outcome, Plan, Wanted, program};
use finespun_protocol::Family;
use finespun_report::{Counts, Memory, OfNode, PhaseTime, Run as RunOf, RunStats, summary};
use finespun_runtime::segment::{MemoryTold, Told};
use finespun_sys::{machine, process};
use finespun_types::{NODES_MAX, UnitSize};

use crate::options::{PROCESSORS_MAX, Run};
use crate::output;
use crate::report;

/// Runs the program to its end and returns the job's exit code.
pub fn run(options: Run) -> Result<i32, Report> {
    match options.protocol.as_str() {
        "help" => {
            print_protocols();
            return Ok(0);
        }
        "list" => {
            list_protocols();
            return Ok(0);
        }
        _ => {}
    }
    if options.check.as_deref() == Some("help") {
        for each in checks::CHECKS {
            output::print(&format!("{:<12} {}\n", each.name, each.line));
        }
        return Ok(0);
    }
    let job = job(&options)?;
    let Some(name) = options.command.first() else {
        return Err(usage("expected a program: finespun run [FLAGS] PROGRAM [ARGS]".into()));
    };
    let file = program::find(name)?;
    let command = options.command.clone();
    // Opened before the job, so that no run is lost by a wrong path; emptied by that, so that no old run is taken for it.
    let stats_file = match options.stats.as_deref() {
        Some(path) => Some((path, File::create(path).map_err(|error| report::refuse(path, &error.to_string()))?)),
        None => None,
    };
    let told = match (&stats_file, options.quiet) {
        (Some(_), _) => Wanted::Always,
        (None, false) => Wanted::Complete,
        (None, true) => Wanted::Never,
    };
    let plan = Plan { job: job.clone(), file, command: command.clone(), prefix: options.prefix, told };
    let outcome = finespun_launch::run(plan)?;
    let of_node = |told: &Told| OfNode {
        processors: told.processors.clone(),
        others: told.others,
        memory: memory_of(&told.memory),
    };
    let nodes = outcome.nodes.iter().map(of_node).collect::<Vec<_>>();
    let stats = || RunStats::new(describe(&job, &command, &outcome), &nodes, phases(&job, &outcome));
    if let Some((path, file)) = stats_file {
        write_stats(&stats(), path, file)?;
    }
    for report in &outcome.diagnosis.reports {
        eprintln!("{report}");
    }
    for note in outcome.diagnosis.notes.iter().filter(|_| !options.quiet) {
        eprintln!("finespun: {note}");
    }
    if outcome.is_complete && !options.quiet {
        let text = summary(&stats(), report::style(io::stderr().is_terminal()));
        let _ = io::stderr().write_all(text.as_bytes()); // nobody reads: no reason to fail the run
    }
    // What ended the job has the word, if anything but its own end did.
    let found = outcome.diagnosis.reports.first().map_or(0, |report| report.code.exit_code());
    Ok(if outcome.exit_code == 0 { found } else { outcome.exit_code })
}

fn memory_of(told: &MemoryTold) -> Memory {
    Memory {
        frame_bytes: told.frame_bytes,
        table_bytes: told.table_bytes,
        twin_bytes: told.twin_bytes,
        table_bytes_per_page: told.table_bytes_per_page,
    }
}

/// The protocols for people.
fn print_protocols() {
    let best = [Transport::Shm, Transport::Tcp].map(protocols::best);
    let line = format!("the one that measured best over the transport: {} over shm, {} over tcp", best[0], best[1]);
    output::print(&format!("{:<12} {:<9} {line}\n", protocols::AUTO, "shm, tcp"));
    for each in protocols::PROTOCOLS {
        output::print(&format!("{:<12} {:<9} {}\n", each.name, each.transports(), each.line));
    }
}

/// The protocols for programs: a line `NAME TRANSPORT LEVELS` for each transport a protocol runs over.
fn list_protocols() {
    for each in protocols::PROTOCOLS {
        let levels = if each.one_level { 1 } else { 2 };
        for transport in [Transport::Shm, Transport::Tcp].into_iter().filter(|on| each.over(*on).is_some()) {
            output::print(&format!("{} {} {levels}\n", each.name, transport_name(transport)));
        }
    }
}

fn job(options: &Run) -> Result<Job, Report> {
    let (nodes, views, threads) = (options.nodes, options.processes, options.threads);
    let processors = nodes * views * threads;
    if processors > PROCESSORS_MAX {
        let what = format!("-n {nodes} -p {views} -t {threads} is {processors} processors; at most {PROCESSORS_MAX}");
        return Err(usage(what));
    }
    let protocol = protocols::named(&options.protocol, options.transport).map_err(usage)?;
    let sends_messages = protocol.over(options.transport).is_some_and(|variant| variant.sends_messages());
    let which = format!("{} over {}", protocol.name, transport_name(options.transport));
    options.chosen.check(sends_messages, &which).map_err(usage)?;
    check_messages(options, sends_messages, &which).map_err(usage)?;
    let (nodes, views, threads) = match (protocol.one_level, options.chosen.strings) {
        // Not "one processor, one node" as Cashmere's: the view is what counts.
        (true, _) if protocol.family == Family::Tmk => (one_level(options, protocol.name)?.0, 1, threads),
        (true, _) => {
            refuse_threads(options, protocol.name)?;
            one_level(options, protocol.name)?
        }
        (false, Some(strings)) if strings.is_one_level() => {
            refuse_threads(options, "--strings S")?;
            one_level(options, "--strings S")?
        }
        (false, Some(strings)) => threads_for_processes(options, strings)?,
        (false, None) => (nodes, views, threads),
    };
    let switches = options.chosen.over(Switches::of(protocol.family));
    if protocol.family == Family::Tmk && switches.locks == Locks::Migratory {
        let what =
            "tmk sends write notices with the grants of mutexes that stay at their managers: expected --locks queue";
        return Err(usage(what.to_owned()));
    }
    Ok(Job {
        nodes,
        views,
        threads,
        pinned: pinned(options, nodes * views * threads, switches.cores)?,
        transport: options.transport,
        faults: options.faults,
        unit_bytes: UnitSize::PAGE.bytes() as u32,
        heap_bytes: options.heap.unwrap_or_else(machine::default_heap_bytes),
        memory: Vec::new(),
        protocol: protocol.name.into(),
        layout: finespun_runtime::segment::layout(),
        switches,
        checks: options.check.as_deref().map(checks::parse).transpose().map_err(usage)?.unwrap_or_default(),
        watch: None,
        messages: options.messages.clone(),
        gathering: None,
    })
}

/// Why messages cannot be carried as asked for.
fn check_messages(options: &Run, sends_messages: bool, which: &str) -> Result<(), String> {
    if options.messages.is_default() {
        return Ok(());
    }
    if !sends_messages {
        return Err(format!("--messages is about messages between nodes, and {which} sends none"));
    }
    let receive = options.chosen.over(Switches::DEFAULT).receive;
    if receive == Receive::Signal {
        return Err("--receive signal is about sockets whose input nothing delays: expected --messages sockets".into());
    }
    Ok(())
}

/// The core of each processor, if the job is to be pinned.
fn pinned(options: &Run, processors: u32, cores: Cores) -> Result<Option<Pinned>, Report> {
    if options.pin != Pin::None && cores == Cores::One {
        return Err(usage("--pin gives each processor a core, and --cores one each node: expected one of them".into()));
    }
    let usable = process::Cores::allowed().map(|cores| cores.numbers());
    options.pin.over(processors, &usable.unwrap_or_default()).map_err(usage)
}

/// Nodes and processes per node where every processor is a node [Cashmere05 §3.3].
fn one_level(options: &Run, name: &str) -> Result<(u32, u32, u32), Report> {
    let nodes = options.nodes * options.processes;
    if nodes > NODES_MAX as u32 {
        return Err(usage(format!(
            "{name} makes {nodes} nodes of -n {} -p {}; at most {NODES_MAX}",
            options.nodes, options.processes
        )));
    }
    Ok((nodes, 1, 1))
}

fn refuse_threads(options: &Run, name: &str) -> Result<(), Report> {
    if options.threads > 1 {
        return Err(usage(format!("{name} makes a node of every processor, and threads share one: expected -t 1")));
    }
    Ok(())
}

/// Nodes, processes and threads where the processors of a node are threads of one process [Strings §2.1].
fn threads_for_processes(options: &Run, strings: Strings) -> Result<(u32, u32, u32), Report> {
    if options.threads > 1 {
        let name = strings.name();
        return Err(usage(format!("--strings {name} makes P threads of -p P: expected -t 1")));
    }
    Ok((options.nodes, 1, options.processes))
}

const fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Shm => "shm",
        Transport::Tcp => "tcp",
    }
}

fn usage(what: String) -> Report {
    Report { code: Code::Usage, place: Place::Launcher, what }
}

fn describe(job: &Job, command: &[OsString], outcome: &Outcome) -> RunOf {
    RunOf {
        version: env!("CARGO_PKG_VERSION").into(),
        program: command.iter().map(quoted).collect::<Vec<_>>().join(" "),
        nodes: job.nodes,
        views: job.views,
        threads: job.threads,
        processors: job.processors(),
        cores: thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
        protocol: job.protocol.clone(),
        transport: transport_name(job.transport).into(),
        switches: job.switches.named().map(|(flag, value)| (flag.into(), value.into())).into(),
        faults: match outcome.faults {
            None | Some(Faults::Auto) => "none".into(),
            Some(Faults::Uffd) => "uffd".into(),
            Some(Faults::Mprotect) => "mprotect".into(),
        },
        heap_bytes: job.heap_bytes,
        seconds: outcome.elapsed.as_secs_f64(),
        exit_code: outcome.exit_code,
    }
}

fn phases(job: &Job, outcome: &Outcome) -> Vec<PhaseTime> {
    let each = job.views * job.threads;
    let of_node = |(node, told): (u32, &Told)| {
        let phases = told.phases.iter().map(move |phase| PhaseTime {
            node,
            processor: node * each + phase.processor as u32,
            name: phase.name.clone(),
            phase_ns: phase.nanos,
            count: phase.count,
            counts: Counts::of(&phase.counters),
        });
        phases.collect::<Vec<_>>()
    };
    (0..).zip(&outcome.nodes).flat_map(of_node).collect()
}

/// An argument as it could be typed into a shell.
fn quoted(argument: &OsString) -> String {
    let text = argument.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn write_stats(stats: &RunStats, path: &Path, mut file: File) -> Result<(), Report> {
    let text = serde_json::to_string_pretty(stats).map_err(io::Error::other);
    let written = text.and_then(|text| file.write_all(format!("{text}\n").as_bytes()));
    written.map_err(|error| report::refuse(path, &error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn arguments_are_shown_as_a_shell_would_take_them() {
        assert_eq!(
            ["--size=8", "a b", "it's", ""].map(|text| quoted(&text.into())),
            ["--size=8", "'a b'", "'it'\\''s'", "''"]
        );
    }
}
